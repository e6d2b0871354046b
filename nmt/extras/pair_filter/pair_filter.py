"""A filter of sentence pairs: learnt from a corpus, kept in a file, applied to lines.

The corpus to learn from is the one to clean, so each pair is scored by what has not learnt from it (cross-fitting): the
pairs are divided into `FOLDS` by a hash, the lexicon of a fold learns from the other folds, and its classifier from
the folds of other parity.

A classifier distinguishes the pairs of the corpus, of density f, from kinds of wrong pairs made of them, of densities
w_k. f is at least pi_k w_k where the corpus has a share pi_k of wrong pairs of a kind, so that no set of pairs is rarer
in the corpus than pi_k times its share of the wrong pairs, and (Blanchard, Lee & Scott 2010, "Semi-Supervised Novelty
Detection")

    pi_k <= P_f(w_k / f > t) / P_w_k(w_k / f > t)  for all thresholds t;    p = sum over k of pi_k w_k / f

is the probability that a pair is wrong. But a classifier that has learnt from wrong pairs as right ones is blunt. So a
second one learns without the pairs of large p; with g for the density of those that are left, shares are the most
probable ones for the corpus, found by expectation maximisation (Saerens, Latinne & Decaestecker 2002, "Adjusting the
Outputs of a Classifier to New a Priori Probabilities"), and

    p = sum over k of pi_k w_k / (pi_0 g + sum over k of pi_k w_k)        score = log (1 - p) / p
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
from nmt.data.filters import letters, pair_hash
from nmt.data.tokenizer import Tokenizer
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.vocabulary import EOS, PAD
from nmt.extras.pair_filter.lexicon import Lexicon, learn_lexicon
from nmt.extras.pair_filter.model import INPUTS, PairClassifier, line_facts, summary
from nmt.extras.pair_filter.wrong_pairs import KINDS, Pair, wrong_pairs
from nmt.extras.word_aligner.hmm import Tokens

SIZE = 64
"""Width of the classifier's layers."""
SUBWORDS = 8000
LONGEST = 200
"""Tokens of a side that are read; a longer one is cut there."""

FOLDS = 4
LEAST_PAIRS = 30
"""In each fold."""
CELLS = 40_000_000
"""Most pairs of a source and a target token that lexicons learn from; bounds memory."""

EXAMPLES = 16_000
"""Most pairs of the corpus that classifiers learn from."""
WRONG = 3
"""Wrong pairs made of each of them."""
EPOCHS = (5, 8)
"""Of the first classifiers and of those that learn without the pairs of which the first say p >= `LEFT_OUT`."""
UPDATES = 100
"""Fewest in an epoch."""
BATCH = 256
BATCH_TOKENS = 2048
"""Tokens of the longer side in a batch, padding included."""
LEARNING_RATE = 5e-3

PARTS = (0.4, 0.5)
"""Of wrong pairs, found at the thresholds at which their shares are estimated."""
LEFT_OUT = 0.3
SUSPICION = 0.4
"""Probability to be wrong from which a pair is dropped: one that stays does more harm than a right one that goes."""
LEAST_SHARE = 5e-4
"""Of each kind of wrong pairs, so that scores also rank the pairs of a clean corpus."""
ITERATIONS = 30
QUANTILES = 5000
"""Scores of right pairs that are kept to find thresholds."""

_TOO_LITTLE = "there is too little text to learn from"
_FORMAT = "nmt pair filter 2"


