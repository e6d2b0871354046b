"""Learns the calibration of a run from its validation corpus.

The model translates the sources: a translation is right if its chrF reaches ``RIGHT``, and a word if TER's alignment
to the reference, without shifts, leaves it unchanged. What is missing or unsupported is learnt from references that are
damaged on purpose.

Shapes: N examples, F features, I target and J source words.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.corpus import read_blocks
from nmt.data.prepared import opened
from nmt.data.words import text_words
from nmt.evaluation.translation import sacrebleu_metric
from nmt.extras.corpus.pair_filter.lexicon import Lexicon, learn_lexicon
from nmt.extras.trust.calibration import HEADS, OF_RIGHT, Calibration, pruned, save
from nmt.extras.trust.damage import KINDS, Damage, damaged
from nmt.extras.trust.logistic import Floats, Logistic, learn
from nmt.extras.trust.signals import PairSignals, pair_signals
from nmt.translator.translator import Loader, Translator

RIGHT = 60.0
"""Least chrF of a translation that is right."""
MAX_PAIRS = 1500
"""Maximum number of pairs of the validation corpus, which are spread over it."""
MIN_PAIRS = 50
LEXICON_PAIRS = 50_000
"""Maximum number of training pairs that the lexicon is learnt from."""
LEAST_LINK = 0.003
"""Least probability of a pair of tokens in the lexicon."""


class Example(NamedTuple):
    """A pair with the labels of its words: 1, 0, or NaN if it is unknown."""

    signals: PairSignals
    target_I: Floats
    source_J: Floats


def calibrate(load: Loader) -> None:
    """Learns the calibration of a model, and writes it into its run."""
    translator = load()
    calibration = learn_calibration(translator, *_valid_pairs(translator))
    path = save(calibration, translator.trained)
    log.info(f"wrote {path}; use it with nmt translate {translator.trained.run} --confidence")


def learn_calibration(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> Calibration:
    """Learns from a corpus. Raises InputError if it has too few pairs."""
    lexicon = _learn_lexicon(translator)
    with log.progress(total=2 + len(KINDS), description="calibrate", unit="pass") as bar:
        own = [each.text for each in translator.translate(sources)]
        bar.update(1)
        examples = {"own": _own(translator, lexicon, sources, own, references)}
        kinds: dict[str, Sequence[Damage | None]] = {"whole": [Damage(text) for text in references]}
        kinds |= {name: damaged(kind, references) for name, kind in KINDS.items()}
        for name, damages in kinds.items():
            examples[name] = _damaged(translator, lexicon, sources, references, damages)
            bar.update(1)
    right = np.array(sentence_chrf(own, references)) >= RIGHT
    is_right_N = right[[row for row, example in enumerate(examples["own"]) if example is not None]]
    if min(len(is_right_N), 2 * is_right_N.sum(), 2 * (~is_right_N).sum()) < MIN_PAIRS:
        raise InputError(
            f"{translator.trained.run}: of {len(is_right_N):,} translations of data.valid {is_right_N.sum():,} are "
            f"right (chrF {RIGHT:g}); calibrate needs {MIN_PAIRS // 2} that are and as many that are not"
        )
    found = {name: [each for each in of_kind if each is not None] for name, of_kind in examples.items()}
    corpora = translator.trained.experiment.data.train_corpora
    ratios = [np.log(len(each.signals.log_p_T) / (len(each.signals.source.ids) + 1)) for each in found["whole"]]
    start = Calibration({}, lexicon, float(np.median(ratios)), corpora[0].language_names if corpora else None)
    return _learn_heads(start, found, is_right_N)


def _learn_heads(start: Calibration, found: dict[str, list[Example]], is_right_N: NDArray[np.bool_]) -> Calibration:
    """Learns the regressions of words, then those of sentences."""
    wrong = ("inserted", "substituted", "another", "number")
    heads = {
        "word_right": _learn_words(found["own"], on_target=True),
        "word_supported": _learn_words([x for name in ("whole", *wrong) for x in found[name]], on_target=True),
        "word_translated": _learn_words(
            [x for name in ("whole", "dropped", "omitted", "another") for x in found[name]], on_target=False
        ),
    }
    of_words = Calibration(heads, start.lexicon, start.log_ratio, start.languages)
    features = {
        name: np.stack([of_words.sentence_features(x.signals, of_words.words(x.signals)) for x in of_kind])
        for name, of_kind in found.items()
    }
    missing = ("dropped", "omitted")
    heads["right"] = learn(features["own"][:, list(OF_RIGHT)], is_right_N)
    others = [name for name in features if name not in ("own", "another", *missing)]
    heads["complete"] = _learn_damage(features, others, missing)
    heads["supported"] = _learn_damage(features, ("whole", *missing), [*others[1:], "another"])
    joint_N1 = np.array([[of_words.sentence(x_F).joint] for x_F in features["own"]])
    heads["confidence"] = learn(joint_N1, is_right_N, ridge=0.01)
    assert heads.keys() == HEADS.keys()
    return of_words


def _learn_words(examples: Sequence[Example], *, on_target: bool) -> Logistic:
    x_NF = np.concatenate([each.signals.target_IF if on_target else each.signals.source_JF for each in examples])
    label_N = np.concatenate([each.target_I if on_target else each.source_J for each in examples])
    is_known_N = np.isfinite(label_N)
    return learn(x_NF[is_known_N], label_N[is_known_N])


def _learn_damage(features: dict[str, Floats], good: Sequence[str], bad: Sequence[str]) -> Logistic:
    x_NF = np.concatenate([features[name] for name in (*good, *bad)])
    return learn(x_NF, np.arange(len(x_NF)) < sum(len(features[name]) for name in good))


def _own(
    translator: Translator, lexicon: Lexicon, sources: Sequence[str], own: Sequence[str], references: Sequence[str]
) -> list[Example | None]:
    """The model's translations."""
    signals = pair_signals(translator.trained, lexicon, sources, own)
    return [
        None if each is None else Example(each, unchanged_words(each.target.words, reference), np.empty(0))
        for each, reference in zip(signals, references, strict=True)
    ]


