"""Sentence pairs in common file formats: tables (TSV, CSV), JSON lines, translation memories (TMX, XLIFF).

The functions take the content of a file and yield its rows: pairs, or for an invalid row the reason. Only the current
rows are in memory.
"""

from __future__ import annotations

import csv
import json
import operator
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice, starmap
from pathlib import Path
from types import NoneType
from typing import Any, cast

from nmt.core.errors import InputError
from nmt.data.file_kinds import HEADER, NO_UTF8, NOT_UTF8, UNTRANSLATED, Fault, Languages, Row, once

_SAMPLE = 1000
"""Number of rows that determine the columns of a table."""

_NAMES = (
    ("source", "target"), ("src", "tgt"), ("src", "trg"), ("src", "ref"), ("source", "translation"),
    ("sentence", "translation"), ("text", "translation"), ("input", "output"), ("prompt", "completion"),
    ("question", "answer"), ("original", "corrected"),
)  # fmt: skip
_COLUMNS = dict(
    each.split("=")
    for each in """
    arabic=ar chinese=zh 中文=zh czech=cs čeština=cs dutch=nl nederlands=nl english=en englisch=en inglés=en anglais=en
    finnish=fi suomi=fi french=fr français=fr französisch=fr german=de deutsch=de hausa=ha hungarian=hu magyar=hu
    italian=it italiano=it japanese=ja 日本語=ja korean=ko 한국어=ko polish=pl polski=pl portuguese=pt português=pt
    romanian=ro română=ro russian=ru русский=ru spanish=es español=es spanisch=es swedish=sv svenska=sv turkish=tr
    türkçe=tr ukrainian=uk українська=uk vietnamese=vi
    """.split()  # noqa: SIM905
)
"""Codes of languages by names in the headers of tables."""
_LOCALE = re.compile(r"([a-z]{2})(?:-(?:[a-z]{2}|[a-z]{4}|[0-9]{3})){0,2}")
_TEXT = re.compile(r"(?:[ _-]|\b)(?:text|sentence|segment)(?:[ _-]|\b)")
_QUOTED = re.compile(
    r"""\A(?=.*?(?:[^"\s]""|""[^"\s]))(?:(?:"(?:[^"]|"")*+(?:"|\Z)|[^"\t\n]++)?+(?:[\t\n]|\Z))*+""", re.DOTALL
)
"""A table in which every quotation mark is that of a whole cell or doubled in one, and some are doubled."""
_SPACES = re.compile(r"[ \t\r\n]++")

# ------------------------------------------------------------------------------------------------------------ languages


def _matches(tag: str, language: str) -> bool:
    """Returns True for ``en-US`` and ``en``, in either order."""
    one, other = (f"{each.lower().replace('_', '-')}-" for each in (tag, language))
    return one.startswith(other) or other.startswith(one)


def _plain(name: str) -> str:
    """Returns the code of a language by its name, such as de for German, and source for ``Source text``."""
    name = name.strip().casefold()
    plain = (_TEXT.sub("", name) or name).replace("_", "-")
    return _COLUMNS.get(plain, plain)


def _codes(names: Iterable[str]) -> list[str]:
    """Returns the codes of the languages among names, such as de and en-us."""
    found = map(_LOCALE.fullmatch, map(_plain, names))
    return [code[0] for code in found if code is not None and code[1] in _COLUMNS.values()]


def _only_two(names: Iterable[str]) -> list[Languages]:
    """Returns the languages among names if there are two; the same word twice may be a pair."""
    codes = _codes(names)
    return [(codes[0], codes[1])] if len(codes) == len({*codes}) == 2 else []


