"""DeepL, version 2: ``/v2/translate``, ``/v2/document``, ``/v2/glossaries``, ``/v2/languages`` and ``/v2/usage``.

A language without a variant is also any of its variants: a model into ``en`` translates into ``EN-GB`` and ``EN-US``.
Line ends separate sentences, unless ``split_sentences`` says otherwise, or in XML. Formality that is only preferred has
no effect, as in languages that lack it. A term of a glossary may have several translations, separated by ``|``, and
glossaries are kept until the server stops.
"""

from __future__ import annotations

import csv
import uuid
from datetime import UTC, datetime
from typing import Any, Literal

from fastapi.responses import JSONResponse, Response
from starlette.requests import Request

from nmt.config.structure import Structure
from nmt.extras.documents.glossary import parse_glossary
from nmt.extras.service.answering import MOST_KEPT, Service, kept
from nmt.extras.service.batcher import Refused, RequestOptions
from nmt.extras.service.messages import Fields, listed, parse, take_file
from nmt.extras.service.protocols import languages

_VARIANTS = {"en": ("en-GB", "en-US"), "pt": ("pt-BR", "pt-PT")}
"""Target languages that DeepL's clients accept only with a variant."""

_UNUSED = ("preserve_formatting", "outline_detection", "show_billed_characters", "tag_handling_version")
"""Fields without effect: formatting is always kept, and characters always counted."""


class DeepLRequest(Structure):
    target_lang: str
    source_lang: str = "auto"
    formality: Literal["default", "prefer_more", "prefer_less"] = "default"
    glossary_id: str | None = None

    def options(self, service: Service) -> RequestOptions:
        """Returns the options for each text. Raises Refused for languages or a glossary that are not here."""
        to = languages.target(service.engine, self.source_lang, self.target_lang)
        if self.glossary_id is None:
            return RequestOptions(to=to)
        return RequestOptions(to=to, glossary=kept(service.glossaries, self.glossary_id)[1])


class DeepLTextRequest(DeepLRequest):
    text: str | tuple[str, ...]
    tag_handling: Literal["html", "xml"] | None = None
    split_sentences: Literal["0", "1", "nonewlines"] | None = None


class GlossaryRequest(Structure):
    name: str
    source_lang: str
    target_lang: str
    entries: str
    entries_format: Literal["csv", "tsv"]


def error(status: int, message: str) -> tuple[int, dict[str, Any]]:
    """Returns the status and the tree of a refusal."""
    return {401: 403, 415: 400, 422: 400}.get(status, status), {"message": message}


async def translate(service: Service, request: Request, fields: Fields) -> dict[str, Any]:
    """Answers ``POST /v2/translate``."""
    asked = parse(DeepLTextRequest, fields, _UNUSED)
    texts = listed(asked.text)
    if (asked.split_sentences or ("nonewlines" if asked.tag_handling == "xml" else "1")) != "1":
        texts = tuple(text.replace("\n", " ") for text in texts)
    translated = await service.translate(texts, asked.options(service), asked.tag_handling)
    service.characters += sum(map(len, texts))
    sources = [languages.source(service.engine, asked.source_lang, text)[0].upper() for text in texts]
    answers = [
        {"text": best, "detected_source_language": source, "billed_characters": len(text)}
        for text, source, (best, *_) in zip(texts, sources, translated, strict=True)
    ]
    return {"translations": answers}


async def supported(service: Service, request: Request, fields: Fields) -> list[dict[str, Any]]:
    """Answers ``GET /v2/languages``."""
    codes = [*service.engine.sources]
    if fields.get("type") == "target":
        codes = [variant for code in languages.targets(service.engine) for variant in _VARIANTS.get(code, [code])]
    return [{"language": code.replace("_", "-").upper(), "name": languages.name(code)} for code in codes]


async def usage(service: Service, request: Request, fields: Fields) -> dict[str, int]:
    """Answers ``GET /v2/usage``, with the limit of DeepL where there is none."""
    return {"character_count": service.characters, "character_limit": 10**12}


async def start_document(service: Service, request: Request, fields: Fields) -> dict[str, str]:
    """Answers ``POST /v2/document``. The identifier of a document cannot be guessed and is its key, too."""
    file, asked = take_file(fields), parse(DeepLRequest, fields, _UNUSED)
    name = service.start_file(*file, asked.options(service))
    return {"document_id": name, "document_key": name}


async def document_status(service: Service, request: Request, fields: Fields) -> dict[str, Any]:
    """Answers ``POST /v2/document/{id}``."""
    task = kept(service.files, request.path_params["id"])
    failure = task.exception() if task.done() else None
    status = "error" if failure else "done" if task.done() else "translating"
    message = failure and (str(failure) or "it took longer than the server allows")
    return {"document_id": request.path_params["id"], "status": status, "error_message": message}


async def document_result(service: Service, request: Request, fields: Fields) -> Response:
    """Answers ``POST /v2/document/{id}/result``."""
    return Response(await kept(service.files, request.path_params["id"]), media_type="application/octet-stream")


async def create_glossary(service: Service, request: Request, fields: Fields) -> Response:
    """Answers ``POST /v2/glossaries``."""
    asked = parse(GlossaryRequest, fields, _UNUSED)
    languages.target(service.engine, asked.source_lang, asked.target_lang)
    if len(service.glossaries) >= MOST_KEPT:
        raise Refused(413, f"there are {MOST_KEPT} glossaries; delete one")
    rows = csv.reader(asked.entries.splitlines()) if asked.entries_format == "csv" else [[asked.entries]]
    glossary = parse_glossary("\n".join("\t".join(row) for row in rows).encode(), "entries")
    about = asked.model_dump(exclude={"entries", "entries_format"}) | {
        "glossary_id": str(uuid.uuid4()), "ready": True, "entry_count": len(glossary.terms),
        "creation_time": datetime.now(UTC).isoformat(),
    }  # fmt: skip
    service.glossaries[about["glossary_id"]] = about, glossary
    return JSONResponse(about, 201)


async def glossaries(service: Service, request: Request, fields: Fields) -> dict[str, Any]:
    """Answers ``GET /v2/glossaries``."""
    return {"glossaries": [about for about, _ in service.glossaries.values()]}


async def one_glossary(service: Service, request: Request, fields: Fields) -> dict[str, Any]:
    """Answers ``GET /v2/glossaries/{id}``."""
    return kept(service.glossaries, request.path_params["id"])[0]


async def glossary_entries(service: Service, request: Request, fields: Fields) -> Response:
    """Answers ``GET /v2/glossaries/{id}/entries``."""
    _, glossary = kept(service.glossaries, request.path_params["id"])
    lines = "\n".join(f"{term.source}\t{'|'.join(term.targets)}" for term in glossary.terms)
    return Response(lines, media_type="text/tab-separated-values")


async def delete_glossary(service: Service, request: Request, fields: Fields) -> Response:
    """Answers ``DELETE /v2/glossaries/{id}``."""
    about, _ = kept(service.glossaries, request.path_params["id"])
    del service.glossaries[about["glossary_id"]]
    return Response(status_code=204)


ROUTES = {
    "POST /v2/translate": translate, "GET /v2/languages": supported, "GET /v2/usage": usage,
    "POST /v2/document": start_document, "POST /v2/document/{id}": document_status,
    "POST /v2/document/{id}/result": document_result,
    "POST /v2/glossaries": create_glossary, "GET /v2/glossaries": glossaries, "GET /v2/glossaries/{id}": one_glossary,
    "GET /v2/glossaries/{id}/entries": glossary_entries, "DELETE /v2/glossaries/{id}": delete_glossary,
}  # fmt: skip
