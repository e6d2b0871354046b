"""Entries of bilingual dictionaries.

    TSV     a row for each entry, source TAB target, or another table of pairs that nmt reads
    TEI     XML of FreeDict: TEI P5, chapter 9, "Dictionaries"; a headword, and its translations for each sense
    Ding    text of the dictionaries of TU Chemnitz: ``Wort {n}; Synonym | Plural :: word; synonym | plural``

Rows of all three have the notation of Ding: alternatives between semicolons, forms between bars, the part of speech or
the gender in braces, explanations in other brackets, and placeholders such as *jdn.* and *sth.* for what is added.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.config import CorpusConfig
from nmt.data.corpus import numbered_pairs, open_bytes, read_lines, unpacking
from nmt.data.filters import CONTROL
from nmt.data.formats import one_line, xml_fault
from nmt.data.words import text_words

MOST_WORDS = 5
"""Maximum number of words of a side of an entry."""

Row: TypeAlias = tuple[str, str]
"""Both sides of a line, in the notation of Ding."""

# the last one has forms of a verb, as in {sang; sung}; each bracket ends the search for the preceding one
_NOTES = re.compile(r"\([^()]*+\)|\[[^\[\]]*+\]|<[^<>]*+>|(?<!\S)/[^/\s]*+/|\{[^{};]*+;[^{}]*+\}")
_MARK = re.compile(r"\{([^{}]*+)\}")
_UNCLEAN = re.compile(r"[][(){}<>/|~=*…]|\.\.")

_PLACEHOLDER = re.compile(r"(?:etw|jm?d[mns]?|(?:sth|sb|s\.o)(?:\.?'s)?|s\.th|q[cn]|qqn|qqch)\.?")
"""Abbreviations of something and somebody in German, English and French dictionaries."""
_ARTICLE = re.compile(r"\A(?:d(?:er|ie|as|e)|eine?|the|an?|l[aeo]s?|une?|el|il|gli|het) (?=\S+\Z)", re.IGNORECASE)
"""An article before one word. The sentence will need its own."""


class DictionaryEntry(NamedTuple):
    """A word or phrase with its translation."""

    source: str
    target: str
    mark: str
    """Part of speech or gender; blank if the dictionary does not say it."""


def read_entries(path: Path, counts: Sequence[Mapping[str, int]]) -> list[DictionaryEntry]:
    """Reads the entries of a dictionary of either direction; ``counts`` are those of the words of the training corpus,
    of its sources and targets. Raises InputError as ``read_rows`` does, and if it has none."""
    rows = list(read_rows(path))
    if _is_reversed(rows, counts):
        log.info(f"{path}: its second language is taken as the source, as its words are those of the sources")
        rows = [(target, source) for source, target in rows]
    entries = [entry for row in rows for entry in entries_of(row)]
    if not entries:
        raise InputError(f"{path}: has no entry of at most {MOST_WORDS} words on both sides; give another dictionary")
    source, target, _ = entries[len(entries) // 2]
    log.info(f"{path}: {len(entries):,} entries in {len(rows):,} rows, such as {source}: {target}")
    return entries


def _is_reversed(rows: Sequence[Row], counts: Sequence[Mapping[str, int]]) -> bool:
    """Returns True if more words of the sides occur in the other language of the training corpus."""
    words = [count_words(side) for side in zip(*rows, strict=True)]
    straight, crossed = (
        sum(len(own.keys() & known.keys()) for own, known in zip(words, languages, strict=False))
        for languages in (counts, counts[::-1])
    )
    return crossed > straight


def words_of(line: str) -> list[str]:
    """Splits a line into words in lower case."""
    return [line[begin:end].lower() for begin, end in text_words(line)]


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Counts the words of lines, in lower case."""
    return Counter(word for line in lines for word in words_of(line))


