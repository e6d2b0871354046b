"""A filter of sentence pairs: learnt from a corpus, kept in a file, applied to lines.

The corpus to learn from is the one to clean, so each pair is scored by a model that has not learnt from it
(cross-fitting): the pairs are divided into `FOLDS` by a hash, the lexicon of a fold learns from the other folds, and
its classifier from the folds of other parity.

A classifier distinguishes the pairs of the corpus from kinds k of wrong pairs made of them; it gives the ratios
w_k / g of the densities of a kind and of right pairs. The shares pi of the kinds in the corpus and the probability p
that a pair is wrong are found in turn, from high shares on (as in Saerens, Latinne & Decaestecker 2002, "Adjusting the
Outputs of a Classifier to New a Priori Probabilities"). There, a share is the mean of P(k | pair); here, the share of
pairs in which it exceeds `SUSPICION`, so that many pairs that are hardly suspicious do not add up to wrong ones.

    P(k | pair) = pi_k w_k / sum over all kinds, k = 0 those of right pairs (w_0 = g)
    pi_k = share of the pairs in which P(k | pair) > `SUSPICION`
    p = 1 - P(0 | pair)        score = log (1 - p) / p

But at first, wrong pairs of the corpus count as right ones, so that the classifier is blunt: it has the density of the
whole corpus for g, and w_k / g is at most 1 / pi_k. So a second one learns without the pairs of p > `SUSPICION`.

Shapes: N pairs, O pairs of the corpus of which wrong ones are made, C = 1 + `WRONG` examples of each, the first of
which is the pair itself, X inputs of the classifier, K kinds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
from nmt.core.files import whole_file
from nmt.data.batching import length_batches, pad
from nmt.data.config import SubwordsConfig
from nmt.data.filters import letters, pair_hash
from nmt.data.tokenizer import Tokenizer
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.vocabulary import EOS, PAD
from nmt.extras.aligner.aligner import read_safetensors
from nmt.extras.aligner.hmm import Tokens
from nmt.extras.corpus.pair_filter.lexicon import Lexicon, learn_lexicon
from nmt.extras.corpus.pair_filter.model import INPUTS, PairClassifier, line_facts, summary
from nmt.extras.corpus.pair_filter.wrong_pairs import KINDS, Pair, examples_of

SIZE = 64
"""Width of the classifier's layers."""
SUBWORDS = 8000
LONGEST = 200
"""Maximum number of tokens of a side that are read; a longer side is cut."""

FOLDS = 4
CELLS = 40_000_000
"""Maximum number of pairs of a source and a target token that lexicons learn from; it bounds memory."""

EXAMPLES = 16_000
"""Maximum number of pairs of the corpus that classifiers learn from."""
WRONG = 3
"""Number of wrong pairs that are made from each of them."""
EPOCHS = (5, 8)
"""Numbers of epochs of the first and of the second classifiers."""
BATCH = 256
LEARNING_RATE = 5e-3

SUSPICION = 0.15
"""Probability above which a pair counts as wrong, chosen on half of the pairs of Tatoeba es-en and LibreOffice de-en,
with and without planted wrong pairs."""

_TOO_LITTLE = "there is too little text to learn from"
_FORMAT = "nmt pair filter 2"


@dataclass(frozen=True)
class PairFilter:
    """Vocabulary, lexicons and classifiers of folds, and scores of pairs by parts that have not learnt from them."""

    tokenizer: Tokenizer
    lexicons: tuple[Lexicon, ...]
    """The lexicon of each fold, which has learnt from the others."""
    models: tuple[PairClassifier, ...]
    """The classifiers for even and for odd folds, each of which has learnt from the other folds."""
    held_out_N: NDArray[np.float32]
    """The scores of pairs of the corpus, in rising order."""

    def scores(self, sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.float32]:
        """Computes the score of each pair of lines, which is -inf if a side is blank."""
        pairs = list(zip(sources, targets, strict=True))
        fold_N = np.array([_fold(*pair) for pair in pairs])
        scores_N = np.zeros(len(pairs), np.float32)
        for fold, lexicon in enumerate(self.lexicons):
            rows = np.flatnonzero(fold_N == fold)
            x_NX, has_tokens_N = _inputs(self.tokenizer, lexicon, [pairs[row] for row in rows])
            scores_N[rows] = np.where(has_tokens_N, _scores(self.models[fold % 2](x_NX)), -np.inf)
        return scores_N

    def threshold(self, false_alarms: float) -> float:
        """Returns the score of pairs that are wrong with probability 1/2, or the score that the share ``false_alarms``
        of the pairs of the corpus does not reach, if that is higher."""
        return max(float(np.quantile(self.held_out_N, false_alarms)), 0.0)


