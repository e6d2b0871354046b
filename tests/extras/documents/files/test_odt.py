"""Documents of OpenDocument, against odfpy and lxml."""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest
from lxml import etree
from odf.draw import Frame, Page, TextBox
from odf.office import Annotation
from odf.opendocument import OpenDocument, OpenDocumentPresentation, OpenDocumentSpreadsheet, OpenDocumentText, load
from odf.style import Footer, Header, MasterPage, PageLayout, Style, TextProperties
from odf.table import Table, TableCell, TableRow
from odf.text import A, H, LineBreak, Note, NoteBody, NoteCitation, P, S, Span, Tab

from nmt.extras.documents.files.document import DamagedFile
from nmt.extras.documents.files.odt import read
from tests.extras.documents.files.archives import packed, unpacked
from tests.extras.documents.files.shuffled import shuffled


def saved(made: OpenDocument) -> bytes:
    stream = io.BytesIO()
    made.write(stream)
    return stream.getvalue()


def texts(data: bytes) -> list[str]:
    return [block.text for block in read(data).blocks]


def translated(data: bytes, change: Callable[[str], str]) -> bytes:
    document = read(data)
    return document.write([change(block.text) for block in document.blocks])


def member(data: bytes, name: str = "content.xml") -> bytes:
    return unpacked(data)[name]


def test_what_has_text_in_a_document() -> None:
    made = OpenDocumentText()
    bold = Style(name="Fett", family="text")
    bold.addElement(TextProperties(fontweight="bold"))
    made.automaticstyles.addElement(bold)
    made.text.addElement(H(outlinelevel=1, text="Ein Titel"))
    paragraph = P(text="Der ")
    paragraph.addElement(Span(stylename=bold, text="alte "))
    paragraph.addText("Hund")
    note = Note(noteclass="footnote")
    note.addElement(NoteCitation(text="1"))
    note.addElement(NoteBody())
    note.childNodes[1].addElement(P(text="Eine Anmerkung & mehr"))
    paragraph.addElement(note)
    paragraph.addText(" bellt")
    paragraph.addElement(S())
    paragraph.addElement(A(href="http://x", text="hier"))
    for gap in (Tab(), LineBreak(), S(c=4)):
        paragraph.addElement(gap)
        paragraph.addText("danach ")
    annotation = Annotation()
    annotation.addElement(P(text="Ein Kommentar"))
    paragraph.addElement(annotation)
    frame, box = Frame(), TextBox()
    box.addElement(P(text="Im Kasten"))
    frame.addElement(box)
    paragraph.addElement(frame)
    made.text.addElement(paragraph)
    layout, master = PageLayout(name="L"), MasterPage(name="M", pagelayoutname="L")
    for kind, text in ((Header, "Kopf"), (Footer, "Fuss")):
        master.addElement(kind())
        master.childNodes[-1].addElement(P(text=text))
    made.automaticstyles.addElement(layout)
    made.masterstyles.addElement(master)
    data = saved(made)
    assert texts(data) == [
        "Ein Titel",
        "Der <x1>alte </x1>Hund<x5/> bellt <x8>hier</x8>",
        "Eine Anmerkung &amp; mehr",
        "danach",
        "danach",
        "danach",
        "Ein Kommentar",
        "Im Kasten",
        "Kopf",
        "Fuss",
    ]
    assert translated(data, str) == data
    changed = translated(data, lambda text: text.replace("a", "ä").replace("&ämp;", "&amp;"))
    assert "Eine Anmerkung & mehr" in str(load(io.BytesIO(changed)).text)
    assert member(changed).decode() == member(data).decode().replace("danach", "dänäch").replace(
        "Kasten", "Kästen"
    ).replace("bellt<text:s/>", "bellt ").replace("Kommentar", "Kommentär").replace(">alte <", ">älte <")
    assert member(changed, "styles.xml") == member(data, "styles.xml")


def test_cells_and_slides() -> None:
    made, table = OpenDocumentSpreadsheet(), Table(name="Blatt")
    row = TableRow()
    table.addElement(row)
    for attributes in ({"valuetype": "string"}, {"valuetype": "float", "value": 3}, {"formula": "of:=A1"}, {}):
        cell = TableCell(**attributes)
        cell.addElement(P(text=f"Zelle {len(row.childNodes)}"))
        row.addElement(cell)
    made.spreadsheet.addElement(table)
    assert texts(saved(made)) == ["Zelle 0", "Zelle 3"]
    slides = OpenDocumentPresentation()
    slides.automaticstyles.addElement(PageLayout(name="L"))
    slides.masterstyles.addElement(MasterPage(name="M", pagelayoutname="L"))
    page, frame, box = Page(masterpagename="M"), Frame(), TextBox()
    box.addElement(P(text="Auf der Folie"))
    frame.addElement(box)
    page.addElement(frame)
    slides.presentation.addElement(page)
    assert texts(saved(slides)) == ["Auf der Folie"]


empty_document = cache(lambda: saved(OpenDocumentText()))

NAMES = "".join(
    f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{uri}:1.0"'
    for name, uri in (
        *((name, name) for name in ("office", "style", "text")), ("draw", "drawing"), ("fo", "xsl-fo-compatible"),
    )
)  # fmt: skip
STYLES = "".join(
    f'<style:style style:name="{name}" style:family="text"><style:text-properties {properties}/></style:style>'
    for name, properties in (
        ("T1", 'fo:font-weight="bold"'),
        ("T2", 'fo:font-style="italic"'),
        ("T3", 'xmlns:officeooo="http://openoffice.org/2009/office" officeooo:rsid="00a1"'),
        ("T4", 'fo:language="de" fo:country="DE"'),
        ("T5", 'text:display="none"'),
    )
)


