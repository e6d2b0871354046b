"""Learns the calibration of a run from its validation corpus, or from other pairs.

The model translates the sources: a translation is right if its chrF reaches ``RIGHT``, and a word if TER's alignment
to the reference, without shifts, leaves it unchanged. What is missing or unsupported is learnt from references that are
damaged on purpose.

Shapes: N examples, F features, I target and J source words.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

import nmt
from nmt.core import log
from nmt.core.device import Compute
from nmt.core.errors import InputError
from nmt.data.config import CorpusConfig
from nmt.data.corpus import read_blocks
from nmt.data.words import text_words
from nmt.evaluation.translation import sacrebleu_metric
from nmt.experiment import Experiment
from nmt.extras.aligner.align import align_pairs
from nmt.extras.aligner.model_aligner import training_corpus
from nmt.extras.corpus.pair_filter.lexicon import Lexicon, learn_lexicon
from nmt.extras.trust.calibration import Calibration, load, pruned, save
from nmt.extras.trust.damage import KINDS, Damage, Damages, damaged
from nmt.extras.trust.logistic import Floats, Logistic, learn, sigmoid
from nmt.extras.trust.signals import PAIR_FEATURES, PairSignals, pair_signals
from nmt.training.out_of_memory import lacks_memory
from nmt.translator.find_run import target_language
from nmt.translator.loading import TrainedModel
from nmt.translator.translator import Loader, Translator
from nmt.workflows.align import corpus_of
from nmt.workflows.choose_search import SHARE_OF_TRAINING

Links: TypeAlias = Sequence[tuple[int, int]]

RIGHT = 60.0
"""Least chrF of a translation that is right."""
SPREAD = 15.0
"""Difference in chrF that changes the log-odds of the labels by 1: what is nearly right is nearly as good."""
MAX_PAIRS = 1500
"""Maximum number of pairs of the validation corpus, which are spread over it."""
MIN_PAIRS = 25
"""Least number of translations that are right, and of those that are not."""
RARE = 10
"""Weight of a wrong number, which few translations have."""
LEXICON_PAIRS = 50_000
"""Maximum number of training pairs that the lexicon is learnt from."""
ALIGNER_PAIRS = 15_000
"""Maximum number of training pairs that an aligner is learnt from, for the labels of source words."""
LEARNING_S, READINGS, SAMPLE = 15, 4, 50
"""Estimated time of a calibration: seconds for lexicon and aligner, and the time of this many translations of the
corpus, which is measured on as many pairs as the last number."""
LEAST_LINK = 0.003
"""Least probability of a pair of tokens in the lexicon."""


class Examples(NamedTuple):
    """Pairs to calibrate on."""

    sources: list[str]
    references: list[str]
    further: list[tuple[str, str]]
    """The other given pairs, from which the lexicon is learnt if the run has no training corpus; none if it has one."""
    languages: tuple[str, ...]
    """Source and target language, if they are known."""


class Labelled(NamedTuple):
    """A pair with the labels of its words: 1, 0, or NaN if it is unknown."""

    signals: PairSignals
    target_I: Floats
    source_J: Floats


def calibrate(open_model: Loader, source: Path | None, target: Path | None) -> None:
    """Learns the calibration of a model from two files or its validation corpus, and writes it into its run."""
    translator = open_model()
    given = () if source is None or target is None else (corpus_of(source, target),)
    path = save(learn_calibration(translator, _examples(translator.trained, given)), translator.trained)
    log.info(f"wrote {path}; use it with nmt translate {translator.trained.run} --confidence")


def calibrate_after_training(
    run: Path, experiment: Experiment, trained_s: float, compute: Compute
) -> Iterator[tuple[str, str]]:
    """Calibrates the model of a run, as ``calibrate`` does, and yields a command that uses it. Yields nothing if that
    would take more than its share of the training's time, or too few translations are right or wrong."""
    limit_s = SHARE_OF_TRAINING * trained_s
    if limit_s < LEARNING_S or len(experiment.data.target_languages) > 1:
        return
    try:
        translator = nmt.load_translator(run, device=compute.device, precision=compute.precision)
        if _calibrate_within(limit_s, translator):
            yield "confidence", f"nmt translate {shlex.quote(experiment.run)} --confidence"
    except InputError:
        return
    except (MemoryError, RuntimeError) as error:  # the model in training is still there
        if not lacks_memory(error):
            raise


