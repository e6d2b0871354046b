"""The protocol of LibreTranslate, spoken by its Python client and, where it lacks something, by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError

import httpx
import pytest

from tests.extras.documents.files.archives import packed
from tests.extras.service.protocols.conftest import KEY

libretranslatepy = pytest.importorskip("libretranslatepy")


@pytest.fixture
def client(address: str) -> Any:
    return libretranslatepy.LibreTranslateAPI(address, api_key=KEY)


def post(address: str, path: str = "/translate", **body: Any) -> httpx.Response:
    return httpx.post(address + path, trust_env=False, timeout=20, **body)


def upload(address: str, name: str, content: bytes, **fields: str) -> httpx.Response:
    fields = {"source": "de", "target": "en", "api_key": KEY, **fields}
    return post(address, "/translate_file", data=fields, files={"file": (name, content)})


def test_its_client_translates_lists_languages_and_detects(client: Any) -> None:
    text = "Der Hund\n\n  bellt & <b>beißt</b>.\n"
    assert client.translate(text, "de", "en") == text.upper()
    assert client.translate("", "auto", "en") == ""
    assert libretranslatepy.LibreTranslateAPI(client.url).languages() == [  # needs no key
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": []},
    ]
    pytest.importorskip("py3langid")
    best, *others = client.detect("Ein Hund läuft im Park und spielt mit dem Ball.")
    assert best["language"] == "de"
    assert best["confidence"] > 90
    assert all(1 <= each["confidence"] < 10 for each in others)


def wrong(key: str | None) -> Callable[[Any], object]:
    return lambda api: libretranslatepy.LibreTranslateAPI(api.url, key).translate("a", "de", "en")


@pytest.mark.parametrize(
    ("ask", "status", "message"),
    [
        (lambda api: api.translate("a", "de", "fr"), 422, "fr: this model does not translate into it; use one of en"),
        (lambda api: api.translate("a", "fr", "en"), 422, "fr: this model does not translate from it; use one of de"),
        (lambda api: api.translate("a" * 101, "de", "en"), 413, "text 1 has 101 characters, more than 100; split it"),
        (lambda api: api.translate("busy libre", "de", "en"), 429, "the queue is full; try again in 1 s"),
        (lambda api: api.translate("fail", "de", "en"), 500, "the model failed on this request or one beside it"),
        (wrong(None), 401, "the API key is missing or wrong"),
        (wrong("wrong"), 401, "the API key is missing or wrong"),
    ],
    ids=["target", "source", "long", "busy", "fails", "no key", "wrong key"],
)
def test_its_client_is_refused_in_its_form(
    client: Any, ask: Callable[[Any], object], status: int, message: str
) -> None:
    with pytest.raises(HTTPError) as error:
        ask(client)
    assert error.value.code == status
    (answer,) = json.loads(error.value.read()).items()
    assert answer[0] == "error"
    assert answer[1].startswith(message)


def test_several_texts_alternatives_and_html(address: str) -> None:
    several = {"q": ["a\nb", "c"], "source": "auto", "target": "EN-gb", "alternatives": 1, "api_key": KEY}
    assert post(address, json=several).json() == {
        "translatedText": ["A\nB", "C"], "alternatives": [["A\nB!"], ["C!"]],
        "detectedLanguage": [{"language": "de", "confidence": 100.0}] * 2,
    }  # fmt: skip
    page = {"q": "<meta charset=latin-1><p>a <b>ß</b> &amp; c</p><script>d</script>", "target": "en", "source": "de"}
    headers = {"Authorization": f"Bearer {KEY}"}
    answer = post(address, data={**page, "format": "html", "alternatives": "0"}, headers=headers).json()
    assert answer == {"translatedText": "<meta charset=latin-1><p>A <b>SS</b> &amp; C</p><script>d</script>"}
    raw = {**headers, "content-type": "application/x-www-form-urlencoded"}
    assert post(address, content="q=ä+%C3%B6&target=en".encode(), headers=raw).json()["translatedText"] == "Ä Ö"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"target": "en", "alternatives": 3}, "n_best: 4 is more than this server allows, 3"),
        ({"target": "en", "format": "pdf"}, "format: text 'pdf' is not a choice; the choices are text, html"),
        ({"target": "en", "format": "html", "q": "a < 2 <b"}, "text.html: has a tag or a comment without an end"),
        ({"target": "en", "q": 3}, "q: expected text or a list, found 3"),
        ({"target": "en", "glossary": "a"}, "glossary: is not supported by this server; leave it out"),
        ({}, "target: missing; add this key"),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(value),
)
def test_fields_that_are_wrong_are_refused(address: str, fields: dict[str, Any], message: str) -> None:
    answer = post(address, json={"q": "a", "source": "de", "api_key": KEY, **fields})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(message)


def test_a_file_is_translated_and_can_be_fetched(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.extras.service.answering.MOST_KEPT", 2)
    urls = [upload(address, f"Seite {n}.HTML", f"<p>a <i>b</i> {n}</p>".encode()) for n in range(3)]
    fetched = [httpx.get(answer.json()["translatedFileUrl"], trust_env=False) for answer in urls]
    assert fetched[-1].text == "<p>A <i>B</i> 2</p>"
    assert fetched[-1].headers["content-disposition"].startswith("attachment")
    assert [each.status_code for each in fetched] == [404, 200, 200]  # the oldest is gone


@pytest.mark.parametrize(
    ("name", "content", "fields", "status", "message"),
    [
        ("a.exe", b"a", {}, 422, "file: its name must end in one of .html"),
        ("a.html", b"\xff", {}, 422, "a.html: is not text in utf-8"),
        ("a.html", b"a", {"target": "fr"}, 422, "fr: this model does not translate into it"),
        ("a.html", b"a", {"api_key": "x"}, 401, "the API key is missing or wrong"),
        ("a.docx", packed({"word/document.xml": bytes(66 << 20)}), {}, 422, "a.docx: unpacks to more than a document"),
        ("a.html", bytes(2 << 20), {}, 413, "the body has more than 1048576 bytes"),
        ("a.html", b"<p>" + b"a" * 101, {}, 413, "text 1 has 101 characters, more than 100"),
    ],
    ids=["format", "damaged", "language", "key", "bomb", "large", "long"],
)
def test_files_that_are_refused(
    address: str, name: str, content: bytes, fields: dict[str, str], status: int, message: str
) -> None:
    answer = upload(address, name, content, **fields)
    assert answer.status_code == status
    assert answer.json()["error"].startswith(message)


def test_what_is_not_a_file_or_belongs_elsewhere(address: str) -> None:
    fields = {"target": "en", "api_key": KEY}
    for answer, status, message in (
        (post(address, "/translate_file", data=fields), 422, "file: is missing"),
        (post(address, files={"q": ("q.txt", b"a")}, data=fields), 400, "the body is not a form: it may have one file"),
        (post(address, files={"file": ("a", b"a")}, data={"q": "a", **fields}), 422, "file: does not belong"),
        (post(address, data={"q": "a", **fields}, headers={"Sec-Fetch-Site": "cross-site"}), 415, "the form is of a"),
    ):
        assert answer.status_code == status
        assert answer.json()["error"].startswith(message)