def _named(names: Sequence[str], wanted: Iterable[Languages]) -> Languages | None:
    """Finds source and target among the names of columns or keys: the first pair that is wanted, or one of
    ``_NAMES``."""
    plain = {_plain(name): name for name in reversed(names)}  # the first of equal names
    same: Callable[[str, str], bool] = operator.eq
    for matches, pairs in ((_matches, wanted), (same, _NAMES), (_matches, _NAMES)):
        for pair in pairs:
            source, target = (
                next((plain[key] for key in map(_plain, names) if matches(key, each)), "") for each in pair
            )
            if source and target and source != target:
                return source, target
    return None


def choose(names: Sequence[str], place: str, languages: Languages | None, hints: Iterable[Languages] = ()) -> Languages:
    """Chooses source and target among the names in a file: ``languages`` if given, else the first of ``hints`` that the
    file has, else the only two names. Raises InputError if there are other names."""
    found = _named(names, [languages] if languages else hints)
    if found is not None:
        return found
    if len(names) != 2 or languages is not None:
        one, other = (*names, "de", "en")[:2]
        raise InputError(
            f"{place}: has {', '.join(names) or 'no names'}; name two of these, source first: in the name of the file, "
            f"such as my.{one}-{other}{Path(place).suffix}, or by languages: [{one}, {other}] of the corpus in a "
            "configuration"
        )
    return names[0], names[1]


def languages_in(name: str) -> list[Languages]:
    """Finds possible pairs of languages in the name of a file, such as de and en in ``Tatoeba.de-en.zip``."""
    parts = [part.split("-") for part in re.split(r"[._ /\\]", name)]
    return [(part[0], part[1]) for part in parts if len(part) == 2 and all(part)]


# ------------------------------------------------------------------------------------------------ tables and JSON lines


def text_rows(
    groups: Iterator[list[str]], place: str, languages: Languages | None, hints: Sequence[Languages],
    *, is_csv: bool, is_utf16: bool,
) -> Iterator[Sequence[Row]]:  # fmt: skip
    """Yields the rows of a text file from groups of its lines. The first lines determine if they are JSON lines, TSV or
    CSV. ``is_csv`` says that the name ends in .csv, ``is_utf16`` that the file is in UTF-16, like Excel's "Unicode
    text", in which cells are quoted as in CSV."""
    first = next(groups, [])
    if re.fullmatch(r"\[\s*+(?:[{\[].*)?", next(filter(str.strip, first), "")):
        first, groups = _of_array(chain(first, chain.from_iterable(groups))), iter([])
    lines = chain(first, chain.from_iterable(groups))
    trees = [_json(line) for line in islice(filter(str.strip, first), _SAMPLE)]
    if trees and sum(tree is not None for tree in trees) * 2 >= len(trees):
        keys = _keys([tree for tree in trees if isinstance(tree, dict)], place, languages, hints)
        return _batches(_json_pair(number, line, keys) for number, line in enumerate(lines, 1) if line.strip())
    # the line that tells Excel the delimiter
    excel = re.fullmatch(r'"?sep=([;,|\t])"?', first[0], re.IGNORECASE) if first else None
    delimiter = excel[1] if excel else _delimiter(first[:_SAMPLE], is_csv=is_csv, is_utf16=is_utf16)
    numbered = islice(enumerate(lines, 1), 1 if excel else 0, None)
    rows = _cells(numbered, delimiter) if delimiter else ((number, line.split("\t")) for number, line in numbered)
    return _table(rows, delimiter or "\t", [languages] if languages else hints, place)


def _of_array(lines: Iterable[str]) -> list[str]:
    """Returns the elements of an array of JSON as JSON lines, and other lines, such as text that begins with ``[``, as
    they are."""
    lines = [*lines]
    with suppress(ValueError, RecursionError):
        lines = [json.dumps(pair) for pair in json.loads("\n".join(lines))]
    return lines


def _json(line: str) -> Any:
    """Parses the object or list on a line; returns None if there is none, and for {"translation": {…}}, as in data sets
    of Hugging Face, the inner object."""
    try:
        tree = json.loads(line) if line.startswith(("{", "[")) else None
    except (ValueError, RecursionError):
        return None
    inner = tree.get("translation") if isinstance(tree, dict) else None
    return inner if isinstance(inner, dict) else tree


