"""The protocol of DeepL, spoken by its Python client and, where it lacks something, by hand."""

from __future__ import annotations

import time
from io import BytesIO
from typing import Any

import httpx
import pytest

from tests.extras.service.protocols.conftest import KEY

deepl = pytest.importorskip("deepl")


@pytest.fixture
def client(address: str) -> Any:
    return deepl.DeepLClient(KEY, server_url=address)


def test_its_client_translates(client: Any) -> None:
    results = client.translate_text(
        ["Der Hund", "bellt\n oft"], source_lang="DE", target_lang="EN-GB", preserve_formatting=True,
        formality="prefer_less",
    )  # fmt: skip
    assert [(each.text, each.detected_source_lang, each.billed_characters) for each in results] == [
        ("DER HUND", "DE", 8), ("BELLT\n OFT", "DE", 10),
    ]  # fmt: skip
    assert client.translate_text("a\nb", target_lang="en-us", split_sentences="0").text == "A B"
    assert client.translate_text("a", target_lang="en-us").detected_source_lang == "DE"


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("a <b>b</b>\n&amp; <c> &", {"tag_handling": "xml"}, "A <b>B</b> &amp; <c> &amp;"),
        ("a\nb", {"tag_handling": "xml", "split_sentences": "1"}, "A\nB"),
        ("<p>a</p>\n<p title='b'>d", {"tag_handling": "html"}, "<p>A</p>\n<p title='B'>D"),
        ("a <x>b</x> & c", {}, "A <X>B</X> & C"),
    ],
    ids=["xml", "lines", "html", "text"],
)
def test_tags_stay(client: Any, text: str, options: dict[str, Any], expected: str) -> None:
    assert client.translate_text(text, target_lang="EN-US", **options).text == expected


def test_languages_and_usage(client: Any) -> None:
    assert [(each.code, each.name) for each in client.get_source_languages()] == [("DE", "German")]
    targets = [(each.code, each.name) for each in client.get_target_languages()]
    assert targets == [("EN-GB", "British English"), ("EN-US", "American English")]
    before = client.get_usage()
    client.translate_text("abc", target_lang="EN-US")
    assert client.get_usage().character.count == before.character.count + 3
    assert not before.any_limit_reached


def test_a_document_is_translated(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wait = time.sleep
    translated = BytesIO()
    monkeypatch.setattr("time.sleep", lambda _: wait(0.05))  # not for five seconds
    client.translate_document(b"<p>a <i>b</i></p>", translated, target_lang="EN-GB", filename="a.html")
    assert translated.getvalue() == b"<p>A <i>B</i></p>"
    with pytest.raises(deepl.DocumentTranslationException, match="a.html: is not text in utf-8"):
        client.translate_document(b"\xff", translated, target_lang="EN-GB", filename="a.html")
    with pytest.raises(deepl.DeepLException, match="file: its name must end in one of .html"):
        client.translate_document(b"a", translated, target_lang="EN-GB", filename="a.exe")


def test_a_glossary_is_kept_and_used(client: Any) -> None:
    glossary = client.create_glossary("tiere", "DE", "EN", {"Hund": "hound", "Katze": "cat"})
    assert (glossary.name, glossary.entry_count, glossary.ready) == ("tiere", 2, True)
    found = client.translate_text("Hund und Maus", source_lang="DE", target_lang="EN-GB", glossary=glossary)
    assert found.text == "hound UND MAUS"
    assert client.get_glossary_entries(glossary) == {"Hund": "hound", "Katze": "cat"}
    other = client.create_glossary_from_csv("b", "DE", "EN", csv_data='"Hund","dog"\n')
    assert [each.name for each in client.list_glossaries()] == ["tiere", "b"]
    assert client.get_glossary(other.glossary_id).name == "b"
    for each in (glossary, other):
        client.delete_glossary(each)
    with pytest.raises(deepl.GlossaryNotFoundException, match="is not here any more"):
        client.get_glossary(glossary.glossary_id)
    with pytest.raises(deepl.DeepLException, match="entries:1: has 2 TABs; write a source term, one TAB"):
        client.create_glossary_from_csv("b", "DE", "EN", csv_data="a,b,c\n")


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ({"target_lang": "FR"}, 400, "FR: this model does not translate into it; use one of en"),
        ({"source_lang": "FR"}, 400, "FR: this model does not translate from it; use one of de"),
        ({"formality": "more"}, 400, "formality: text 'more' is not a choice"),
        ({"glossary": "g", "source_lang": "DE"}, 404, "this file or glossary is not here any more"),
        ({"tag_handling": "pdf"}, 400, "tag_handling: text 'pdf' is not a choice; the choices are html, xml"),
        (
            {"tag_handling": "xml", "ignore_tags": "x"},
            400,
            "ignore_tags: is not supported by this server; leave it out",
        ),
        ({"context": "Tiere"}, 400, "context: is not supported by this server; leave it out"),
        ({"text": "a" * 101}, 413, "text 1 has 101 characters, more than 100; split it into sentences"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_its_client_is_refused_in_its_form(client: Any, options: dict[str, Any], status: int, message: str) -> None:
    with pytest.raises(deepl.DeepLException) as error:
        client.translate_text(**{"text": "a", "target_lang": "EN-GB", **options})
    assert error.value.http_status_code == status
    assert message in str(error.value)


def test_a_wrong_key_and_what_is_not_there(address: str, client: Any) -> None:
    with pytest.raises(deepl.AuthorizationException, match="the API key is missing or wrong"):
        deepl.DeepLClient("wrong", server_url=address).get_usage()
    with pytest.raises(deepl.GlossaryNotFoundException, match="message: there is nothing at this path"):
        client.list_multilingual_glossaries()


def test_its_client_tries_again_when_the_server_is_busy(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.translate_text("busy deepl", target_lang="EN-GB").text == "BUSY DEEPL"
    monkeypatch.setattr("deepl.http_client.max_network_retries", 0)
    with pytest.raises(deepl.TooManyRequestsException, match="message: the queue is full; try again in 1 s"):
        client.translate_text("busy deepl 2", target_lang="EN-GB")


def test_a_form_is_as_good_as_json(address: str) -> None:
    head = {"Authorization": f"DeepL-Auth-Key {KEY}"}
    form = {"text": ["a", "b\nc"], "target_lang": "EN", "preserve_formatting": "1", "split_sentences": "nonewlines"}
    answer = httpx.post(f"{address}/v2/translate", data=form, headers=head, trust_env=False)
    assert [each["text"] for each in answer.json()["translations"]] == ["A", "B C"]
    answer = httpx.get(f"{address}/v2/languages?type=target", headers=head, trust_env=False)
    assert [each["language"] for each in answer.json()] == ["EN-GB", "EN-US"]
