"""The routes: HTTP in, jobs for the batcher, JSON out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.core import log
from nmt.core.errors import InputError
from nmt.extras.service.batcher import Answer, Batcher, Closed, Failed, Full
from nmt.extras.service.messages import ErrorAnswer, HealthAnswer, Limits, Refused, TranslateAnswer, TranslateRequest
from nmt.extras.service.metrics import ServerMetrics

PAGES = {
    "/": ("index.html", "text/html"),
    "/docs": ("api.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/api.js": ("api.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
"""Files of the page by their paths in the address, with their types."""

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
    _add_translate(app, batcher, limits)
    _add_state(app, batcher, limits, metrics)
    folder, common = files("nmt.extras.service") / "page", files("nmt.extras.pages") / "page"
    shared = {"text/css": common / "style.css", "text/javascript": common / "common.js"}
    for path, (name, kind) in PAGES.items():
        content = b"".join(file.read_bytes() for file in (shared.get(kind), folder / name) if file is not None)
        route = app.api_route(path, methods=["GET", "HEAD"], response_model=None, include_in_schema=False)
        route(partial(_page, content, kind))
    return app


def _add_translate(app: FastAPI, batcher: Batcher, limits: Limits) -> None:
    responses: dict[int | str, dict[str, Any]] = {
        200: {"model": TranslateAnswer, "description": "One result for each text, in order."},
        **{status: {"model": ErrorAnswer, "description": what} for status, what in _ERRORS.items()},
    }
    content = {"application/json": {"schema": TranslateRequest.model_json_schema()}}

    @app.post(
        "/translate",
        summary="Translate one text or several.",
        response_model=None,
        responses=responses,
        openapi_extra={"requestBody": {"required": True, "content": content}},
    )
    async def translate(request: Request) -> JSONResponse:
        limits.check_key(request.headers)
        message = TranslateRequest.parse(await limits.read_body(request))
        limits.check_texts(message.texts)
        answers = await _answered(request, batcher, message, limits)
        return await asyncio.to_thread(JSONResponse, _tree(answers))  # writing many matrices takes time


def _add_state(app: FastAPI, batcher: Batcher, limits: Limits, metrics: ServerMetrics) -> None:
    @app.head("/health", include_in_schema=False)
    @app.get(
        "/health",
        summary="Whether the server takes requests.",
        response_model=HealthAnswer,
        response_description="It does.",
        responses={503: {"model": HealthAnswer, "description": "Not yet or no more."}},
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


async def _page(content: bytes, kind: str) -> Response:
    return Response(content, media_type=kind)


async def _unknown(request: Request, error: HTTPException) -> JSONResponse:
    what = {404: "there is nothing at this path", 405: "this path does not take this method"}
    return _error(error.status_code, what.get(error.status_code, error.detail), error.headers)


async def _fault(request: Request, error: Exception) -> JSONResponse:
    return _error(500, "a fault of the server; its log says more")


async def _answered(request: Request, batcher: Batcher, message: TranslateRequest, limits: Limits) -> list[Answer]:
    """Waits for the answers to a request. Raises Refused if they do not arrive, and then drops the rest of the job; if
    no model is loaded yet or any longer; and for options that the model does not support."""
    try:
        if batcher.state == "draining":
            raise Closed
        if (engine := batcher.engine) is None:
            raise Refused(503, "the server is loading its model; try again", retry_after_s=2)
        engine.check(message.options)
        subwords = await asyncio.to_thread(engine.subwords, message.texts)
        limits.check_lengths(subwords, "subwords")
        job = batcher.submit(message.texts, message.options, subwords)
        answers, gone = asyncio.wrap_future(job.future), asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait((answers, gone), timeout=limits.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if answers.done():
                return answers.result()
            if gone.done():
                raise Refused(499, "the client has gone away")
        finally:
            gone.cancel()
            answers.cancel()
            batcher.cancel(job)
    except InputError as error:
        raise Refused(422, str(error)) from None
    except Full as error:
        raise Refused(429, str(error), retry_after_s=error.retry_after_s) from None
    except Failed:
        raise Refused(500, "the model failed on this request or one beside it; the server's log says more") from None
    except Closed:
        raise Refused(503, "the server is shutting down; try again", retry_after_s=2) from None
    what = f"no answer within {limits.timeout_s:g} s; send less at once, or try again later"
    raise Refused(503, what, retry_after_s=2)


async def _gone(request: Request) -> None:
    """Returns when the client has disconnected."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _tree(answers: Sequence[Answer]) -> dict[str, object]:
    """Builds the tree that ``TranslateAnswer`` describes."""
    numbered = list(enumerate(answers, 1))
    warnings = [f"line {number}: {answer.warning}" for number, answer in numbered if answer.warning is not None]
    return {"results": [{"line": number, **answer.tree} for number, answer in numbered], "warnings": warnings}


def _refusal(error: Refused) -> JSONResponse:
    headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if error.status in (400, 401, 408, 413, 415, 421):
        headers["Connection"] = "close"  # the rest of the body is not read
    return _error(error.status, error.message, headers)


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)


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
            await _refusal(error)(scope, receive, sent)
        finally:
            seconds = time.monotonic() - began
            path = getattr(scope.get("route"), "path", "other")  # any other path would be a label of its own
            self._metrics.request(path, status, seconds)
            written = scope["raw_path"].decode("latin-1")  # with %0A and the like unchanged
            log.detail(f"{scope['method']} {written} {status} {1000 * seconds:.0f} ms")