def _keys(
    trees: Sequence[Mapping[str, Any]], place: str, languages: Languages | None, hints: Sequence[Languages]
) -> Sequence[str | int]:
    """Chooses the keys of source and target in objects, or the indices 0 and 1 in lists, if there are no objects."""
    if not trees:
        return 0, 1
    names: list[str] = []
    for kinds in (str, (str, NoneType)):  # a side may be null in every row
        if len(names) < 2:
            names = [*dict.fromkeys(key for tree in trees for key, text in tree.items() if isinstance(text, kinds))]
    source, target = choose(names, place, languages, [*hints, *_only_two(names)])
    once(f"{place}: source {source}, target {target}")
    return source, target


def _json_pair(number: int, line: str, keys: Sequence[str | int]) -> Row:
    tree = _json(line)
    try:
        if isinstance(tree, dict) and not {*keys}.isdisjoint(tree):
            tree = dict.fromkeys(keys) | tree
        source, target = (one_line(tree[key] or "") for key in keys)
        f"{source}{target}".encode()
        return (source, target) if source.strip() and target.strip() else UNTRANSLATED
    except UnicodeEncodeError:
        return Fault("with half a character (a lone surrogate)", number)
    except (TypeError, LookupError, AttributeError):
        return Fault(NO_UTF8 if line == NOT_UTF8 else "no JSON object with two texts", number)


def _delimiter(lines: Sequence[str], *, is_csv: bool, is_utf16: bool) -> str | None:
    """Finds the delimiter of the cells of CSV; returns None for TSV, in which quotation marks are text, unless all of
    them are as in CSV, and some are written twice."""
    if sum("\t" in line for line in lines) * 2 >= len(lines) and not is_csv:
        return "\t" if is_utf16 or _QUOTED.fullmatch("\n".join(lines)) else None

    def share(delimiter: str) -> float:
        """Computes the share of the rows that have the most frequent number of cells."""
        widths = Counter(len(cells) for _, cells in _cells(enumerate(lines), delimiter))
        width, count = max(widths.items(), key=lambda item: item[1])
        return count / widths.total() if width > 1 else 0

    best = max(";,\t", key=share) if lines else ","
    return best if is_csv or share(best) > 0.9 else None


