"""Formats of numbers, as the training pairs write them: 1.000,5 of a source as 1,000.5 in its translation.

A model that has seldom read a number copies it as it is. So what becomes of a separator is learnt from the pairs: of
one before three digits, as in 1.000, and of one before any other number of digits, as in 7,5. Versions, dates and IP
addresses (1.2.3, 21.11.2026, 192.168.1.1) are not numbers of these forms.

>>> formats = learn([("1.000 Euro", "1,000 euros")] * 3)
>>> formats
{'.000': ','}
>>> rewritten("Es kostet 25.300 Euro.", "It costs 25.300 euros.", formats)
'It costs 25,300 euros.'
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from pydantic import TypeAdapter

from nmt.core.errors import InputError
from nmt.core.files import read_json, replace_file
from nmt.data.config import DataConfig
from nmt.data.prepared import PreparedData
from nmt.translator.find_run import NUMBER_FORMATS

LEAST = 3
"""Minimum number of separators of a form that must become another one."""
SHARE = 0.8
"""Minimum share of them."""
MOST_PAIRS, MOST_NUMBERED = 200_000, 20_000
"""Maximum numbers of training pairs that are looked at, and of those with digits that are read."""

NUMBER = re.compile(
    r"(?<![\w.,/])(?:\d{1,3}([.,'’\u00a0\u202f ])\d{3}(?:\1\d{3})?(?:(?!\1)[.,]\d++)?|\d++[.,]\d++)(?![.,'’:/]?\d)"
)
"""A number with separators."""
_FORMATS = TypeAdapter(dict[str, str])
_SEPARATOR = re.compile(r"(\D)(\d++)")


def learn(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Learns the separators that change, by their form, from numbers that both sides of a pair have."""
    counts = defaultdict[str, Counter[str]](Counter)
    for source, target in pairs:
        separators = {_digits(number): _SEPARATOR.findall(number) for number in _numbers(target)}
        for number in _numbers(source):
            for own, (other, _) in zip(_SEPARATOR.finditer(number), separators.get(_digits(number), ()), strict=False):
                counts[_form(own)][other] += 1
    totals = {form: (count.total(), count.pop(form[0], 0)) for form, count in counts.items()}
    changing = [form for form, (total, same) in totals.items() if total - same >= max(LEAST, SHARE * total)]
    return {form: counts[form].most_common(1)[0][0] for form in changing}


def rewritten(source: str, translation: str, formats: Mapping[str, str]) -> str:
    """Changes the separators of the numbers that a translation has copied from its source."""
    copied = set(_numbers(source)) if formats else ()
    return NUMBER.sub(lambda match: written(match[0], formats) if match[0] in copied else match[0], translation)


def written(number: str, formats: Mapping[str, str]) -> str:
    """Changes the separators of a number, which may have a sign; other text stays."""
    if NUMBER.fullmatch(number.strip("+-−%٪％")) is None:
        return number
    return _SEPARATOR.sub(lambda match: formats.get(_form(match), match[1]) + match[2], number)


def write_formats(run: Path, config: DataConfig, data: PreparedData) -> None:
    """Learns from the training pairs and writes the formats into a run, unless these are into several languages."""
    formats = {} if len(config.target_languages) > 1 else learn(_pairs(data))
    replace_file(run / NUMBER_FORMATS, json.dumps(formats) + "\n")


def read_formats(run: Path) -> dict[str, str]:
    """Reads the formats of a run; an older one has none. Raises InputError for a damaged file."""
    path = run / NUMBER_FORMATS
    try:
        return _FORMATS.validate_python(read_json(path)) if path.exists() else {}
    except (OSError, ValueError):
        raise InputError(f"{path}: damaged; delete it, and `nmt train` writes it anew") from None


def _pairs(data: PreparedData) -> Iterator[tuple[str, str]]:
    """Yields the training pairs whose sources have digits, as text."""
    source, target = data.tokenizers.source, data.tokenizers.target
    digits = {token for token, piece in enumerate(source.pieces(range(source.size))) if any(map(str.isdecimal, piece))}
    pairs = range(min(len(data.train), MOST_PAIRS))
    rows = (row for row in pairs if not digits.isdisjoint(data.train.source(row).tolist()))
    for row in islice(rows, MOST_NUMBERED):
        yield source.detokenize(data.train.source(row).tolist()), target.detokenize(data.train.target(row).tolist())


def _numbers(text: str) -> Iterator[str]:
    return (match[0] for match in NUMBER.finditer(text))


def _digits(number: str) -> tuple[str, ...]:
    return tuple(re.split(r"\D", number))


def _form(separator: re.Match[str]) -> str:
    """Returns a separator with the number of digits behind it, three or another one."""
    return separator[1] + ("000" if len(separator[2]) == 3 else "0")