def learn_pair_filter(pairs: Sequence[Pair], *, seed: int) -> PairFilter:
    """Learns a filter from different pairs in random order. Raises InputError if they have too little text."""
    # measured times: 0.7 ms for each pair, and for the aligner 0.2 us for each pair of characters
    seconds = 6 + 7e-4 * len(pairs) + 2e-7 * sum(len(source) * len(target) for source, target in pairs)
    log.info(f"filter     learning from {len(pairs):,} pairs takes about {seconds:.0f} s on one core")
    tokenizer = _learn_tokenizer(pairs)
    encoded = _encoded(tokenizer, pairs)
    cell_N = np.array([len(source) * len(target) for source, target in encoded])
    fold_N = np.where((cell_N > 0) & (cell_N.cumsum() <= CELLS), [_fold(*pair) for pair in pairs], FOLDS)
    if min(np.bincount(fold_N, minlength=FOLDS)[:FOLDS]) < 30:
        raise InputError(f"{_TOO_LITTLE}; give some hundred different pairs with words on both sides")
    random = np.random.default_rng(seed)
    torch.manual_seed(seed)
    lexicons, parts = [], []
    for fold in log.progress(range(FOLDS), description="filter", unit="lexicon"):
        others = np.flatnonzero((fold_N != fold) & (fold_N < FOLDS))
        lexicons.append(learn_lexicon([encoded[row] for row in others], tokenizer.size))
        # partners come from the same fold, so that the lexicon has learnt from neither side
        part = [pairs[row] for row in np.flatnonzero(fold_N == fold)[: EXAMPLES // FOLDS]]
        examples = [each for row in range(len(part)) for each in examples_of(part, row, WRONG, random)]
        x_NX, has_tokens_N = _inputs(tokenizer, lexicons[-1], [pair for _, pair in examples])
        kind_N = torch.where(has_tokens_N, torch.tensor([kind for kind, _ in examples]), -1)  # -1: could not be made
        half_O = torch.full((len(part),), fold % 2)
        parts.append((x_NX.view(len(part), 1 + WRONG, -1), kind_N.view(len(part), -1), half_O))
    x_OCX, kind_OC, half_O = (torch.cat(part) for part in zip(*parts, strict=True))
    models, held_out_N = _learn_classifiers(x_OCX, kind_OC, half_O, random)
    return PairFilter(tokenizer, tuple(lexicons), tuple(models), held_out_N)


def _learn_classifiers(
    x_OCX: Tensor, kind_OC: Tensor, half_O: Tensor, random: np.random.Generator
) -> tuple[list[PairClassifier], NDArray[np.float32]]:
    """Learns the classifiers of both halves, each of which learns from the other half; also returns the scores of the O
    pairs."""
    is_learnt_O, z_OK = torch.ones_like(half_O) > 0, torch.zeros(len(half_O), len(KINDS))
    for epochs in EPOCHS:
        models = []
        for half in (0, 1):
            is_other_O = is_learnt_O & (half_O != half)
            x_NX, kind_N = x_OCX[is_other_O].flatten(0, 1), kind_OC[is_other_O].flatten()
            models.append(_learn_classifier(x_NX, kind_N, epochs, random))
            z_OK[half_O == half] = models[half](x_OCX[half_O == half, 0])
        share_K = torch.tensor([1.0] + [0.1] * (len(KINDS) - 1))
        for _ in range(30):
            posterior_OK = (z_OK + share_K.log()).softmax(dim=1)
            # the smallest share lets scores rank the pairs of a clean corpus, too
            share_K = (posterior_OK > SUSPICION).float().mean(dim=0).clamp(min=5e-4)
        # at least half of the pairs, so that there are enough to learn from
        is_learnt_O = posterior_OK[:, 0] >= posterior_OK[:, 0].median().clamp(max=1 - SUSPICION)
    found = list(zip(share_K.tolist(), KINDS, strict=True))[1:]
    log.info("filter     wrong pairs, about: " + ", ".join(f"{share:.1%} {kind}" for share, kind in found))
    for model in models:
        model.output.bias.data += share_K.log()
    return models, np.sort(_scores(z_OK + share_K.log()))


def _learn_classifier(x_NX: Tensor, kind_N: Tensor, epochs: int, random: np.random.Generator) -> PairClassifier:
    """Minimises the cross-entropy of the kinds. The logits are then log-densities, up to a constant for each pair."""
    model = PairClassifier(x_NX.mean(dim=0), x_NX.std(dim=0), len(KINDS), SIZE)
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.3, fused=True)
    for epoch in log.progress(range(epochs), description="filter", unit="epoch"):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - epoch / epochs)
        for rows in np.array_split(random.permutation(len(x_NX)), max(30, len(x_NX) // BATCH)):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x_NX[rows]), kind_N[rows], ignore_index=-1)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    # removes the logarithms of the numbers of examples
    model.output.bias.data -= kind_N[kind_N >= 0].bincount(minlength=len(KINDS)).clamp(min=1).log()
    return model.requires_grad_(False)


def _scores(z_NK: Tensor) -> NDArray[np.float32]:
    """Computes the scores, log (1 - p) / p."""
    return np.asarray(z_NK[:, 0] - z_NK[:, 1:].logsumexp(dim=1))


def _learn_tokenizer(pairs: Sequence[tuple[str, str]]) -> Tokenizer:
    """Learns one vocabulary for both sides, in lower case, with `SUBWORDS` entries, or the nearest size if the text has
    fewer subwords or more characters."""
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
    """Encodes the sides of each pair."""
    sides = ([row[:LONGEST] for row in tokenizer.encode_arrays(side)] for side in zip(*pairs, strict=True))
    return list(zip(*sides, strict=True))


def _fold(source: str, target: str) -> int:
    """Returns the fold that a pair belongs to. Near-duplicates are in the same fold."""
    return int.from_bytes(pair_hash(letters(source), letters(target), seed=0), "little") % FOLDS


def _inputs(tokenizer: Tokenizer, lexicon: Lexicon, pairs: Sequence[Pair]) -> tuple[Tensor, Tensor]:
    """Computes the classifier's inputs (N, X), and a mask of the pairs whose sides have tokens; the inputs of others
    are 0."""
    encoded = _encoded(tokenizer, pairs)
    rows = [row for row, pair in enumerate(encoded) if min(map(len, pair)) > 0 and all(map(str.strip, pairs[row]))]
    x_NX, has_tokens_N = torch.zeros(len(pairs), INPUTS), torch.zeros(len(pairs), dtype=torch.bool)
    has_tokens_N[rows] = True
    for places in length_batches([max(map(len, encoded[row])) for row in rows], BATCH * 8):
        batch = [rows[place] for place in places]
        sides = list(zip(*(encoded[row] for row in batch), strict=True))
        padded = [torch.from_numpy(pad(side)[0][:, :-1]) for side in sides]
        features = lexicon.features(*(side_BT.masked_fill_(side_BT == EOS, PAD) for side_BT in padded))
        lengths = [torch.tensor(list(map(len, side))) for side in sides]
        parts = [summary(x_BTF, length_B) for x_BTF, length_B in zip(features, lengths, strict=True)]
        x_NX[batch] = torch.cat([*parts, torch.tensor([line_facts(*pairs[row]) for row in batch])], dim=-1)
    return x_NX, has_tokens_N


def save_pair_filter(pair_filter: PairFilter, path: Path) -> None:
    """Writes one file atomically, which `load_pair_filter` reads. Raises OSError."""
    subwords = torch.from_numpy(np.frombuffer(pair_filter.tokenizer.model, np.uint8).copy())
    tensors = {"subwords": subwords, "held_out": torch.from_numpy(pair_filter.held_out_N)}
    for fold, lexicon in enumerate(pair_filter.lexicons):
        tensors |= {f"{name}.{fold}": each for name, each in lexicon._asdict().items()}
    tensors |= nn.ModuleList(pair_filter.models).state_dict()
    with whole_file(path) as unfinished:
        # a single entry: safetensors writes several in any order, but the same text must give the same bytes
        safetensors.torch.save_file(tensors, unfinished, {"format": _FORMAT})


def load_pair_filter(path: Path) -> PairFilter:
    """Reads a file of `save_pair_filter`. Raises InputError for another or a damaged file."""
    try:
        metadata, tensors = read_safetensors(path, "pt")
        tokenizer = Tokenizer(tensors.pop("subwords").numpy().tobytes(), name=str(path))
        held_out = tensors.pop("held_out")
        lexicons = [Lexicon(*(tensors.pop(f"{name}.{fold}") for name in Lexicon._fields)) for fold in range(FOLDS)]
        floats = [held_out, *tensors.values(), *(x for each in lexicons for x in each[1:])]
        fits = held_out.ndim == 1 and len(held_out) > 0 and all(each.fits(tokenizer.size) for each in lexicons)
        are_finite = all(x.dtype == torch.float32 and x.isfinite().all() for x in floats)
        if metadata.get("format") != _FORMAT or not (fits and are_finite):
            raise ValueError("form")
        zero_X = torch.zeros(INPUTS)
        models = [PairClassifier(zero_X, zero_X, len(KINDS), SIZE).requires_grad_(False) for _ in range(2)]
        nn.ModuleList(models).load_state_dict(tensors, assign=True)
        return PairFilter(tokenizer, tuple(lexicons), tuple(models), held_out.numpy())
    except (safetensors.SafetensorError, ValueError, KeyError, IndexError, RuntimeError, TypeError):
        raise InputError(f"{path}: is not a pair filter, or damaged; make one with nmt filter --save") from None