@dataclass(frozen=True)
class PairFilter:
    """Lexicons and classifiers of folds with a vocabulary, and scores of pairs that none of them has learnt from."""

    tokenizer: Tokenizer
    lexicons: tuple[Lexicon, ...]
    """Of each fold the lexicon that has learnt from the others."""
    models: tuple[PairClassifier, ...]
    """Of even and odd folds the classifier that has learnt from the others."""
    held_out_N: NDArray[np.float32]
    """The scores of right pairs of the corpus, in rising order, as far as they can be told from wrong ones."""

    def scores(self, sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.float32]:
        """The score of each pair of lines; -inf where a side is blank."""
        pairs = list(zip(sources, targets, strict=True))
        fold_N = np.array([_fold(*pair) for pair in pairs])
        scores_N = np.full(len(pairs), -np.inf, np.float32)
        for fold, lexicon in enumerate(self.lexicons):
            rows = np.flatnonzero(fold_N == fold)
            kept, x_NX = _inputs(self.tokenizer, lexicon, [pairs[row] for row in rows])
            with torch.inference_mode():
                scores_N[rows[kept]] = _scores(self.models[fold % 2](x_NX))
        return scores_N

    def threshold(self, false_alarms: float) -> float:
        """The score of p = `SUSPICION`, or a higher one that this share of the right pairs does not reach."""
        return max(float(np.quantile(self.held_out_N, false_alarms)), math.log(1 / SUSPICION - 1))


