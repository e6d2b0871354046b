"""Runs against the tags around each word, by hand."""

from __future__ import annotations

from nmt.extras.documents.files.document import TextDocument
from nmt.extras.documents.files.runs import NO_RUN, RunPiece, TextRun, run_spans

PLAIN = TextRun("run", "<r>", "</r>", ("<t>", "</t>"))
SAME = TextRun("run", "<r lang='de'>", "</r>", ("<t>", "</t>"))
BOLD = TextRun("b", "<r><b/>", "</r>", ("<t>", "</t>"))
SOURCE = "<r><t>Ein </t></r><r lang='de'><t>alt</t><img/></r><r><b/><t>er </t></r><a><r><b/><t>Hund</t></r></a>"


def pieces() -> list[RunPiece]:
    def piece(
        kind: str, characters: str, before: TextRun = NO_RUN, after: TextRun = NO_RUN, **fields: object
    ) -> RunPiece:
        begin = SOURCE.index(characters)
        return RunPiece(kind, begin, begin + len(characters), before=before, after=after, **fields)  # type: ignore[arg-type]

    return [
        piece("text", "<r><t>Ein </t></r>", text="Ein ", run=PLAIN),
        piece("text", "<r lang='de'><t>alt</t>", after=SAME, text="alt", run=SAME),
        piece("alone", "<img/></r>", SAME),
        piece("text", "<r><b/><t>er </t></r>", text="er ", run=BOLD),
        piece("open", "<a>", name="a"),
        piece("text", "<r><b/><t>Hund</t></r>", text="Hund", run=BOLD),
        piece("close", "</a>", name="a"),
    ]


def written(translation: str) -> str:
    return TextDocument(SOURCE, list(run_spans(pieces(), "here"))).write([translation]).decode()


def test_formats_are_tags_unless_they_are_usual() -> None:
    (span,) = run_spans(pieces(), "here")
    assert span.block.text == "Ein alt<x2/><x3>er </x3><x6>Hund</x6>"
    assert written(span.block.text) == SOURCE


def test_runs_are_written_where_they_change() -> None:
    assert written("<x6>Dog</x6> <x3>old</x3> & x<x2/>y") == (
        "<a><r><b/><t>Dog</t></r></a><r><t> </t></r><r><b/><t>old</t></r><r><t> &amp; x</t></r>"
        "<r lang='de'><img/></r><r><t>y</t></r>"
    )


def test_a_tag_without_its_partner_divides() -> None:
    divided = [
        RunPiece("close", 0, 0, name="z", divides=True) if piece.kind == "alone" else piece for piece in pieces()
    ]
    assert [span.block.text for span in run_spans(divided, "here")] == ["Ein alt", "er <x1>Hund</x1>"]
    assert list(run_spans([pieces()[2]], "here")) == []