def _cells(lines: Iterable[tuple[int, str]], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the cells of the rows of CSV, with the number of the first line of each. A row with invalid quotation
    marks gives an empty list for each of its lines, and lines that a stray quotation mark makes one row are rows of
    text."""
    taken: list[tuple[int, str]] = []  # lines of the current row
    widths: Counter[int] = Counter()

    def text() -> Iterator[str]:
        for number, line in lines:
            taken.append((number, line))
            yield f"{line}\n"

    reader = csv.reader(text(), delimiter=delimiter, strict=True)
    while True:
        taken.clear()
        try:
            cells = list(map(one_line, next(reader)))
        except StopIteration:
            return
        except csv.Error:
            yield from ((number, []) for number, _ in taken)
            continue
        if len(taken) > 1:
            alone = Counter(line.count(delimiter) + 1 for _, line in taken)
            usual = (widths or alone).most_common(1)[0][0]
            row = "\n".join(line for _, line in taken)
            is_quoted = row[0] == row[-1] == '"' and row.count(f'"{delimiter}"') == usual - 1  # each cell of it
            if usual > 1 and alone[usual] >= 0.9 * len(taken) and not is_quoted:
                # sentences have commas, too, so that this may be one row
                yield from ((number, [] if delimiter == "," else line.split(delimiter)) for number, line in taken)
                continue
        widths[len(cells)] += 1
        yield taken[0][0], [NOT_UTF8] if any(NOT_UTF8 in cell for cell in cells) else cells


def _table(
    rows: Iterator[tuple[int, list[str]]], delimiter: str, wanted: Sequence[Languages], place: str
) -> Iterator[Sequence[Row]]:
    """Yields the rows of a table whose first row may be a header with ``wanted`` names, or those of two languages.
    Raises InputError if it names more."""
    begin = list(islice(rows, _SAMPLE))
    sample = [cells for _, cells in begin]
    width = max(Counter(map(len, sample)).most_common(1)[0][0] if sample else 0, 2)
    # columns without letters number the sentences (Tatoeba) or are scores; columns after the pair are origin or licence
    columns = list(zip(*(cells for cells in sample if len(cells) == width), strict=True))
    texts = [column for column, cells in enumerate(columns) if sum(map(_has_no_letter, cells)) < 0.9 * len(cells)]
    # columns of few different cells are labels, such as parts of speech
    varied = [column for column in texts if len({*columns[column]}) > max(1, 0.05 * len(columns[column]))]
    worded = [column for column in varied if sum(map(_is_id, columns[column])) < 0.9 * len(columns[column])]
    source, target, *_ = next(found for found in (worded, varied, texts, range(width)) if len(found) > 1)
    said = [f"column {source + 1}", f"column {target + 1}"]
    # a name in many rows is not a header, such as de in a column of languages
    first = sample[0] if sample else []
    repeated = {cells[0] for cells in columns if cells.count(cells[0]) > max(1, 0.05 * len(cells))}
    names = ["" if name in repeated else name for name in first]
    found = _named(names, [*wanted, *_only_two(names)])
    header: list[Row] = []
    if found is not None:
        header, said, (source, target) = [HEADER], [name.strip() for name in found], map(names.index, found)
    elif len(codes := _codes(names)) > 2 and len({*codes}) > 1:
        choose(codes, place, None)  # raises
    if found is not None or width > 2:
        once(f"{place}: source {said[0]}, target {said[1]}")
    name = {"\t": "TAB"}.get(delimiter, repr(delimiter))
    fault = f"without exactly one {name}" if width == 2 else f"without the {width} columns of the others"

    def row(number: int, cells: list[str]) -> Row:
        if len(cells) == width or max(source, target) < len(cells) < width:
            return cells[source], cells[target]
        return Fault(NO_UTF8 if NOT_UTF8 in cells else fault if cells else "with a quotation mark amiss", number)

    return _batches(chain(header, starmap(row, chain(begin[len(header) :], rows))))


def _has_no_letter(cell: str) -> bool:
    return not any(map(str.isalpha, cell))


def _is_id(cell: str) -> bool:
    """Returns True for an ID, a URL and the name of a file: one word in ASCII with digits or signs in it."""
    return cell.isascii() and len(cell.split()) == 1 and not cell.strip().rstrip(".,;:!?").isalpha()


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    return iter(lambda: list(islice(rows, 4096)), [])


def one_line(text: str) -> str:
    """Replaces line ends and TABs of a text by spaces."""
    return text if text.isprintable() else _SPACES.sub(" ", text).strip(" ")


# -------------------------------------------------------------------------------------------------------- TMX and XLIFF

_CODE = frozenset({"bpt", "ept", "ph", "it", "ut", "sub"})
"""Elements in a segment that contain markup of its document and not text."""

_OPEN = frozenset({"new", "needs-translation", "initial"})
"""States of untranslated targets in XLIFF, which are often a copy of the source."""

_UNITS = ("tu", "trans-unit", "segment")
_LANGUAGES = {"source": ("srclang", "srcLang", "source-language"), "target": ("trgLang", "target-language")}
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def unit_rows(
    chunks: Iterable[bytes], place: str, languages: Languages | None, hints: Sequence[Languages]
) -> Iterator[list[Row]]:
    """Yields the rows of TMX or XLIFF from pieces of its bytes, in constant memory. Raises InputError for a file that
    is not well-formed or declares entities, and for more than two languages if none are given."""
    names: dict[str, None] = {}
    known: dict[tuple[str, ...], list[int]] = {}
    """Positions of both sides in a unit, by the languages of the unit."""
    for units in _units(chunks, place):
        rows: list[Row] = []
        for first, unit in units:
            tags = tuple(tag for tag, _ in unit)
            if tags not in known:
                names = dict.fromkeys(sorted([*names, *tags], key=lambda tag: not _matches(tag, first)))
                main = dict.fromkeys(re.split("[-_]", tag)[0].lower() for tag in names)  # en for en-US and en-GB
                sides: Sequence[str] = ()
                if len(names) > 1:
                    sides = choose([*(main if len(main) > 1 else names)], place, languages, hints)
                    once(f"{place}: source {sides[0]}, target {sides[1]}")
                found = [
                    next((place for place, tag in enumerate(tags) if _matches(tag, side)), -1)
                    for side in languages or sides
                ]
                known[tags] = found if min(found, default=-1) >= 0 else []
            pair = [unit[place][1] for place in known[tags]]
            rows.append((pair[0], pair[1]) if pair and all(pair) else UNTRANSLATED)
        yield rows


def _units(chunks: Iterable[bytes], place: str) -> Iterator[list[tuple[str, list[tuple[str, str]]]]]:
    """Yields the translation units of each piece: the source language, and the languages and texts of the sides."""
    parser: ET.XMLPullParser[Any] = ET.XMLPullParser(("start", "end"))
    path: list[ET.Element] = []
    tags = {"source": "source", "target": "target"}
    before, inside = b"", 0
    for chunk in chain(chunks, [b""]):
        if not path:
            before += chunk.replace(b"\0", b"")  # zero bytes of UTF-16
            if b"<!ENTITY" in before:
                raise InputError(f"{place}: declares entities, which can fill the memory; take the declarations out")
        units = []
        try:
            parser.feed(chunk) if chunk else parser.close()
            for event, element in cast(Iterator[tuple[str, ET.Element]], parser.read_events()):
                name = _name(element)
                if event == "start":
                    path.append(element)
                    inside += name in _UNITS
                    for side, keys in _LANGUAGES.items() if name in ("header", "file", "xliff") else ():
                        tags[side] = next(filter(None, map(element.get, keys)), tags[side])
                    continue
                path.pop()
                if name in _CODE:
                    element.text, element[:] = None, []
                elif name in _UNITS:
                    inside -= 1
                    sides = [(tags[_name(side)], side) for side in element if _name(side) in tags]
                    segments = ((tuv, side) for tuv in element for side in tuv if _name(side) == "seg")
                    sides += [(tuv.get(_LANG) or tuv.get("lang") or "", side) for tuv, side in segments]
                    if {element.get("state"), *(side.get("state") for _, side in sides)} & _OPEN:
                        sides = []
                    units.append((tags["source"], [(tag, _text(side)) for tag, side in sides]))
                if path and not inside:
                    path[-1].remove(element)
        except (ET.ParseError, ValueError, LookupError) as error:
            raise xml_fault(place, before, error) from None
        yield units


def xml_fault(place: str, head: bytes, error: Exception) -> InputError:
    """Returns the error for XML that the parser refuses: it knows UTF-8, UTF-16 and encodings of one byte per character
    alone. ``head`` has the first bytes, which name the encoding."""
    if isinstance(error, ET.ParseError):
        return InputError(f"{place}: not well-formed XML: {error}; export the file again")
    found = re.search(rb"""encoding\s*+=\s*+["']([\w.:-]++)""", head)
    name = found[1].decode() if found else "SHIFT_JIS"
    return InputError(
        f"{place}: names an encoding that is not read in XML, {name}; convert it, such as with "
        f'iconv -f {name} -t UTF-8, and write encoding="UTF-8" in its first line'
    )


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(segment: ET.Element) -> str:
    return _SPACES.sub(" ", "".join(segment.itertext())).strip(" ")
