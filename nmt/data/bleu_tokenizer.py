"""Choice of a tokenizer with which BLEU can count the words of a text, by the script of the text.

BLEU's usual tokenizer, 13a, cuts at spaces and punctuation. In a script without spaces it takes whole clauses for
words, of which no two are equal, so BLEU is near 0 for any translation. sacreBLEU has other tokenizers for such
scripts.

The module is below ``evaluation`` because the reward of minimum risk training needs it as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

_NOTED = 0.02
"""Smallest share of the letters for which scripts without spaces count. It corresponds to one line in fifteen, because
a Chinese sentence has about a third of the letters of an English one; occasional names in brackets have a smaller
share."""

_LETTER = re.compile(r"[^\W\d_]")
_HAN = re.compile(
    "[\u3005-\u3007\u3100-\u312f\u31a0-\u31bf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_KANA = re.compile("[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_HANGUL = re.compile("[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]")
_OTHER = re.compile("[\u0e00-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aad\u1b00-\u1b7f\ua980-\ua9ff\uaa60-\uaadf]")
"""Characters of Thai, Lao, Tibetan and Myanmar; Khmer; Tai Le and New Tai Lue; Tai Tham; Balinese; Javanese; Tai Viet.
Vowel signs, which are not letters, count as well."""


def bleu_tokenizer(references: Iterable[Iterable[str]]) -> str:
    """Chooses sacreBLEU's tokenizer for a corpus with one or more sets of references, and returns its name. It depends
    on the references only, so that all systems that are compared on them have the same tokenizer.

        zh        Han, even where it is a small part: text with spaces is cut as 13a cuts it
        ja-mecab  Han and kana; char where MeCab and its dictionary are not installed
        char      Thai, Lao, Khmer, Burmese, Tibetan and others without spaces
        ko-mecab  Hangul; 13a where MeCab-ko is not installed, for Korean has spaces
        13a       all others
    """
    text = "".join(line for lines in references for line in lines)
    patterns = (_LETTER, _HAN, _KANA, _OTHER, _HANGUL)
    letters, han, kana, other, hangul = (len(pattern.findall(text)) for pattern in patterns)
    unspaced = han + kana + other
    if unspaced > letters / 2:
        if other > unspaced / 10:
            return "char"
        # Chinese has a stray の, while no Japanese text is without kana
        return _usable("ja-mecab", "char") if kana > unspaced / 20 else "zh"
    if hangul > letters / 2:
        return _usable("ko-mecab", "13a")
    return "zh" if han > _NOTED * letters else "13a"


@cache
def sentence_bleu(tokenize: str) -> Any:
    """Creates sacreBLEU's object for BLEU of single sentences, once for each tokenizer, because MeCab reads a
    dictionary."""
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=True, tokenize=tokenize)


def _usable(name: str, otherwise: str) -> str:
    try:
        sentence_bleu(name)
    except (ImportError, RuntimeError, OSError, AssertionError):  # not installed, or with another dictionary
        return otherwise
    return name
