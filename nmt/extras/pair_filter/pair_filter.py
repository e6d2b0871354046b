"""A filter of sentence pairs: learnt from a corpus, kept in a file, applied to lines.

The corpus to learn from is the one to clean, so each pair is scored by a lexicon that has not learnt from it
(cross-fitting): the pairs are divided into `FOLDS` by a hash, the lexicon of a fold learns from the other folds, and
its classifier from the fold before.

A classifier then distinguishes the pairs of the corpus, of density f, from kinds of wrong pairs made of them, of
densities w_k. Its logits give w_k / f. The shares pi_k of wrong pairs in the corpus are unknown. f is at least
pi_k w_k, so that no set of pairs is rarer in the corpus than pi_k times its share of the wrong pairs, and pi_k is at
most (Blanchard, Lee & Scott 2010, "Semi-Supervised Novelty Detection")

    pi_k = min over thresholds t of  P_f(w_k / f > t) / P_w_k(w_k / f > t)

    p = sum over k of pi_k w_k / f        the probability that a pair is wrong
    score = -log 2p                       0 where the pair is as probably wrong as right

An estimated pi_k is at least `LEAST_SHARE`, so that scores also rank the pairs of a clean corpus.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
from nmt.core.files import refuse_special, whole_file
from nmt.core.meta_init import on_meta_device
from nmt.data.batching import length_batches, pad
from nmt.data.config import SubwordsConfig
from nmt.data.filters import letters, pair_hash
from nmt.data.tokenizer import Tokenizer
from nmt.data.train_tokenizers import train_tokenizers
from nmt.data.vocabulary import EOS, PAD
from nmt.extras.pair_filter.lexicon import FEATURES, Lexicon, learn_lexicon
from nmt.extras.pair_filter.model import PairClassifier
from nmt.extras.pair_filter.wrong_pairs import KINDS, TokenPair, WrongPairs

SIZE = 32
"""Width of the classifier's layers."""
SUBWORDS = 8000
LONGEST = 200
"""Tokens of a side that are read; a longer one is cut there."""

FOLDS = 2
LEAST_PAIRS = 60
"""In each fold."""
CELLS = 40_000_000
"""Most pairs of a source and a target token that lexicons learn from; bounds memory."""

EXAMPLES = 16_000
"""Most pairs of the corpus that classifiers learn from."""
EPOCHS = 6
BATCH_TOKENS = 2048
"""Tokens of the longer side in a batch, padding included."""
LEARNING_RATE = 1e-2

SUSPICION = 0.2
"""Probability to be wrong from which a pair is dropped: a wrong pair that stays does more harm than a right one that
goes."""
LEAST_SHARE = 0.002
PARTS = tuple(part / 20 for part in range(2, 19))
"""Of wrong pairs, found at the thresholds at which shares are estimated."""
QUANTILES = 5000
"""Scores of right pairs that are kept to find thresholds."""

_TOO_LITTLE = "there is too little text to learn from"
_FORMAT = "nmt pair filter 2"


@dataclass(frozen=True)
class PairFilter:
    """Lexicons and classifiers of folds with a vocabulary, and scores of pairs that none of them has learnt from."""

    tokenizer: Tokenizer
    folds: tuple[tuple[Lexicon, PairClassifier], ...]
    """Of each fold the lexicon that has learnt from the others, and the classifier from another."""
    held_out_N: NDArray[np.float32]
    """The scores of right pairs of the corpus, in rising order, as far as they can be told from wrong ones."""

    def scores(self, sources: Sequence[str], targets: Sequence[str]) -> NDArray[np.float32]:
        """The score of each pair of lines; -inf where a side is blank."""
        pairs = _encoded(self.tokenizer, sources, targets)
        fold_N = np.array(list(map(_fold, sources, targets)))
        scores_N = np.full(len(pairs), -np.inf, np.float32)
        for fold, (lexicon, model) in enumerate(self.folds):
            rows = [row for row in np.flatnonzero(fold_N == fold).tolist() if min(map(len, pairs[row])) > 0]
            for places, *features in _batches(lexicon, [pairs[row] for row in rows]):
                scores_N[[rows[place] for place in places]] = _scores(_ratios(model, *features))
        return scores_N

    def threshold(self, false_alarms: float) -> float:
        """The score of p = `SUSPICION`, or a higher one that this share of the right pairs does not reach."""
        return max(float(np.quantile(self.held_out_N, false_alarms)), -float(np.log(2 * SUSPICION)))


