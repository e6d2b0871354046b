"""The requests and answers of HTTP, as JSON."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Self

from pydantic import ConfigDict, Field, field_validator
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from nmt.config.structure import Structure, validate
from nmt.config.yaml_source import Document, Tree, describe
from nmt.core.errors import InputError
from nmt.data.context import DocumentContext
from nmt.extras.service.batcher import RequestOptions


class Refused(Exception):
    """A request that is refused: the status, and one sentence with the reason."""

    def __init__(self, status: int, message: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after_s = status, message, retry_after_s


@dataclass(frozen=True)
class Limits:
    """Limits of requests, connections and clients, and the checks of requests, which raise Refused."""

    body: int = 1 << 20
    """Maximum number of bytes of a body."""
    sentences: int = 256
    characters: int = 2000
    """Maximum number of characters of one text, and also of its subwords, of which ordinary text has fewer."""
    timeout_s: float = 60.0
    """Time for reading a request, again until its answer is ready, and again for the client to receive it."""
    idle_s: int = 15
    """Time limit for a connection without a request, and for the head of a request."""
    connections: int = 1000
    client_connections: int = 500
    """Maximum number of connections from one address."""
    hosts: frozenset[str] = frozenset({"localhost"})
    """Names of the server in lower case, in addition to IP addresses; `*` means any."""
    key: bytes | None = field(default=None, repr=False)
    """API key of `POST /translate` and `GET /metrics`; None means that they need none."""

    def check_head(self, headers: Headers) -> None:
        """Refuses the name of another host, by which a page could reach a local server (DNS rebinding; browsers always
        send a name), and two lengths, of which a proxy may use the other one (request smuggling)."""
        name = re.sub(r"\.?(:\d*)?$", "", headers.get("host", "localhost").lower())
        if not (name in self.hosts or "*" in self.hosts or re.fullmatch(r"\d+(\.\d+){3}|\[[\da-f:.]+\]", name)):
            raise Refused(421, "the request's Host is not a name of this server; --allowed-hosts NAME allows it")
        if "content-length" in headers and "transfer-encoding" in headers:
            raise Refused(400, "the request has Content-Length and Transfer-Encoding; send one of them")

    def check_key(self, headers: Headers) -> None:
        """Refuses a request without the key."""
        scheme, _, key = headers.get("authorization", "").partition(" ")
        given = key.strip().encode("latin-1") if scheme.lower() == "bearer" else b""
        if self.key is not None and not hmac.compare_digest(given, self.key):
            raise Refused(401, "the API key is missing or wrong; send it as Authorization: Bearer KEY")

    async def read_body(self, request: Request) -> bytes:
        """Reads a body of JSON, up to the limit even if its headers say otherwise."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refused(415, "the body must be JSON; send it with the header Content-Type: application/json")
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "the body must not be compressed; leave out Content-Encoding")
        too_large = Refused(413, f"the body has more than {self.body} bytes; send fewer or shorter texts at once")
        length = request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal()):
            raise Refused(400, "the header Content-Length is not a number")
        if len(length) > 18 or int(length) > self.body:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self.timeout_s):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self.body:
                        raise too_large
        except TimeoutError:
            raise Refused(408, f"the body did not come within {self.timeout_s:g} s") from None
        except ClientDisconnect:
            raise Refused(499, "the client has gone away") from None
        return bytes(body)

    def check_texts(self, texts: Sequence[str]) -> None:
        """Refuses too much text."""
        if len(texts) > self.sentences:
            raise Refused(413, f"{len(texts)} texts are more than {self.sentences}; send them in several requests")
        self.check_lengths(map(len, texts), "characters")

    def check_lengths(self, lengths: Iterable[int], unit: str) -> None:
        """Refuses texts of which one is too long."""
        for number, length in enumerate(lengths, 1):
            if length > self.characters:
                what = f"text {number} has {length} {unit}, more than {self.characters}"
                raise Refused(413, f"{what}; split it into sentences")


