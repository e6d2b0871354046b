"""The routes: HTTP in, jobs for the batcher, JSON out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.core import log
from nmt.core.errors import InputError
from nmt.extras.service import messages
from nmt.extras.service.answering import Service
from nmt.extras.service.batcher import Batcher, Refused
from nmt.extras.service.messages import Fields, Limits
from nmt.extras.service.metrics import ServerMetrics
from nmt.extras.service.protocols import deepl, libretranslate, openai

_EXTRAS = Path(__file__).parents[1]

_FILES = [*_EXTRAS.glob("service/page/*.*"), _EXTRAS / "pages/page/style.css", _EXTRAS / "pages/page/common.js"]

PAGES = {f"/{file.name}": file for file in _FILES}
"""Files of the pages by their paths in the address."""

OPEN = (libretranslate.supported, libretranslate.download_file)
"""Handlers that need no key, as in LibreTranslate; the address of a translated file is secret."""

ERROR_FORMS = {"v1": openai.error, "v2": deepl.error, "v3": deepl.error}
"""The forms of refusals by the first part of a path; those of all others are nmt's."""

_ERRORS = {
    400: "The body is not JSON.",
    401: "The API key is missing or wrong.",
    408: "The body did not come in time.",
    413: "The body, the number of texts or a text is too large.",
    415: "The body is not said to be JSON.",
    421: "The header Host names another server.",
    422: "The JSON asks for what is not there.",
    429: "The queue is full; Retry-After says when to try again.",
    500: "The model failed.",
    503: "The model is not loaded yet, the server is shutting down, or the answer did not come in time.",
}

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)


def create_app(batcher: Batcher, limits: Limits, metrics: ServerMetrics) -> FastAPI:
    """Creates the application around a batcher, which the caller starts and ends."""
    handlers: Any = {HTTPException: _unknown, Exception: _fault}
    unused: dict[str, Any] = {"docs_url": None, "redoc_url": None, "redirect_slashes": False}
    app = FastAPI(title="nmt serve", version="1", exception_handlers=handlers, **unused)
    app.add_middleware(_Watched, limits=limits, metrics=metrics)
    metrics.queue.set_function(lambda: batcher.pending)
    service = Service(batcher, limits)
    _add_translate(app, service)
    _add_state(app, batcher, limits, metrics)
    hidden: Any = {"response_model": None, "include_in_schema": False}
    for route, handler in {**libretranslate.ROUTES, **deepl.ROUTES, **openai.ROUTES}.items():
        method, path = route.split()
        app.add_api_route(path, _endpoint(service, handler), methods=[method], **hidden)
    for path, file in {**PAGES, "/": PAGES["/index.html"], "/docs": PAGES["/api.html"]}.items():
        app.add_api_route(path, partial(_page, file), methods=["GET", "HEAD"], **hidden)
    return app


def _add_translate(app: FastAPI, service: Service) -> None:
    responses: dict[int | str, dict[str, Any]] = {
        200: {"model": messages.TranslateAnswer, "description": "One result for each text, in order."},
        **{status: {"model": messages.ErrorAnswer, "description": what} for status, what in _ERRORS.items()},
    }
    content = {"application/json": {"schema": messages.TranslateRequest.model_json_schema()}}
    shown: Any = {"responses": responses, "openapi_extra": {"requestBody": {"required": True, "content": content}}}
    add = app.post("/translate", summary="Translate one text or several.", response_model=None, **shown)
    add(_endpoint(service, _translate))


async def _translate(service: Service, request: Request, fields: Fields) -> object:
    if "q" in fields:
        return await libretranslate.translate(service, request, fields)
    message = messages.parse(messages.TranslateRequest, fields)
    answers = list(enumerate(await service.answers(message.texts, message.options), 1))
    warnings = [f"line {number}: {answer.warning}" for number, answer in answers if answer.warning is not None]
    return {"results": [{"line": number, **answer.tree} for number, answer in answers], "warnings": warnings}


