"""LibreTranslate: ``/translate``, ``/languages``, ``/detect``, ``/translate_file`` and ``/download_file``.

``POST /translate`` has the same path as that of nmt, and is the one whose body has ``q``. Errors and their statuses are
those of nmt, whose form is the same.
"""

from __future__ import annotations

from typing import Any, Literal

from fastapi.responses import Response
from starlette.requests import Request

from nmt.config.structure import Structure
from nmt.extras.service.answering import Service, kept
from nmt.extras.service.batcher import RequestOptions
from nmt.extras.service.messages import Fields, listed, parse, take_file
from nmt.extras.service.protocols import languages

LEAST_PROBABILITY = 0.01
"""Probability from which on ``/detect`` names a language."""


class LibreFileRequest(Structure):
    target: str
    source: str = "auto"


class LibreTextRequest(LibreFileRequest):
    q: str | tuple[str, ...]
    format: Literal["text", "html"] = "text"
    alternatives: int = 0


class DetectRequest(Structure):
    q: str


async def translate(service: Service, request: Request, fields: Fields) -> dict[str, Any]:
    """Answers ``POST /translate`` with ``q``."""
    asked, engine = parse(LibreTextRequest, fields, ()), service.engine
    texts = listed(asked.q)
    options = RequestOptions(1 + asked.alternatives, to=languages.target(engine, asked.source, asked.target))
    sources = [languages.source(engine, asked.source, text) for text in texts]
    ranked = await service.translate(texts, options, None if asked.format == "text" else "html")
    answer: dict[str, list[Any]] = {"translatedText": [best for best, *_ in ranked]}
    if asked.source == "auto":
        answer["detectedLanguage"] = [_confidence(*source) for source in sources]
    if asked.alternatives:
        answer["alternatives"] = [others for _, *others in ranked]
    return {key: values[0] for key, values in answer.items()} if isinstance(asked.q, str) else answer


async def supported(service: Service, request: Request, fields: Fields) -> list[dict[str, Any]]:
    """Answers ``GET /languages``. Clients look up target languages here, too, from which nothing is translated."""
    sources, targets = service.engine.sources, languages.targets(service.engine)
    into = {code: [each for each in targets if each != code and code in sources] for code in (*sources, *targets)}
    return [{"code": code, "name": languages.name(code), "targets": into[code]} for code in into]


async def detect(service: Service, request: Request, fields: Fields) -> list[dict[str, Any]]:
    """Answers ``POST /detect``."""
    probabilities = languages.detect(parse(DetectRequest, fields, ()).q)
    return [_confidence(*each) for each in probabilities.items() if each[1] >= LEAST_PROBABILITY]


async def translate_file(service: Service, request: Request, fields: Fields) -> dict[str, str]:
    """Answers ``POST /translate_file``."""
    file, asked = take_file(fields), parse(LibreFileRequest, fields, ())
    name = service.start_file(*file, RequestOptions(to=languages.target(service.engine, asked.source, asked.target)))
    await kept(service.files, name)
    return {"translatedFileUrl": f"{request.base_url}download_file/{name}"}


async def download_file(service: Service, request: Request, fields: Fields) -> Response:
    """Answers ``GET /download_file/{name}``."""
    name = request.path_params["name"]
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(await kept(service.files, name), media_type="application/octet-stream", headers=headers)


def _confidence(language: str, probability: float) -> dict[str, Any]:
    return {"language": language, "confidence": round(100 * probability, 1)}


ROUTES = {
    "GET /languages": supported,
    "POST /detect": detect,
    "POST /translate_file": translate_file,
    "GET /download_file/{name}": download_file,
}
