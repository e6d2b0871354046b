"""OpenAI, for programs that translate with a chat model: ``/v1/chat/completions`` and ``/v1/models``.

The last message of the user is the text; the model follows no instructions, so that other messages have no effect. Nor
have the settings of random draws, since the search draws nothing, and limits of tokens, since a translation is not cut.
A model whose target languages are named is there once for each, as ``MODEL:LANGUAGE``. With ``stream``, events
have the words of the translation as soon as no other can take their place.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Literal

from fastapi.responses import Response, StreamingResponse
from pydantic import Field
from starlette.requests import Request

from nmt.config.structure import Structure
from nmt.extras.service.answering import Service
from nmt.extras.service.batcher import Answer, Refused, RequestOptions
from nmt.extras.service.messages import Fields, parse

_UNUSED = (
    "temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "max_tokens", "max_completion_tokens",
    "user", "metadata", "store", "reasoning_effort", "parallel_tool_calls", "stream_options",
)  # fmt: skip

_CODES = {401: "invalid_api_key", 404: "model_not_found", 413: "context_length_exceeded", 429: "rate_limit_exceeded"}


class ChatRequest(Structure):
    model: str
    messages: tuple[dict[str, Any], ...]
    n: int = 1
    stream: bool = False
    response_format: dict[Literal["type"], Literal["text"]] = Field(default_factory=dict)


def error(status: int, message: str) -> tuple[int, dict[str, Any]]:
    """Returns the status and the tree of a refusal."""
    kind = "rate_limit_error" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    about = {"message": message, "type": kind, "param": None, "code": _CODES.get(status)}
    return {413: 400, 415: 400, 422: 400}.get(status, status), {"error": about}


async def complete(service: Service, request: Request, fields: Fields) -> dict[str, Any] | Response:
    """Answers ``POST /v1/chat/completions``."""
    asked, targets = parse(ChatRequest, fields, _UNUSED), _targets(service)
    if asked.model not in targets:
        raise Refused(404, f"model: {asked.model} is not here; use one of {', '.join(targets)}")
    options = RequestOptions(asked.n, to=targets[asked.model], document=True)
    text = _text(asked.messages)
    head = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time()), "model": asked.model}
    if asked.stream:
        parts = service.parts(text, options)
        first = await anext(parts)  # until then a refusal has its status
        (prompt,) = service.engine.subwords([text])
        return StreamingResponse(_events(service, head, prompt, first, parts), media_type="text/event-stream")
    (answer,), (prompt,) = await service.answers([text], options), service.engine.subwords([text])
    contents = [each["text"] for each in answer.tree["translations"]]
    return {**head, "object": "chat.completion", **_choices("message", contents, "stop"), **_usage(prompt, answer)}


async def _events(
    service: Service, head: Fields, prompt: int, part: str | Answer, parts: AsyncIterator[str | Answer]
) -> AsyncIterator[str]:
    """Writes a chunk for each part of a translation, and a last one with the rest of it and its alternatives."""
    chunk, sent = {**head, "object": "chat.completion.chunk"}, ""
    try:
        while isinstance(part, str):
            yield _event({**chunk, **_choices("delta", [part], None)})
            sent += part
            async with asyncio.timeout(service.limits.timeout_s):
                part = await anext(parts)
        best, *others = (each["text"] for each in part.tree["translations"])
        contents = [best.removeprefix(sent), *others]
        yield _event({**chunk, **_choices("delta", contents, "stop"), **_usage(prompt, part)})
    except (Refused, TimeoutError) as refusal:
        yield _event(error(503, str(refusal) or "the rest of the translation did not come in time")[1])
    yield "data: [DONE]\n\n"


def _event(tree: Fields) -> str:
    return f"data: {json.dumps(tree)}\n\n"


def _choices(part: str, contents: Sequence[str], reason: str | None) -> Fields:
    messages = [{"role": "assistant", "content": content} for content in contents]
    choices = [{"index": rank, part: message, "finish_reason": reason} for rank, message in enumerate(messages)]
    return {"choices": choices}


def _usage(prompt: int, answer: Answer) -> Fields:
    counts = {"prompt_tokens": prompt, "completion_tokens": answer.tokens, "total_tokens": prompt + answer.tokens}
    return {"usage": counts}


async def models(service: Service, request: Request, fields: Fields) -> dict[str, Any]:
    """Answers ``GET /v1/models``."""
    about = [{"id": name, "object": "model", "created": 0, "owned_by": "nmt"} for name in _targets(service)]
    return {"object": "list", "data": about}


def _targets(service: Service) -> dict[str, str | None]:
    """Returns the target language of each name of the model."""
    engine = service.engine
    return {f"{engine.name}:{language}": language for language in engine.targets} or {engine.name: None}


def _text(messages: tuple[dict[str, Any], ...]) -> str:
    """Returns the last message of the user. Raises Refused if there is none, or if it is not text."""
    content = next((each.get("content") for each in reversed(messages) if each.get("role") == "user"), None)
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    if len(texts) < len(parts):
        raise Refused(422, "messages: the last one of the user must be text, and nothing else")
    return "".join(texts)


ROUTES = {"POST /v1/chat/completions": complete, "GET /v1/models": models}
