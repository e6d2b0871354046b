"""The protocol of OpenAI, spoken by its Python client."""

from __future__ import annotations

from typing import Any

import pytest

from tests.extras.service.protocols.conftest import KEY

openai = pytest.importorskip("openai")

MESSAGES = [
    {"role": "system", "content": "You are a translator."},
    {"role": "user", "content": "Die Katze"},
    {"role": "assistant", "content": "The cat"},
    {"role": "user", "content": [{"type": "text", "text": "Der Hund\n"}, {"type": "text", "text": "  bellt"}]},
]


@pytest.fixture
def client(address: str) -> Any:
    return openai.OpenAI(api_key=KEY, base_url=f"{address}/v1", max_retries=0)


def test_its_client_completes_with_the_translation(client: Any) -> None:
    answer = client.chat.completions.create(
        model="de-en/best", messages=MESSAGES, n=2, temperature=0.3, max_tokens=5, logprobs=False,
        response_format={"type": "text"},
    )  # fmt: skip
    contents = [(choice.message.content, choice.finish_reason) for choice in answer.choices]
    assert contents == [("DER HUND\n  BELLT", "stop"), ("DER HUND\n  BELLT!", "stop")]
    assert answer.model == "de-en/best"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (3, 2, 5)


def test_its_client_reads_a_stream(client: Any) -> None:
    create = client.chat.completions.create
    chunks = list(create(model="de-en/best", messages=MESSAGES, stream=True, stream_options={"include_usage": True}))
    texts = [choice.delta.content for chunk in chunks for choice in chunk.choices]
    assert texts == ["DER", " HUND\n  BELLT"]
    assert [choice.finish_reason for chunk in chunks for choice in chunk.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens == 5
    raw = client.chat.completions.with_raw_response.create(model="de-en/best", messages=MESSAGES, stream=True)
    assert raw.headers["content-type"].startswith("text/event-stream")
    assert raw.http_response.read().endswith(b"\n\ndata: [DONE]\n\n")


def test_models(client: Any) -> None:
    assert [(model.id, model.owned_by) for model in client.models.list()] == [("de-en/best", "nmt")]


@pytest.mark.parametrize(
    ("options", "error", "code", "message"),
    [
        ({"model": "gpt"}, openai.NotFoundError, "model_not_found", "model: gpt is not here; use one of de-en/best"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, openai.BadRequestError, None, "tools: is not"),
        ({"response_format": {"type": "json_object"}}, openai.BadRequestError, None, "response_format.type: text"),
        ({"stop": "."}, openai.BadRequestError, None, "stop: is not supported by this server"),
        ({"logprobs": True}, openai.BadRequestError, None, "logprobs: is not supported by this server"),
        ({"n": 4}, openai.BadRequestError, None, "n_best: 4 is more than this server allows, 3"),
        ({"messages": MESSAGES[:1]}, openai.BadRequestError, None, "messages: the last one of the user must be text"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a"}}]}]},
            openai.BadRequestError,
            None,
            "messages: the last one of the user must be text",
        ),
        (
            {"messages": [{"role": "user", "content": "a" * 101}]},
            openai.BadRequestError,
            "context_length_exceeded",
            "text 1 has 101 characters, more than 100; split it into sentences",
        ),
        ({"messages": [{"role": "user", "content": "fail"}]}, openai.InternalServerError, None, "the model failed"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_its_client_is_refused_in_its_form(
    client: Any, options: dict[str, Any], error: type[Exception], code: str | None, message: str
) -> None:
    with pytest.raises(error) as caught:
        client.chat.completions.create(**{"model": "de-en/best", "messages": MESSAGES, **options})
    body: Any = caught.value.body  # type: ignore[attr-defined]
    assert set(body) == {"message", "type", "param", "code"}
    assert body["message"].startswith(message)
    assert body["code"] == code


def test_a_wrong_key_and_what_is_not_there(address: str, client: Any) -> None:
    with pytest.raises(openai.AuthenticationError) as error:
        openai.OpenAI(api_key="wrong", base_url=f"{address}/v1").models.list()
    assert error.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError, match="there is nothing at this path"):
        client.embeddings.create(model="de-en/best", input="a")


def test_its_client_tries_again_when_the_server_says(client: Any) -> None:
    busy = [{"role": "user", "content": "busy openai"}]
    with pytest.raises(openai.RateLimitError) as error:
        client.chat.completions.create(model="de-en/best", messages=busy)
    assert error.value.type == "rate_limit_error"
    assert error.value.response.headers["retry-after"] == "1"
    busy[0]["content"] += " 2"
    answer = client.with_options(max_retries=1).chat.completions.create(model="de-en/best", messages=busy)
    assert answer.choices[0].message.content == "BUSY OPENAI 2"
