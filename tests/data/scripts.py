"""Characters that are hard on whoever looks for words and their places."""

from __future__ import annotations

WORDS = [
    "Hund", "läuft", "cafe\u0301", "A\u030angstro\u0308m", "a\u0323\u0302b",  # Latin, also with combining marks
    "Привет", "й", "مرحبا", "بِسْمِ", "नमस्ते", "क्षि",  # Cyrillic, Arabic, Devanagari
    "日本語", "我爱你。", "テスト", "ｶﾞｷﾞ", "한국", "\u1112\u1161\u11ab", "สวัสดี", "น้ำ",
    "👩\u200d🚀", "👍🏽", "🇩🇪", "❤\ufe0f",  # emoji
    "Ｈｕｎｄ", "１２！", "ﬁn", "aﬀe", "½", "①x", "ﷺ", "…", "№", "¨b", "ẞ", "İ",  # what NFKC rewrites
    "Don\u00adau", "x\u200by", "\u200bz", "w\u200b", "a\u2060b", "\ufeffq", "\u0301", "\u200d",  # without a width
    "\u2581", "a\u2581b", "\0", "\ud800", "q.", "(der)", "z.B.",
]  # fmt: skip
"""White-space words."""

SPACES = [" ", "  ", "\t", "\u00a0", "\u2028", "\u3000", "\x85", "\x1f"]

SCRIPTS = sorted(set("".join(WORDS + SPACES) + "'’-‐.,_·\u200c\u17d2\u1039កမခ"))
