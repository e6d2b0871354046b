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
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TypeAlias

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
from nmt.extras.pair_filter.lexicon import FEATURES, Floats, Lexicon, learn_lexicon
from nmt.extras.pair_filter.model import PairClassifier
from nmt.extras.pair_filter.wrong_pairs import KINDS, TokenPair, WrongPairs

SIZE = 32
"""Width of the classifier's layers."""
SUBWORDS = 8000
LONGEST = 200
"""Tokens of a side that are read; a longer one is cut there."""

FOLDS = 3
LEAST_PAIRS = 40
"""In each fold."""
CELLS = 40_000_000
"""Most pairs of a source and a target token that lexicons learn from; bounds memory."""

EXAMPLES = 20_000
"""Most pairs of the corpus that classifiers learn from."""
EPOCHS = 4
BATCH_TOKENS = 2048
"""Tokens of the longer side in a batch, padding included."""
LEARNING_RATE = 3e-3

LEAST_SHARE = 0.002
QUANTILES = 5000
"""Scores of right pairs that are kept to find thresholds."""

Batch: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]
"""The kinds of pairs, 0 for those of the corpus, and the classifier's arguments."""

_TOO_LITTLE = "there is too little text to learn from"
_FORMAT, _EARLIER_FORMAT = "nmt pair filter 2", "nmt pair filter 1"


@dataclass(frozen=True)
class PairFilter:
    """Lexicons and classifiers of folds with a vocabulary, and scores of pairs that none of them has learnt from."""

    tokenizer: Tokenizer
    lexicons: tuple[Lexicon, ...]
    """Of each fold the one that has learnt from the others."""
    models: tuple[PairClassifier, ...]
    """Of each fold the one that has learnt from another."""
    offset_K: Floats
    """The log of what exp(z_k - z_0) is multiplied by to give pi_k w_k / f."""
    held_out_N: Floats
    """The scores of right pairs of the corpus, in rising order, as far as they can be told from wrong ones."""

    def scores(self, sources: Sequence[str], targets: Sequence[str]) -> Floats:
        """The score of each pair of lines; -inf where a side is blank."""
        pairs = _encoded(self.tokenizer, sources, targets)
        fold_N = np.array(list(map(_fold, sources, targets)))
        scores_N = np.full(len(pairs), -np.inf, np.float32)
        for fold, (lexicon, model) in enumerate(zip(self.lexicons, self.models, strict=True)):
            rows = [row for row in np.flatnonzero(fold_N == fold).tolist() if min(map(len, pairs[row])) > 0]
            for places, *features in _batches(lexicon, [pairs[row] for row in rows]):
                scores_N[[rows[place] for place in places]] = self.score(_ratios(model, *features))
        return scores_N

    def score(self, ratio_NK: Floats) -> Floats:
        """-log 2p of pairs, from their z_k - z_0."""
        score_N: Floats = -np.logaddexp.reduce(ratio_NK + self.offset_K, axis=1) - np.float32(np.log(2))
        return score_N

    def threshold(self, false_alarms: float) -> float:
        """The score that this share of the right pairs does not reach."""
        return float(np.quantile(self.held_out_N, false_alarms))


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
    lexicons, examples = [], []
    for fold in log.progress(range(FOLDS), description="lexicons", unit="fold"):
        lexicons.append(
            learn_lexicon([pair for other in folds if other is not folds[fold] for pair in other], tokenizer.size)
        )
        # Partners come from the same fold, so that the lexicon has learnt from neither side.
        own, wrong_pairs = folds[fold][: EXAMPLES // FOLDS], WrongPairs(folds[fold], tokenizer, random)
        drawn = [each for row in range(len(own)) for each in wrong_pairs.drawn(row) if min(map(len, each[1])) > 0]
        kind_N = torch.tensor([0] * len(own) + [kind for kind, _ in drawn])
        batches = _batches(lexicons[-1], own + [pair for _, pair in drawn])
        examples.append([(kind_N[rows], *features) for rows, *features in batches])
    torch.manual_seed(seed)
    models = tuple(_learn_classifier(examples[fold - 1], examples[fold], random) for fold in range(FOLDS))
    ratios = [_ratios(model, *batch[1:]) for model, fold in zip(models, examples, strict=True) for batch in fold]
    kind_N = torch.cat([batch[0] for fold in examples for batch in fold])
    pair_filter = PairFilter(tokenizer, tuple(lexicons), models, *(np.zeros(0, np.float32),) * 2)
    return _with_shares(pair_filter, np.concatenate(ratios), kind_N.numpy())


def _learn_classifier(
    batches: Sequence[Batch], held_out: Sequence[Batch], random: np.random.Generator
) -> PairClassifier:
    """Descends the cross-entropy of the kinds, until that of the held-out batches no longer falls."""
    model = PairClassifier(FEATURES, len(KINDS) + 1, SIZE)
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, betas=(0.9, 0.98), fused=True)
    best, update = np.inf, 0
    for _ in log.progress(range(EPOCHS), description="classifier", unit="epoch"):
        for place in random.permutation(len(batches)).tolist():
            for group in optimizer.param_groups:
                group["lr"] = LEARNING_RATE * min((update + 1) / 100, 1 - update / (EPOCHS * len(batches)))
            kind_B, *features = batches[place]
            optimizer.zero_grad()
            F.cross_entropy(model(*features), kind_B).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            update += 1
        with torch.inference_mode():
            loss = sum(F.cross_entropy(model(*each), kind_B, reduction="sum").item() for kind_B, *each in held_out)
        log.detail(f"filter     held-out loss {loss / sum(len(kind_B) for kind_B, *_ in held_out):.4f}")
        if loss > best:
            break
        best = loss
    return model.eval().requires_grad_(False)


