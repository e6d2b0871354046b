"""Pairs of lines and their translations, of which the best are kept, with changed sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nmt.core.files import naming, whole_file
from nmt.extras.corpus.augment.noise import noised
from nmt.extras.corpus.augment.text import ScoredTranslation

TAG = "<BT>"
"""First word of a back-translated source (Caswell et al. 2019). It is text: because it is frequent, it is one of the
subwords that are learnt from such sources."""

Method: TypeAlias = Literal["tagged", "beam", "noised", "sampling"]

EDITS: Mapping[Method, Callable[[str, np.random.Generator], str]] = {
    "tagged": lambda line, _: f"{TAG} {line}",
    "noised": noised,
}
"""Functions that change a source, by method; others leave it as it is."""


@dataclass(frozen=True)
class Kind:
    """Pairs made from lines of one ``side``: of given text, or with ``of_pairs`` of the training pairs. The other side
    is their translation, or with ``copies`` the line itself. ``method`` says how the source is changed."""

    name: str
    side: Literal["source", "target"]
    method: Method = "beam"
    of_pairs: bool = False
    copies: bool = False

    @property
    def text(self) -> str:
        """Name of the text."""
        return f"{self.side}s of pairs" if self.of_pairs else f"{self.side} text"


@dataclass(frozen=True)
class PairCounts:
    """Numbers of pairs that were written, that had no translation, a doubtful one, and one that was among the worst."""

    written: int
    blank: int
    doubtful: int
    worst: int


def best(score_N: NDArray[np.float64], keep: float) -> NDArray[np.bool_]:
    """Selects the share ``keep`` with the highest finite scores, but at least one; if scores are equal, the first
    ones."""
    order_N = np.argsort(-score_N, kind="stable")
    is_kept_N = np.zeros(len(score_N), dtype=bool)
    finite = int(np.isfinite(score_N).sum())
    is_kept_N[order_N[: max(round(keep * finite), min(finite, 1))]] = True
    return is_kept_N


def with_round_trip(
    rows: Iterable[ScoredTranslation], again: Iterable[ScoredTranslation]
) -> Iterator[ScoredTranslation]:
    """Scores translations by the sentence chrF2 of their translations back, with the line as the reference."""
    from nmt.evaluation.translation import sacrebleu_metric

    metric = sacrebleu_metric("chrf")
    for row, back in zip(rows, again, strict=True):
        yield replace(row, score=metric.sentence_score(back.text, [row.line]).score)


def write_pairs(
    kind: Kind, rows: Callable[[], Iterable[ScoredTranslation]], scored: Callable[[], Iterable[ScoredTranslation]],
    files: tuple[Path, Path], *, keep: float, min_confidence: float = 0.0, seed: int, end: str,
) -> PairCounts:  # fmt: skip
    """Writes the pairs of the best translations, in order, to a file of sources and one of targets, with ``end`` after
    each line; doubtful ones, whose confidence is below ``min_confidence``, are left out first. ``rows`` and ``scored``
    yield the same translations, which each call reads anew. The noise of a pair depends only on the seed and its place.
    """
    known = ((row.score if row.confidence >= min_confidence else -np.inf) if row.text else np.nan for row in scored())
    score_N = np.fromiter(known, np.float64)
    is_kept_N = best(score_N, keep)

    edit = EDITS.get(kind.method)

    def kept() -> Iterator[tuple[str, str]]:
        for number, (row, is_kept) in enumerate(zip(rows(), is_kept_N.tolist(), strict=True)):
            if is_kept:
                source, target = (row.text, row.line) if kind.side == "target" else (row.line, row.text)
                yield edit(source, np.random.default_rng([seed, number])) if edit else source, target

    written, finite = write_parallel(kept(), files, end), int(np.isfinite(score_N).sum())
    return PairCounts(written, int(np.isnan(score_N).sum()), int(np.isneginf(score_N).sum()), finite - written)


def write_parallel(pairs: Iterable[Sequence[str]], files: tuple[Path, Path], end: str) -> int:
    """Writes pairs to two files atomically, with ``end`` after each line; returns their number."""
    count = 0
    files[0].parent.mkdir(exist_ok=True)
    with ExitStack() as stack:
        streams = [
            stack.enter_context(stack.enter_context(whole_file(path)).open("w", encoding="utf-8", newline="\n"))
            for path in files
        ]
        for count, pair in enumerate(pairs, 1):  # noqa: B007
            for stream, line in zip(streams, pair, strict=True):
                with naming(files[0].parent):
                    stream.write(f"{line}{end}")
    return count
