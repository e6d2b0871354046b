"""Share of pairs of tags that `--markup` puts exactly where a translator put them.

    python scripts/benchmark_markup.py SOURCE TARGET (--aligner FILE | --model MODEL)

SOURCE and TARGET are files with inline tags, line by line. The tags of the source are put into the target without its
tags, along its alignment, and compared with those of the target: only the placing is judged, for the translation is
given. A span is exact where it encloses the same characters as one of the target by the same tag, white space apart.
FILE is of ``nmt aligner --output``; MODEL aligns by forced decoding, as ``nmt translate --markup`` does. Beside it
stands the plain rule: from the first to the last word that is linked to a word between the tags. Prints a JSON line for
each figure: the share of exact spans, with the interval of 95 % of a bootstrap over lines, and the number of lines with
a tag that is lost, doubled or crossed.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from measuring import plainly, print_table, report

import nmt
from nmt.alignment import Links
from nmt.alignment.extract import Extraction
from nmt.alignment.formats import Alignment
from nmt.data.corpus import read_lines
from nmt.data.words import Span
from nmt.extras.aligner.align import TextAligner
from nmt.extras.aligner.aligner import load_aligner
from nmt.extras.documents.markup import Item, Marked, extract
from nmt.extras.documents.text_spans import to_units, units
from nmt.extras.documents.transfer import TransferredLine
from nmt.translator.aligner import PieceWeights
from nmt.translator.segmentation import SegmentTranslation


@dataclass(frozen=True)
class Known:
    """A rule that returns links between units that are already known."""

    found: Links

    def links(self, _weights_JI: object) -> Links:
        """Returns the known links."""
        return self.found


@dataclass(frozen=True)
class Case:
    """A pair of lines whose tags are to be placed, and its alignment."""

    source: TransferredLine
    target: Marked
    weights: PieceWeights
    rule: Known | Extraction


Places: TypeAlias = Counter[tuple[str, int, int]]
"""Pairs of tags: the opening tag, and the numbers of characters before its beginning and end, without white space."""

TAG = re.compile(r"</?[A-Za-z][^<>]*+>")

Pair: TypeAlias = tuple[TransferredLine, Marked]
Align: TypeAlias = Callable[[Sequence[Pair]], Iterator[Case]]


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    aligned_by = parser.add_mutually_exclusive_group(required=True)
    aligned_by.add_argument("--aligner", type=Path)
    aligned_by.add_argument("--model")
    parser.add_argument("--reverse", action="store_true", help="FILE was learnt from TARGET to SOURCE")
    arguments = parser.parse_args()
    lines = zip(*(map(parted, read_lines(path)) for path in (arguments.source, arguments.target)), strict=True)
    pairs = [
        (tags_only(source), marked)
        for source, target in lines
        if has_tags(extract(source)) and has_tags(marked := extract(target))
    ]
    align = by_aligner(arguments.aligner, reverse=arguments.reverse) if arguments.aligner else by_model(arguments.model)
    cases = list(align(pairs))
    chosen = f"{'aligner' if arguments.aligner else 'attention'}, {arguments.source.name}"
    gold_N = np.array([places(case.target).total() for case in cases])
    report("spans", float(gold_N.sum()), "pairs of tags", chosen)
    for name, rule in (("nmt", placed), ("first to last link", first_to_last)):
        found = [rule(case) for case in cases]
        right_N = np.array([(each & places(case.target)).total() for each, case in zip(found, cases, strict=True)])
        drawn_BN = np.random.default_rng(1).integers(len(cases), size=(1000, len(cases)))
        low, high = np.quantile(right_N[drawn_BN].sum(axis=1) / gold_N[drawn_BN].sum(axis=1), (0.025, 0.975))
        for part, share in (("", right_N.sum() / gold_N.sum()), (", from", low), (", to", high)):
            report(f"exact spans, {name}{part}", 100 * float(share), "%", chosen)
    broken = sum(not is_whole(case) for case in cases)
    report("lines with a tag lost, doubled or crossed, nmt", broken, "lines", chosen)
    print_table()


def parted(line: str) -> str:
    """Returns a line with a space between words that are separated only by tags, because no rule finds the border
    inside `CommandCtrl`."""
    return re.sub(r"(?<=\w)(?=(?:</?[A-Za-z][^<>]*+>)++\w)", " ", line)


def tags_only(line: str) -> TransferredLine:
    """Returns a line without its markup, into which only pairs of tags are put back: the target already has the
    rest."""
    marked = extract(line)
    number = {index: place for place, index in enumerate(i for i, item in enumerate(marked.items) if is_tag(item))}
    items = [replace(marked.items[index], partner=number[marked.items[index].partner]) for index in number]
    return TransferredLine(marked.text, tuple(items), marked.borders)


def has_tags(marked: Marked) -> bool:
    """Returns True if a text has a pair of tags."""
    return any(map(is_tag, marked.items))


def is_tag(item: Item) -> bool:
    """Returns True for a tag of a pair, but not for a tag written with entities, which is part of the text here."""
    return item.partner >= 0 and item.text.startswith("<")


def places(marked: Marked) -> Places:
    """Finds the pairs of tags of a text, and the spans that they enclose."""
    return Counter(
        (item.text, *trimmed(marked.text, item.begin, marked.items[item.partner].begin))
        for item in marked.items
        if item.kind == "open" and is_tag(item)
    )


def trimmed(text: str, begin: int, end: int) -> Span:
    """Returns the numbers of characters before the ends of a span, without white space, so that white space at its ends
    does not matter."""
    first = len("".join(text[:begin].split()))
    return first, first + len("".join(text[begin:end].split()))


def restored(case: Case) -> str:
    """Returns the target with the tags of the source."""
    text = case.target.text
    piece = SegmentTranslation((0, len(case.source.text)), 0, text, True, case.weights)
    return case.source.restore(text, [piece], case.rule)  # type: ignore[arg-type]


def placed(case: Case) -> Places:
    """Returns the pairs of tags where nmt places them."""
    return places(extract(restored(case)))


def is_whole(case: Case) -> bool:
    """Returns True if the result has each tag of the source once, and each closes the last one that is open."""
    names: list[str] = []
    tags = TAG.findall(restored(case))
    for tag in tags:
        name = tag.strip("</>").split()[0]
        if tag in case.target.text:
            continue
        if not tag.startswith("</"):
            names.append(name)
        elif not names or names.pop() != name:
            return False
    of_text = TAG.findall(case.target.text)  # that the text mentions
    return not names and sorted(tags) == sorted([*of_text, *(item.text for item in case.source.items)])


def first_to_last(case: Case) -> Places:
    """Returns the pairs of tags from the first to the last target unit that is linked to the enclosed words."""
    source = units(case.source.text, 0, len(case.source.text), case.source)
    target = units(case.target.text, 0, len(case.target.text))
    links = case.rule.links(to_units(case.weights, target, source))
    found: Places = Counter()
    for item in case.source.items:
        if item.kind == "open":
            end = case.source.items[item.partner].begin
            linked = [there for here, there in links if item.begin <= source[here][0] < end]
            if linked:
                found[item.text, *trimmed(case.target.text, target[min(linked)][0], target[max(linked)][1])] += 1
    return found


def by_aligner(path: Path, *, reverse: bool = False) -> Align:
    """Returns a function that aligns by a learnt aligner: the words' soft alignment, and the aligner's own links."""
    aligner = TextAligner(load_aligner(path), text=True)

    def align(pairs: Sequence[Pair]) -> Iterator[Case]:
        sides = [source.text for source, _ in pairs], [target.text for _, target in pairs]
        found = aligner.align(*(reversed(sides) if reverse else sides))
        for (source, target), pair in zip(pairs, found, strict=True):
            pair = transposed(pair) if reverse else pair
            assert pair.source_spans is not None
            assert pair.target_spans is not None
            weights = PieceWeights(pair.weights_TS.astype(np.float32), pair.target_spans, pair.source_spans)
            source_units = units(source.text, 0, len(source.text), source)
            target_units = units(target.text, 0, len(target.text))
            links = sorted(
                {
                    (i, j)
                    for here, there in pair.links
                    for i in overlapping(source_units, pair.source_spans[here])
                    for j in overlapping(target_units, pair.target_spans[there])
                }
            )
            yield Case(source, target, weights, Known(tuple(links)))

    return align


def transposed(pair: Alignment) -> Alignment:
    """Returns an alignment in the other direction."""
    return Alignment(
        pair.target_words,
        pair.source_words,
        tuple(sorted((there, here) for here, there in pair.links)),
        pair.weights_TS.T,
        source_spans=pair.target_spans,
        target_spans=pair.source_spans,
    )


def overlapping(spans: Sequence[Span], word: Span) -> list[int]:
    """Finds the spans that have characters of a word."""
    return [number for number, (begin, end) in enumerate(spans) if begin < word[1] and word[0] < end]


def by_model(name: str) -> Align:
    """Returns a function that aligns by a model: the subwords' soft alignment, and the rule of the model's
    configuration."""
    aligner = nmt.load(name).aligner

    def align(pairs: Sequence[Pair]) -> Iterator[Case]:
        found = aligner.piece_weights([source.text for source, _ in pairs], [target.text for _, target in pairs])
        for (source, target), weights in zip(pairs, found, strict=True):
            yield Case(source, target, weights, aligner.extraction)

    return align


if __name__ == "__main__":
    plainly(main)
