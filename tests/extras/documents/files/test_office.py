"""Documents of Office, against python-docx, python-pptx and lxml."""

from __future__ import annotations

import base64
import io
import random
import re
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

from nmt.extras.documents.files.document import MARKUP, DamagedFile
from nmt.extras.documents.files.office import read
from tests.extras.documents.files.archives import packed, unpacked
from tests.extras.documents.files.shuffled import shuffled

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABc3UBGAAAAABJRU5ErkJggg=="
)
NAMES = nsdecls("w", "r", "wp", "a", "pic")


def upper(text: str) -> str:
    """Another text with the same tags and entities."""
    return re.sub(rf"({MARKUP.pattern})|[^<&]+", lambda match: match[1] or match[0].upper(), text)


@cache
def empty_document() -> Mapping[str, bytes]:
    members = unpacked(saved(docx.Document()))
    del members["docProps/core.xml"]  # it has a title
    return members


def document(*paragraphs: str) -> bytes:
    """A DOCX whose body has paragraphs with the given content."""
    content = "".join(f"<w:p>{paragraph}</w:p>" for paragraph in paragraphs)
    return packed(
        {**empty_document(), "word/document.xml": f"<w:document {NAMES}><w:body>{content}</w:body></w:document>"}
    )


def saved(made: docx.document.DocumentFile | pptx.presentation.Presentation) -> bytes:
    stream = io.BytesIO()
    made.save(stream)
    return stream.getvalue()


