"""The beginnings of a translation are taken back by nothing that follows."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

import nmt as package
from nmt.extras.service import streaming
from nmt.extras.service.answering import Service
from nmt.extras.service.batcher import Batcher, Batching, RequestOptions
from nmt.extras.service.engine import TranslatorEngine
from nmt.extras.service.messages import Limits
from nmt.extras.service.streaming import whole_words
from nmt.translator.translator import Translator

TEXT = " 4 2\neins Hund und zwei Katze und drei Hund. Katze und grün Hund?\n\n42\nzwei Hund und drei Katze "


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return package.load(trained / "run", device="cpu", precision="float32", overrides=["search.max_length_ratio=4"])


@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("document", [False, True])
def test_beginnings_grow_to_the_translation(
    beam: int, document: bool, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "INTERVAL_S", 0.0)
    search = translator.search.model_copy(update={"beam": beam, "document": document, "n_best": 1})
    searching = replace(translator, search=search)
    for text in (TEXT, "eins Hund und zwei Katze und drei Hund", "42", ""):
        beginnings = list[str]()
        found = streaming.streaming(searching, text, beginnings.append).candidates([text])
        ((whole,),) = searching.candidates([text])
        assert found[0][0].text == whole.text
        for one, other in pairwise([*beginnings, whole.text]):
            assert other.startswith(one)
        # a greedy search knows each word when the next one begins
        words = {len(each) for each in beginnings}
        assert len(words) > len(whole.text.split()) // 2 or beam > 1 or len(whole.text) < 10


def test_words_are_whole() -> None:
    cases = {
        "": "",
        "ein": "",
        "ein Hun": "ein",
        "ein Hund ": "ein Hund",
        "我看见\ufffd": "我看见",
        "a\n\nb c": "a\n\nb",
    }
    assert {text: whole_words(text) for text in cases} == cases


def test_a_stream_has_the_words_of_the_answer(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "INTERVAL_S", 0.0)
    batcher = Batcher(lambda: TranslatorEngine(translator), Batching(wait_s=0.0))
    batcher.start()

    async def talk() -> None:
        while batcher.engine is None:
            await asyncio.sleep(0.01)
        service, options = Service(batcher, Limits()), RequestOptions(1, beam=1, document=True)
        *words, answer = [part async for part in service.parts(TEXT, options)]
        (whole,) = await service.answers([TEXT], options)
        assert not isinstance(answer, str)
        (found,), (expected,) = (each.tree["translations"] for each in (answer, whole))
        # sentences are rounded one by one, and in a batch
        assert found["score"] == pytest.approx(expected["score"], abs=1e-4)
        assert (found["text"], found["tokens"]) == (expected["text"], expected["tokens"])
        text = "".join(map(str, words))
        assert text
        assert whole.tree["translations"][0]["text"].startswith(text)
        # the search of a client that goes away ends
        parts = service.parts(" ".join([TEXT] * 8), options)
        await anext(parts)
        await parts.aclose()
        (after,) = await service.answers(["eins Hund"], options)
        assert after.tokens

    asyncio.run(talk())
    batcher.close()
    batcher.join(20)
    assert not batcher.is_alive()
