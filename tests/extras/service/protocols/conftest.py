"""The server of the tests of protocols."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from nmt.core.errors import InputError
from nmt.extras.service.batcher import Answer, Refused, RequestOptions
from nmt.extras.service.messages import Limits
from tests.extras.service.fakes import Gated, serving

KEY = "s3cret"


class German(Gated):
    """Writes words in capitals or, for those of a glossary, its terms; tags and entities only if they are no markup.
    Further translations have exclamation marks. A stream has the first word first. It is busy at first for a text that
    begins with it."""

    name = "de-en/best"
    busy = frozenset[str]()

    def check(self, options: RequestOptions) -> None:
        if (options.n_best or 1) > 3:
            raise InputError(f"n_best: {options.n_best} is more than this server allows, 3")

    def subwords(self, texts: Sequence[str]) -> list[int]:
        if texts and texts[0].startswith("busy") and texts[0] not in self.busy:
            self.busy |= {texts[0]}
            raise Refused(429, "the queue is full; try again in 1 s", retry_after_s=1)
        return [len(text.split()) for text in texts]

    def answer(self, texts: Sequence[str], options: RequestOptions, on_step: Callable[[], object]) -> list[Answer]:
        if options.on_text is not None:
            options.on_text(texts[0].split()[0].upper())
        super().answer(texts, options, on_step)  # fails on some
        terms = {} if options.glossary is None else {term.source: term.targets[0] for term in options.glossary.terms}
        assert options.document
        markup = r"(<[^>]*>|&\w+;)" if options.markup else "($^)"
        answers = []
        for text in texts:
            parts = re.split(markup, text)
            parts[::2] = [re.sub(r"\w+", lambda word: terms.get(word[0], word[0].upper()), part) for part in parts[::2]]
            ranked = [{"text": "".join(parts) + "!" * rank} for rank in range(options.n_best or 1)]
            answers.append(Answer({"translations": ranked}, 2))
        return answers


@pytest.fixture(scope="package")
def address() -> Iterator[str]:
    """The address of a server that needs a key."""
    with serving(German(), limits=Limits(characters=100, key=KEY.encode())) as (url, _):
        yield url


Refusal = tuple[dict[str, Any], int, str]
"""Options, and the status and the beginning of the message of their refusal."""