def _with_shares(pair_filter: PairFilter, ratio_NK: Floats, kind_N: NDArray[np.int64]) -> PairFilter:
    """The filter with the shares of wrong pairs and the scores of right ones, from z_k - z_0 of the examples."""
    own_NK = ratio_NK[kind_N == 0]
    share_K = np.ones(len(KINDS))
    for kind in range(len(KINDS)):
        for part in np.linspace(0.1, 0.9, 17):
            is_like_N = own_NK[:, kind] > np.quantile(ratio_NK[kind_N == kind + 1, kind], 1 - part)
            # One more pair of the corpus, so that a share is hardly ever too small by chance.
            share_K[kind] = min(share_K[kind], (is_like_N.sum() + 1) / len(own_NK) / part)
    found = ", ".join(f"{share:.1%} {kind}" for kind, share in zip(KINDS, share_K, strict=True))
    log.info(f"filter     wrong pairs, at most: {found}")
    prior_K = np.bincount(kind_N)[1:] / len(own_NK)
    pair_filter = replace(pair_filter, offset_K=np.log(share_K.clip(LEAST_SHARE) / prior_K).astype(np.float32))
    score_N = np.sort(pair_filter.score(own_NK))
    # The distribution of right pairs: each pair of the corpus counts by the probability that it is right.
    right_N = np.cumsum(1 - np.exp(-score_N).clip(max=2) / 2)
    level_Q = np.linspace(0, right_N[-1], QUANTILES)
    return replace(pair_filter, held_out_N=np.interp(level_Q, right_N, score_N).astype(np.float32))


def _learn_tokenizer(pairs: Sequence[tuple[str, str]]) -> Tokenizer:
    """One vocabulary for both sides, in lower case, of the size that is nearest to `SUBWORDS` where the text has fewer
    subwords or more characters."""
    size, refused = SUBWORDS, InputError(_TOO_LITTLE)
    for _ in range(4):
        config = SubwordsConfig(size=size, normalization="nmt_nfkc_cf", character_coverage=0.9999)
        try:
            return train_tokenizers(pairs, config).source
        except InputError as error:
            refused, bound = error, re.search(r"set it to (\d+) or", str(error))
            if bound is None or int(bound[1]) == size:
                break
            size = int(bound[1])
    raise InputError(f"{_TOO_LITTLE}: give more different words ({refused})")


