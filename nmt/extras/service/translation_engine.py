"""A translation server with one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from socket import socket

from pydantic import ValidationError

import nmt
from nmt.core.errors import InputError
from nmt.core.memory import malloc_trim
from nmt.extras.service import server
from nmt.extras.service.batcher import Batching
from nmt.extras.service.engine import Answer, RequestOptions
from nmt.extras.service.messages import Limits
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from nmt.translator.find_run import run_of
from nmt.translator.loading import TrainedModel
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator
from nmt.translator.windows import json_results


def serve(
    model: str | None,
    overrides: Sequence[str],
    *,
    listening: socket,
    batching: Batching,
    limits: Limits,
    grace_s: float,
    ensemble: Sequence[str],
    device: str,
    precision: str,
) -> None:
    """Serves on a socket until it is interrupted or terminated; see ``nmt.extras.service.server.run``."""

    def loaded() -> TranslatorEngine:
        engine = TranslatorEngine(
            nmt.load_translator(model, device=device, precision=precision, overrides=overrides, ensemble=ensemble)
        )
        to = next(iter(engine.targets), None)
        # the first translation of a process takes longer than any after it
        engine.answer(["."], RequestOptions(to=to), lambda: None)
        return engine

    server.run(listening, loaded, batching, limits, grace_s=grace_s)


class TranslatorEngine:
    """A Translator as the server asks it; see ``nmt.extras.service.engine.Engine``."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._trained: dict[str | None, TrainedModel] = {}
        checkpoint = translator.trained.checkpoint
        self._data = translator.trained.experiment.data
        self._name = f"{run_of(checkpoint).name}/{checkpoint.name}"

    @property
    def name(self) -> str:
        """Names of run and checkpoint."""
        return self._name

    @property
    def aligns(self) -> bool:
        """Returns True if the model has attention."""
        return "attention" in self._translator.aligner.methods

    @property
    def languages(self) -> tuple[str, str] | None:
        """Languages of the first training corpus; None for a model of several target languages."""
        first = next(iter(self._data.train_corpora), None)  # an imported model has no corpus
        return None if first is None or len(self.targets) > 1 else first.language_names

    @property
    def targets(self) -> tuple[str, ...]:
        """See ``Engine``."""
        own = self._translator.search.to
        return tuple(sorted(self._data.target_languages, key=lambda language: language != own))

    @property
    def context(self) -> int:
        """See ``Engine``."""
        return self._data.context

    def check(self, options: RequestOptions) -> None:
        """Raises InputError for an invalid search, for one that would cost more than the server's own, and for
        alignments of a model without attention."""
        search = self._translator.search
        most = {"beam": search.beam, "n_best": max(search.beam, search.n_best)}
        for key, limit in most.items():
            if (value := getattr(options, key)) is not None and value > limit:
                raise InputError(f"{key}: {value} is more than this server allows, {limit}")
        self._search(options)
        choice = f"choose one of {', '.join(self.targets)}"
        if options.to is None and len(self.targets) > 1 and search.to is None:
            raise InputError(f"to: is missing; {choice}")
        to = self._translator.trained.experiment.to(options.to).search.to
        if options.to is not None and to not in self.targets:
            remedy = choice if self.targets else "leave it out"
            raise InputError(f"to: this model does not translate into {options.to!r}; {remedy}")
        if options.alignment and not self.aligns:
            raise InputError("alignment: this model has no attention to align by; leave it out")
        if options.context and not self.context:
            raise InputError("context: this model was trained without data.context; leave it out")

    def subwords(self, texts: Sequence[str]) -> list[int]:
        """See ``Engine``."""
        return [len(ids) for ids in self._translator.trained.tokenizers.source.encode_batch(texts)]

    def answer(self, texts: Sequence[str], options: RequestOptions, on_step: Callable[[], object]) -> list[Answer]:
        """See ``Engine``."""
        malloc_trim()
        engine = self._translator.engine
        assert isinstance(engine, TorchEngine)
        translator = replace(self._translator, search=self._search(options), engine=replace(engine, on_step=on_step))
        translator = translator.to(target_language=options.to)
        # the model of each target language, whose language check has read texts so far
        trained = self._trained.setdefault(options.to, translator.trained)
        warning = trained.warn_of_language(texts)
        found = translator.candidates(texts)
        results = json_results(translator, texts, found, alignment=options.alignment)
        answers = [
            Answer(result, sum(len(one.tokens) for one in each), self._warning(each[0]))
            for result, each in zip(results, found, strict=True)
        ]
        return [replace(each, warning=each.warning or warning) for each in answers[:1]] + answers[1:]

    def _search(self, options: RequestOptions) -> SearchConfig:
        """Changes the server's search by the options of a request."""
        search = self._translator.search
        changes = {key: value for key in ("beam", "n_best") if (value := getattr(options, key)) is not None}
        if not changes:
            return search
        try:
            return SearchConfig.model_validate({**dict(search), **changes})
        except ValidationError as error:
            raise InputError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None

    def _warning(self, best: Translation) -> str | None:
        if not best.cut:
            return None
        limit = self._translator.search.max_source_tokens
        return f"its last {best.cut} subwords are left out: it has more than {limit}"
