"""Sentence ends in running text, in any language that writes full stops.

The rule is written by hand, because the language of a corpus may be unknown: it knows the stops that end a sentence in
most scripts, and the abbreviations, ordinals and initials of German and English. If in doubt, it does not split,
because two sentences together are translated better than half a sentence. If the language is known to be another one, a
full stop ends a sentence only if sentencex, which has the abbreviations of about 300 languages, also finds an end. By
itself sentencex would split `ARBEITSTAG.INTL` and `M. Dupont`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.data.words import Span


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER_LAST = _words(
    """
    Capt Cmdr Col Fa Frl Gen Gov Hon Ing Ms Mt Pres Rep Rev Sen Sgt St bzw ca cf dipl dr evtl exkl gegr ggf hr hrn hrsg
    inkl lt messrs mind mr mrs prof sog urspr vgl vs zzgl
    """
)
"""Abbreviations that are never at the end of a sentence; those with a capital are ordinary words without it."""

_SELDOM_LAST = _words(
    """
    apr aug bros co corp dec dept dez esq est etc feb ff hbf inc jan jh jhd jhdt jr jun jul ltd mio mrd mär nov oct okt
    phd sep sept sr usf usw
    """
)
"""Abbreviations that end a sentence only if the next word looks like the beginning of one."""

_BEFORE_NUMBERS = _words("abb abs art bd ch eq f fig figs hausnr kap no nos nr p pp s sec tab tel vol")
"""Abbreviations before a number, which are ordinary words or letters elsewhere."""

_BEGINNINGS = _words(
    """
    A After All Also Although An And As At Because Before But By Did Do Does Each For From He Her Here His How However I
    If In Is It Its Let Many Most My No Not Now On Once One Our She Since So Some That The Their Then There These They
    This Those Today To Two We What When Where Which While Who Why With Yes Yet You Your
    Aber Als Am Auch Auf Aus Bei Beim Bis Da Dabei Dadurch Dafür Damals Damit Danach Dann Daraus Darum Das Dazu Dem Den
    Denn Dennoch Der Deren Des Deshalb Dies Diese Dieser Dieses Die Doch Dort Durch Ein Eine Einem Einen Einer Eines Er
    Es Etwa Für Heute Hier Ich Ihm Ihr Ihre Im In Ist Ja Jeder Jetzt Kein Keine Man Mit Nach Nachdem Nein Nun Nur Ob
    Obwohl Oder Ohne Schon Sein Seine Seit Seitdem Sie Sind So Sobald Sonst Später Trotzdem Über Um Und Uns Unser Unter
    Vom Von Vor War Waren Warum Was Weil Wenn Wer Wie Wir Wo Während Zu Zum Zur Zwar Zwei
    """
)
"""Capitalised words that begin sentences: they show that a sentence has ended before them, even after an
abbreviation."""

_BEFORE_ORDINALS = _words(
    """
    ab am beim bis das dem den der des die ein eine einem einen einer im ihr ihre ihrem ihren mein meine meinem meinen
    seit sein seine seinem seinen unser unsere vom zum zur
    """
)
"""German words that may precede an ordinal: `am 3. Mai`, `das 19. Jahrhundert`."""

_ORDERED = _words(
    """
    januar jänner februar märz april mai juni juli august september oktober november dezember jahrhundert jahrhunderts
    jahrtausend jh jhd jhdt klasse stock platz etage
    """
)
"""Nouns that follow an ordinal without an article: `Mittwoch, 3. Mai`, `Anfang 20. Jahrhundert`."""

LINE_ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Characters at which some programs, such as `str.splitlines`, end a line, but this toolkit does not."""
UNPRINTABLE = LINE_ENDS + "".join(map(chr, [*range(9), *range(14, 28), 31, 127]))
"""These and the controls of ASCII, except TAB and LF, which programs and terminals may obey."""
_ALONE = "。！？｡।॥။។፧።"
"""Stops that end a sentence without white space after them."""
_STRONG = "!?؟‼⁇⁈⁉"
_STOPS = f".{_STRONG}…۔։\u037e"
_CLOSING = "\"'”’»«“‘›‹)\\]}」』）】"
_OPENING = "\"'„“‚‘«»‹›([{¿¡–—-…"