def learn_pair_filter(pairs: Sequence[tuple[str, str]], *, seed: int) -> PairFilter:
    """Learns from different pairs in random order. Raises InputError where they hold too little text."""
    tokenizer = _learn_tokenizer(pairs)
    folds: list[list[TokenPair]] = [[] for _ in range(FOLDS)]
    cells = 0
    for pair, lines in zip(_encoded(tokenizer, *zip(*pairs, strict=True)), pairs, strict=True):
        cells += len(pair[0]) * len(pair[1])
        if min(map(len, pair)) > 0 and cells <= CELLS:
            folds[_fold(*lines)].append(pair)
    if min(map(len, folds)) < LEAST_PAIRS:
        raise InputError(f"{_TOO_LITTLE}; give some hundred different pairs with words on both sides")
    log.info(f"filter     learning from {sum(map(len, folds)):,} pairs")
    random = np.random.default_rng(seed)
    lexicons = [learn_lexicon(folds[1 - fold], tokenizer.size) for fold in log.progress(range(FOLDS), unit="lexicon")]
    # Partners come from the same fold, so that the lexicon has learnt from neither side.
    examples = [_examples(*each, tokenizer, random) for each in zip(folds, lexicons, strict=True)]
    torch.manual_seed(seed)
    models = [_learn_classifier(batches, random) for batches in reversed(examples)]
    kind_N = torch.cat([kind_B for batches in examples for kind_B, *_ in batches])
    ratios = [_ratios(model, *batch[1:]) for model, batches in zip(models, examples, strict=True) for batch in batches]
    offset_K, held_out_N = _shares(torch.cat(ratios), kind_N)
    for model in models:
        list(model.parameters())[-1][1:] += offset_K  # the last bias
    return PairFilter(tokenizer, tuple(zip(lexicons, models, strict=True)), held_out_N)