def _encoded(tokenizer: Tokenizer, sources: Sequence[str], targets: Sequence[str]) -> list[TokenPair]:
    sides = ([row[:LONGEST] for row in tokenizer.encode_arrays(side)] for side in (sources, targets))
    return list(zip(*sides, strict=True))


def _fold(source: str, target: str) -> int:
    """The fold that a pair belongs to. Near-duplicates are in the same one."""
    return int.from_bytes(pair_hash(letters(source), letters(target), seed=0), "little") % FOLDS


def _batches(lexicon: Lexicon, pairs: Sequence[TokenPair]) -> Iterator[tuple[list[int], Tensor, Tensor, Tensor]]:
    """Batches of pairs of about equal length, whose sides have tokens: rows, and the classifier's arguments."""
    for rows in length_batches([max(map(len, pair)) for pair in pairs], BATCH_TOKENS):
        sides = [pad([pairs[row][side] for row in rows])[0][:, :-1] for side in (0, 1)]
        for side_BT in sides:
            side_BT[side_BT == EOS] = PAD
        source_BSF, target_BTF = map(torch.from_numpy, lexicon.features(sides[0], sides[1]))
        yield rows, source_BSF, target_BTF, torch.tensor([list(map(len, pairs[row])) for row in rows])


def _ratios(model: PairClassifier, *features: Tensor) -> Floats:
    """z_k - z_0, of each kind of wrong pairs."""
    with torch.inference_mode():
        logit_BK = model(*features)
    ratio_BK: Floats = (logit_BK[:, 1:] - logit_BK[:, :1]).numpy()
    return ratio_BK


def save_pair_filter(pair_filter: PairFilter, path: Path) -> None:
    """Writes one file, whole or not at all, which `load_pair_filter` reads. Raises OSError."""
    tensors = {"subwords": torch.from_numpy(np.frombuffer(pair_filter.tokenizer.model, np.uint8).copy())}
    for fold, model in enumerate(pair_filter.models):
        tensors |= {f"{fold}.{name}": each for name, each in model.state_dict().items()}
    tensors["offsets"] = torch.from_numpy(pair_filter.offset_K)
    tensors["held_out"] = torch.from_numpy(pair_filter.held_out_N)
    for fold, lexicon in enumerate(pair_filter.lexicons):
        for field in fields(Lexicon):
            tensors[f"{fold}.{field.name}"] = torch.from_numpy(getattr(lexicon, field.name))
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
        if form == _EARLIER_FORMAT:
            raise InputError(f"{path}: is a pair filter of an earlier version; make it again with nmt filter --save")
        tokenizer = Tokenizer(tensors.pop("subwords").numpy().tobytes(), name=str(path))
        names = [field.name for field in fields(Lexicon)]
        lexicons = tuple(Lexicon(*(tensors.pop(f"{fold}.{name}").numpy() for name in names)) for fold in range(FOLDS))
        floats = all(each.dtype == torch.float32 and bool(each.isfinite().all()) for each in tensors.values())
        offset_K, held_out_N = tensors.pop("offsets").numpy(), tensors.pop("held_out").numpy()
        fit = all(lexicon.fits(tokenizer.size) for lexicon in lexicons) and offset_K.shape == (len(KINDS),)
        if form != _FORMAT or not (floats and fit) or held_out_N.ndim != 1 or not held_out_N.size:
            raise ValueError("form")
        with on_meta_device():  # takes no memory before the shapes are known to fit
            size = tensors["0.H.4.weight"].shape[1]
            models = nn.ModuleList(PairClassifier(FEATURES, len(KINDS) + 1, size) for _ in range(FOLDS))
        models.load_state_dict(tensors, assign=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (safetensors.SafetensorError, ValueError, KeyError, IndexError, RuntimeError, TypeError):
        raise InputError(f"{path}: is not a pair filter, or damaged; make one with nmt filter --save") from None
    return PairFilter(tokenizer, lexicons, tuple(models.requires_grad_(False).eval()), offset_K, held_out_N)
