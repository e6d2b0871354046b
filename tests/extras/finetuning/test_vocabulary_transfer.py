"""Weights for another vocabulary: rows are matched by the spelling of their piece."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from nmt.extras.finetuning.vocabulary_transfer import load_weights_by_piece
from nmt.training import checkpoint
from tests.models.variants import make, tree


def tokenizer(*pieces: str) -> Any:
    return SimpleNamespace(size=len(pieces), pieces=lambda rows: [pieces[row] for row in rows])


def test_rows_follow_their_pieces_and_all_else_is_copied(tmp_path: Path) -> None:
    """Of six target pieces, one moves, one is new and one is gone; those of the source keep their rows."""
    (tmp_path / "checkpoints").mkdir()
    old, new = make(tree()), make(tree(), scale=2.0)
    before, initial = ({name: each.clone() for name, each in checkpoint.named_weights(m).items()} for m in (old, new))
    source, target = tokenizer(*"psbeuv"), [tokenizer(*"psbexy"), tokenizer(*"psbeyz")]
    pairs: list[Any] = [SimpleNamespace(source=source, target=each, joint=False) for each in target]
    phrase = load_weights_by_piece(checkpoint.save(tmp_path, 1, old, {}, {}), new, *pairs)
    assert phrase == "with the rows of 6 of 6 source pieces and 5 of 6 target pieces"
    for name, after in checkpoint.named_weights(new).items():
        expected = before[name].clone()
        if name.startswith(("decoder.embedding.", "output.")):
            expected[4], expected[5] = before[name][5], initial[name][5]
        assert torch.equal(after, expected), name
