"""A translator as the server asks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

from pydantic import ValidationError

from nmt.core.errors import InputError
from nmt.core.memory import malloc_trim
from nmt.extras.documents.terminology import with_glossary
from nmt.extras.service.batcher import Answer, RequestOptions
from nmt.extras.service.streaming import streaming
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from nmt.translator.find_run import run_of
from nmt.translator.loading import TrainedModel
from nmt.translator.translation import Translation
from nmt.translator.translator import Translator, torch_engine
from nmt.translator.windows import json_results


def load_engine(load: Callable[[], Translator]) -> TranslatorEngine:
    """Loads a translator, and translates a first text, because the first translation of a process takes longer than any
    after it."""
    engine = TranslatorEngine(load())
    engine.answer(["."], RequestOptions(to=next(iter(engine.targets), None)), lambda: None)
    return engine


class TranslatorEngine:
    """A translator with the options of requests. All calls of ``answer`` come from one thread, and the others from any
    thread."""

    def __init__(self, translator: Translator) -> None:
        checkpoint, data = translator.trained.checkpoint, translator.trained.experiment.data
        self._translator = translator
        self._with_glossary = lru_cache(8)(lambda terms: with_glossary(self._searching, terms) if terms else translator)
        self._trained: dict[str | None, TrainedModel] = {}
        self.name = f"{run_of(checkpoint).name}/{checkpoint.name}"
        """Names of run and checkpoint."""
        self.aligns = "attention" in translator.aligner.methods
        """True if the model has attention to align translations by."""
        self.targets = tuple(sorted(data.target_languages, key=lambda language: language != translator.search.to))
        """Target languages that a request may choose from, the server's own first; empty for a model without
        languages."""
        self.languages = None if len(self.targets) > 1 else data.language_names
        """Languages of the first training corpus; None if they are unknown, and for a model of several target
        languages."""
        self.sources = tuple(dict.fromkeys(pair[0] for each in data.train_corpora if (pair := each.language_names)))
        """Source languages of the training corpora; empty if they are unknown."""
        self.context = data.context
        """Number of previous sentences that the model reads."""

    def check(self, options: RequestOptions) -> None:
        """Raises InputError for an invalid search, for one that would cost more than the server's own or does not
        support a glossary, and for alignments of a model without attention."""
        search = self._translator.search
        for key, limit in {"beam": search.beam, "n_best": max(search.beam, search.n_best)}.items():
            if (value := getattr(options, key)) is not None and value > limit:
                raise InputError(f"{key}: {value} is more than this server allows, {limit}")
        self._search(options)
        self._with_glossary(options.glossary)
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
        """Counts the subwords of each text."""
        return [len(ids) for ids in self._translator.trained.tokenizers.source.encode_batch(texts)]

    def answer(self, texts: Sequence[str], options: RequestOptions, on_step: Callable[[], object]) -> list[Answer]:
        """Translates each text, in order, independently of the others. Calls a function before each step of the search,
        which may request other translations within it or, by an exception, end it; another engine has no such steps."""
        malloc_trim()
        translator = self._with_glossary(options.glossary)
        engine = translator.engine
        if isinstance(engine, TorchEngine):
            engine = replace(engine, on_step=on_step)
        translator = replace(translator, search=self._search(options), engine=engine)
        translator = translator.to(target_language=options.to)
        # the model of each target language, whose check has judged texts so far
        trained = self._trained.setdefault(options.to, translator.trained)
        language_warning = trained.warn_of_language([] if options.markup else texts)
        searching = translator if options.on_text is None else streaming(translator, texts[0], options.on_text)
        candidates = searching.candidates(texts)
        results = json_results(translator, texts, candidates, alignment=options.alignment)
        answers = [
            Answer(result, sum(len(one.tokens) for one in found), self._warning(found[0]))
            for result, found in zip(results, candidates, strict=True)
        ]
        return [replace(first, warning=first.warning or language_warning) for first in answers[:1]] + answers[1:]

    @property
    def _searching(self) -> Translator:
        """The translator with our own engine, which a glossary needs."""
        own = self._translator
        return own if own.has_own_engine else replace(own, engine=torch_engine(own.trained, []))

    def _search(self, options: RequestOptions) -> SearchConfig:
        """Changes the server's search by the options of a request."""
        changes = {key: value for key in ("beam", "n_best", "document", "markup") if (value := getattr(options, key))}
        try:
            return SearchConfig.model_validate({**dict(self._translator.search), **changes})
        except ValidationError as error:
            raise InputError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None

    def _warning(self, best: Translation) -> str | None:
        if not best.cut:
            return None
        limit = self._translator.search.max_source_tokens
        return f"its last {best.cut} subwords are left out: it has more than {limit}"