_STOP = re.compile(
    rf"(?P<alone>[{_ALONE}]+)[{_CLOSING}]*"
    rf"|(?<![{_STOPS}])(?P<stop>[{_STOPS}]++)[{_CLOSING}]*+(?=\s|$)"
    rf"|(?P<line>[{LINE_ENDS}]\s*)"
)
_QUOTED = re.compile("「[^「」]*」|『[^『』]*』|（[^（）]*）|“[^“”]*”|《[^《》]*》|〈[^〈〉]*〉")
_WORD_BEFORE = re.compile(r"(?s)(?=.*[\w.&@'’-]$)(?:(?P<previous>\w++)[^\w\s]*+\s++)?[^\w\s]*(?P<word>[\w.&@'’-]++)$")
_NEXT = re.compile(rf"\s*[{re.escape(_OPENING)}]*\s*(?P<word>\w*)")
_HIRAGANA = re.compile("[\u3040-\u309f]")
_LONGEST_LOOK = 80  # characters before a full stop that are searched for a word and the one before it
_BY_HAND = ("de", "en")  # languages whose abbreviations are listed above
_ROMAN = re.compile("[IVX]{2,}")


def sentence_spans(text: str, language: str | None = None) -> list[Span]:
    """Divides a text into sentences, in order, without the white space around them; the sentences and the white space
    make up the text. A blank text has none. ``language`` is a code such as ``cs``, if it is known."""
    spans: list[Span] = []
    begin = 0
    quoted = [(-1, 0), *(match.span() for match in _QUOTED.finditer(text))]
    last = len(text.rstrip())
    for match in _STOP.finditer(text):
        if match.end() >= last:  # the last sentence ends at the end of the text
            break
        stop = match.start() if match["line"] else match.end()
        if match["line"] or (_ends(text, begin, match, quoted) and _is_confirmed(text, begin, match, language)):
            _append(spans, text, begin, stop)
            begin = stop
    _append(spans, text, begin, len(text))
    return spans


def _is_confirmed(text: str, begin: int, match: re.Match[str], language: str | None) -> bool:
    """Returns False if the full stop of a match belongs to an abbreviation in sentencex's list for the language."""
    stop = match.end()
    if match[0] != "." or language is None or len(language) > 3 or language in _BY_HAND or stop == len(text):
        return True
    try:
        from sentencex import get_sentence_boundaries
    except ImportError:  # only the rule above applies
        return True
    first = max(begin, stop - _LONGEST_LOOK)  # the neighbours suffice, and many quotes take quadratic time
    found = get_sentence_boundaries(language, text[first : stop + _LONGEST_LOOK])
    return any(first + each["start_index"] + len(each["text"].rstrip()) == stop for each in found)


def _append(spans: list[Span], text: str, begin: int, end: int) -> None:
    piece = text[begin:end]
    if stripped := piece.strip():
        first = begin + len(piece) - len(piece.lstrip())
        spans.append((first, first + len(stripped)))


def _ends(text: str, begin: int, match: re.Match[str], quoted: list[Span]) -> bool:
    """Returns True if a stop ends the sentence that began at ``begin``."""
    end = match.end()
    if match["alone"]:
        # of the quotations that begin before the stop, only the last may contain it
        last = quoted[bisect_left(quoted, (match.start(), 0)) - 1][1]
        if match.start() < last - 1 and text[end : end + 1].strip():
            return end == last and not _HIRAGANA.match(text, end)
        return True
    following = _NEXT.match(text, end)
    word = following["word"] if following else ""
    if word[:1].islower():
        return False
    stop = match["stop"]
    if set(stop) & set(_STRONG):
        return True
    if "…" in stop or len(stop) > 1:
        return not word or word in _BEGINNINGS or not word[0].isupper()
    if stop != "." or end > match.end("stop"):
        return True
    return not _goes_on(text, begin, match.start(), word)


def _goes_on(text: str, begin: int, stop: int, following: str) -> bool:
    """Returns True if the full stop at ``stop`` belongs to an abbreviation or a number, in a sentence that began at
    ``begin``, with the next word ``following``."""
    match = _WORD_BEFORE.search(text[max(begin, stop - _LONGEST_LOOK) : stop])
    if match is None:
        return False
    word, previous = match["word"], (match["previous"] or "").lower()
    bare = word.lower().rpartition("-")[2]
    begins = following in _BEGINNINGS or not following
    if word.isdecimal():
        is_first = not text[begin : stop - len(word)].strip()
        counts = len(word) <= 2 and previous in _BEFORE_ORDINALS and not begins
        return is_first or counts or following.lower() in _ORDERED
    if word in _NEVER_LAST or bare in _NEVER_LAST:
        return True
    if following[:1].isdecimal() and (bare in _BEFORE_NUMBERS or bare.endswith("str")):
        return True
    if len(word) == 1 and word.isalpha():
        return not (len(previous) > 1 and (word == "I" or (begins and word.isupper())))
    dotted = "." in word and all(len(part) <= 2 for part in word.split("."))
    return (dotted or bare in _SELDOM_LAST or bare.endswith("str") or bool(_ROMAN.fullmatch(word))) and not begins