def _calibrate_within(limit_s: float, translator: Translator) -> bool:
    """Calibrates a model that is not, unless that would take too long. Raises InputError as ``learn_calibration``."""
    with suppress(InputError):
        load(translator.trained)
        return False
    examples = _examples(translator.trained)
    sources = examples.sources
    sample = sources[:: -(-len(sources) // SAMPLE) or 1]
    started = time.monotonic()
    translator.translate(sample)
    translating_s = (time.monotonic() - started) * len(sources) / max(len(sample), 1)
    if LEARNING_S + READINGS * translating_s > limit_s:
        return False
    save(learn_calibration(translator, examples), translator.trained)
    return True


def learn_calibration(translator: Translator, pairs: Examples) -> Calibration:
    """Learns from pairs. Raises InputError if they are too few."""
    trained = translator.trained
    sources, references = pairs.sources, pairs.references
    lexicon, links = _learn_lexicon(trained, pairs)
    own = [each.text for each in translator.translate(sources)]
    chrf = np.array(sentence_chrf(own, references))
    is_right = chrf >= RIGHT
    if min(is_right.sum(), (~is_right).sum()) < MIN_PAIRS:
        raise InputError(
            f"{trained.run}: of {len(own):,} translations {is_right.sum():,} are right (chrF {RIGHT:g}); "
            f"calibrate needs {MIN_PAIRS} that are, and as many that are not"
        )
    signals = pair_signals(trained, lexicon, sources, own)
    known = [(row, each) for row, each in enumerate(signals) if each is not None]
    examples = {
        "own": [Labelled(each, unchanged_words(each.target.words, references[row]), np.empty(0)) for row, each in known]
    }
    kinds: dict[str, Damages] = {"whole": [Damage(text) for text in references]}
    kinds |= {name: damaged(kind, references) for name, kind in KINDS.items()}
    for name, damages in log.progress(kinds.items(), description="calibrate", unit="kind"):
        examples[name] = _damaged(trained, lexicon, sources, damages, links)
    start = Calibration({}, lexicon, pairs.languages)
    return _learn_heads(start, {name: each for name, each in examples.items() if each}, chrf[[row for row, _ in known]])


def _learn_heads(start: Calibration, examples: dict[str, list[Labelled]], chrf_N: Floats) -> Calibration:
    """Learns the regressions of words, then those of sentences. A corpus may have none of some kinds of damage."""

    def words(on_target: bool, *kinds: str) -> Logistic:
        chosen = [each for kind in kinds for each in examples.get(kind, [])]
        x_NF = np.concatenate([each.signals.target_IF if on_target else each.signals.source_JF for each in chosen])
        label_N = np.concatenate([each.target_I if on_target else each.source_J for each in chosen])
        is_known_N = np.isfinite(label_N)
        return learn(x_NF[is_known_N], label_N[is_known_N])

    heads = {
        "word_right": words(True, "own"),
        "word_supported": words(True, "whole", "inserted", "substituted", "number"),
        "word_translated": words(False, "whole", "dropped", "omitted"),
    }
    of_words = replace(start, heads=heads)
    features = {}
    for kind, of_kind in examples.items():
        pairs = [each.signals for each in of_kind]
        features[kind] = np.stack([*map(of_words.sentence_features, pairs, of_words.words(pairs))])
    own_NF = features.pop("own")

    def intact(*damages: str, unclear: str = "") -> Logistic:
        bad = [features[kind] for kind in damages if kind in features]
        good = [x_NF for kind, x_NF in features.items() if kind not in (*damages, unclear, "another", "negation")]
        return learn(np.concatenate([*good, *bad]), np.arange(sum(map(len, [*good, *bad]))) < sum(map(len, good)))

    heads["complete"] = intact("dropped", "negation", unclear="omitted")  # one word may be left out rightly
    heads["supported"] = intact("inserted", "repeated", "substituted", "another", *["number"] * RARE)
    own_NF, other_NF = (x_NF[:, :PAIR_FEATURES] for x_NF in (own_NF, features.get("another", own_NF[:0])))
    quality_N = np.append(sigmoid((chrf_N - RIGHT) / SPREAD), np.zeros(len(other_NF)))
    heads["right"] = learn(np.concatenate([own_NF, other_NF]), quality_N)
    odds_N1 = heads["right"].log_odds(own_NF)[:, None]
    return replace(start, heads={**heads, "confidence": learn(odds_N1, chrf_N >= RIGHT, ridge=0.01)})


def _damaged(
    trained: TrainedModel, lexicon: Lexicon, sources: Sequence[str], damages: Damages, links: Sequence[Links]
) -> list[Labelled]:
    """Computes the examples of damaged references, whose undamaged words have these links."""
    texts = ["" if damage is None else damage.text for damage in damages]
    found = pair_signals(trained, lexicon, sources, texts)
    examples = []
    for signals, damage, of_pair in zip(found, damages, links, strict=True):
        if signals is None or damage is None:
            continue
        target_I = np.array([float(index not in damage.wrong) for index in range(len(signals.target.words))])
        source_J = dropped_labels(of_pair, damage.dropped, len(signals.source.words))
        examples.append(Labelled(signals, target_I, source_J))
    return examples


def dropped_labels(links: Links, dropped: frozenset[int], words: int) -> Floats:
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


def _examples(trained: TrainedModel, given: Sequence[CorpusConfig] = ()) -> Examples:
    """Reads the given corpora, or data.valid into the target language of the model, and spreads the examples over them.
    Raises InputError without a corpus."""
    data, to = trained.experiment.data, target_language(trained.experiment, trained.checkpoint)
    corpora = given or [corpus for corpus in data.valid_corpora if corpus.target_language in (None, to)]
    if not corpora:
        raise InputError(f"{trained.run}: has no data.valid to calibrate on; give files: nmt calibrate RUN FILE FILE")
    blocks = chain.from_iterable(map(read_blocks, corpora))
    pairs = [pair for block in blocks for pair in zip(block.sources, block.targets, strict=True)]
    pairs = [pair for pair in pairs if all(map(str.strip, pair))]
    lacks_training = bool(given) and not (data.prepared or trained.run / "prepared").exists()
    step = max(1 + lacks_training, -(-len(pairs) // MAX_PAIRS))
    sources, references = ([pair[side] for pair in pairs[::step]] for side in (0, 1))
    further = [pair for index, pair in enumerate(pairs) if index % step and lacks_training]
    of_training = (corpus for corpus in data.train_corpora if corpus.target_language == to)
    names = next((corpus.language_names for corpus in (*of_training, *corpora) if corpus.language_names), ())
    return Examples(sources, references, further, names if to is None else (*(names or ("",))[:1], to))


def _learn_lexicon(trained: TrainedModel, examples: Examples) -> tuple[Lexicon, list[Links]]:
    """Learns a lexicon and an aligner from pairs that are spread over the prepared corpus or, for a run without one,
    from the further pairs, and aligns the words of the examples."""
    tokenizers, sides = trained.tokenizers, (trained.tokenizers.source, trained.tokenizers.target)
    if not examples.further:
        train = training_corpus(trained)
        rows = range(0, len(train), -(-len(train) // LEXICON_PAIRS))
        pairs = [(np.asarray(train.source(row)), np.asarray(train.target(row))) for row in rows]
    else:
        spread = examples.further[:: -(-len(examples.further) // LEXICON_PAIRS) or 1]
        ids = [side.encode_batch([pair[index] for pair in spread]) for index, side in enumerate(sides)]
        pairs = [(np.array(source), np.array(target)) for source, target in zip(*ids, strict=True)]
    lexicon = pruned(learn_lexicon(pairs, max(side.size for side in sides)), LEAST_LINK)
    to_align = pairs[:: -(-len(pairs) // ALIGNER_PAIRS)]
    texts = [*examples.sources, *tokenizers.source.detokenize_batch([source.tolist() for source, _ in to_align])]
    translations = [*examples.references, *tokenizers.target.detokenize_batch([x.tolist() for _, x in to_align])]
    alignments = align_pairs([*map(spaced, texts)], [*map(spaced, translations)], False, None)
    return lexicon, [each.links for each in alignments[: len(examples.sources)]]


def spaced(text: str) -> str:
    """Puts a space between the words of a text, for aligners."""
    return " ".join(text[begin:end] for begin, end in text_words(text))
