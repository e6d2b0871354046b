"""Subtitles: SRT and WebVTT.

A block is what is said in a cue, or, if a sentence goes on in the next cues, in all of them: a tag stands for each
border, so that alignment divides the translation between the cues. A line that begins with a dash is another
speaker's, and a block of its own. A cue that had several lines has as many again. Times, identifiers, settings, notes
and styles keep their bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from nmt.extras.documents.files.document import DamagedFile, Span, TextDocument, decoded, line_names, spell_as
from nmt.extras.documents.files.inline import SPACE, Fragment, cut, fragments, length, spans_of

MOST_CUES = 6
"""Maximum number of cues that a block goes over."""

LONGEST_PAUSE = 2.0
"""Seconds between two cues after which no sentence goes on."""

_CLOCK = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2}(?:[.,]\d{1,3})?)"
_TIMES = re.compile(rf"^[ \t]*{_CLOCK}[ \t]*-->[ \t]*{_CLOCK}(?![\d:]).*$", re.MULTILINE)
_BLANK = re.compile(r"\n[ \t]*(?:\n|\Z)")
_NUMBER = re.compile(r"\n[ \t]*\d+[ \t]*\n\Z")
_TAG = re.compile(
    r"</(?P<close>[A-Za-z]+)(?:[\s.][^<>\n]*)?>|<(?P<open>[A-Za-z]+)(?:[\s.][^<>\n]*)?>|<[\d:.]+>|\{\\[^{}\n]*\}"
    r"|\{[YyCcSsFfPpHh]:[^{}\n]*\}"
)
_DASH = re.compile(r"(?:[ \t]|<[^<>\n]*>|\{[^{}\n]*\})*[-‐–—]+[ \t]*(?=\S)")
_CLOSING = " \t\n\r)]\"”»’'“"
_STOPS = frozenset(".!?…:。！？؟।♪♫*#)]\"”»’'“")
_PAUSES = re.compile(r"(?:…|\.\.)\Z")
_BEGINS = re.compile(r"""(?:…|\.\.+)?\s*["“„«'‘¿¡]?(\w)""")


@dataclass(frozen=True)
class _Speech:
    """What one person says in a cue.

    Attributes:
        begin, end: Its characters in the file.
        start, stop: The times of the cue, in seconds.
        plain: The text without tags.
        has_dash: True if a dash is before it.
        voice: The tag of WebVTT that names the speaker.
    """

    begin: int
    end: int
    start: float
    stop: float
    plain: str
    has_dash: bool = False
    voice: str = ""


def read(data: bytes) -> TextDocument:
    """Reads subtitles, in UTF-8 or UTF-16. Raises DamagedFile for other encodings, and for a file without times."""
    text, encoding = decoded(data)
    is_vtt = bool(re.match(r"\ufeff?WEBVTT(?!\S)", text))
    # a line ends with one character, so that each character keeps its place
    unix = text.replace("\r\n", " \n").replace("\r", "\n")
    speeches = [speech for cue in _cues(unix, is_vtt) for speech in _speeches(unix, *cue)]
    if not is_vtt and not _TIMES.search(unix):
        raise DamagedFile("has no subtitles with times")
    line_of, newline = line_names(unix), "\r\n" if "\r\n" in text else "\n"
    spans = [
        span for group in _sentences(speeches) for span in _span(unix, group, line_of(group[0].begin), newline, is_vtt)
    ]
    return TextDocument(text, spans, encoding)


def _cues(text: str, is_vtt: bool) -> Iterator[tuple[int, int, float, float]]:
    """Yields the characters of the text of each cue, and its times."""
    cues = list(_TIMES.finditer(text))
    for index, cue in enumerate(cues, start=1):
        after = cues[index].start() if index < len(cues) else len(text)
        # the text of SRT may have blank lines in it, that of WebVTT ends with one
        found = (_BLANK if is_vtt else _NUMBER).search(text, cue.end(), after) if is_vtt or after < len(text) else None
        times = [
            int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds.replace(",", "."))
            for hours, minutes, seconds in (cue.groups()[:3], cue.groups()[3:])
        ]
        yield cue.end(), found.start() if found else after, times[0], times[1]


