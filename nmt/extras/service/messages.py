"""The requests and answers of HTTP: JSON, and forms."""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias
from urllib.parse import parse_qsl

from pydantic import ConfigDict, Field
from pydantic_core import from_json
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from nmt.config.structure import AnyStructure, Structure, validate
from nmt.config.yaml_source import Document
from nmt.data.context import DocumentContext
from nmt.extras.documents.files.formats import FORMATS, is_document
from nmt.extras.service.batcher import Refused, RequestOptions

Fields: TypeAlias = dict[str, Any]
"""The fields of a request: values of JSON, or text of a form, which is a list if the form repeats a field."""


_NOTHING: tuple[Any, ...] = (None, False, [], {})


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
    """API key of all routes but the pages, `GET /health` and `GET /languages`; None means that they need none."""
    grace_s: float = 30.0
    """Time for the requests in the queue when the server is stopped."""

    def check_head(self, headers: Headers) -> None:
        """Refuses the name of another host, by which a page could reach a local server (DNS rebinding; browsers always
        send a name), and two lengths, of which a proxy may use the other one (request smuggling)."""
        name = re.sub(r"\.?(:\d*)?$", "", headers.get("host", "localhost").lower())
        if not (name in self.hosts or "*" in self.hosts or re.fullmatch(r"\d+(\.\d+){3}|\[[\da-f:.]+\]", name)):
            raise Refused(421, "the request's Host is not a name of this server; --allowed-hosts NAME allows it")
        if "content-length" in headers and "transfer-encoding" in headers:
            raise Refused(400, "the request has Content-Length and Transfer-Encoding; send one of them")

    def check_key(self, headers: Headers, api_key: str = "") -> None:
        """Refuses a request without the key, which is in its head or, for LibreTranslate, a field of its body."""
        scheme, _, key = headers.get("authorization", "").partition(" ")
        given = key.strip().encode("latin-1") if scheme.lower() in ("bearer", "deepl-auth-key") else api_key.encode()
        if self.key is not None and not hmac.compare_digest(given, self.key):
            raise Refused(401, "the API key is missing or wrong; send it as Authorization: Bearer KEY")

    async def read_fields(self, request: Request) -> Fields:
        """Reads the query of a request without a body, or a body of JSON or a form."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.method != "POST" and not kind:
            return dict(request.query_params)
        if kind not in ("application/json", "application/x-www-form-urlencoded", "multipart/form-data"):
            raise Refused(415, "the body must be JSON; send it with the header Content-Type: application/json")
        body = await self.read_body(request)
        try:
            if kind == "application/json":
                fields = from_json(body.removeprefix(b"\xef\xbb\xbf"), allow_inf_nan=False)
            elif request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
                raise Refused(415, "the form is of a page of another site, which may only send JSON")
            else:
                fields = await _form(request, kind, body)
        except ValueError as error:
            raise Refused(400, f"the body is not {'a form' if 'form' in kind else 'JSON'}: {error}") from None
        if not isinstance(fields, dict):
            raise Refused(422, 'the body must be a JSON object such as {"text": "…"}')
        return fields

    async def read_body(self, request: Request) -> bytes:
        """Reads a body, up to the limit even if its headers say otherwise."""
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "the body must not be compressed; leave out Content-Encoding")
        what = f"the body has more than {self.body} bytes; send less at once, or raise --max-body of the server"
        too_large = Refused(413, what)
        if int(request.headers.get("content-length", "0")) > self.body:  # h11 has checked that it is a number
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

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns the texts; with ``context`` each knows the preceding ones."""
        return tuple(DocumentContext().sentences(listed(self.text))) if self.context else listed(self.text)

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


def listed(texts: str | tuple[str, ...]) -> tuple[str, ...]:
    """Returns a list of texts, also for a single one."""
    return (texts,) if isinstance(texts, str) else texts


def parse(cls: type[AnyStructure], fields: Fields, unused: Collection[str] | None = None) -> AnyStructure:
    """Parses a request. In another protocol, which has ``unused`` fields, numbers may be text, and null, false and
    empty lists and objects do not count. Raises Refused for a file or a field that is not supported, and InputError."""
    if "file" in fields:
        raise Refused(422, "file: does not belong in this request; POST /translate_file takes one")
    if unused is not None:
        fields = {name: value for name, value in fields.items() if value not in _NOTHING and name not in unused}
        for name in fields.keys() - cls.model_fields.keys():
            raise Refused(422, f"{name}: is not supported by this server; leave it out")
    return validate(cls, Document(fields, {(): "request"}), strict=unused is None)


def take_file(fields: Fields) -> tuple[Path, bytes]:
    """Takes the document out of the fields, and returns its name and content. Raises Refused if there is none."""
    upload = fields.pop("file", None)
    if not isinstance(upload, UploadFile):
        raise Refused(422, "file: is missing; send one in a form, multipart/form-data")
    if not is_document(name := Path(upload.filename or "")):
        raise Refused(422, f"file: its name must end in one of {', '.join(FORMATS)}")
    return name, upload.file.read()


async def _form(request: Request, kind: str, body: bytes) -> Fields:
    """Parses a form; a field that it repeats is a list. Raises ValueError."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    if kind == "multipart/form-data":
        form = await Request(request.scope, receive).form()
    else:  # starlette would read it as Latin-1
        form = FormData([*parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=1000)])
    if [name for name, value in form.multi_items() if isinstance(value, UploadFile)] not in ([], ["file"]):
        raise ValueError("it may have one file, in the field file")
    lists = {name: form.getlist(name) for name in form}
    return {name: values[0] if len(values) == 1 else values for name, values in lists.items()}
