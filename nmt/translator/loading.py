"""Loads a trained model for use. This module imports torch only when the weights of a model are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt import experiment as experiments
from nmt.config.structure import differences
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.operation import Operation
from nmt.data.context import BREAK, context_tokens
from nmt.data.segments import SourceLengths, left_blank
from nmt.data.tokenizer import EncodedWords, Tokenizer, TokenizerPair
from nmt.data.vocabulary import PAD
from nmt.experiment import Experiment
from nmt.models.config import ModelConfig
from nmt.training import run_directory
from nmt.translator.find_run import find_checkpoint, run_of, target_language
from nmt.translator.manifest import checked_state

TOO_LONG = (EncodedWords((), (), (), ()),) * 2
"""Replacement of a pair that is too long to be scored or aligned. It has no words, like a blank pair."""

if TYPE_CHECKING:
    from nmt.core.device import Compute
    from nmt.models.seq2seq import Seq2Seq
    from nmt.translator.source_language import SourceLanguageCheck

FREQUENT = 0.05
"""Share of training lines from which on a model has learnt to translate a kind of line. In corpora with one sentence
per line, 0.01 % (captions) to 1.1 % (Tatoeba) of the lines hold several sentences; in manuals and news 10 to 24 %."""


@dataclass(frozen=True)
class TrainedModel:
    """A trained model with its tokenizers, configuration and device."""

    checkpoint: Path
    experiment: Experiment
    tokenizers: TokenizerPair
    load: Callable[[], tuple[Seq2Seq[Any, Any], Compute]]
    """Returns the model with its device and precision; the first call may read its weights."""
    lengths: SourceLengths
    """Lengths of the sentences that the model was trained on."""

    @property
    def model(self) -> Seq2Seq[Any, Any]:
        """The model, in the state in which it translates."""
        return self.load()[0]

    @property
    def compute(self) -> Compute:
        """The device of the model and the precision of its products."""
        return self.load()[1]

    @property
    def run(self) -> Path:
        """The run directory of the checkpoint."""
        return run_of(self.checkpoint)

    @property
    def reads_single_sentences(self) -> bool:
        """Returns True if few of the training lines hold several sentences: the model would then translate only one
        sentence of a line with more. If an older run has not counted them, single sentences are assumed."""
        return (self.lengths.several or 0) < FREQUENT

    @cached_property
    def copies(self) -> bool:
        """Returns True if lines without a letter, such as `-` or `42`, should be copied: the model was trained on few
        of them, and would invent a sentence. If an older run has not counted them, they are copied if at least half of
        the training tokens have a letter."""
        if self.lengths.letterless is not None:
            return self.lengths.letterless < FREQUENT
        pieces = self.tokenizers.source.pieces(range(self.tokenizers.source.size))
        has_letter_V = np.array([any(map(str.isalpha, piece)) for piece in pieces])
        # without a corpus each entry of the vocabulary counts once, except <s> or <2de>
        count_LV = np.array(self.language_check.counts or [[piece[:1] != "<" for piece in pieces]])
        return bool(count_LV[:, has_letter_V].sum() >= count_LV.sum() / 2)

    @cached_property
    def language_check(self) -> SourceLanguageCheck:
        """Check if the first texts are in the source language of the model."""
        from nmt.translator.source_language import SourceLanguageCheck

        return SourceLanguageCheck.of(self)

    def warn_of_language(self, texts: Iterable[str]) -> str | None:
        """Warns once if the first texts are not in the source language of the model, and returns the warning."""
        if (warning := self.language_check.warning(texts)) is not None:
            log.warning(warning)
        return warning

    @cached_property
    def source_prefix(self) -> tuple[int, ...]:
        """Tokens that the model reads before those of every source: the token of the target language, if the model has
        languages. Raises InputError if it has several and none is chosen."""
        language = target_language(self.experiment, self.checkpoint)
        if language is None:
            return ()
        if (token := self.tokenizers.source.languages.get(language)) is None:
            raise InputError(f"{self.run}: its vocabulary has no token <2{language}>; restore its config")
        return (token,)

    def prefixed(self, sources: Iterable[Sequence[int]], texts: Iterable[str] | None = None) -> list[list[int]]:
        """Returns the tokens that the model reads for each source: its prefix, the tokens of the sentences before the
        text (see ``nmt.data.context``), as many as the limits of training and search allow, and its own tokens."""
        sources, data, tokenizer = list(sources), self.experiment.data, self.tokenizers.source
        languages = frozenset(tokenizer.languages.values())  # the text of an imported model may begin with such a token
        end, limit = tokenizer.control(BREAK), min(data.filters.max_length, self.experiment.search.max_source_tokens)
        if data.context and end is None:
            raise InputError(f"{self.run}: its vocabulary has no token {BREAK}; restore its config")
        return [
            [
                *(() if source and source[0] in languages else self.source_prefix),
                *context_tokens(text, tokenizer.encode, end, number=data.context, room=limit - len(source)),
                *source,
            ]
            for source, text in zip(sources, [""] * len(sources) if texts is None else texts, strict=True)
        ]

    def to(self, language: str | None) -> TrainedModel:
        """Returns the same model with another target language; None means the current one. Raises InputError if the
        model does not have the language."""
        if language is None:
            return self
        translated = replace(self, experiment=self.experiment.to(language))
        _ = translated.source_prefix  # raises for a language that it does not have
        return translated

    def encode_pairs(
        self, sources: Sequence[str], targets: Sequence[str], first_line: int, *, text: bool | str | None = None
    ) -> list[tuple[EncodedWords, EncodedWords]]:
        """Encodes sentence pairs as subwords and words. If ``text`` is True, lines are ordinary text; if it is False,
        tokenised text (``nmt.translator.aligner.Aligner.align``); "either" encodes them as tokenised text, with the
        words of ordinary text; if it is None, they are encoded unchanged, with white-space words. A pair with more
        subwords on a side than ``search.max_source_tokens``, whose memory would grow with the square of the length, is
        ``TOO_LONG``, with a warning; ``first_line`` is the number of the first pair. Raises InputError for different
        numbers of sources and targets."""
        if len(sources) != len(targets):
            raise InputError(f"{len(sources)} sources but {len(targets)} targets: give one target for each source")
        from nmt.data.words import text_words

        def encode(tokenizer: Tokenizer, line: str) -> EncodedWords:
            spans = text_words(line) if text else None
            if text in (False, "either"):
                return tokenizer.encode_tokens(line, spans)
            return tokenizer.encode_words(line, spans)

        source, target = self.tokenizers.source, self.tokenizers.target
        pairs = [(encode(source, one), encode(target, other)) for one, other in zip(sources, targets, strict=True)]
        limit = self.experiment.search.max_source_tokens
        long = [row for row, pair in enumerate(pairs) if max(len(side.ids) for side in pair) > limit]
        advice = f"search.max_source_tokens ({limit}); split it, or raise the limit with --set"
        left_blank(tuple(first_line + row for row in long), f"more subwords on a side than {advice}")
        return [TOO_LONG if row in long else pair for row, pair in enumerate(pairs)]


def load_trained(
    model: str | Path | None, overrides: Sequence[str] = (), *, device: str = "auto", precision: str = "auto",
    prepare: Callable[[Seq2Seq[Any, Any], Compute], Seq2Seq[Any, Any]] | None = None,
    before_use: Callable[[], object] | None = None,
) -> TrainedModel:  # fmt: skip
    """Loads a model for use, after ``prepare`` (by default ``for_inference``).

    ``model`` is a run directory (its best checkpoint, or the latest before the first validation), a checkpoint folder,
    or the config that trained it; None means the run under ``runs/`` that was trained last. ``overrides`` change the
    config of the run. With ``before_use``, which is then called first, weights are not read before ``model`` or
    ``compute`` is used. Raises InputError for files that are missing, damaged or of different models.
    """
    folder = find_checkpoint(model, overrides)
    run = run_of(folder)
    log.info(f"model: {folder}")
    experiment = experiments.load(run / experiments.FILE, overrides)
    trained_with = experiments.load(run / experiments.FILE) if overrides else experiment
    if changed := differences(trained_with.model, experiment.model):
        raise InputError(f"--set model.{changed[0]}: a trained model cannot be changed; train another one")
    tokenizers = TokenizerPair.load(run)
    lengths = run_directory.read_lengths(run)
    run_directory.verify(folder, (run_directory.MODEL, run_directory.STATE))
    if checked_state(folder, trained_with, lengths).get("vocabulary") != tokenizers.fingerprint:
        raise InputError(f"{folder}: was trained with another vocabulary than the subword model in {run}")
    checkpoint, lock = folder.resolve(), Lock()  # now, because a link may be changed

    @cache
    def load() -> tuple[Seq2Seq[Any, Any], Compute]:
        from nmt.core.device import compute
        from nmt.core.meta_init import on_meta_device, without_init
        from nmt.training import checkpoint as checkpoints

        if before_use is not None:
            before_use()
        chosen = compute(device, precision)
        with on_meta_device():
            checkpoints.check_weights(checkpoint, build_model(experiment.model, tokenizers))
        with without_init():
            built = build_model(experiment.model, tokenizers)
        checkpoints.load_weights(checkpoint, built)
        return (prepare or for_inference)(built.to(chosen.device), chosen), chosen

    def load_once() -> tuple[Seq2Seq[Any, Any], Compute]:
        with lock:  # one of the threads that need the model loads it
            return load()

    limit = experiment.data.filters.max_length  # for older runs, which have not recorded their lengths
    lengths = lengths or SourceLengths(usual=limit, longest=limit)
    trained = TrainedModel(folder, experiment, tokenizers, load_once, lengths)
    if experiment.search.to is not None:
        _ = trained.source_prefix  # raises for a language that it does not have
    if before_use is None:
        load_once()
    return trained


def build_model(config: ModelConfig, tokenizers: TokenizerPair) -> Seq2Seq[Any, Any]:
    """Builds a new model of a configuration, with the sizes of its vocabularies."""
    from nmt.models.build import build

    source, target = tokenizers.source, tokenizers.target
    model = build(config, source_tokens=source.size, target_tokens=target.size, pad=PAD, bos=target.begin)
    model.output.suppressed = target.controls
    return model


@Operation
def for_inference(model: Seq2Seq[Any, Any], compute: Compute) -> Seq2Seq[Any, Any]:
    """Returns the model itself, frozen (``Seq2Seq.frozen``), with weights in the compute precision, so that no step
    casts them.

    Another implementation may replace parts of it by faster ones, and round weights to 8-bit integers.
    """
    if compute.precision == "int8":
        raise InputError("--precision int8: needs a part of nmt that is not installed; use another precision")
    return model.frozen().to(compute.dtype)
