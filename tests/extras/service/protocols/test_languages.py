"""Languages of models that the clients of protocols do not meet in their own tests."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from nmt.extras.service.app import create_app
from nmt.extras.service.messages import Limits, Refused
from nmt.extras.service.metrics import ServerMetrics
from nmt.extras.service.protocols import languages
from tests.extras.service.fakes import Gated, batching


class Several(Gated):
    """Translates from two languages into two others."""

    languages = None
    sources = ("de", "nl")
    targets = ("fr", "pt_BR")


class Unknown(Gated):
    """A model whose languages nobody has named, such as one that was imported."""

    languages = None
    sources = ()


def ask(engine: Gated, method: str, path: str, **body: Any) -> httpx.Response:
    """Asks a server around an engine in this process."""
    with batching(engine) as batcher:
        transport = httpx.ASGITransport(app=create_app(batcher, Limits(), ServerMetrics()))

        async def run() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **body)

        return asyncio.run(run())


@pytest.mark.parametrize(
    ("code", "expected"),
    [("fr", "fr"), ("FR", "fr"), ("fr-CA", "fr"), ("pt", "pt_BR"), ("PT-br", "pt_BR"), ("pt-PT", None), ("f", None)],
)
def test_a_language_without_a_variant_stands_for_all(code: str, expected: str | None) -> None:
    engine: Any = Several()
    if expected is None:
        with pytest.raises(Refused, match=f"{code}: this model does not translate into it; use one of fr, pt_BR"):
            languages.target(engine, "de", code)
    else:
        assert languages.target(engine, "de", code) == expected
    assert languages.name("pt-BR") == "Brazilian Portuguese"
    assert languages.name("xx") == "xx"


def test_a_model_of_several_languages_is_asked_for_one_in_each_protocol() -> None:
    engine = Several()
    listed = ask(engine, "GET", "/languages").json()
    assert {each["code"]: each["targets"] for each in listed} == {
        "de": ["fr", "pt_BR"], "nl": ["fr", "pt_BR"], "fr": [], "pt_BR": [],
    }  # fmt: skip
    assert [each["language"] for each in ask(engine, "GET", "/v2/languages?type=target").json()] == ["FR", "PT-BR"]
    models = [each["id"] for each in ask(engine, "GET", "/v1/models").json()["data"]]
    assert models == ["fake/best:fr", "fake/best:pt_BR"]
    message = [{"role": "user", "content": "a"}]
    for path, body in (
        ("/translate", {"q": "a", "source": "nl", "target": "pt"}),
        ("/v2/translate", {"text": ["a"], "source_lang": "NL", "target_lang": "PT-BR"}),
        ("/v1/chat/completions", {"model": "fake/best:pt_BR", "messages": message}),
    ):
        assert ask(engine, "POST", path, json=body).status_code == 200
    assert [(options.to, options.document) for options, _ in engine.batches] == [("pt_BR", True)] * 3


def test_the_language_of_a_text_is_one_of_the_model() -> None:
    pytest.importorskip("py3langid")
    engine: Any = Several()
    for text, language in (("Der Hund bellt nicht oft.", "de"), ("De hond blaft niet vaak.", "nl"), ("Le chien", "")):
        found, probability = languages.source(engine, "auto", text)
        assert 0 < probability < 1
        assert found == language or (not language and probability < 0.5)


def test_a_model_of_unknown_languages_takes_any() -> None:
    engine = Unknown()
    assert ask(engine, "GET", "/languages").json() == []
    answer = ask(engine, "POST", "/translate", json={"q": "a", "source": "xx", "target": "yy"})
    assert answer.json() == {"translatedText": "A"}
    assert [options.to for options, _ in engine.batches] == [None]