class _Message(Structure):
    """A message that the OpenAPI description shows with the docstrings of its fields."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class TranslateRequest(_Message):
    """The request of `POST /translate`."""

    text: str | tuple[str, ...]
    """One or several texts; each is translated line by line, like the lines of `nmt translate`."""
    n_best: Annotated[int, Field(ge=1)] | None = None
    """Number of translations of each text, best first, at most the number of the server's beams; null means the
    configured number."""
    beam: Annotated[int, Field(ge=1)] | None = None
    """Beam size, at most the server's; null means the server's."""
    alignment: bool = False
    """Return the links and the soft matrix of each translation."""
    to: str | None = None
    """Target language, one of `targets` in `GET /health`; null means the server's, or the model's only one."""
    context: bool = False
    """Read the texts as sentences of a document, in order: each is translated with those before it, up to a blank
    one."""

    @field_validator("text", mode="before")
    @classmethod
    def _one_text_or_several(cls, value: Tree) -> Tree | tuple[Tree, ...]:
        if not isinstance(value, (str, list)):
            raise ValueError(f"must be text or a list of texts, not {describe(value)}")
        for number, each in enumerate(value, 1):
            if not isinstance(each, str):
                raise ValueError(f"number {number} of the list is {describe(each)}; each must be text")
        return value if isinstance(value, str) else tuple(value)

    @classmethod
    def parse(cls, body: bytes) -> Self:
        """Parses a request. Raises Refused with 400 for text that is not JSON, and with 422 for JSON of another
        form."""
        tree = _tree(body)
        if not isinstance(tree, dict):
            raise Refused(422, 'the body must be a JSON object such as {"text": "…"}')
        try:
            return validate(cls, Document(tree, {(): "request"}))
        except InputError as error:
            raise Refused(422, str(error).removeprefix("request: ")) from None

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns the list of texts, also for a single one; with ``context`` each knows the preceding ones."""
        texts = (self.text,) if isinstance(self.text, str) else self.text
        return tuple(DocumentContext().sentences(texts)) if self.context else texts

    @property
    def options(self) -> RequestOptions:
        """Returns the options for each text."""
        return RequestOptions(self.n_best, self.beam, self.alignment, self.to, self.context)


class AlignmentAnswer(_Message):
    """The alignment of a translation, between words; all indices count from 0."""

    source_words: list[str]
    target_words: list[str]
    links: list[tuple[int, int]]
    """Pairs of a source word and a target word."""
    level: str
    source_tokens: list[str]
    target_tokens: list[str]
    weights: list[list[float]]
    """Weight of each source token, for each target token."""


class TranslationAnswer(_Message):
    """One translation of a text."""

    text: str
    score: float
    """Score by which translations are ranked."""
    log_prob: float
    """Natural logarithm of its probability under the model."""
    tokens: list[str]
    """Subwords of the translation."""
    alignment: AlignmentAnswer | None = None
    """Alignment, only with ``alignment``; null for a text or translation that is too long to be aligned."""


class Result(_Message):
    """The translations of one text."""

    line: int
    """Number of the line in the request, from 1."""
    source: str
    translations: list[TranslationAnswer]


class TranslateAnswer(_Message):
    """The answer of `POST /translate`."""

    results: list[Result]
    """One result for each text, in order."""
    warnings: list[str]
    """Notes on the parts of texts that were left out, with their lines."""


class HealthAnswer(_Message):
    """The state of the server."""

    status: str
    """State of the server: loading, ready or draining."""
    model: str | None
    """Name of the model, once it is loaded."""
    alignment: bool | None
    """True if the model can align translations; known once it is loaded."""
    languages: tuple[str, str] | None
    """The source and the target language, according to its configuration or the names of its corpus files."""
    targets: list[str] | None
    """The target languages that a request may choose from; empty for a model without languages."""
    context: int | None
    """The number of previous sentences that the model reads; 0 for a model of single sentences."""


class ErrorAnswer(_Message):
    """The reason why a request is refused."""

    error: str


def _tree(body: bytes) -> Tree:
    try:
        text = body.decode("utf-8-sig")
        tree: Tree = json.loads(text, parse_constant=_no_number)
        json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise Refused(400, f"the body is not UTF-8 at byte {error.start + 1}") from None
    except UnicodeEncodeError:
        raise Refused(400, "the body has half of a surrogate pair, which is not a character") from None
    except json.JSONDecodeError as error:
        raise Refused(400, f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise Refused(400, "the body is nested too deeply") from None
    except ValueError as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    return tree


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")