def _examples(
    fold: Sequence[TokenPair], lexicon: Lexicon, tokenizer: Tokenizer, random: np.random.Generator
) -> list[tuple[Tensor, ...]]:
    """Batches of pairs of a fold and of wrong ones made of them: their kinds and the classifier's arguments."""
    wrong_pairs, right = WrongPairs(fold, tokenizer, random), [(0, pair) for pair in fold[: EXAMPLES // FOLDS]]
    wrong = (each for row in range(len(right)) for each in wrong_pairs.drawn(row))
    kinds, pairs = zip(*right, *(each for each in wrong if min(map(len, each[1])) > 0), strict=True)
    kind_N = torch.tensor(kinds)
    return [(kind_N[rows], *features) for rows, *features in _batches(lexicon, pairs)]


def _learn_classifier(batches: Sequence[tuple[Tensor, ...]], random: np.random.Generator) -> PairClassifier:
    """Descends the cross-entropy of the kinds."""
    model = PairClassifier(FEATURES, len(KINDS) + 1, SIZE)
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, betas=(0.9, 0.98), fused=True)
    order = np.concatenate([random.permutation(len(batches)) for _ in range(EPOCHS)])
    for update, place in enumerate(log.progress(order.tolist(), description="classifier", unit="update")):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min((update + 1) / 100, 1 - update / len(order))
        kind_B, *features = batches[place]
        optimizer.zero_grad()
        F.cross_entropy(model(*features), kind_B).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return model.eval().requires_grad_(False)


def _shares(ratio_NK: Tensor, kind_N: Tensor) -> tuple[Tensor, NDArray[np.float32]]:
    """The logarithms of what turns exp(z_k - z_0) into pi_k w_k / f, and scores of right pairs, from the examples."""
    share_K = torch.zeros(len(KINDS))
    for kind in range(len(KINDS)):
        own_N, wrong_W = (ratio_NK[kind_N == each, kind].numpy() for each in (0, kind + 1))
        # One more pair of the corpus, so that a share is hardly ever too small by chance. Where each side is a single
        # token, none are cut.
        counts = [((own_N > np.quantile(wrong_W, 1 - part)).sum() + 1) / part for part in PARTS if len(wrong_W)]
        share_K[kind] = min(1.0, float(min(counts, default=0.0)) / len(own_N))
    found = ", ".join(f"{share:.1%} {kind}" for kind, share in zip(KINDS, share_K.tolist(), strict=True))
    log.info(f"filter     wrong pairs, at most: {found}")
    # w_k / f is exp(z_k - z_0) times the number of examples of the corpus, over that of the kind.
    count_K = kind_N.bincount(minlength=len(KINDS) + 1).clamp(min=1)
    offset_K = (share_K.clamp(min=LEAST_SHARE) * count_K[0] / count_K[1:]).log()
    score_N = np.sort(_scores(ratio_NK[kind_N == 0] + offset_K))
    # The distribution of right pairs: each pair of the corpus counts by the probability that it is right.
    right_N = np.cumsum(1 - np.exp(-score_N).clip(max=2) / 2)
    return offset_K, np.interp(np.linspace(0, right_N[-1], QUANTILES), right_N, score_N).astype(np.float32)


def _scores(ratio_NK: Tensor) -> NDArray[np.float32]:
    """-log 2p, p being the sum over k of exp(ratio_k)."""
    return np.asarray(-ratio_NK.logsumexp(dim=1) - np.log(2))


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


def _fold(source: str, target: str) -> int:
    """The fold that a pair belongs to. Near-duplicates are in the same one."""
    return int.from_bytes(pair_hash(letters(source), letters(target), seed=0), "little") % FOLDS


def _batches(lexicon: Lexicon, pairs: Sequence[TokenPair]) -> Iterator[tuple[list[int], Tensor, Tensor, Tensor]]:
    """Batches of pairs of about equal length, whose sides have tokens: rows, and the classifier's arguments."""
    for rows in length_batches([max(map(len, pair)) for pair in pairs], BATCH_TOKENS):
        sides = list(zip(*(pairs[row] for row in rows), strict=True))
        padded = [torch.from_numpy(pad(side)[0][:, :-1]) for side in sides]
        source_BS, target_BT = (side_BT.masked_fill_(side_BT == EOS, PAD) for side_BT in padded)
        facts = [(len(one), len(other), float(np.array_equal(one, other))) for one, other in zip(*sides, strict=True)]
        yield rows, *lexicon.features(source_BS, target_BT), torch.tensor(facts)


def _ratios(model: PairClassifier, *features: Tensor) -> Tensor:
    """z_k - z_0, of each kind of wrong pairs."""
    with torch.inference_mode():
        logit_BK: Tensor = model(*features)
        return logit_BK[:, 1:] - logit_BK[:, :1]


def save_pair_filter(pair_filter: PairFilter, path: Path) -> None:
    """Writes one file, whole or not at all, which `load_pair_filter` reads. Raises OSError."""
    tensors = {"subwords": torch.from_numpy(np.frombuffer(pair_filter.tokenizer.model, np.uint8).copy())}
    tensors["held_out"] = torch.from_numpy(pair_filter.held_out_N)
    for fold, (lexicon, model) in enumerate(pair_filter.folds):
        tensors |= {f"{fold}.{name}": each for name, each in {**lexicon._asdict(), **model.state_dict()}.items()}
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
        lexicons = [Lexicon(*(tensors.pop(f"{fold}.{name}") for name in Lexicon._fields)) for fold in range(FOLDS)]
        floats = [held_out, *tensors.values(), *(x for each in lexicons for x in each[1:])]
        fits = held_out.ndim == 1 and len(held_out) > 0 and all(each.fits(tokenizer.size) for each in lexicons)
        if form != _FORMAT or not fits or not all(x.dtype == torch.float32 and x.isfinite().all() for x in floats):
            raise ValueError("form")
        with on_meta_device():  # takes no memory before the shapes are known to fit
            size = tensors["0.H.4.weight"].shape[1]
            models = [PairClassifier(FEATURES, len(KINDS) + 1, size).requires_grad_(False).eval() for _ in range(FOLDS)]
        nn.ModuleList(models).load_state_dict(tensors, assign=True)
        return PairFilter(tokenizer, tuple(zip(lexicons, models, strict=True)), held_out.numpy())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (safetensors.SafetensorError, ValueError, KeyError, IndexError, RuntimeError, TypeError):
        raise InputError(f"{path}: is not a pair filter, or damaged; make one with nmt filter --save") from None
