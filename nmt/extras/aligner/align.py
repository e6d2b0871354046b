"""Alignments by an aligner that was learnt from text, without a translation model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from nmt.alignment.error_rate import AlignmentScore
from nmt.alignment.extract import Grow
from nmt.alignment.formats import Alignment, pharaoh_line
from nmt.alignment.request import AlignmentRequest
from nmt.core.errors import InputError
from nmt.core.files import refuse_unwritable, whole_file
from nmt.core.memory import malloc_trim
from nmt.data.config import CorpusConfig
from nmt.data.corpus import read_blocks
from nmt.data.words import text_words, white_space_words, words_and_runs
from nmt.extras.aligner.aligner import LONGEST, RULE, WordAligner, learnt_alignments, load_aligner
from nmt.workflows.align import AlignmentInputs, AlignmentOutputs, check_files, gold_of, windows, write_alignments

WINDOW_PAIRS = 2500
"""Number of pairs that are aligned together: a batch has about a hundred pairs of similar lengths."""


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
    check_files(inputs, outputs, aligner)
    if aligner is None:
        gold_of(inputs)  # raises for faults of files before minutes of work
        for option, path in outputs.files.items():
            if not (outputs.pictures and path == outputs.path):
                refuse_unwritable(path, option=option)
        from nmt.extras.aligner.learn_text import learn_from_files

        word_aligner = learn_from_files(inputs.source, inputs.target)
    else:
        word_aligner = load_aligner(aligner)
    rule = RULE if min_probability is None else Grow(threshold=min_probability)
    text_aligner = TextAligner(word_aligner, inputs.text, rule)
    request = AlignmentRequest("learned" if aligner is None else aligner.name)
    return write_alignments(
        lambda _, sources, targets, first_line: {request: text_aligner.align(sources, targets, first_line=first_line)},
        [request],
        inputs,
        outputs,
        pairs_in_windows=windows(None, inputs.source, inputs.target, size=WINDOW_PAIRS),
        explanations={request.name: rule.explanation()},
    )


def align_pairs(
    sources: Sequence[str], targets: Sequence[str], text: bool, min_probability: float | None
) -> list[Alignment]:
    """Aligns pairs by an aligner that is learnt from them. Raises InputError where one side holds no words."""
    from nmt.extras.aligner.learn_text import learn_word_aligner

    rule = RULE if min_probability is None else Grow(threshold=min_probability)
    return TextAligner(learn_word_aligner(sources, targets), text, rule).align(sources, targets)


def write_links(corpus: CorpusConfig, path: Path) -> None:
    """Learns an aligner from the pairs of a corpus, all in memory, and writes their links, a Pharaoh line for each; no
    links of pairs too long to align. Raises InputError where one side holds no words."""
    from nmt.extras.aligner.learn_text import learn_word_aligner

    pairs = [pair for block in read_blocks(corpus) for pair in zip(block.sources, block.targets, strict=True)]
    sources, targets = zip(*(pair if max(map(len, pair)) <= LONGEST else ("", "") for pair in pairs), strict=True)
    aligner = TextAligner(learn_word_aligner(sources, targets))
    with whole_file(path) as unfinished:
        lines = (f"{pharaoh_line(alignment.links)}\n" for alignment in aligner.align(sources, targets))
        unfinished.write_text("".join(lines), encoding="utf-8")
