"""The best translations, and the pairs made of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from nmt.extras.corpus.augment.noise import noised
from nmt.extras.corpus.augment.pairs import Kind, PairCounts, best, with_round_trip, write_pairs
from nmt.extras.corpus.augment.text import ScoredTranslation

ROWS = [
    ScoredTranslation(f"line {n} of text", "" if n % 7 == 3 else f"Zeile {n} ist dies", -((n * 5) % 11) / 4)
    for n in range(40)
]


@pytest.mark.parametrize("keep", [0.01, 0.3, 0.8, 1.0])
def test_the_best_are_kept_and_of_equals_the_first(keep: float) -> None:
    scores = [-np.inf if not row.text else row.score for row in ROWS]
    finite = [place for place, score in enumerate(scores) if score > -np.inf]
    first = sorted(finite, key=lambda place: (-scores[place], place))
    first = first[: max(1, round(keep * len(finite)))]
    assert np.flatnonzero(best(np.array(scores), keep)).tolist() == sorted(first)
    assert not best(np.array([-np.inf]), keep).any()


def test_a_round_trip_is_scored_by_sentence_chrf() -> None:
    again = [ScoredTranslation(row.text, row.line.upper() if n % 2 else row.line, 0.0) for n, row in enumerate(ROWS)]
    scored = list(with_round_trip(ROWS, again))
    pairs = zip(again, ROWS, strict=True)
    assert [row.score for row in scored] == [CHRF().sentence_score(back.text, [row.line]).score for back, row in pairs]
    assert [(row.line, row.text) for row in scored] == [(row.line, row.text) for row in ROWS]


def test_doubtful_translations_are_left_out_before_the_worst(tmp_path: Path) -> None:
    rows = [replace(row, confidence=n / 40) for n, row in enumerate(ROWS)]
    files, kind = (tmp_path / "pairs" / "a.de", tmp_path / "pairs" / "a.en"), Kind("a", "source")
    counts = write_pairs(
        kind, lambda: iter(rows), lambda: iter(rows), files, keep=0.5, min_confidence=0.25, seed=3, end="\n"
    )
    sure = [n for n, row in enumerate(ROWS) if row.text and n >= 10]
    kept = sorted(sorted(sure, key=lambda n: -ROWS[n].score)[: round(len(sure) / 2)])
    assert files[0].read_text(encoding="utf-8").splitlines() == [ROWS[n].line for n in kept]
    assert counts == PairCounts(len(kept), 6, 40 - 6 - len(sure), len(sure) - len(kept))


@pytest.mark.parametrize("side", ["source", "target"])
def test_every_line_kept_has_its_own_translation(tmp_path: Path, side: str) -> None:
    files = tmp_path / "pairs" / "a.de", tmp_path / "pairs" / "a.en"
    kind = Kind("a", side, "noised" if side == "source" else "tagged")  # type: ignore[arg-type]
    counts = write_pairs(kind, lambda: iter(ROWS), lambda: iter(ROWS), files, keep=0.5, seed=3, end="\n")
    kept = np.flatnonzero(best(np.array([row.score if row.text else -np.inf for row in ROWS]), 0.5)).tolist()
    assert (counts.written, counts.blank, counts.worst) == (len(kept), 6, 40 - 6 - len(kept))
    source, target = (path.read_text(encoding="utf-8").splitlines() for path in files)
    if side == "target":
        assert target == [ROWS[n].line for n in kept]
        assert source == [f"<BT> {ROWS[n].text}" for n in kept]
    else:
        assert target == [ROWS[n].text for n in kept]
        assert source == [noised(ROWS[n].line, np.random.default_rng([3, n])) for n in kept]
