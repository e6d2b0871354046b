"""OpenAI, for programs that translate with a chat model: ``/v1/chat/completions`` and ``/v1/models``.

The last message of the user is the text; the model follows no instructions, so that other messages have no effect. Nor
have the settings of random draws, since the search draws nothing, and limits of tokens, since a translation is not cut.
A model whose target languages are named is there once for each, as ``MODEL:LANGUAGE``. With ``stream``, one event
has the whole translation.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Any, Literal

from fastapi.responses import Response
from pydantic import Field
from starlette.requests import Request

from nmt.config.structure import Structure
from nmt.extras.service.answering import Service
from nmt.extras.service.batcher import Refused, RequestOptions
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
    texts = [_text(asked.messages)]
    (answer,), (prompt,) = await service.answers(texts, options), service.engine.subwords(texts)
    usage = {"prompt_tokens": prompt, "completion_tokens": answer.tokens, "total_tokens": prompt + answer.tokens}
    head = {"id": f"chatcmpl-{secrets.token_hex(12)}", "created": int(time.time()), "model": asked.model}
    part = "delta" if asked.stream else "message"
    choices = [
        {"index": rank, part: {"role": "assistant", "content": each["text"]}, "finish_reason": "stop"}
        for rank, each in enumerate(answer.tree["translations"])
    ]
    kind = "chat.completion.chunk" if asked.stream else "chat.completion"
    completion = {**head, "object": kind, "choices": choices, "usage": usage}
    if not asked.stream:
        return completion
    return Response(f"data: {json.dumps(completion)}\n\ndata: [DONE]\n\n", media_type="text/event-stream")


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
