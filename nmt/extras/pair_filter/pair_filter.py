"""A filter of sentence pairs: learnt from a corpus, kept in a file, applied to lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import refuse_special, whole_file
from nmt.core.meta_init import on_meta_device
from nmt.data.batching import length_batches, pad
from nmt.data.config import SubwordsConfig
from nmt.data.tokenizer import Tokenizer
from nmt.data.train_tokenizers import train_tokenizers
from nmt.extras.pair_filter.model import DecomposableAttention
from nmt.extras.pair_filter.wrong_pairs import TokenPair, WrongPairs

SIZE = 128
SUBWORDS = 8000
LONGEST = 200
"""Tokens of a side that are read; a longer one is cut there."""

UPDATES = 2000
BATCH_PAIRS = 160
BATCH_TOKENS = 4096
"""Tokens of one side in one product, padding included; bounds memory."""
LEARNING_RATE = 3e-3

HELD_OUT = 5000
"""Most pairs that are held out, a twentieth of all, to find thresholds."""

_TOO_LITTLE = "there is too little text to learn from"
_FORMAT = "nmt pair filter 1"


@dataclass(frozen=True)
class PairFilter:
    """A model with its vocabulary, and scores of pairs that it has not learnt from."""

    tokenizer: Tokenizer
    model: DecomposableAttention
    held_out_N: NDArray[np.float32]
    """The scores of pairs of the corpus that were held out, in rising order."""

    def scores(self, sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.float32]:
        """The log-odds that each pair of lines is a translation; -inf where a side is blank."""
        pairs = _encoded(self.tokenizer, sources, targets)
        scores_N = np.zeros(len(pairs), np.float32)
        with torch.inference_mode():
            for rows, source_BS, target_BT in _padded(pairs):
                scores_N[rows] = self.model(source_BS, target_BT).numpy()
        scores_N[[min(map(len, pair)) == 0 for pair in pairs]] = -np.inf
        return scores_N

    def threshold(self, false_alarms: float) -> float:
        """The score that this share of the held-out pairs does not reach."""
        return float(np.quantile(self.held_out_N, false_alarms))


def learn_pair_filter(pairs: Sequence[tuple[str, str]], *, seed: int) -> PairFilter:
    """Learns from different pairs in random order. Raises InputError where they hold too little text."""
    tokenizer = _learn_tokenizer(pairs)
    held_out = min(HELD_OUT, len(pairs) // 20)
    training = [pair for pair in _encoded(tokenizer, *zip(*pairs[held_out:], strict=True)) if min(map(len, pair)) > 0]
    if len(training) < BATCH_PAIRS:
        raise InputError(f"{_TOO_LITTLE}; give some hundred different pairs with words on both sides")
    torch.manual_seed(seed)
    model = DecomposableAttention(tokenizer.size, SIZE)
    random = np.random.default_rng(seed)
    wrong_pairs = WrongPairs(training, tokenizer, random)
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, betas=(0.9, 0.98), fused=True)
    losses: list[float] = []
    for update in log.progress(range(UPDATES), description="filter", unit="update"):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min((update + 1) / 100, 2 * (1 - update / UPDATES), 1.0)
        losses.append(_update(model, optimizer, *wrong_pairs.batch(BATCH_PAIRS)))
    log.info(f"filter     loss {np.mean(losses[:50]):.3f} -> {np.mean(losses[-50:]):.3f}, {len(training):,} pairs")
    learnt = PairFilter(tokenizer, model.eval().requires_grad_(False), np.zeros(0, np.float32))
    scores_N = learnt.scores(*zip(*pairs[:held_out], strict=True))
    return replace(learnt, held_out_N=np.sort(scores_N[np.isfinite(scores_N)]))


def _learn_tokenizer(pairs: Sequence[tuple[str, str]]) -> Tokenizer:
    """One vocabulary for both sides, in lower case, of the size that is nearest to `SUBWORDS` where the text has fewer
    subwords or more characters."""
    size, reason = SUBWORDS, ""
    for _ in range(4):
        config = SubwordsConfig(size=size, normalization="nmt_nfkc_cf", character_coverage=0.9999)
        try:
            return train_tokenizers(pairs, config).source
        except InputError as error:
            reason = str(error)
            size = int((re.findall(r"set it to (\d+) or", reason) or [size])[0])
    raise InputError(f"{_TOO_LITTLE}; give pairs with more different words ({reason})")


def _encoded(tokenizer: Tokenizer, sources: Sequence[str], targets: Sequence[str]) -> list[TokenPair]:
    sides = ([row[:LONGEST] for row in tokenizer.encode_arrays(side)] for side in (sources, targets))
    return list(zip(*sides, strict=True))


def _update(
    model: DecomposableAttention, optimizer: torch.optim.Optimizer, right: list[TokenPair], wrong: list[TokenPair]
) -> float:
    """Descends the logistic loss of the pairs, to which right and wrong ones contribute the same."""
    label_B = torch.tensor([1.0] * len(right) + [0.0] * len(wrong))
    optimizer.zero_grad()
    total = 0.0
    for rows, source_BS, target_BT in _padded(right + wrong):
        weight_B = torch.where(label_B[rows] > 0, 0.5 / len(right), 0.5 / len(wrong))
        logit_B = model(source_BS, target_BT)
        loss = F.binary_cross_entropy_with_logits(logit_B, label_B[rows], weight_B, reduction="sum")
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return total


def _padded(pairs: Sequence[TokenPair]) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Batches of pairs of about equal length: rows, sources, targets."""
    for rows in length_batches([max(map(len, pair)) + 1 for pair in pairs], BATCH_TOKENS):
        source_BS, target_BT = (torch.from_numpy(pad([pairs[row][side] for row in rows])[0]) for side in (0, 1))
        yield rows, source_BS, target_BT


