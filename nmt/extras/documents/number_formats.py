"""Formats of numbers, as the training pairs write them: 1.000,5 of a source as 1,000.5 in its translation.

A model that has seldom read a number copies it as it is. So what becomes of a separator is learnt from the pairs: of
one before three digits, as in 1.000, and of one before any other number of digits, as in 7,5. Versions, dates, IP
addresses and telephone numbers (1.2.3, 21.11.2026, 192.168.1.1, 030 123) are not numbers of these forms.

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
    # no group of an address is above 255, or begins with 0
    r"(?<![\w.,:/])(?:[1-9]\d{0,2}([.,'’\u00a0\u202f ])\d{3}(?:\1\d{3}(?:\1[03-9]\d\d)*+)?(?:(?!\1)[.,]\d++)?"
    r"|\d++[.,]\d++)(?![.,'’:/x×]?\d)"
)
"""A number with separators."""
_ANY = re.compile(rf"{NUMBER.pattern}|(?<![\w.,:/])\d++(?:[.,'’\u00a0\u202f]\d++)*+")
_FORMATS = TypeAdapter(dict[str, str])
_SEPARATOR = re.compile(r"(\D)(\d++)")


def learn(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Learns what becomes of separators, by their form, from numbers that both sides of a pair have. What is a decimal
    point before two digits is one before three, too, and then the other one of point and comma is none."""
    counts = defaultdict[str, Counter[str]](Counter)
    for source, target in pairs:
        separators = {_groups(number): _SEPARATOR.findall(number) for number in _numbers(target)}
        for number in _numbers(source):
            for own, (other, _) in zip(_SEPARATOR.finditer(number), separators.get(_groups(number), ()), strict=False):
                counts[_form(own)][other] += 1
    formats = dict[str, str]()
    for form, count in counts.items():
        least, same = max(LEAST, SHARE * count.total()), count.pop(form[0], 0)
        if same >= least or count.total() >= least:
            formats[form] = form[0] if same >= least else count.most_common(1)[0][0]
    for point, other in (".,", ",."):
        if formats.get(f"{point}0") == other:
            formats = {f"{point}000": other, f"{other}000": point, **formats}
    return formats


def rewritten(source: str, translation: str, formats: Mapping[str, str]) -> str:
    """Changes the separators of the numbers that a translation has copied from its source, or has written as another
    number with the same digits (12345 for 12,345)."""
    known = [each for each in _numbers(source) if all(_form(one) in formats for one in _SEPARATOR.finditer(each))]
    own = {match[0] for match in _ANY.finditer(source)}

    def right(match: re.Match[str]) -> str:
        text = match[0]
        # of 3,14 and 31,4 either could be meant
        meant = {each for each in known if each == text or (text not in own and _digits(each) == _digits(text))}
        number = meant.pop() if len(meant) == 1 else ""
        return text if not number or text == _without_groups(number, formats) else written(number, formats)

    return _ANY.sub(right, translation)


def _without_groups(number: str, formats: Mapping[str, str]) -> str:
    """Leaves out the separators of thousands, 12345.5 for 12.345,5, as translations may."""

    def joined(separator: re.Match[str]) -> str:
        is_decimal = f"{separator[1]}0" in formats or not _form(separator).endswith("000")
        return separator[0] if is_decimal else separator[2]

    return written(_SEPARATOR.sub(joined, number), formats)


def written(number: str, formats: Mapping[str, str]) -> str:
    """Changes the separators of a number, which may have a sign, or of a range; other text stays."""
    if "–" in number:
        return "–".join(written(each, formats) for each in number.split("–"))
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


def _groups(number: str) -> tuple[str, ...]:
    return tuple(re.split(r"\D", number))


def _digits(number: str) -> str:
    return "".join(_groups(number))


def _form(separator: re.Match[str]) -> str:
    """Returns a separator with the number of digits behind it, three or another one."""
    return separator[1] + ("000" if len(separator[2]) == 3 else "0")
