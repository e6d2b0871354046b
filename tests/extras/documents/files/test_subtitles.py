"""Subtitles, against the packages srt and webvtt-py."""

from __future__ import annotations

import re
from datetime import timedelta
from io import StringIO

import pytest
import srt
import webvtt
from hypothesis import given
from hypothesis import strategies as st

from nmt.extras.documents.files.document import DamagedFile
from nmt.extras.documents.files.subtitles import read
from tests.extras.documents.files.changes import capitals, unchanged

SRT = """\
1
00:00:01,000 --> 00:00:02,500 X1:10 X2:20
{\\an8}Der <i>große</i>
Hund bellt,

2
00:00:02,600 --> 00:00:04,000
weil er die Katze
am Tor sieht. AT&T

3
00:00:05,000 --> 00:00:06,000
- Ja?
– <i>Nein, nie.</i>

4
00:00:06,000 --> 00:00:07,000
♪♪

5
00:00:07,000 --> 00:00:08,000

6
00:01:07,000 --> 00:01:08,000
42
"""

VTT = """\
WEBVTT - Ein Titel
Kind: captions

STYLE
::cue { color: red }

NOTE Der Hund
ist weg

REGION
id:a

intro
00:01.000 --> 00:02.000 align:start line:0%
<v Anna>Der <c.gelb>Hund</c> &amp; ich
NOTE ist Text

00:00:02.000 --> 00:00:03.000
<v Bert>kommt <00:00:02.500>nicht.
"""


def texts(data: str) -> list[str]:
    return [block.text for block in read(data.encode()).blocks]


def test_blocks_of_srt() -> None:
    assert texts(SRT) == [
        "Der <x1>große</x1> Hund bellt, <x6/> weil er die Katze am Tor sieht. AT&amp;T", "Ja?", "Nein, nie.", "42",
    ]  # fmt: skip
    assert [block.place for block in read(SRT.encode()).blocks] == ["line 3", "line 13", "line 14", "line 25"]
    expected = SRT
    for word in ("Der", "große", "Hund bellt", "weil er die Katze\nam Tor sieht", "Ja", "Nein, nie"):
        expected = expected.replace(word, word.upper())
    for text in (SRT, SRT.replace("\n", "\r\n"), "\ufeff" + SRT):
        document = read(text.encode())
        assert unchanged(document) == text.encode()
        assert capitals(document).replace("\r\n", "\n").lstrip("\ufeff") == expected
        assert capitals(document).count("\r") == text.count("\r")


def test_blocks_of_webvtt() -> None:
    assert texts(VTT) == ["Der <x1>Hund</x1> &amp; ich NOTE ist Text", "kommt <x1/>nicht."]
    assert unchanged(read(VTT.encode())) == VTT.encode()
    out = capitals(read(VTT.encode()))
    before, after = (list(webvtt.from_buffer(StringIO(text))) for text in (VTT, out))
    for cue, changed in zip(before, after, strict=True):
        assert (changed.start, changed.end, changed.identifier, changed.voice) == (
            cue.start, cue.end, cue.identifier, cue.voice,
        )  # fmt: skip
        assert changed.text.split() == cue.text.upper().replace("&AMP;", "&amp;").split()
        assert len(changed.lines) == len(cue.lines)
    assert out.startswith(VTT[: VTT.index("Der <c")])
    # the signs of a translation are text
    document = read(VTT.encode())
    assert (
        "<v Anna>a --&gt;\n&lt;b&gt; <c.gelb>c</c>\n\n" in document.write(["a --> <b> <x1>c</x1>", "<x1/>d"]).decode()
    )


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        ("Der Hund", "bellt.", True),
        ("Der große", "Hund bellt.", True),
        ("Der Hund.", "Bellt er?", False),
        ("Der Hund …", "… bellt.", True),
        ("Der Hund…", "Bellt er?", False),
        ("Der Hund", "- bellt.", False),
        ("Der Hund", "[bellt]", False),
        ("Der Hund,", "<i>der bellt</i>.", True),
    ],
)
def test_a_sentence_goes_over_several_cues(first: str, second: str, is_one: bool) -> None:
    cues = [
        srt.Subtitle(i, timedelta(seconds=i), timedelta(seconds=i + 1), text) for i, text in enumerate((first, second))
    ]
    assert len(texts(srt.compose(cues, reindex=False))) == 2 - is_one
    cues[1].start = timedelta(seconds=9)
    assert len(texts(srt.compose(cues, reindex=False))) == 2