def _damaged(
    translator: Translator,
    lexicon: Lexicon,
    sources: Sequence[str],
    references: Sequence[str],
    damages: Sequence[Damage | None],
) -> list[Example | None]:
    """Damaged references. The source words of dropped words are those that are aligned with them only."""
    rows = [row for row, damage in enumerate(damages) if damage is not None]
    known = [damage for damage in damages if damage is not None]
    texts = [damage.text for damage in known]
    sources, references = ([side[row] for row in rows] for side in (sources, references))
    links: Sequence[Any] = [()] * len(rows)
    if any(damage.dropped for damage in known):
        method: Any = translator.aligner.methods[0]
        links = [each.links for each in translator.align(sources, references, method=method, text=True)]
    examples: list[Example | None] = []
    for damage, each, of_pair in zip(
        known, pair_signals(translator.trained, lexicon, sources, texts), links, strict=True
    ):
        if each is None:
            examples.append(None)
            continue
        target_I = np.array([float(index not in damage.wrong) for index in range(len(each.target.words))])
        source_J = dropped_labels(of_pair, damage.dropped, len(each.source.words))
        if len(damage.wrong) == len(target_I):
            source_J = np.zeros(len(each.source.words))
        examples.append(Example(each, target_I, source_J))
    return examples


def dropped_labels(links: Sequence[tuple[int, int]], dropped: frozenset[int], words: int) -> Floats:
    """Labels source words by their links to the whole translation: 0 if all are to words that were dropped, 1 if none
    is, NaN for a word with both kinds or without links. If nothing was dropped, all are 1."""
    if not dropped:
        return np.ones(words)
    label_J = np.full(words, np.nan)
    for word in range(words):
        kinds = {target in dropped for source, target in links if source == word}
        if len(kinds) == 1:
            label_J[word] = float(not kinds.pop())
    return label_J


def unchanged_words(words: Sequence[str], reference: str) -> Floats:
    """Labels the words of a translation: 1 if the fewest edits to the reference leave it unchanged. TER's case does not
    count."""
    from sacrebleu.metrics.lib_ter import BeamEditDistance, trace_to_alignment

    of_reference = [reference[begin:end].lower() for begin, end in text_words(reference)]
    _, trace = BeamEditDistance([word.lower() for word in words])(of_reference)  # the edits of the reference
    return 1.0 - np.array(trace_to_alignment(trace)[2], dtype=np.float64)


def sentence_chrf(translations: Sequence[str], references: Sequence[str]) -> list[float]:
    """Computes the chrF of each translation."""
    metric = sacrebleu_metric("chrf")
    return [metric.sentence_score(*pair).score for pair in zip(translations, ([x] for x in references), strict=True)]


def _valid_pairs(translator: Translator) -> tuple[list[str], list[str]]:
    """Reads data.valid into the target language of the translator. Raises InputError without such a corpus."""
    trained = translator.trained
    corpora = [
        corpus
        for corpus in trained.experiment.data.valid_corpora
        if corpus.target_language in (None, translator.search.to)
    ]
    if not corpora:
        raise InputError(f"{trained.run}: has no data.valid to calibrate on; name one with --set data.valid=...")
    blocks = list(chain.from_iterable(map(read_blocks, corpora)))
    pairs = [
        pair
        for block in blocks
        for pair in zip(block.sources, block.targets, strict=True)
        if all(side.strip() for side in pair)
    ]
    pairs = pairs[:: -(-len(pairs) // MAX_PAIRS) or 1]
    return [source for source, _ in pairs], [target for _, target in pairs]


def _learn_lexicon(translator: Translator) -> Lexicon:
    """Learns a lexicon from pairs that are spread over the prepared corpus."""
    trained = translator.trained
    train = opened(trained.experiment.data, run=trained.run).train
    tokens = max(side.size for side in (trained.tokenizers.source, trained.tokenizers.target))
    rows = range(0, len(train), -(-len(train) // LEXICON_PAIRS))
    pairs = [(np.asarray(train.source(row)), np.asarray(train.target(row))) for row in rows]
    return pruned(learn_lexicon(pairs, tokens), LEAST_LINK)
