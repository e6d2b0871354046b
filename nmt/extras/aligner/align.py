"""A word aligner that is learnt from text, and its alignments, without a translation model and without PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from nmt.alignment.error_rate import AlignmentScore
from nmt.alignment.extract import Grow
from nmt.alignment.formats import Alignment, pharaoh_line
from nmt.alignment.request import AlignmentRequest
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_overwriting, refuse_unwritable, whole_file, writing
from nmt.core.memory import malloc_trim
from nmt.data.config import CorpusConfig
from nmt.data.corpus import read_blocks
from nmt.data.words import is_unspaced, text_words, white_space_words, words_and_runs
from nmt.extras.aligner.aligner import (
    LONGEST,
    RULE,
    IndexedSentences,
    WordAligner,
    learn_aligner,
    learnt_alignments,
    load_aligner,
    save_aligner,
)
from nmt.workflows import align as workflow
from nmt.workflows.align import AlignmentInputs, AlignmentOutputs

WINDOW_PAIRS = 2500
"""Number of pairs that are aligned together: a batch has about a hundred pairs of similar lengths."""

BLOCK_PAIRS = 60_000
BLOCK_CELLS = 4_250_000
"""Maximum number of sentence pairs that are learnt from together, and of pairs of a source and a target word in them.
Further blocks add their different words to the memory; a smaller block would make more errors."""

FEW_PAIRS = 500
"""Number of different pairs below which most rare words occur once, and many links are wrong; see
docs/measurements/aligner.md."""


def learn_from_text(source: Path, target: Path, output: Path, earlier: Path | None = None) -> WordAligner:
    """Learns an aligner from two files, line by line, and writes it to a file; with ``earlier`` it continues from the
    aligner in that file."""
    refuse_overwriting(output, source, target)
    refuse_unwritable(output, renamed=True)
    aligner = learn_from_files(source, target, None if earlier is None else load_aligner(earlier))
    with writing(f"--output {output}"):
        save_aligner(aligner, output)
    log.info(f"wrote {output}; use it with nmt align --aligner {output}")
    return aligner


def learn_from_files(source: Path, target: Path, before: WordAligner | None = None) -> WordAligner:
    """Learns an aligner from two parallel files in bounded memory, or continues from an earlier one. Raises InputError,
    before it learns, for files with different numbers of lines and for a file without words."""
    return _learn(workflow.pairs(source, target), _count(source, target), before)


def learn_word_aligner(sources: Sequence[str], targets: Sequence[str]) -> WordAligner:
    """Learns an aligner from lines. Raises InputError if a side has no words."""
    return _learn(zip(sources, targets, strict=True), len(sources), None)


def _learn(lines: Iterable[tuple[str, str]], count: int, aligner: WordAligner | None) -> WordAligner:
    log.info(f"aligner  learning from {count:,} pairs")
    # an aligner of an earlier version does not know the number of its pairs
    learnt, counts_pairs = False, aligner is None or len(aligner.learnt_P) > 0
    with log.progress(description="aligner", unit="iteration") as bar:
        for sources, targets in _blocks(lines):
            with suppress(ValueError):  # a block without words, or only with characters without a width
                aligner = learn_aligner(sources, targets, before=aligner, after_iteration=lambda: bar.update(1))
                learnt = True
    if aligner is None or not learnt:
        raise InputError("there is nothing to learn from: one side holds no words")
    if counts_pairs and (few := len(aligner.learnt_P)) < FEW_PAIRS:
        many = f"only {few:,} different pairs, so many links will be wrong"
        log.warning(f"the aligner has learnt from {many}; give it some thousand pairs")
    return aligner


def _blocks(lines: Iterable[tuple[str, str]]) -> Iterator[tuple[IndexedSentences, IndexedSentences]]:
    """Yields both sides of pairs that are learnt from together."""
    sources, targets, cells = IndexedSentences(), IndexedSentences(), 0
    for source, target in ((one.split(), other.split()) for one, other in lines):
        # a line without spaces counts as several words of six letters
        size = math.prod(sum(1 + len(word) // 6 * is_unspaced(word) for word in side) for side in (source, target))
        cells += size
        if len(sources) and (cells > BLOCK_CELLS or len(sources) == BLOCK_PAIRS):
            yield sources, targets
            sources, targets, cells = IndexedSentences(), IndexedSentences(), size
        sources.append(source)
        targets.append(target)
    if len(sources):
        yield sources, targets


def lines_of(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """Yields the lines of two parallel files. Raises InputError, also if a file has no word."""
    _count(source, target)
    lines = list(workflow.pairs(source, target))
    return [one for one, _ in lines], [other for _, other in lines]


def _count(source: Path, target: Path) -> int:
    count, long, has_words = 0, 0, [False, False]
    for pair in workflow.pairs(source, target):
        count += 1
        long += max(map(len, pair)) > LONGEST and max(len(line.split()) for line in pair) > LONGEST
        has_words = [known or bool(line.strip()) for known, line in zip(has_words, pair, strict=True)]
    for path, known in zip((source, target), has_words, strict=True):
        if not known:
            raise InputError(f"{path}: holds no word to learn from")
    if long:
        log.warning(f"left out: {long:,} pairs of {source} and {target} with more than {LONGEST} words on a side")
    return count


@dataclass(frozen=True)
class TextAligner:
    """Aligns white-space words, or words of ordinary text."""

    aligner: WordAligner
    text: bool = False
    rule: Grow = RULE

    def align(self, sources: Sequence[str], targets: Sequence[str], *, first_line: int = 1) -> list[Alignment]:
        """Aligns each pair."""
        if len(sources) != len(targets):
            raise InputError(f"{len(sources)} sources but {len(targets)} targets: give one target for each source")
        malloc_trim()
        find = text_words if self.text else white_space_words
        source_spans, target_spans = ([find(line) for line in side] for side in (sources, targets))
        runs = [list(map(words_and_runs, *side)) for side in ((sources, source_spans), (targets, target_spans))]
        words = [[[*chain(*line)] for line in side] for side in runs]
        matrices = self.aligner.matrices(*runs, first_line=first_line)
        return learnt_alignments(words[0], words[1], matrices, source_spans, target_spans, self.rule)


def align_learned(
    aligner: Path | None, inputs: AlignmentInputs, outputs: AlignmentOutputs, *, min_probability: float | None = None
) -> Mapping[str, AlignmentScore]:
    """Writes one alignment for each pair of lines, by an aligner from a file; None means an aligner that is learnt from
    these pairs. Links have at least the probability ``min_probability``. Raises InputError like ``write_alignments``,
    and for a file that is not an aligner."""
    assert inputs.target is not None
    workflow.check_files(inputs, outputs, aligner)
    if aligner is None:
        workflow.gold_of(inputs)  # raises for faults of files before minutes of work
        for option, path in outputs.files.items():
            if not (outputs.pictures and path == outputs.path):
                refuse_unwritable(path, option=option)
        word_aligner = learn_from_files(inputs.source, inputs.target)
    else:
        word_aligner = load_aligner(aligner)
    rule = RULE if min_probability is None else Grow(threshold=min_probability)
    text_aligner = TextAligner(word_aligner, inputs.text, rule)
    request = AlignmentRequest("learned" if aligner is None else aligner.name)
    return workflow.write_alignments(
        lambda _, sources, targets, first_line: {request: text_aligner.align(sources, targets, first_line=first_line)},
        [request],
        inputs,
        outputs,
        explanations={request.name: rule.explanation()},
        pairs_in_windows=workflow.windows(None, inputs.source, inputs.target, size=WINDOW_PAIRS),
    )


def align_pairs(
    sources: Sequence[str], targets: Sequence[str], text: bool, min_probability: float | None
) -> list[Alignment]:
    """Aligns pairs by an aligner that is learnt from them. Raises InputError where one side holds no words."""
    rule = RULE if min_probability is None else Grow(threshold=min_probability)
    return TextAligner(learn_word_aligner(sources, targets), text, rule).align(sources, targets)


def write_links(corpus: CorpusConfig, path: Path) -> None:
    """Learns an aligner from the pairs of a corpus, all in memory, and writes their links, a Pharaoh line for each; no
    links of pairs too long to align. Raises InputError where one side holds no words."""
    all_pairs = [pair for block in read_blocks(corpus) for pair in zip(block.sources, block.targets, strict=True)]
    sources, targets = zip(*(pair if max(map(len, pair)) <= LONGEST else ("", "") for pair in all_pairs), strict=True)
    aligner = TextAligner(learn_word_aligner(sources, targets))
    with whole_file(path) as unfinished:
        lines = (f"{pharaoh_line(alignment.links)}\n" for alignment in aligner.align(sources, targets))
        unfinished.write_text("".join(lines), encoding="utf-8")