def test_a_translation_is_divided_between_cues() -> None:
    document = read(SRT.encode())
    rest = [block.text for block in document.blocks[1:]]

    def cues(translation: str) -> list[str]:
        return [cue.content for cue in srt.parse(document.write([translation, *rest]).decode())][:2]

    assert cues("The <x1>big</x1> dog barks <x6/> as it sees a cat at the gate.") == [
        "{\\an8}The <i>big</i>\ndog barks", "as it sees a cat\nat the gate.",
    ]  # fmt: skip
    # alignment has put all words on one side
    for text in (
        "<x6/> The <x1>big</x1> dog barks as it sees a cat.",
        "The <x1>big</x1> dog barks as it sees a cat.<x6/>",
    ):
        assert cues(text) == ["{\\an8}The <i>big</i>\ndog", "barks as it\nsees a cat."]
    assert cues("<x1>大</x1>きい犬が<x6/>吠えている。") == ["{\\an8}<i>大</i>きい\n犬が", "吠えて\nいる。"]
    assert cues("<x1>Dog</x1>! <x6/>") == ["{\\an8}<i>Dog</i>!", ""]


_words = st.lists(
    st.sampled_from(["Der", "Hund", "bellt,", "ja.", "<i>a</i>", "{\\an8}", "3", "&", "<", "🐕", "…", "-", "♪", "<b>"]),
    min_size=1,
    max_size=5,
)
_contents = st.lists(_words.map(" ".join), min_size=1, max_size=3).map("\n".join)


@given(st.lists(_contents, min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_only_words_change(contents: list[str], newline: str) -> None:
    cues = [
        srt.Subtitle(i, timedelta(seconds=i), timedelta(seconds=i + 1), text)
        for i, text in enumerate(contents, start=1)
    ]
    text = srt.compose(cues, reindex=False).replace("\n", newline)
    document = read(text.encode())
    assert unchanged(document) == text.encode()
    after = list(srt.parse(capitals(document)))
    assert [(cue.index, cue.start, cue.end) for cue in after] == [(cue.index, cue.start, cue.end) for cue in cues]
    for cue, changed in zip(cues, after, strict=True):
        words = re.sub(
            r"(<[^<>]*>|\{[^{}]*\})|([^<{]+)", lambda match: match[1] or match[2].upper(), cue.content
        ).split()
        assert sorted(changed.content.split()) == sorted(words)
        assert len(changed.content.split("\n")) == len(cue.content.strip().split("\n"))


def test_other_files_are_refused() -> None:
    for data, message in (
        (b"", "no subtitles"),
        (b"Hund\n\n1 --> 2\n", "no subtitles"),
        (b"1\n00:00:01,000 --> 00:00:02,000\nGr\xfc\xdfe\n", "is not text in utf-8"),
        (b"9" * 5000 + b":00:01,000 --> 00:00:02,000\nx", "no subtitles"),
    ):
        with pytest.raises(DamagedFile, match=message):
            read(data)
    assert texts("WEBVTT") == []
    assert texts("1\n00:00:01,000 --> 00:00:02,000") == []


def test_a_large_file_takes_linear_time() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\n" + "Hund\n" * 50_000 + "<i>" * 50_000
    document = read(text.encode())
    assert unchanged(document) == text.encode()
    assert len(document.write(["x y " * 50_000])) > 200_000