def document(*paragraphs: str) -> bytes:
    """A document with a bold style, an italic one, and one for parts of words."""
    content = "".join(f"<text:p>{paragraph}</text:p>" for paragraph in paragraphs)
    whole = (
        f'<office:document-content{NAMES} xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<office:automatic-styles>{STYLES}</office:automatic-styles><office:body><office:text>{content}</office:text>"
        "</office:body></office:document-content>"
    )
    return packed({**unpacked(empty_document()), "content.xml": whole})


def test_parts_of_words_are_joined() -> None:
    data = document(
        'Der gro<text:span text:style-name="T3">sse <text:tab/>Hund</text:span> be<text:soft-page-break/>llt',
        '<text:span text:style-name="T1">Ein </text:span><text:span text:style-name="T1">Hund</text:span> bellt laut',
    )
    assert texts(data) == ["Der grosse", "Hund bellt", "<x0>Ein Hund</x0> bellt laut"]
    changed = member(translated(data, lambda text: text.replace("Hund", "Dog"))).decode()
    assert 'Der gro<text:span text:style-name="T3">sse <text:tab/>Dog bellt</text:span></text:p>' in changed
    assert '<text:span text:style-name="T1">Ein Dog</text:span> bellt laut</text:p>' in changed


def test_a_language_is_no_format_and_ruby_is_text() -> None:
    data = document(
        'Hu<text:span text:style-name="T4">nd</text:span>',
        "<text:ruby><text:ruby-base>漢</text:ruby-base><text:ruby-text>かん</text:ruby-text></text:ruby>字",
    )
    assert texts(data) == ["Hund", "<x0><x1>漢</x1><x4/></x0>字"]
    assert translated(data, str) == data


def test_hidden_text_stays() -> None:
    data = document('Der <text:span text:style-name="T5">leise </text:span>Hund')
    assert texts(data) == ["Der <x1/>Hund"]
    changed = member(translated(data, lambda text: text.replace("Hund", "Dog"))).decode()
    assert 'Der <text:span text:style-name="T5">leise </text:span>Dog</text:p>' in changed


def test_what_was_deleted_stays() -> None:
    data = document("Ein <text:change text:change-id='1'/>Hund")
    changes = (
        "<text:tracked-changes><text:changed-region text:id='1'><text:deletion><text:p>alter</text:p></text:deletion>"
        "</text:changed-region></text:tracked-changes>"
    )
    whole = member(data).decode().replace("<office:text>", f"<office:text>{changes}")
    data = packed({**unpacked(data), "content.xml": whole})
    assert texts(data) == ["Ein <x1/>Hund"]


def anatomy(data: bytes) -> tuple[object, ...]:
    """The formats of all words with the links around them, and how often there is each other element."""
    words, things = list[object](), Counter[object]()
    for element in etree.fromstring(member(data)).iter():
        name, attributes = etree.QName(element).localname, sorted(element.attrib.values())
        if name != "span":
            things[name, *attributes] += 1
        for text, inside in (
            (element.text, [element, *element.iterancestors()]),
            (element.tail, element.iterancestors()),
        ):
            around = tuple((each.tag, *each.attrib.values()) for each in inside)
            around = tuple(each for each in around if each[-1] != "T3")
            words += [(word, around) for word in re.findall(r"[a-z]\d+", text or "")]
    return Counter(words), things


def random_content(draw: random.Random, depth: int = 0) -> str:
    """A paragraph of anything that programs write; each word occurs once."""
    parts = []
    for _ in range(draw.randint(1, 7)):
        number = draw.randrange(10**6)
        inner = random_content(draw, depth + 1) if depth < 3 else f" w{number}"
        early_end = inner.replace(">", f'><text:bookmark-end text:name="{number}"/>', 1)
        parts.append(
            draw.choice(
                [
                    *[f"a{number} ", f"b{number}", " &amp; ", f" c{number}\n d{number}", f"<![CDATA[e{number}&]]>"],
                    *[f'<text:span text:style-name="T{draw.randint(1, 3)}">{inner}</text:span>'] * 6,
                    f'<text:a xlink:href="{number}">{inner}</text:a>',
                    f'<text:bookmark-start text:name="{number}"/>{inner}<text:bookmark-end text:name="{number}"/>',
                    f'<text:bookmark-start text:name="{number}"/>{early_end}',
                    f"<text:page-number>p{number}</text:page-number>",
                    f"<draw:frame><draw:text-box><text:p>{inner}</text:p></draw:text-box></draw:frame>",
                    *["<text:tab/>", "<text:line-break/>", "<text:s/>", '<text:s text:c="4"/>'],
                ]
            )
        )
    return "".join(parts)


@pytest.mark.parametrize("seed", range(40))
def test_words_keep_their_formats_in_another_order(seed: int) -> None:
    draw = random.Random(seed)
    data = document(*(random_content(draw) for _ in range(5)))
    assert translated(data, str) == data
    changed, expected = anatomy(translated(data, lambda text: shuffled(text, draw))), anatomy(data)
    changed[1]["s",] = expected[1]["s",]  # a single space is text
    assert changed == expected


def test_other_archives_are_refused() -> None:
    data = document("x")
    for change, name, message in (
        ("application/zip", "mimetype", "is not an OpenDocument"),
        ("<manifest:encryption-data/>", "META-INF/manifest.xml", "is encrypted"),
        ("<a>", "content.xml", "is not well-formed"),
    ):
        with pytest.raises(DamagedFile, match=message):
            read(packed({**unpacked(data), name: change}))