def _endpoint(service: Service, handler: Callable[..., Awaitable[object]]) -> Callable[..., Awaitable[Response]]:
    """Returns the function that answers requests with a handler. It raises Refused if the answer takes too long or
    nobody waits for it, and then cancels the handler."""

    async def respond(request: Request) -> Response:
        fields = await service.limits.read_fields(request)
        if handler not in OPEN:
            service.limits.check_key(request.headers, str(fields.pop("api_key", "")))
        answer, gone = asyncio.ensure_future(handler(service, request, fields)), asyncio.ensure_future(_gone(request))
        try:
            timeout_s = service.limits.timeout_s
            await asyncio.wait((answer, gone), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and not answer.done():
                raise Refused(499, "the client has gone away")
            if not answer.done() or answer.cancelled():
                what = f"no answer within {timeout_s:g} s; send less at once, or try again later"
                raise Refused(503, what, retry_after_s=2)
            tree = answer.result()
        except InputError as error:
            raise Refused(422, str(error).replace("request: ", "")) from None
        finally:
            gone.cancel()
            answer.cancel()
        # writing many matrices takes time
        return tree if isinstance(tree, Response) else await asyncio.to_thread(JSONResponse, tree)

    return respond


def _add_state(app: FastAPI, batcher: Batcher, limits: Limits, metrics: ServerMetrics) -> None:
    @app.head("/health", include_in_schema=False)
    @app.get(
        "/health",
        summary="Whether the server takes requests.",
        response_model=messages.HealthAnswer,
        response_description="It does.",
        responses={503: {"model": messages.HealthAnswer, "description": "Not yet or no more."}},
    )
    async def health() -> JSONResponse:
        engine = batcher.engine
        names = {"model": "name", "alignment": "aligns", **{name: name for name in ("languages", "targets", "context")}}
        answer = {field: engine and getattr(engine, name) for field, name in names.items()}
        return JSONResponse({"status": batcher.state, **answer}, 200 if batcher.state == "ready" else 503)

    @app.get(
        "/metrics",
        summary="What the server counts.",
        response_class=PlainTextResponse,
        response_description="The text format of Prometheus.",
    )
    async def counts(request: Request) -> Response:
        limits.check_key(request.headers)
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _page(file: Path) -> Response:
    return FileResponse(file)


async def _unknown(request: Request, error: HTTPException) -> JSONResponse:
    what = {404: "there is nothing at this path", 405: "this path does not take this method"}
    return _error(request.scope, error.status_code, what.get(error.status_code, error.detail), error.headers)


async def _fault(request: Request, error: Exception) -> JSONResponse:
    return _error(request.scope, 500, "a fault of the server; its log says more")


async def _gone(request: Request) -> None:
    """Returns when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _refusal(scope: Scope, error: Refused) -> JSONResponse:
    headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in (400, 401, 408, 413, 415, 421):
        headers["Connection"] = "close"  # the rest of the body is not read
    return _error(scope, error.status, error.message, headers)


def _error(scope: Scope, status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Writes a refusal in the form of the protocol."""
    form = ERROR_FORMS.get(scope["path"].lstrip("/").partition("/")[0])
    status, tree = form(status, message) if form else (status, {"error": message})
    return JSONResponse(tree, status, headers)


class _Watched:
    """Middleware around all routes: the check of the head, headers that isolate a page, and counts."""

    def __init__(self, app: ASGIApp, limits: Limits, metrics: ServerMetrics) -> None:
        self._app, self._limits, self._metrics = app, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *_HEADERS]
            await send(message)

        try:
            self._limits.check_head(Headers(scope=scope))
            await self._app(scope, receive, sent)
        except Refused as error:
            await _refusal(scope, error)(scope, receive, sent)
        finally:
            seconds = time.monotonic() - began
            path = getattr(scope.get("route"), "path", "other")  # any other path would be a label of its own
            self._metrics.request(path, status, seconds)
            written = scope["raw_path"].decode("latin-1")  # with %0A and the like unchanged
            log.detail(f"{scope['method']} {written} {status} {1000 * seconds:.0f} ms")