def save_pair_filter(pair_filter: PairFilter, path: Path) -> None:
    """Writes one file, whole or not at all, which `load_pair_filter` reads. Raises OSError."""
    tensors = dict(pair_filter.model.state_dict())
    tensors["subwords"] = torch.from_numpy(np.frombuffer(pair_filter.tokenizer.model, np.uint8).copy())
    tensors["held_out"] = torch.from_numpy(pair_filter.held_out_N)
    with whole_file(path) as unfinished:
        # One entry: safetensors writes several in any order, but the same text must give the same bytes.
        safetensors.torch.save_file(tensors, unfinished, {"format": _FORMAT})


def load_pair_filter(path: Path) -> PairFilter:
    """Reads a file of `save_pair_filter`. Raises InputError for another or a damaged file."""
    refuse_special(path)
    try:
        path.open("rb").close()  # safetensors' own errors repeat the path
        with safetensors.safe_open(path, framework="pt") as file:
            form = (file.metadata() or {}).get("format")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        subwords = tensors.pop("subwords").numpy()
        floats = all(each.dtype == torch.float32 and bool(each.isfinite().all()) for each in tensors.values())
        held_out_N = tensors.pop("held_out").numpy()
        if form != _FORMAT or subwords.dtype != np.uint8 or not floats or held_out_N.ndim != 1 or not held_out_N.size:
            raise ValueError("form")
        tokenizer = Tokenizer(subwords.tobytes(), name=str(path))
        with on_meta_device():  # takes no memory before the shapes are known to fit
            model = DecomposableAttention(tokenizer.size, tensors["embedding.table.weight"].shape[1])
        model.load_state_dict(tensors, assign=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (safetensors.SafetensorError, ValueError, KeyError, IndexError, RuntimeError, TypeError):
        raise InputError(f"{path}: is not a pair filter, or damaged; make one with nmt filter --save") from None
    return PairFilter(tokenizer, model.requires_grad_(False).eval(), held_out_N)
