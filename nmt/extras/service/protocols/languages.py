"""The languages of a model, as other protocols name them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from babel import Locale

from nmt.extras.corpus.languages.identify import Identifier
from nmt.extras.service.batcher import Refused
from nmt.extras.service.engine import TranslatorEngine

_identifier = cache(Identifier)


def name(code: str) -> str:
    """Returns the English name of a language, or its code if it is unknown."""
    return str(Locale("en").languages.get(code.replace("-", "_"), code))


def targets(engine: TranslatorEngine) -> Sequence[str]:
    """Returns the target languages of a model; none if they are unknown."""
    return engine.targets or (engine.languages or ())[1:]


def target(engine: TranslatorEngine, source_code: str, code: str) -> str | None:
    """Returns the target language for the options of a request. Raises Refused if the model lacks one of both."""
    source(engine, source_code)
    language = _match(code, targets(engine), "into")
    return language if engine.targets else None


def source(engine: TranslatorEngine, code: str, text: str = "") -> tuple[str, float]:
    """Returns the source language of a text and its probability: the one of the request or, for ``auto``, the most
    probable one of the model. Raises Refused for one that the model lacks."""
    if code != "auto":
        return _match(code, engine.sources, "from"), 1.0
    if len(engine.sources) < 2 or not text:
        return next(iter(engine.sources), ""), 1.0
    found = detect(text)
    return max(((each, found.get(_base(each), 0.0)) for each in engine.sources), key=lambda each: each[1])


def detect(text: str) -> dict[str, float]:
    """Returns the probabilities of languages for a text, largest first: softmax of the scores of ``Identifier``. Raises
    InputError if py3langid is not installed."""
    scores = _identifier().scores(text)
    probabilities = torch.tensor([*scores.values()], dtype=torch.float64).softmax(0).tolist()
    return dict(zip(scores, probabilities, strict=True))


def _match(code: str, languages: Sequence[str], direction: str) -> str:
    """Finds a language. One without a variant, such as en, is also any of its variants, and the reverse; if the model's
    languages are unknown, it may be any."""
    asked, base = _plain(code), _base(code)
    found = [each for each in languages if _plain(each) == asked]
    found += [each for each in languages if _base(each) == asked or _plain(each) == base]
    if languages and not found:
        raise Refused(422, f"{code}: this model does not translate {direction} it; use one of {', '.join(languages)}")
    return found[0] if found else code


def _plain(code: str) -> str:
    return code.lower().replace("_", "-")


def _base(code: str) -> str:
    return _plain(code).split("-")[0]