def learn_pair_filter(pairs: Sequence[Pair], *, seed: int) -> PairFilter:
    """Learns from different pairs in random order. Raises InputError where they hold too little text."""
    tokenizer = _learn_tokenizer(pairs)
    folds: list[list[int]] = [[] for _ in range(FOLDS)]
    encoded, cells = _encoded(tokenizer, pairs), 0
    for row, (pair, (source, target)) in enumerate(zip(pairs, encoded, strict=True)):
        cells += len(source) * len(target)
        if min(len(source), len(target)) > 0 and cells <= CELLS:
            folds[_fold(*pair)].append(row)
    if min(map(len, folds)) < LEAST_PAIRS:
        raise InputError(f"{_TOO_LITTLE}; give some hundred different pairs with words on both sides")
    log.info(f"filter     learning from {sum(map(len, folds)):,} pairs")
    random = np.random.default_rng(seed)
    torch.manual_seed(seed)
    lexicons, parts, origins = [], [], 0
    for fold in log.progress(range(FOLDS), description="filter", unit="lexicon"):
        others = [encoded[row] for other in range(FOLDS) if other != fold for row in folds[other]]
        lexicons.append(learn_lexicon(others, tokenizer.size))
        # Partners come from the same fold, so that the lexicon has learnt from neither side.
        part = [pairs[row] for row in folds[fold][: EXAMPLES // FOLDS]]
        examples = [(0, row, pair) for row, pair in enumerate(part)] + wrong_pairs(part, WRONG, random)
        kept, x_NX = _inputs(tokenizer, lexicons[-1], [pair for *_, pair in examples])
        kinds, rows, _ = zip(*(examples[place] for place in kept), strict=True)
        origin_N = torch.tensor(rows) + origins
        parts.append((x_NX, torch.tensor(kinds), origin_N, torch.full((len(kept),), fold % 2)))
        origins += len(part)
    models, held_out_N = _learn_classifiers(_Examples(*map(torch.cat, zip(*parts, strict=True))), random)
    return PairFilter(tokenizer, tuple(lexicons), tuple(models), held_out_N)


class _Examples(NamedTuple):
    """Pairs of the corpus, and wrong pairs made of them."""

    x_NX: Tensor
    kind_N: Tensor
    """0, or the number of the kind of wrong pairs."""
    origin_N: Tensor
    """The number of the pair of the corpus."""
    half_N: Tensor
    """0 of even folds, 1 of odd ones."""

    def of(self, is_kept_N: Tensor) -> _Examples:
        """Some of the examples."""
        return _Examples(*(each[is_kept_N] for each in self))


def _learn_classifiers(
    examples: _Examples, random: np.random.Generator
) -> tuple[list[PairClassifier], NDArray[np.float32]]:
    """The classifiers of both halves, and the scores of right pairs."""
    is_own_N = examples.kind_N == 0
    models, z_NK = _classified(examples, examples, EPOCHS[0], random)
    ratio_NK = z_NK[:, 1:] - z_NK[:, :1]
    share_K = torch.stack([_share(ratio_NK[:, kind], examples.kind_N, kind + 1) for kind in range(len(KINDS))])
    is_right_O = (ratio_NK[is_own_N] + share_K.log()).logsumexp(dim=1) < math.log(LEFT_OUT)
    models, z_NK = _classified(examples.of(is_right_O[examples.origin_N]), examples, EPOCHS[1], random)
    z_OK = z_NK[is_own_N]
    share_K = torch.cat([1 - share_K.sum(0, keepdim=True).clamp(max=0.9), share_K])
    for _ in range(ITERATIONS):
        share_K = (z_OK + share_K.clamp(min=LEAST_SHARE).log()).softmax(dim=1).mean(dim=0)
    found = ", ".join(f"{share:.1%} {kind}" for kind, share in zip(KINDS, share_K[1:].tolist(), strict=True))
    log.info(f"filter     wrong pairs, about: {found}")
    prior_K = share_K.clamp(min=LEAST_SHARE).log()
    for model in models:
        model.output.bias += prior_K
    score_O = np.sort(_scores(z_OK + prior_K))
    # The distribution of right pairs: each pair of the corpus counts by the probability that it is right.
    right_O = np.cumsum(1 / (1 + np.exp(-score_O.clip(min=-50))))
    return models, np.interp(np.linspace(0, right_O[-1], QUANTILES), right_O, score_O).astype(np.float32)


def _share(ratio_N: Tensor, kind_N: Tensor, kind: int) -> Tensor:
    """The least upper bound pi_k by the ratios w_k / f of all examples."""
    own_N, wrong_N = ratio_N[kind_N == 0], ratio_N[kind_N == kind]
    if not len(wrong_N):  # where each side is a single character, none are cut
        return torch.tensor(LEAST_SHARE)
    bounds = [((own_N > wrong_N.quantile(1 - part)).sum() + 1) / part for part in PARTS]
    return torch.stack(bounds).amin() / len(own_N)


def _classified(
    learnt: _Examples, examples: _Examples, epochs: int, random: np.random.Generator
) -> tuple[list[PairClassifier], Tensor]:
    """The classifier of each half, which learns from the other one, and log-densities of all examples by the kinds,
    (N, K), each up to a constant."""
    halves = [learnt.of(learnt.half_N == half) for half in (0, 1)]
    models = [_learn_classifier(other, own, epochs, random) for own, other in (halves, halves[::-1])]
    with torch.inference_mode():
        z_NK = torch.where(examples.half_N[:, None] == 0, models[0](examples.x_NX), models[1](examples.x_NX))
    return models, z_NK


def _learn_classifier(
    examples: _Examples, others: _Examples, epochs: int, random: np.random.Generator
) -> PairClassifier:
    """Descends the cross-entropy of the kinds. Of all epochs, the one that is best for the other examples counts."""
    x_NX, kind_N = examples[:2]
    model = PairClassifier(len(KINDS) + 1, SIZE)
    model.mean_X.data, model.deviation_X.data = x_NX.mean(dim=0), x_NX.std(dim=0).clamp(min=0.01)
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, betas=(0.9, 0.98), fused=True)
    best, best_loss = model.state_dict(), math.inf
    for epoch in log.progress(range(epochs), description="filter", unit="epoch"):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * (1 - epoch / epochs)
        for rows in np.array_split(random.permutation(len(x_NX)), max(UPDATES, len(x_NX) // BATCH)):
            optimizer.zero_grad()
            F.cross_entropy(model(x_NX[rows]), kind_N[rows]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.inference_mode():
            loss = float(F.cross_entropy(model(others.x_NX), others.kind_N))
        if loss < best_loss:
            best, best_loss = copy.deepcopy(model.state_dict()), loss
    model.load_state_dict(best)
    model.requires_grad_(False)
    # The logits are log-densities plus the logarithms of the numbers of examples.
    model.output.bias -= kind_N.bincount(minlength=len(KINDS) + 1).clamp(min=1).log()
    return model.eval()


def _scores(z_NK: Tensor) -> NDArray[np.float32]:
    """log (1 - p) / p"""
    return np.asarray(z_NK[:, 0] - z_NK[:, 1:].logsumexp(dim=1))


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


def _encoded(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[tuple[Tokens, Tokens]]:
    """The tokens of each pair's sides."""
    sides = ([row[:LONGEST] for row in tokenizer.encode_arrays(side)] for side in zip(*pairs, strict=True))
    return list(zip(*sides, strict=True))


def _fold(source: str, target: str) -> int:
    """The fold that a pair belongs to. Near-duplicates are in the same one."""
    return int.from_bytes(pair_hash(letters(source), letters(target), seed=0), "little") % FOLDS


def _inputs(tokenizer: Tokenizer, lexicon: Lexicon, pairs: Sequence[Pair]) -> tuple[list[int], Tensor]:
    """The rows of the pairs whose sides have tokens, and the classifier's inputs for them."""
    encoded = _encoded(tokenizer, pairs)
    rows = [row for row, pair in enumerate(encoded) if min(map(len, pair)) > 0 and all(map(str.strip, pairs[row]))]
    x_NX = torch.zeros(len(rows), INPUTS)
    for places in length_batches([max(map(len, encoded[row])) for row in rows], BATCH_TOKENS):
        sides = list(zip(*(encoded[rows[place]] for place in places), strict=True))
        padded = [torch.from_numpy(pad(side)[0][:, :-1]) for side in sides]
        features = lexicon.features(*(side_BT.masked_fill_(side_BT == EOS, PAD) for side_BT in padded))
        parts = [
            summary(x_BTF, torch.tensor(list(map(len, side)))) for x_BTF, side in zip(features, sides, strict=True)
        ]
        facts_BX = torch.tensor([line_facts(*pairs[rows[place]]) for place in places])
        x_NX[places] = torch.cat([*parts, facts_BX], dim=-1)
    return rows, x_NX


def save_pair_filter(pair_filter: PairFilter, path: Path) -> None:
    """Writes one file, whole or not at all, which `load_pair_filter` reads. Raises OSError."""
    tensors = {"subwords": torch.from_numpy(np.frombuffer(pair_filter.tokenizer.model, np.uint8).copy())}
    tensors["held_out"] = torch.from_numpy(pair_filter.held_out_N)
    for fold, lexicon in enumerate(pair_filter.lexicons):
        tensors |= {f"{name}.{fold}": each for name, each in lexicon._asdict().items()}
    tensors |= nn.ModuleList(pair_filter.models).state_dict()
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
        tokenizer = Tokenizer(tensors.pop("subwords").numpy().tobytes(), name=str(path))
        held_out = tensors.pop("held_out")
        lexicons = [Lexicon(*(tensors.pop(f"{name}.{fold}") for name in Lexicon._fields)) for fold in range(FOLDS)]
        floats = [held_out, *tensors.values(), *(x for each in lexicons for x in each[1:])]
        fits = held_out.ndim == 1 and len(held_out) > 0 and all(each.fits(tokenizer.size) for each in lexicons)
        if form != _FORMAT or not fits or not all(x.dtype == torch.float32 and x.isfinite().all() for x in floats):
            raise ValueError("form")
        with on_meta_device():  # takes no memory before the shapes are known to fit
            size = len(tensors["0.hidden.0.bias"])
            models = [PairClassifier(len(KINDS) + 1, size).requires_grad_(False).eval() for _ in range(2)]
        nn.ModuleList(models).load_state_dict(tensors, assign=True)
        return PairFilter(tokenizer, tuple(lexicons), tuple(models), held_out.numpy())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (safetensors.SafetensorError, ValueError, KeyError, IndexError, RuntimeError, TypeError):
        raise InputError(f"{path}: is not a pair filter, or damaged; make one with nmt filter --save") from None
