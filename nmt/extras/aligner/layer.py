"""An alignment layer: links between the pieces of a sentence pair, from the states of a trained translation model.

The translation model does not change. With x_s the encoder's state of source piece s and y_t the decoder's readout
once it has read target piece t (Chen, Liu, Chen, Jiang and Liu 2020, "Accurate Word Alignment Induction from Neural
Machine Translation": the state that has seen a word aligns it better than the one that predicts it), each side goes
through a bidirectional GRU of its own, so that every target piece knows the whole sentence (Zenkel, Wuebker and DeNero
2020, "End-to-End Neural Word Alignment Outperforms GIZA++"), and

    score_ts = q(y)_t . k(x)_s / sqrt(width)
    p(t stands for s) = softmax over s of score_ts      p(s stands for t) = softmax over t of score_ts

where one more entry, a learnt constant, is the empty word. The layer learns from links (Garg, Peitz, Nallasamy and
Paulik 2019, "Jointly Learning to Align and Translate with Transformer Models", equation 6), in both directions at once.

Shapes: B sentence pairs, S source and T target pieces, X and Y the widths of x and y, W the layer's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.optim.lr_scheduler import LambdaLR

from nmt.alignment import Weights
from nmt.alignment.forced import in_batches
from nmt.core.device import Compute
from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.core.meta_init import on_meta_device
from nmt.data.batching import TokenIds, length_batches, pad
from nmt.extras.aligner.aligner import read_safetensors
from nmt.models.seq2seq import Seq2Seq

WIDTH = 128
DROPOUT = 0.3

_FORMAT = "nmt alignment layer 1"
_OUT = -1e4
"""Score of padding, which is far below all others and finite in every precision."""


class Piecewise(NamedTuple):
    """Log-probabilities of links between pieces, the empty word last."""

    forward_BTS1: Tensor
    backward_BST1: Tensor


class AlignmentLayer(nn.Module):
    """Log-probabilities of links from a model's states."""

    def __init__(self, source_size: int, target_size: int, *, width: int = WIDTH, dropout: float = DROPOUT) -> None:
        super().__init__()
        self.width = width
        self.source = _SideContext(source_size, width, dropout)
        self.target = _SideContext(target_size, width, dropout)
        self.empty = nn.Parameter(torch.zeros(2))
        """Scores of the empty source word and of the empty target word."""

    def forward(self, states: States) -> Piecewise:
        """Computes the log-probabilities of a batch. Padding has probability 0, up to rounding; rows of padding have no
        meaning."""
        key_BSW = self.source(states.source_BSX, states.source_length_B)
        query_BTW = self.target(states.target_BTY, states.target_length_B)
        score_BTS = query_BTW @ key_BSW.mT / math.sqrt(self.width)
        return Piecewise(
            _log_probabilities(score_BTS, states.source_length_B, self.empty[0]),
            _log_probabilities(score_BTS.mT, states.target_length_B, self.empty[1]),
        )


class _SideContext(nn.Module):
    """The pieces of a side in their context."""

    def __init__(self, size: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.narrow = nn.Linear(size, width)
        self.context = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)

    def forward(self, states_BSX: Tensor, length_B: Tensor) -> Tensor:
        narrow_BSW = self.narrow(self.dropout(states_BSX))
        lengths = length_B.cpu().clamp(min=1)
        packed = pack_padded_sequence(narrow_BSW, lengths, batch_first=True, enforce_sorted=False)
        states, _ = self.context(packed)
        context_BSW, _ = pad_packed_sequence(states, batch_first=True, total_length=states_BSX.shape[1])
        summed_BSW: Tensor = narrow_BSW + context_BSW
        return summed_BSW


def _log_probabilities(score_BTS: Tensor, source_length_B: Tensor, empty: Tensor) -> Tensor:
    B, T, S = score_BTS.shape
    is_out_BS = torch.arange(S, device=score_BTS.device) >= source_length_B[:, None]
    score_BTS = score_BTS.masked_fill(is_out_BS[:, None], _OUT)
    return torch.cat([score_BTS, empty.expand(B, T, 1)], dim=2).log_softmax(dim=2)


class States(NamedTuple):
    """A translation model's states of sentence pairs, in float32; end-of-sentence counts as padding."""

    source_BSX: Tensor
    target_BTY: Tensor
    source_length_B: Tensor
    target_length_B: Tensor


def states(model: Seq2Seq[Any, Any], source_BS: Tensor, target_BT: Tensor, compute: Compute) -> States:
    """Computes the states of padded sentences with end-of-sentence, and removes those of end-of-sentence."""
    is_pad_BS, is_pad_BT = source_BS == model.pad, target_BT == model.pad
    with torch.no_grad(), compute.autocast():
        encoded = model.encoder(model.encoder.embed(source_BS), is_pad_BS)
        readout_BTY = model.teacher_forced(target_BT, model.decoder.memory(encoded)).readout_BTR
    source_length_B, target_length_B = ((~is_pad).sum(dim=1) - 1 for is_pad in (is_pad_BS, is_pad_BT))
    # a readout has read the pieces before its position
    return States(encoded.states_BSD[:, :-1].float(), readout_BTY[:, 1:].float(), source_length_B, target_length_B)


