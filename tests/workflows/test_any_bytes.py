"""Whatever bytes come in, as many lines go out."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nmt as package
from nmt.core import log
from nmt.search.config import SearchConfig
from nmt.search.hypothesis import Constraint, Hypothesis
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputFormat
from nmt.workflows import translate as workflow

PIECES = [
    b"\n", b"\r\n", b"\r", b" ", b"\t", b"\x00", b"\x0b", b"\x0c", b"\x1c", b"\xe2\x80\xa8", b"\xe2\x80\xa9",
    b"\xc2\x85", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x96\x81", b"Hund", b"Katze und ", b"eins. ",
    b"Z. B. ", b"<b>", b"</b>", b"&amp;", b"{n}", b"%s", b"http://a.b/c?d ", b"12,5", b"?! ", b"x" * 300, b"Hund " * 60,
    *(each.encode() for each in ("é", "e\u0301", "字", "\u202e\u200b", "👩\u200d🚒")),
]  # fmt: skip

TEXTS = st.one_of(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join), st.binary(max_size=60))
FORMATS = st.sampled_from(["text", "tsv", "jsonl"])


class Backwards:
    """An engine that says the source's subwords backwards, at once."""

    def translate_ids(
        self,
        sources: Sequence[Sequence[int]],
        config: SearchConfig,
        *,
        prefixes: Sequence[Sequence[int]] | None = None,
        constraints: Sequence[Sequence[Constraint]] | None = None,
        scored: bool = True,
    ) -> list[tuple[Hypothesis, ...]]:
        assert all(sources)
        return [(Hypothesis(tuple(reversed(source)), -1.0, -1.0),) for source in sources]


def written(translator: Translator, text: bytes, format: OutputFormat, patch: pytest.MonkeyPatch) -> bytes:
    sink = io.BytesIO()
    patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text), isatty=lambda: False))
    patch.setattr(sys, "stdout", SimpleNamespace(buffer=sink, isatty=lambda: False))
    workflow.translate(
        None,
        lambda **_: translator,
        input=None,
        output=None,
        prefix=None,
        constraints=None,
        format=format,
        alignment=False,
        engine="nmt",
        workers=1,
    )
    return sink.getvalue()


def lines_of(text: bytes) -> int:
    text = text.removeprefix(b"\xef\xbb\xbf")  # a byte order mark is not a text
    return text.count(b"\n") + bool(text and not text.endswith(b"\n"))


@pytest.fixture(scope="module")
def translator(trained: Path) -> Iterator[Translator]:
    log.set_verbosity(log.Verbosity.QUIET)
    yield package.load(trained / "run", precision="float32", overrides=["search.beam=1"])
    log.set_verbosity(log.Verbosity.NORMAL)


def check(translator: Translator, text: bytes, format: OutputFormat) -> None:
    with pytest.MonkeyPatch.context() as patch:
        out = written(translator, text, format, patch)
    lines = lines_of(text)
    assert len(out.decode().splitlines()) == lines  # other programs also end a line at U+2028 and the like
    if translator.search.document and format == "text":
        # keeps what the input ends its lines with; U+FEFF at the beginning is text here
        assert out.count(b"\n") + bool(out and not out.endswith(b"\n")) == lines
        return
    assert out.count(b"\n") == lines
    assert out == b"" or out.endswith(b"\n")
    rows = out.decode().split("\n")[:-1]
    if format == "tsv":
        assert [row.split("\t")[:2] for row in rows] == [[str(number), "1"] for number in range(1, lines + 1)]
    if format == "jsonl":
        assert [json.loads(row)["line"] for row in rows] == list(range(1, lines + 1))


@settings(max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
@given(
    text=TEXTS,
    format=st.sampled_from(["text", "tsv", "jsonl"]),
    document=st.booleans(),
    limit=st.sampled_from([3, 1000]),
)
def test_as_many_lines_go_out(
    translator: Translator, text: bytes, format: OutputFormat, document: bool, limit: int
) -> None:
    search = translator.search.model_copy(update={"document": document, "max_source_tokens": limit})
    check(replace(translator, search=search, engine=Backwards()), text, format)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS, format=FORMATS, document=st.booleans())
def test_as_many_lines_go_out_with_markup(
    translator: Translator, text: bytes, format: OutputFormat, document: bool
) -> None:
    search = translator.search.model_copy(update={"markup": True, "document": document, "max_length_ratio": 0.1})
    check(replace(translator, search=search), text, format)
