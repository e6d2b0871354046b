"""Documents of Office, against python-docx, python-pptx and lxml."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache

import docx
import pptx
import pytest
from docx.oxml.ns import nsdecls, qn
from lxml import etree
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from nmt.extras.documents.files.document import MARKUP, DamagedFile
from nmt.extras.documents.files.office import read
from tests.extras.documents.files.shuffled import shuffled

NAMES = nsdecls("w", "r", "wp", "a", "pic")


def upper(text: str) -> str:
    """Another text with the same tags and entities."""
    return re.sub(rf"({MARKUP.pattern})|[^<&]+", lambda match: match[1] or match[0].upper(), text)


@cache
def empty_document() -> Mapping[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(saved(docx.Document()))) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != "docProps/core.xml"}


def document(*paragraphs: str) -> bytes:
    """A DOCX whose body has paragraphs with the given content."""
    content = "".join(f"<w:p>{paragraph}</w:p>" for paragraph in paragraphs)
    return packed(
        {**empty_document(), "word/document.xml": f"<w:document {NAMES}><w:body>{content}</w:body></w:document>"}
    )


def packed(members: Mapping[str, bytes | str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def saved(made: docx.document.Document | pptx.presentation.Presentation) -> bytes:
    stream = io.BytesIO()
    made.save(stream)
    return stream.getvalue()


def body(data: bytes) -> etree._Element:
    """The XML of a DOCX."""
    return etree.fromstring(zipfile.ZipFile(io.BytesIO(data)).read("word/document.xml"))


def contents(data: bytes) -> list[str]:
    """The XML inside of the paragraphs of a DOCX."""
    found = zipfile.ZipFile(io.BytesIO(data)).read("word/document.xml").decode()
    return re.findall(r"<w:p(?: [^>]*)?>(.*?)</w:p>", found)


def numberless(text: str) -> str:
    """A marked text whose tags have no numbers."""
    return re.sub(r"(?<=<x)\d+|(?<=</x)\d+", "", text)


def texts(data: bytes) -> list[str]:
    return [block.text for block in read(data).blocks]


def translated(data: bytes, change: Callable[[str], str]) -> bytes:
    read_ = read(data)
    return read_.write([change(block.text) for block in read_.blocks])


def run(text: str, properties: str = "", attributes: str = "") -> str:
    properties = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r{attributes}>{properties}<w:t xml:space="preserve">{text}</w:t></w:r>'


FIELD = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
BEGIN, MIDDLE, END = (FIELD.format(kind) for kind in ("begin", "separate", "end"))
ORDER = f"{BEGIN}<w:r><w:instrText>{{}}</w:instrText></w:r>{MIDDLE}"

CASES = {
    "words that Word divides": (
        run("Der gros", attributes=' w:rsidR="00A1"')
        + '<w:proofErr w:type="spellStart"/>'
        + run("se Hu", '<w:lang w:val="de-DE"/>', ' w:rsidR="00B2"')
        + "<w:r><w:rPr><w:noProof/></w:rPr><w:lastRenderedPageBreak/><w:t>nd</w:t></w:r>",
        ["Der grosse Hund"],
        ['<w:r><w:t xml:space="preserve">DER GROSSE HUND</w:t></w:r>'],
    ),
    "formats": (
        run("Ein ", "<w:b/>") + run("grosser ", "<w:b/>") + run("Hund bellt oft ") + run("laut", "<w:i/>") + run("."),
        ["<x0>Ein grosser </x0>Hund bellt oft <x5>laut</x5>."],
        [
            run("EIN GROSSER ", "<w:b/>")
            + run("HUND BELLT OFT ")
            + run("LAUT", "<w:i/>")
            + run("."),
        ],
    ),
    "all in one format": (run("Ein ", "<w:b/>") + run("Hund", "<w:b/>"), ["Ein Hund"], [run("EIN HUND", "<w:b/>")]),
    "breaks and tabs": (
        '<w:pPr><w:tabs><w:tab w:val="left" w:pos="9"/></w:tabs></w:pPr><w:r w:rsidR="1"><w:t>eins</w:t><w:tab/>'
        "<w:t>zwei</w:t><w:br/><w:t>drei</w:t></w:r>" + run(" vier"),
        ["eins", "zwei", "drei vier"],
        [(
            '<w:pPr><w:tabs><w:tab w:val="left" w:pos="9"/></w:tabs></w:pPr>'
            '<w:r><w:t xml:space="preserve">EINS</w:t><w:tab/><w:t xml:space="preserve">ZWEI</w:t><w:br/>'
            '<w:t xml:space="preserve">DREI VIER</w:t></w:r>'
        )],
    ),
    "link": (
        run("Siehe ") + f'<w:hyperlink r:id="rId1">{run("diese Seite", "<w:u/>")}</w:hyperlink>' + run("!"),
        ["Siehe <x1>diese Seite</x1>!"],
        None,
    ),
    "note and bookmark": (
        '<w:bookmarkStart w:id="1" w:name="_Toc1"/>' + run("Ein ") + '<w:bookmarkStart w:id="2" w:name="a"/>'
        + run("Hund") + '<w:bookmarkEnd w:id="2"/><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
        '<w:footnoteReference w:id="2"/></w:r>' + run(" bellt") + '<w:bookmarkEnd w:id="1"/>',
        ["Ein <x1>Hund</x1><x4/> bellt"],
        None,
    ),
    "tracked changes": (
        run("Ein ") + f'<w:del w:id="1"><w:r><w:delText>alter </w:delText></w:r></w:del><w:ins w:id="2">{run("neuer ")}'
        "</w:ins>" + run("Hund"),
        ["Ein <x1/><x2>neuer </x2>Hund"],
        None,
    ),
    "field that is computed": (
        run("Seite ") + ORDER.format(" PAGE ") + run("eins", "<w:b/>") + END + run(" von zehn"),
        ["Seite <x1/> von zehn"],
        None,
    ),
    "field in one run": (
        run("Am XX bellt er").replace(
            "XX",
            '</w:t><w:fldChar w:fldCharType="begin"/><w:instrText> DATE </w:instrText>'
            '<w:fldChar w:fldCharType="separate"/><w:t>Montag</w:t><w:fldChar w:fldCharType="end"/><w:t>',
        ),
        ["Am <x1/> bellt er"],
        None,
    ),
    "link by a field": (
        run("Siehe ") + ORDER.format(' HYPERLINK "http://x"') + run("hier", "<w:u/>") + END + run("!"),
        ["Siehe <x1>hier</x1>!"],
        None,
    ),
    "simple fields": (
        run("Seite ") + f'<w:fldSimple w:instr=" PAGE ">{run("eins")}</w:fldSimple>' + run(" hier"),
        ["Seite <x1/> hier"],
        None,
    ),
    "content control": (
        run("Name: ") + '<w:sdt><w:sdtPr><w:id w:val="5"/></w:sdtPr><w:sdtContent>' + run("Ihr Name")
        + "</w:sdtContent></w:sdt>" + run(" hier"),
        ["Name: <x1>Ihr Name</x1> hier"],
        None,
    ),
    "text box": (
        run("Vor ") + "<w:r><w:pict><w:txbxContent><w:p>" + run("im Kasten") + "</w:p></w:txbxContent></w:pict></w:r>"
        + run("nach"),
        ["Vor <x1/>nach", "im Kasten"],
        None,
    ),
    "signs": (run("R&amp;D &lt;b&gt; 'x' &quot;y&quot;"), ["R&amp;D &lt;b&gt; 'x' \"y\""], None),
    "empty paragraph, blanks and numbers": (run(" ") + "<w:r/>" + run("12"), ["12"], None),
    "table of contents": (
        ORDER.format("TOC") + f'<w:hyperlink w:anchor="_Toc1">{run("Ein Titel")}<w:r><w:tab/></w:r>'
        + ORDER.format("PAGEREF _Toc1") + run("3") + f"{END}</w:hyperlink>{END}",
        ["Ein Titel"],
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_blocks_of_paragraphs(name: str) -> None:
    content, expected, written = CASES[name]
    data = document(content)
    assert texts(data) == expected
    assert translated(data, str) == data
    changed = translated(data, upper)
    assert [numberless(text) for text in texts(changed)] == [numberless(upper(text)) for text in expected]
    if written is not None:
        assert contents(changed) == written
    assert anatomy(data, str.upper, r"\w") == anatomy(changed, str, r"\w")


def anatomy(data: bytes, change: Callable[[str], str] = str, unit: str = r"[a-z]\d+b?") -> tuple[object, ...]:
    """The formats of all words with the links and fields around them, and how often there is each other element."""
    words, things, fields = list[object](), Counter[object](), list[str]()
    for element in body(data).iter():
        name = etree.QName(element).localname
        if name == "fldChar":
            kind = element.get(qn("w:fldCharType"))
            if kind == "end":
                fields.pop()
            elif kind == "begin":
                fields.append("")
        elif name == "instrText":
            fields[-1] += element.text
        if name in ("t", "delText"):
            around = [each for each in element.iterancestors() if etree.QName(each).localname != "r"]
            properties = element.getparent().find(qn("w:rPr"))
            looks = [] if properties is None else [etree.QName(each).localname for each in properties]
            format_ = tuple(look for look in looks if look not in ("lang", "noProof"))
            kept = name == "delText" or any(not re.match(" *(TOC|HYPERLINK)", each) for each in fields)
            kept |= any(etree.QName(each).localname == "fldSimple" for each in around)
            for word in re.findall(unit, element.text or ""):
                path = tuple((each.tag, *sorted(each.attrib.items())) for each in around)
                words.append((word if kept else change(word), format_, path, tuple(fields)))
        elif name not in ("r", "rPr", "lang", "noProof", "proofErr", "lastRenderedPageBreak", "b", "i", "u"):
            things[name, *sorted(element.attrib.items())] += 1
    assert not fields
    return Counter(words), things


def random_content(draw: random.Random, depth: int = 0) -> str:
    """A paragraph of anything that Word writes; each word occurs once."""
    parts = []
    for _ in range(draw.randint(1, 7)):
        number = draw.randrange(10**6)
        inner = random_content(draw, depth + 1) if depth < 2 else run(f" w{number}")
        format_ = "".join(
            draw.sample(["<w:b/>", "<w:i/>", "<w:u/>", '<w:lang w:val="de"/>'], k=draw.choice([0, 0, 1, 2]))
        )
        text = draw.choice([f"w{number} ", f" v{number}", f"a{number}b c{number}", " ", "&amp; d", "x", ""])
        name = f'w:id="{number}"'
        thing = draw.choice(
            [f"<w:footnoteReference {name}/>", f"<w:drawing><wp:inline><wp:docPr {name}/></wp:inline></w:drawing>"]
        )
        early_end = inner.replace("</w:r>", f"</w:r><w:bookmarkEnd {name}/>", 1)
        parts.append(
            draw.choice(
                [
                    *[run(text.replace("x", f"x{number}"), format_, draw.choice(["", ' w:rsidR="9"']))] * 9,
                    f"<w:r><w:rPr>{format_}</w:rPr>{thing}</w:r>",
                    f"<w:r><w:rPr>{format_}</w:rPr><w:t>k{number}</w:t>{thing}<w:t>l{number} </w:t></w:r>",
                    f'<w:hyperlink w:anchor="{number}">{inner}</w:hyperlink>',
                    f"<w:ins {name}>{inner}</w:ins>",
                    f"<w:sdt><w:sdtPr><w:id {name}/></w:sdtPr><w:sdtContent>{inner}</w:sdtContent></w:sdt>",
                    f"<w:del {name}><w:r><w:delText>d{number}</w:delText></w:r></w:del>",
                    f'<w:bookmarkStart {name} w:name="m{number}"/>{inner}<w:bookmarkEnd {name}/>',
                    f'<w:bookmarkStart {name} w:name="m{number}"/>{early_end}',
                    f"{ORDER.format(f'HYPERLINK {number}')}{inner}{END}",
                    f"{ORDER.format(f'REF {number}')}{inner}{END}",
                    f"<w:r>{draw.choice(['<w:br/>', '<w:tab/>'])}<w:t>t{number}</w:t></w:r>",
                    '<w:proofErr w:type="spellStart"/>',
                    f"<w:r><w:pict><w:txbxContent><w:p>{inner}</w:p></w:txbxContent></w:pict></w:r>",
                ]
            )
        )
    return "".join(parts)


@pytest.mark.parametrize("seed", range(40))
def test_words_keep_their_formats_in_another_order(seed: int) -> None:
    draw = random.Random(seed)
    data = document(*(random_content(draw) for _ in range(5)))
    assert translated(data, str) == data
    assert anatomy(translated(data, lambda text: shuffled(text, draw))) == anatomy(data)
