"""Books, against EbookLib."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from ebooklib import ITEM_DOCUMENT, epub

from nmt.extras.documents.files.document import DamagedFile
from nmt.extras.documents.files.epub import read
from tests.extras.documents.files.archives import packed, unpacked


@cache
def book() -> bytes:
    made = epub.EpubBook()
    made.set_identifier("x")
    made.set_title("Ein Buch & mehr")
    made.add_metadata("DC", "description", "Ein Hund bellt.")
    chapters = [
        epub.EpubHtml(title=f"Kapitel {number}", file_name=f"text/kapitel {number}.xhtml")
        for number in ("eins", "zwei")
    ]
    for chapter in chapters:
        chapter.content = f"<h1>{chapter.title}</h1><p>Ein <b>Hund</b> bellt.<br/>Zweite Zeile</p>"
        made.add_item(chapter)
    made.add_item(epub.EpubItem(file_name="style.css", media_type="text/css", content=b"p { }"))
    made.toc = chapters
    made.add_item(epub.EpubNcx())
    made.spine = reversed(chapters)
    with TemporaryDirectory() as folder:
        epub.write_epub(str(Path(folder) / "x.epub"), made)
        return (Path(folder) / "x.epub").read_bytes()


def test_chapters_and_titles() -> None:
    document = read(book())
    assert document.write([block.text for block in document.blocks]) == book()
    chapter = ["Ein <x1>Hund</x1> bellt.", "Zweite Zeile"]
    texts = [block.text for block in document.blocks]
    assert texts == [
        "Ein Buch &amp; mehr", "Ein Hund bellt.",
        "Kapitel zwei", "Kapitel zwei", *chapter, "Kapitel eins", "Kapitel eins", *chapter,
        "Ein Buch &amp; mehr", "Kapitel eins", "Kapitel zwei",
    ]  # fmt: skip
    assert document.blocks[2].place == "EPUB/text/kapitel zwei.xhtml, line 5"
    written = document.write([text.replace("Hund", "Dog & cat").replace("Buch", "Book") for text in texts])
    before, after = unpacked(book()), unpacked(written)
    assert list(after) == list(before)
    different = {name for name in before if before[name] != after[name]}
    assert different == {
        "EPUB/content.opf", "EPUB/text/kapitel eins.xhtml", "EPUB/text/kapitel zwei.xhtml", "EPUB/toc.ncx",
    }  # fmt: skip
    with TemporaryDirectory() as folder:
        (Path(folder) / "x.epub").write_bytes(written)
        opened = epub.read_epub(str(Path(folder) / "x.epub"))
    assert opened.title == "Ein Book & mehr"
    pages = [item.get_content().decode() for item in opened.get_items_of_type(ITEM_DOCUMENT)]
    assert sum("<p>Ein <b>Dog &amp; cat</b> bellt.<br/>Zweite Zeile</p>" in page for page in pages) == 2


def test_what_is_no_book_or_protected_is_refused() -> None:
    protected = '<encryption><CipherReference URI="EPUB/text/kapitel%20eins.xhtml"/></encryption>'
    cases: Mapping[str, Mapping[str, bytes | str]] = {
        "protected from copying": {**unpacked(book()), "META-INF/encryption.xml": protected},
        "lacks its part 'META-INF/container.xml'": {"x": "y"},
        "lacks its part ''": {"META-INF/container.xml": "<x/>"},
        "lacks its part '../../etc/passwd'": {"META-INF/container.xml": '<rootfile full-path="../../etc/passwd"/>'},
    }
    for message, content in cases.items():
        with pytest.raises(DamagedFile, match=message):
            read(packed(content))


def test_what_is_not_in_the_archive_or_no_text_stays() -> None:
    members = unpacked(book())
    members["EPUB/content.opf"] = members["EPUB/content.opf"].replace(b"style.css", b"../../etc/passwd")
    members["META-INF/encryption.xml"] = b'<encryption><CipherReference URI="EPUB/font.otf"/></encryption>'
    assert read(packed(members)).blocks == read(book()).blocks