def _speeches(text: str, begin: int, end: int, start: float, stop: float) -> list[_Speech]:
    """Divides the text of a cue by the dashes at the beginnings of its lines."""
    lines = list(re.compile(r"\S(?:[^\n]*\S)?").finditer(text, begin, end))
    dashes = [_DASH.match(line.group()) for line in lines]
    firsts = [index for index, dash in enumerate(dashes) if dash or index == 0]
    speeches = list[_Speech]()
    for first, last in pairwise([*firsts, len(lines)]):
        dash, voice = dashes[first], re.search(r"<v[\s.][^<>]*>", lines[first].group())
        begin, end = lines[first].start() + (dash.end() if dash else 0), lines[last - 1].end()
        plain = " ".join(_TAG.sub("", text[begin:end]).split())
        name = voice.group() if voice else ""
        speeches.append(_Speech(begin, end, start, stop, plain, bool(dash), name))
    return speeches


def _sentences(speeches: Sequence[_Speech]) -> Iterator[Sequence[_Speech]]:
    """Puts together what a sentence goes over, in consecutive cues."""
    # without full stops, as in captions of a machine, only a small letter shows that a sentence goes on
    has_stops = sum(_ends_sentence(speech.plain) for speech in speeches) * 4 >= len(speeches)
    group = list[_Speech]()
    for speech in speeches:
        if group and not (len(group) < MOST_CUES and _goes_on(group[-1], speech, has_stops)):
            yield group
            group = []
        group.append(speech)
    if group:
        yield group


def _goes_on(speech: _Speech, after: _Speech, has_stops: bool) -> bool:
    """Returns True if a sentence goes on from a cue to the next one."""
    begins, has_ended = _BEGINS.match(after.plain), _ends_sentence(speech.plain)
    if after.start == speech.start or abs(after.start - speech.stop) > LONGEST_PAUSE:
        return False
    if not speech.plain or not begins or after.has_dash or after.voice not in ("", speech.voice):
        return False
    if begins[1].islower():
        return not has_ended or bool(_PAUSES.search(speech.plain))
    return has_stops and not has_ended


def _span(text: str, group: Sequence[_Speech], place: str, newline: str, is_vtt: bool) -> list[Span]:
    """Returns the span of a block, if there are words in it."""
    pieces, gaps = list[Fragment](), [(speech.end, after.begin) for speech, after in pairwise(group)]
    for speech, gap in zip(group, [*gaps, None], strict=True):
        pieces += fragments(text, speech.begin, speech.end, _TAG)
        if gap is not None:
            space = Fragment("text", gap[0], gap[0], " ")
            pieces += [space, Fragment("alone", *gap), space]
    if not (spans := spans_of(pieces, place)):
        return []
    begin, end, tags = spans[0].begin, spans[0].end, spans[0].tags
    shown = [text[max(speech.begin, begin) : min(speech.end, end)].split("\n") for speech in group]
    breaks = [[1] * sum(map(bool, map(str.strip, lines))) for lines in shown]
    borders = [tag for tag, gap in tags.items() if gap in gaps]

    def spell(translation: str) -> str:
        words = SPACE.sub(" ", translation)
        parts = re.split("|".join(borders), words) if borders else [words]
        if not all(length(part.strip()) for part in parts):  # alignment has put all words on one side
            parts = cut("".join(parts), [len(speech.plain) for speech in group])
        written = [newline.join(cut(*pair)).strip() for pair in zip(parts, breaks, strict=True)]
        return "".join(part for pair in zip(["", *borders], written, strict=True) for part in pair)

    return [replace(spans[0], spell=spell, spell_text=str if is_vtt else spell_as(text[begin:end]))]


def _ends_sentence(text: str) -> bool:
    """Returns True if a stop is the last character but for closing marks, which may be one themselves."""
    words = text.rstrip(_CLOSING)
    return not _STOPS.isdisjoint(text[max(len(words) - 1, 0) :])
