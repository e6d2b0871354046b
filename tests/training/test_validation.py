"""The best validation so far, patience and plateaus."""

from __future__ import annotations

from nmt.training.validation import BestValidation


def test_standing_counts_gains_patience_and_plateaus() -> None:
    standing = BestValidation()
    seen = []
    for update, value in enumerate([5.0, 4.0, 4.5, 4.0, 4.1, 3.0, 3.5], 1):
        standing = standing.after(value, update, higher_is_better=False, patience=2)
        seen.append((standing.best_update, standing.without_gain, standing.plateaus))
    assert seen == [(1, 0, 0), (2, 0, 0), (2, 1, 0), (2, 2, 1), (2, 3, 1), (6, 0, 1), (6, 1, 1)]


def test_higher_is_better_for_bleu() -> None:
    standing = BestValidation().after(10.0, 1, higher_is_better=True, patience=None)
    assert standing.after(11.0, 2, higher_is_better=True, patience=None).best_update == 2
    assert standing.after(9.0, 2, higher_is_better=True, patience=None).best_update == 1
