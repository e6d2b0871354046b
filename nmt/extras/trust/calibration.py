"""What was learnt for a run: regressions from signals to probabilities, and a lexicon, in one JSON file.

Words have three of them: a target word is right, a target word is supported by the source, a source word is
translated. Sentences have three as well: they are right, which is calibrated by a fourth (Platt 1999, "Probabilistic
Outputs for Support Vector Machines"), they are complete, and all of them is supported. The log-odds of the words are
features of the last two.

Shapes: I target and J source words, F features, E pairs of tokens, V tokens.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from nmt.core.errors import InputError
from nmt.core.files import read_json, reading, replace_file, writing
from nmt.data.number_words import NEGATION
from nmt.extras.aligner.model_aligner import weights_name
from nmt.extras.corpus.pair_filter.lexicon import Lexicon
from nmt.extras.trust.checks import one_sided, repetition
from nmt.extras.trust.logistic import Floats, Logistic, from_tree
from nmt.extras.trust.signals import PAIR_FEATURES, SOURCE_FEATURES, TARGET_FEATURES, PairSignals
from nmt.translator.find_run import CONFIDENCE
from nmt.translator.loading import TrainedModel

FORMAT = "nmt confidence 1"
ARRAYS = {"pair_E": "<i8", "link_2E": "<f2", "token_32V": "<f2"}
"""The arrays of a lexicon with their types in the file."""

SENTENCE_FEATURES = PAIR_FEATURES + 38
HEADS: Mapping[str, int] = {
    "word_right": TARGET_FEATURES,
    "word_supported": TARGET_FEATURES,
    "word_translated": SOURCE_FEATURES,
    "right": PAIR_FEATURES,
    "complete": SENTENCE_FEATURES,
    "supported": SENTENCE_FEATURES,
    "confidence": 1,
}
"""The regressions with their numbers of features."""


WordOdds: TypeAlias = tuple[Floats, Floats, Floats]
"""Log-odds of the words of a pair: right and supported target words, (I,), and translated source words, (J,)."""


@dataclass(frozen=True)
class Calibration:
    """Regressions and a lexicon for one model."""

    heads: Mapping[str, Logistic]
    """By the names of ``HEADS``."""
    lexicon: Lexicon
    languages: tuple[str, ...] = ()
    """Source and target language, if they are known."""

    def words(self, pairs: Sequence[PairSignals]) -> list[WordOdds]:
        """Computes the log-odds of each word of each pair, of which there is at least one."""
        odds = []
        for name, is_target in (("word_right", True), ("word_supported", True), ("word_translated", False)):
            features = [pair.target_IF if is_target else pair.source_JF for pair in pairs]
            odds_N = self.heads[name].log_odds(np.concatenate(features))
            odds.append(np.split(odds_N, np.cumsum([*map(len, features)])[:-1]))
        return list(zip(*odds, strict=True))

    def sentences(self, features_NF: Floats) -> list[Floats]:
        """Computes the log-odds of pairs from their ``sentence_features``: right, complete and supported."""
        right_N = self.heads["right"].log_odds(features_NF[:, :PAIR_FEATURES])
        others = [self.heads[name].log_odds(features_NF) for name in ("complete", "supported")]
        return [self.heads["confidence"].log_odds(right_N[:, None]), *others]

    def sentence_features(self, signals: PairSignals, words: WordOdds) -> Floats:
        """Computes the features of a pair, (F,)."""
        source, target, log_p_T = signals.source, signals.target, signals.log_p_T
        ratio = np.log(len(log_p_T) / (len(source.ids) + 1))
        facts = one_sided(source.words, target.words, self.languages)
        repeats = repetition(source.words, target.words) is not None
        checks = [float(repeats), *map(len, facts), *(side.count(NEGATION) for side in facts)]
        lengths = [ratio, ratio**2, np.log(len(source.words))]
        of_words = [x for odds in words for x in _summary(odds)]
        return np.array([*signals.pair_F, log_p_T.mean(), log_p_T.min(), log_p_T[-1], *of_words, *lengths, *checks])


def _summary(odds_I: Floats) -> list[float]:
    """Summarises the log-odds of words: mean, mean and sum of log p, the three least, and the least means of three
    neighbours, of five, and of a third of the words."""
    odds_I = np.clip(odds_I, -6, 6)
    log_p_I = -np.logaddexp(0, -odds_I)
    least = np.sort(odds_I)[[0, min(1, len(odds_I) - 1), min(2, len(odds_I) - 1)]]
    windows = (min(size, len(odds_I)) for size in (3, 5, -(-len(odds_I) // 3)))
    near = (np.convolve(odds_I, np.full(window, 1 / window), "valid").min() for window in windows)
    return [odds_I.mean(), log_p_I.mean(), log_p_I.sum(), *least, *near]


# -------------------------------------------------------------------------------------------------------------- files


def save(calibration: Calibration, trained: TrainedModel) -> Path:
    """Writes the file into the run of a model. Raises InputError if it cannot be written."""
    path = trained.run / CONFIDENCE
    tree = {
        "format": FORMAT,
        "weights": weights_name(trained),
        "languages": calibration.languages,
        "heads": {name: head.tree() for name, head in calibration.heads.items()},
        "lexicon": {name: _packed(getattr(calibration.lexicon, name).numpy(), type_) for name, type_ in ARRAYS.items()},
    }
    with writing(path):
        replace_file(path, json.dumps(tree, indent=1) + "\n")
    return path


def load(trained: TrainedModel) -> Calibration:
    """Reads the file of a model's run. Raises InputError if it is missing or damaged, or of other weights or another
    target language."""
    path = trained.run / CONFIDENCE
    remedy = f"make it with: nmt calibrate {trained.run}"
    if not path.exists():
        raise InputError(f"{trained.run}: is not calibrated; {remedy}")
    try:
        with reading(path):
            tree = read_json(path)
        if tree["format"] != FORMAT:
            raise ValueError("format")
        heads = {name: from_tree(tree["heads"][name], features) for name, features in HEADS.items()}
        languages = tuple(map(str.lower, tree["languages"]))
        tokens = max(side.size for side in (trained.tokenizers.source, trained.tokenizers.target))
        calibration = Calibration(heads, _lexicon(tree["lexicon"], tokens), languages)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: is not a calibration, or damaged; {remedy}") from None
    if tree["weights"] != weights_name(trained):
        raise InputError(f"{path}: was learnt for other weights than the model has now; {remedy}")
    check_language(calibration, trained)
    return calibration


def check_language(calibration: Calibration, trained: TrainedModel) -> None:
    """Raises InputError if the calibration is of another target language than the model translates into."""
    if (to := trained.experiment.search.to) is not None and to.lower() not in calibration.languages[1:]:
        text = f"{trained.run / CONFIDENCE}: was learnt for another target language than {to}; make it with: nmt "
        raise InputError(f"{text}calibrate {trained.run} --to {to}")


def _lexicon(tree: Mapping[str, Any], tokens: int) -> Lexicon:
    pair_E, link_2E, token_32V = (
        np.frombuffer(base64.b64decode(tree[name], validate=True), type_) for name, type_ in ARRAYS.items()
    )
    arrays = pair_E.copy(), link_2E.reshape(2, -1).astype(np.float32), token_32V.reshape(3, 2, -1).astype(np.float32)
    lexicon = Lexicon(*map(torch.from_numpy, arrays))
    if not lexicon.fits(tokens) or (np.diff(pair_E) <= 0).any():
        raise ValueError("lexicon")
    return lexicon


def _packed(values: np.ndarray[Any, Any], dtype: str) -> str:
    return base64.b64encode(values.astype(dtype).tobytes()).decode()


def pruned(lexicon: Lexicon, least: float) -> Lexicon:
    """Leaves out the pairs of tokens whose probability is below ``least`` in both directions; these then count as never
    seen together."""
    is_kept_E = lexicon.link_2E.exp().amax(dim=0) >= least
    token_32V = lexicon.token_32V.clone()
    token_32V[1] = float(np.log(least / 10))
    return Lexicon(lexicon.pair_E[is_kept_E], lexicon.link_2E[:, is_kept_E], token_32V)
