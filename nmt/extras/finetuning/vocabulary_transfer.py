"""Transfer of weights to a model with another vocabulary: rows of embeddings and output layer are matched by the
spelling of their piece (Lakew et al. 2018, "Transfer Learning in Multilingual Neural Machine Translation with Dynamic
Vocabulary").

Pieces that the old vocabulary lacks keep the initial values of the new model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from nmt.data.tokenizer import Tokenizer, TokenizerPair
from nmt.models.seq2seq import Seq2Seq
from nmt.training import checkpoint as checkpoints
from nmt.training.run_directory import MODEL


def load_weights_by_piece(checkpoint: Path, model: Seq2Seq[Any, Any], old: TokenizerPair, new: TokenizerPair) -> str:
    """Fills a new model with a checkpoint's weights; returns a phrase with the number of rows that were transferred.
    Raises InputError if shapes differ by more than the rows of the vocabularies."""
    path = checkpoint / MODEL
    weights = checkpoints.read_tensors(path)
    rows_of = {"source": _common_rows(old.source, new.source), "target": _common_rows(old.target, new.target)}
    sizes = {"source": old.source.size, "target": old.target.size}
    for name, parameter in checkpoints.named_weights(model).items():
        if name.startswith(("encoder.embedding.", "decoder.embedding.", "output.")) and name in weights:
            side = "source" if name.startswith("encoder.") else "target"
            if len(weights[name]) == sizes[side] and weights[name].shape[1:] == parameter.shape[1:]:
                merged = parameter.to("cpu", copy=True)
                merged[torch.tensor(list(rows_of[side]))] = weights[name][torch.tensor(list(rows_of[side].values()))]
                weights[name] = merged
    checkpoints.fill(model, weights, path)
    counts = [f"{len(rows_of[side]):,} of {getattr(new, side).size:,} {side} pieces" for side in rows_of]
    return f"with the rows of {counts[0]}" + ("" if new.joint else f" and {counts[1]}")


def _common_rows(old: Tokenizer, new: Tokenizer) -> dict[int, int]:
    """Maps each row of the new vocabulary whose piece is in the old one to its row there."""
    row_of = {piece: row for row, piece in enumerate(old.pieces(range(old.size)))}
    pieces = enumerate(new.pieces(range(new.size)))
    return {row: row_of[piece] for row, piece in pieces if piece in row_of}