def read_rows(path: Path) -> Iterator[Row]:
    """Reads the lines of a dictionary. Raises InputError for a file that cannot be read or is of another format."""
    with open_bytes(path) as file, unpacking(path):
        head = file.read(1 << 16)
    if re.search(rb"<(?:\w+:)?TEI\b", head):
        if b"<!ENTITY" in head:
            raise InputError(f"{path}: declares entities, which can fill the memory; take the declarations out")
        return _tei_rows(path, head)
    first = next((line for line in read_lines(path) if line.strip() and not line.startswith("#")), "")
    if " :: " in first:
        return _ding_rows(path)
    pairs = numbered_pairs(CorpusConfig.model_construct(pairs=path))
    return ((source, target) for _, source, target in pairs if not source.startswith("#"))


def _ding_rows(path: Path) -> Iterator[Row]:
    for number, line in enumerate(read_lines(path), 1):
        if line.strip() and not line.startswith("#"):
            source, separator, target = line.partition(" :: ")
            if not separator:
                raise InputError(f"{path}:{number}: has no ' :: ' between source and target; mend the line")
            yield source, target


def _tei_rows(path: Path, head: bytes) -> Iterator[Row]:
    """Yields a row for each sense: its headwords, with the grammar in braces, and its translations."""
    try:
        with open_bytes(path) as file, unpacking(path):
            for _, element in ET.iterparse(file):
                if element.tag.rpartition("}")[2] == "entry":
                    yield from _senses(element)
                    element.clear()
    except (ET.ParseError, ValueError, LookupError) as error:
        raise xml_fault(str(path), head, error) from None


def _senses(entry: ET.Element) -> Iterator[Row]:
    grammar = entry.find(".//{*}gramGrp")
    mark = "" if grammar is None else " ".join("".join(grammar.itertext()).split())
    forms = [form for form in entry.iterfind("{*}form") if form.get("type") in (None, "lemma")]
    source = "; ".join(f"{_text(orth)} {{{mark}}}" for form in forms for orth in form.iterfind("{*}orth"))
    for sense in [*entry.iterfind(".//{*}sense")] or [entry]:
        translations = [cit for cit in sense.iterfind("{*}cit") if cit.get("type", "").startswith("trans")]
        yield source, "; ".join(_text(quote) for cit in translations for quote in cit.iterfind("{*}quote"))


def _text(element: ET.Element) -> str:
    return one_line("".join(element.itertext())).strip()


def entries_of(row: Row) -> Iterator[DictionaryEntry]:
    """Yields the entries of a row: each alternative of the source with the first one of the target, as the alternatives
    are synonyms. Those that are not plain text of at most `MOST_WORDS` words are left out, as are rows whose sides have
    different numbers of forms."""
    sides = [_NOTES.sub("", side).split("|") for side in row]
    if len(sides[0]) != len(sides[1]):
        return
    for source_form, target_form in zip(*sides, strict=True):
        targets = list(_alternatives(target_form))
        for source, source_mark in _alternatives(source_form):
            if targets:
                target, target_mark = targets[0]
                mark = source_mark or target_mark
                infinitive = "to " if mark.startswith("v") else ""
                yield DictionaryEntry(source.removeprefix(infinitive), target.removeprefix(infinitive), mark)


def _alternatives(form: str) -> Iterator[tuple[str, str]]:
    """Yields the clean alternatives with their marks; the last mark is also that of preceding ones without a mark."""
    marks = _MARK.findall(form) or [""]
    for alternative in form.split(";"):
        words = _MARK.sub("", alternative).split()
        kept = [index for index, word in enumerate(words) if not _is_placeholder(word)]
        words = words[kept[0] : kept[-1] + 1] if kept else []
        text = _ARTICLE.sub("", " ".join(words))
        is_clean = not (_UNCLEAN.search(text) or CONTROL.search(text) or len(kept) < len(words))
        if is_clean and 0 < len(words) <= MOST_WORDS:
            yield text, (_MARK.findall(alternative) or marks)[-1]


def _is_placeholder(word: str) -> bool:
    return all(map(_PLACEHOLDER.fullmatch, word.replace("’", "'").split("/")))