def contents(data: bytes) -> list[str]:
    """The XML inside of the paragraphs of a DOCX."""
    found = unpacked(data)["word/document.xml"].decode()
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
    "a hint for the font of one word": (
        run("犬が", '<w:rFonts w:hint="eastAsia"/>') + run("吠える"), ["犬が吠える"], None
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


def test_hidden_text_stays() -> None:
    hidden, also = run("leiser ", "<w:b/><w:vanish/>"), run("x", '<w:vanish w:val="true"/>')
    data = document(run("Ein ") + hidden + run("Hund") + also, run("Hund", '<w:vanish w:val="0"/>'))
    assert texts(data) == ["Ein <x1/>Hund", "Hund"]
    assert contents(translated(data, upper)) == [
        run("EIN ") + hidden + run("HUND") + also, run("HUND", '<w:vanish w:val="0"/>')
    ]  # fmt: skip


def anatomy(data: bytes, change: Callable[[str], str] = str, unit: str = r"[a-z]\d+b?") -> tuple[object, ...]:
    """The formats of all words with the links and fields around them, and how often there is each other element."""
    words, things, fields = list[object](), Counter[object](), list[str]()
    for element in etree.fromstring(unpacked(data)["word/document.xml"]).iter():
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


def test_parts_of_a_document() -> None:
    made = docx.Document()
    made.core_properties.title = "Ein Titel"
    made.core_properties.comments = ""
    made.add_heading("Ein Hund", 1)
    made.add_paragraph("Punkt", style="List Bullet")
    table = made.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "links", "rechts"
    picture = made.add_paragraph("Bild ").add_run().add_picture(io.BytesIO(PICTURE))
    picture._inline.docPr.set("descr", 'Ein "Bild"')
    made.add_comment(made.paragraphs[0].runs, "Ein Kommentar", author="Ich")
    made.sections[0].header.paragraphs[0].text = "Kopf"
    made.sections[0].footer.paragraphs[0].text = "Fuss"
    data = saved(made)
    found = {block.text: (block.place, block.is_apart) for block in read(data).blocks}
    assert found == {
        "Ein Hund": ("word/document.xml, paragraph 1", False),
        "Punkt": ("word/document.xml, paragraph 2", False),
        "links": ("word/document.xml, paragraph 3", False),
        "rechts": ("word/document.xml, paragraph 4", False),
        "Bild": ("word/document.xml, paragraph 5", False),
        'Ein "Bild"': ("word/document.xml, after paragraph 5, descr", True),
        "Ein Titel": ("docProps/core.xml, paragraph 1", True),
        "Ein Kommentar": ("word/comments.xml, paragraph 1", True),
        "Kopf": ("word/header1.xml, paragraph 1", True),
        "Fuss": ("word/footer1.xml, paragraph 1", True),
    }
    opened = docx.Document(io.BytesIO(translated(data, upper)))
    assert [paragraph.text for paragraph in opened.paragraphs] == ["EIN HUND", "PUNKT", "BILD "]
    assert [cell.text for cell in opened.tables[0].rows[0].cells] == ["LINKS", "RECHTS"]
    assert [comment.text for comment in opened.comments] == ["EIN KOMMENTAR"]
    assert opened.inline_shapes[0]._inline.docPr.get("descr") == 'EIN "BILD"'
    assert (opened.core_properties.title, opened.sections[0].header.paragraphs[0].text) == ("EIN TITEL", "KOPF")
    names = [name for name, content in unpacked(data).items() if content != unpacked(translated(data, upper))[name]]
    assert len(names) == 5


def slides() -> bytes:
    made = pptx.Presentation()
    for number in range(11):
        slide = made.slides.add_slide(made.slide_layouts[1])
        slide.shapes.title.text = f"Folie {number + 1}"
    slide = made.slides[0]
    paragraph = slide.placeholders[1].text_frame.paragraphs[0]
    for text, bold in (("Ein ", None), ("alter", True), (" Hund", None)):
        run_ = paragraph.add_run()
        run_.text, run_.font.bold = text, bold
    paragraph.add_line_break()
    paragraph.add_run().text = "bellt"
    slide.notes_slide.notes_text_frame.text = "Notiz"
    slide.shapes.add_table(1, 1, 0, 0, 9, 9).table.cell(0, 0).text = "Zelle"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "im Kasten"
    numbers = CategoryChartData()
    numbers.categories = ["x"]
    numbers.add_series("y", [1])
    chart = slide.shapes.add_chart(XL_CHART_TYPE.PIE, 0, 0, 9, 9, numbers).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Titel des Bildes"
    return saved(made)


def test_slides() -> None:
    data = slides()
    assert [text for text in texts(data) if text not in ("PowerPoint Presentation", "generated using python-pptx")] == [
        "Folie 1", "Ein <x1>alter</x1> Hund", "bellt", "Zelle", "im Kasten",
        *(f"Folie {number}" for number in range(2, 12)), "Titel des Bildes", "Notiz",
    ]  # fmt: skip
    assert translated(data, str) == data
    opened = pptx.Presentation(io.BytesIO(translated(data, upper)))
    slide = opened.slides[0]
    assert [shape.text for shape in slide.placeholders] == ["FOLIE 1", "EIN ALTER HUND\vBELLT"]
    assert [run.font.bold for run in slide.placeholders[1].text_frame.paragraphs[0].runs] == [None, True, None, None]
    assert slide.notes_slide.notes_text_frame.text == "NOTIZ"


def test_what_is_no_document_or_has_macros_is_refused() -> None:
    types = unpacked(document())["[Content_Types].xml"].decode()
    main = "openxmlformats-officedocument.wordprocessingml.document.main"
    for change, message in (
        (types.replace(main, "ms-word.document.macroEnabled.main"), "has macros"),
        (
            types.replace(
                "</Types>", '<Default Extension="bin" ContentType="application/vnd.ms-office.vbaProject"/></Types>'
            ),
            "has macros",
        ),
        (
            types.replace(main, "openxmlformats-officedocument.spreadsheetml.sheet.main"),
            "is neither a document nor slides",
        ),
        ("<Types>", "is not well-formed"),
    ):
        with pytest.raises(DamagedFile, match=message):
            read(packed({**empty_document(), "[Content_Types].xml": change}))


@pytest.mark.parametrize(
    "content",
    [
        f"<w:hyperlink>{run('a')}{BEGIN}</w:hyperlink>{MIDDLE}{END}{run('b')}",
        f"<w:hyperlink>{run('a')}{ORDER.format('TOC')}</w:hyperlink>{run('b')}{END}",
        f"{run('a')}{BEGIN}<w:hyperlink>{MIDDLE}{END}{run('b')}</w:hyperlink>",
        f"{run('a')}<w:r><w:t>b<w:r><w:t>c</w:t></w:r></w:t></w:r>",
        f"{run('a')}<w:sdt>{run('b')}<w:sdtContent>{run('c')}</w:sdtContent></w:sdt>",
        f"{run('a')}<w:hyperlink>{run('b')}<w:sdtContent/></w:hyperlink>",
    ],
)
def test_a_paragraph_in_no_sensible_order_stays(content: str) -> None:
    assert texts(document(content, run("x"))) == ["x"]


def test_fields_over_paragraphs() -> None:
    data = document(
        run("a") + ORDER.format("INCLUDETEXT"), run("b"), run("c") + END + run("d"), run("e") + ORDER.format("TOC"),
        run("f"), run("g") + END + run("h"),
    )  # fmt: skip
    assert texts(data) == ["a", "d", "e", "f", "g", "h"]
    assert translated(data, str.upper) == translated(translated(data, str.upper), str)


def test_other_prefixes_and_entities() -> None:
    content = document(run("Ein Hund", "<w:b/>"))
    members = unpacked(content)
    members["word/document.xml"] = members["word/document.xml"].replace(b"w:", b"ns0:").replace(b":w=", b":ns0=")
    assert texts(packed(members)) == ["Ein Hund"]
    changed = unpacked(translated(packed(members), lambda _: "a & <b> \x00\x0c'\""))["word/document.xml"]
    assert [each.text for each in etree.fromstring(changed).iter(qn("w:t"))] == ["a & <b> '\""]
