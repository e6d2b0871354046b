"""A translator with the options of requests: the same answers as without a server."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import httpx
import pytest

import nmt as package
from nmt.core.errors import InputError
from nmt.experiment import Experiment
from nmt.extras.documents.glossary import Glossary, Term
from nmt.extras.service.app import create_app
from nmt.extras.service.batcher import Answer, Batcher, Batching, Done, RequestOptions
from nmt.extras.service.engine import TranslatorEngine
from nmt.extras.service.messages import Limits
from nmt.extras.service.metrics import ServerMetrics
from nmt.search.config import SearchConfig
from nmt.translator.translator import Translator
from tests.extras.service.fakes import Client
from tests.workflows.runs import records

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def translator(trained: Path) -> Translator:
    return package.load(trained / "run", device="cpu", precision="float32")


def test_fifty_requests_at_once_get_what_each_gets_alone(trained: Path, translator: Translator) -> None:
    lines = [line for side in ("train", "test") for line in (trained / f"{side}.de").read_text().splitlines()][:60]
    lines[7] = lines[31] = ""
    requests = [lines[n : n + 1 + n % 3] for n in range(50)]
    alone = {line: translator.candidates([line])[0] for line in lines}
    ready, done = threading.Event(), list[Done]()
    # what begins while the first waits for company shares its batches
    batcher = Batcher(
        lambda: TranslatorEngine(translator), Batching(wait_s=0.5), on_ready=ready.set, on_done=done.append
    )

    async def talk() -> list[httpx.Response]:
        client = Client(create_app(batcher, Limits(), ServerMetrics()))
        return await asyncio.gather(*(client.translate(texts) for texts in requests))

    batcher.start()
    assert ready.wait(20)
    responses = asyncio.run(talk())
    batcher.close()
    batcher.join(20)
    assert not batcher.is_alive()
    for texts, response in zip(requests, responses, strict=True):
        results = response.json()["results"]
        assert [(each["line"], each["source"]) for each in results] == list(enumerate(texts, 1))
        for result in results:
            (found,), (expected,) = result["translations"], alone[result["source"]]
            assert (found["text"], tuple(found["tokens"])) == (expected.text, expected.tokens)
            assert found["score"] == pytest.approx(expected.score, rel=1e-6, abs=2e-6)
    sizes = [each.sentences for each in done]
    assert sum(sizes) == sum(len(texts) for texts in requests)
    assert len(sizes) <= len(responses) / 5


def test_answers_are_those_of_translate_in_jsonl(trained: Path, translator: Translator) -> None:
    engine = TranslatorEngine(translator)
    texts = ["der hund", "", "eine katze und ein hund", "der hund"]
    options = {
        ("--n-best", "3", "--alignment"): RequestOptions(3, None, True),
        ("--beam", "2"): RequestOptions(None, 2),
    }
    for arguments, wanted in options.items():
        lines = records(trained, *arguments)
        answers = engine.answer(texts, wanted, lambda: None)
        trees = [{"line": number, **json.loads(json.dumps(each.tree))} for number, each in enumerate(answers, 1)]
        assert trees == json.loads(json.dumps(lines), parse_float=lambda text: pytest.approx(float(text), abs=2e-6))
        assert [each.tokens for each in answers] == [
            sum(len(found["tokens"]) for found in line["translations"]) for line in lines
        ]
    assert translator.search.n_best == 1  # what a request asks for is its own


def test_a_translation_within_another_changes_neither(translator: Translator) -> None:
    """The library's fast decoders are used."""
    engine, options = TranslatorEngine(translator), RequestOptions(alignment=True)
    texts, others = ["eine katze und ein hund", "der hund"], ["drei", "ein hund und eine katze"]
    within: list[list[Answer]] = []

    def on_step() -> None:
        within.append(engine.answer(others, options, lambda: None))

    engine.answer(texts, options, lambda: None)  # warns of the language, once
    assert engine.answer(texts, options, on_step) == engine.answer(texts, options, lambda: None)
    assert len(within) > 1
    assert within == [engine.answer(others, options, lambda: None)] * len(within)
    assert engine.subwords(texts) == [len(translator.trained.tokenizers.source.encode(text)) for text in texts]


def test_what_is_cut_is_told(translator: Translator) -> None:
    short = replace(
        translator, search=translator.search.model_copy(update={"max_source_tokens": 8, "split_longer_than": None})
    )
    texts, options = ["der", "eine katze und ein hund"], RequestOptions(alignment=True)
    whole, cut = TranslatorEngine(short).answer(texts, options, lambda: None)
    assert whole.warning is None
    assert re.fullmatch(r"its last \d+ subwords are left out: it has more than 8", cut.warning or "")
    assert cut.tree["translations"][0]["alignment"] is None


def test_tags_and_terms_are_those_of_the_command(translator: Translator) -> None:
    engine = TranslatorEngine(translator)
    texts = ["der <b>hund</b> &amp; die katze", "Der hund. <x1/>Die katze."]
    marked = replace(
        translator, search=translator.search.model_copy(update={"markup": True, "document": True})
    ).translate(texts)
    options = RequestOptions(document=True, markup=True)
    answers = engine.answer(texts, options, lambda: None)
    assert [each.tree["translations"][0]["text"] for each in answers] == [each.text for each in marked]
    for each, tags in zip(marked, (["<b>", "</b>", "&amp;"], ["<x1/>"]), strict=True):
        assert [each.text.count(tag) for tag in tags] == [1] * len(tags)
    options = RequestOptions(glossary=Glossary((Term("hund", ("cat",)),)))
    engine.check(options)
    (answer,) = engine.answer(["der hund"], options, lambda: None)
    assert "cat" in answer.tree["translations"][0]["text"]
    assert "cat" not in translator.translate("der hund").text
    assert (engine.sources, engine.languages) == (("de",), ("de", "en"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (RequestOptions(n_best=6), "n_best: 6 is more than this server allows, 5"),
        (RequestOptions(beam=6), "beam: 6 is more than this server allows, 5"),
        (RequestOptions(n_best=3, beam=2), "n_best: 3 translations need as many beams, not 2; set beam to 3"),
        (RequestOptions(to="en"), "to: this model does not translate into 'en'; leave it out"),
        (RequestOptions(alignment=True), "alignment: this model has no attention to align by; leave it out"),
    ],
    ids=lambda value: None if isinstance(value, str) else str(value),
)
def test_what_a_model_cannot_do_is_refused(options: RequestOptions, message: str) -> None:
    plain = SimpleNamespace(
        search=SearchConfig(),
        aligner=SimpleNamespace(methods=("gradient",)),
        trained=SimpleNamespace(
            checkpoint=Path("runs/x/best"),
            experiment=Experiment.model_construct(
                data=SimpleNamespace(target_languages=(), train_corpora=(), language_names=None, context=0),
                search=SearchConfig(),  # type: ignore[arg-type]
            ),
        ),
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        TranslatorEngine(cast(Translator, plain)).check(options)
    TranslatorEngine(cast(Translator, plain)).check(RequestOptions(n_best=5, beam=5))