def weights(
    layer: AlignmentLayer, model: Seq2Seq[Any, Any], sources: TokenIds, targets: TokenIds, compute: Compute, *,
    batch_tokens: int,
) -> list[tuple[NDArray[np.float32], ...]]:  # fmt: skip
    """Computes the forward and the backward matrix (T, S) of each pair of piece ids, whose sides are not empty."""
    assert not layer.training
    assert not model.training

    def weigh(source_BS: Tensor, target_BT: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            log_probs = layer(states(model, source_BS, target_BT, compute))
        return log_probs.forward_BTS1.exp()[:, :, :-1], log_probs.backward_BST1.exp()[:, :, :-1].mT

    return in_batches(weigh, sources, targets, compute.device, batch_tokens=batch_tokens, with_end=False)


class LinkedPair(NamedTuple):
    """A sentence pair with its links."""

    source: Sequence[int]
    target: Sequence[int]
    link_TS: Weights
    """Matrix that is 1 for each link between pieces, and 0 elsewhere."""


def train_layer(
    layer: AlignmentLayer, model: Seq2Seq[Any, Any], linked_pairs: Sequence[LinkedPair], compute: Compute, *,
    updates: int, batch_tokens: int, seed: int, rate: float = 1e-3, after_update: Callable[[], object] = lambda: None,
) -> list[float]:  # fmt: skip
    """Trains the layer, not the model: AdamW with a rate that rises over the first 100 updates and then falls to 0, and
    batches of similar lengths in random order. Returns the loss of each update."""
    layer.train()
    optimizer = torch.optim.AdamW(layer.parameters(), lr=rate, weight_decay=0.01)
    schedule = LambdaLR(optimizer, lambda update: min(1.0, (update + 1) / 100) * (1 - update / updates))
    random = np.random.default_rng(seed)
    lengths = [max(len(pair.source), len(pair.target)) + 1 for pair in linked_pairs]
    batches: list[list[int]] = []
    losses: list[float] = []
    for _ in range(updates):
        if not batches:
            batches = [list(rows) for rows in length_batches(lengths, batch_tokens)]
            random.shuffle(batches)
        batch = [linked_pairs[row] for row in batches.pop()]
        sides = ([pair.source for pair in batch], [pair.target for pair in batch])
        source_BS, target_BT = (torch.from_numpy(pad(side)[0]).to(compute.device) for side in sides)
        seen = states(model, source_BS, target_BT, compute)
        link_BTS = torch.zeros(len(batch), seen.target_BTY.shape[1], seen.source_BSX.shape[1])
        for index, pair in enumerate(batch):
            T, S = pair.link_TS.shape
            link_BTS[index, :T, :S] = torch.from_numpy(pair.link_TS)
        loss = guided_loss(layer(seen), link_BTS.to(compute.device), seen)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        after_update()
    layer.eval()
    return losses


def guided_loss(log_probs: Piecewise, link_BTS: Tensor, states: States) -> Tensor:
    """Computes the mean, over the pieces of each side, of the cross-entropy to their links. The links of a piece have
    probability 1 in total; a piece without links belongs to the empty word."""
    forward = _cross_entropy(log_probs.forward_BTS1, link_BTS, states.target_length_B)
    return forward + _cross_entropy(log_probs.backward_BST1, link_BTS.mT, states.source_length_B)


def _cross_entropy(log_p_BTS1: Tensor, link_BTS: Tensor, target_length_B: Tensor) -> Tensor:
    count_BT1 = link_BTS.sum(dim=2, keepdim=True)
    target_BTS1 = torch.cat([link_BTS / count_BT1.clamp(min=1), (count_BT1 == 0).float()], dim=2)
    loss_BT = -(target_BTS1 * log_p_BTS1).sum(dim=2)
    is_piece_BT = torch.arange(loss_BT.shape[1], device=loss_BT.device) < target_length_B[:, None]
    return loss_BT[is_piece_BT].mean()


# -------------------------------------------------------------------------------------------------------------- files


def save_layer(layer: AlignmentLayer, path: Path, *, model: str) -> None:
    """Writes one file; ``model`` names the weights of its model. Raises OSError."""
    tensors = {name: tensor.cpu().contiguous() for name, tensor in layer.state_dict().items()}
    with whole_file(path) as unfinished:
        # a single entry: safetensors writes several in any order
        safetensors.torch.save_file(tensors, unfinished, {_FORMAT: model})


def load_layer(path: Path, *, model: str, remedy: str) -> AlignmentLayer:
    """Reads a file of ``save_layer``. Raises InputError, with the ``remedy``, for another or a damaged file, and for
    the layer of another model."""
    try:
        metadata, tensors = read_safetensors(path, "pt", remedy=f"; {remedy}")
        made_for = metadata[_FORMAT]
        width = tensors["source.narrow.bias"].shape[0]
        if not width or width % 2:
            raise ValueError("width")
        sizes = [tensors[f"{side}.narrow.weight"].shape[1] for side in ("source", "target")]
        with on_meta_device():  # takes no memory until the shapes are known to fit
            layer = AlignmentLayer(*sizes, width=width)
        layer.load_state_dict(tensors, assign=True)
        if any(tensor.dtype != torch.float32 or not tensor.isfinite().all() for tensor in tensors.values()):
            raise ValueError("values")
    except (safetensors.SafetensorError, ValueError, KeyError, IndexError, RuntimeError, TypeError):
        raise InputError(f"{path}: is not an alignment layer, or damaged; {remedy}") from None
    if made_for != model:
        raise InputError(f"{path}: was taught on other weights than the model has now; {remedy}")
    return layer.requires_grad_(False).eval()
