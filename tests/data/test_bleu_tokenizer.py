"""The tokenizer of BLEU by the script of references, on texts of many languages."""

from __future__ import annotations

import sys
import unicodedata

import pytest

from nmt.data import bleu_tokenizer as script
from nmt.data.bleu_tokenizer import bleu_tokenizer

TEXTS = {
    "13a": [
        "He has a dog.", "Er hat einen Hund.", "У него есть собака.", "لديه كلب.", "उसके पास एक कुत्ता है।", "Έχει σκύλο.",
        "យ is a letter of Khmer, and 我 one of Chinese; both stand here by themselves, in a long enough sentence.",
        "", "1 2 3", "Anh ấy có một con chó.", "ውሻ አለው።", "ის ძაღლი ჰყავს.",
    ],
    "zh": ["我有一条狗。", "他說：「我有一隻狗。」", "狗", "我 有 一 条 狗 。", "我用 Python 写代码。",
        "他买了一瓶优の良品的酱油，还买了三斤苹果和两斤梨子。"],
    "char": [
        "ฉันมีสุนัข", "ຂ້ອຍມີໝາ", "ខ្ញុំមានឆ្កែ", "ကျွန်တော့်မှာခွေးရှိတယ်", "ང་ལ་ཁྱི་ཡོད།", "ꦲꦏ꧀ꦱꦫꦗꦮ", "ฉันมี iPhone สองเครื่อง",
        "我有一条狗。ฉันมีสุนัขสองตัวและแมวหนึ่งตัว",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in TEXTS.items() for text in texts])
def test_each_script_has_its_tokenizer(name: str, text: str) -> None:
    assert bleu_tokenizer([[text]]) == name
    assert bleu_tokenizer([[], [text], [text, ""]]) == name


def test_a_share_of_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """zh cuts English as 13a does, so that a tenth of Chinese is enough; char would not."""
    monkeypatch.setattr(script, "_usable", lambda name, otherwise: name)
    english = ["The committee will meet again on Tuesday to discuss the budget of next year."] * 90
    chinese, japanese = (
        ["委员会将于星期二再次开会，讨论明年的预算。"],
        ["委員会は火曜日に再び会合を開き、来年の予算について話し合う。"],
    )
    korean, thai = ["위원회는 화요일에 다시 모인다."], ["คณะกรรมการจะประชุมอีกครั้งในวันอังคาร"]
    for lines, number, expected in [
        (chinese, 10, "zh"), (chinese, 1, "13a"), (japanese, 10, "zh"), (japanese, 900, "ja-mecab"), (thai, 10, "13a"),
        (thai, 900, "char"), (korean, 10, "13a"), (korean, 900, "ko-mecab"),
    ]:  # fmt: skip
        assert bleu_tokenizer([english + lines * number]) == expected, (lines, number)
    for letter, name in (("ก", "char"), ("가", "ko-mecab"), ("は", "ja-mecab")):  # the larger part decides
        assert [bleu_tokenizer([[letter * here + "a" * (100 - here)]]) for here in (40, 60)] == ["13a", name]
    assert bleu_tokenizer([chinese * 30 + japanese]) == "zh"
    assert bleu_tokenizer([japanese * 9 + chinese]) == "ja-mecab"


def test_without_mecab_japanese_is_cut_into_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """And Korean, which has spaces, as other text with spaces."""
    for module in ("ja_mecab", "ko_mecab"):
        monkeypatch.setitem(sys.modules, f"sacrebleu.tokenizers.tokenizer_{module}", None)
    script.sentence_bleu.cache_clear()
    assert bleu_tokenizer([["犬がいます。"]]) == "char"
    assert bleu_tokenizer([["개가 있어요."]]) == "13a"
    script.sentence_bleu.cache_clear()


def test_the_groups_are_the_scripts_by_unicodes_names() -> None:
    """Each letter that has the name of a script is of its pattern, and of no other one."""
    names = {
        "_HAN": ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "BOPOMOFO LETTER"),
        "_KANA": ("HIRAGANA LETTER", "KATAKANA LETTER", "HALFWIDTH KATAKANA LETTER"),
        "_HANGUL": ("HANGUL SYLLABLE", "HANGUL CHOSEONG"),
        "_OTHER": (
            "THAI ", "LAO ", "KHMER ", "MYANMAR ", "TIBETAN ", "TAI LE ", "NEW TAI LUE ", "TAI THAM ", "TAI VIET ",
            "BALINESE ", "JAVANESE ",
        ),
    }  # fmt: skip
    extended = {*range(0xA960, 0xA980), *range(0xD7B0, 0xD800), *range(0x116D0, 0x116E4), *range(0x1AFF0, 0x1B170)}
    characters = map(chr, {*range(0x110000)} - extended)
    called = {each: unicodedata.name(each, "") for each in characters if unicodedata.category(each)[0] == "L"}
    everything = ("LATIN ", "CYRILLIC ", "ARABIC ", "DEVANAGARI ", *sum(names.values(), ()))
    for pattern, begins in names.items():
        found = set(getattr(script, pattern).findall("".join(called)))
        own = {character for character, name in called.items() if name.startswith(begins)}
        assert not own - found, pattern
        assert not {each for each in found - own if called[each].startswith(everything)}, pattern
