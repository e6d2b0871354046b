"""Translations in which digits stood for the numbers that were lost.

A model that has seldom read a number may write another one, but hardly ever for a single digit. So "Er kam 1492." is
translated as "Er kam 2.", and the number put into "He came in 2.", as for placeholders of markup. What a model writes
of a formula, a range, a list or a tag is seldom right, so that one digit also stands for the whole of it. A model that
is unsure even of digits is forced to write each of them, and no others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from nmt.data.context import with_context_of
from nmt.data.number_words import WORDS, without_country
from nmt.data.tokenizer import MARK, Tokenizer
from nmt.data.words import Span
from nmt.extras.documents.glossary import Occurrence, Term
from nmt.extras.documents.markup import DIGITS
from nmt.extras.documents.replacement import spliced
from nmt.search.config import SearchConfig
from nmt.search.engine import TorchEngine
from nmt.search.hypothesis import WORD_END, Constraint
from nmt.translator.translator import Candidate, EncodedSentences, Translator

TRIES = 3
"""Maximum number of choices of digits for a sentence, which are translated together, where none is forced."""

BEAM = 10
"""Minimum number of beams of a constrained search; it is doubled if ten or more subwords must be met, and so on."""

MOST = 4
"""Maximum number of translations of a sentence by each search, which ends the sooner the fewer they are."""

_TAG = r"""</?[a-zA-Z][\w:.-]*+(?:\s++[\w:.-]++=(?:"[^"<>]*+"|'[^'<>]*+'|[^\s"'<>]++))*+\s*+/?>"""
_LISTED = r"[A-Z]{0,3}\d[\d.,:;%]*+"
_RUN = re.compile(
    rf"""{_TAG}|(?<![\w.,:;%]){_LISTED}(?:(?<!\.)\s++{_LISTED})++"""
    r"""|(?:[^\s"„“”‚‘«»()]|\((?:[^\s()]|\([^\s()]*+\))*+\))++"""
)
"""A tag, a list of numbers or codes, or characters without white space, quotation marks and single parentheses, and
punctuation after them."""

_HAS_DIGIT = re.compile(r"(?!<0x(?!3\d>)).*[0-9]", re.DOTALL)
"""A token with a digit, which a byte such as <0xC3> has not."""

_NUMBER_OR_TIME = re.compile(r"(?!\d{1,2}\.\d{1,2}\.\d)[\d.,:]+")
"""A number or time, but not a date."""

_DIGIT_OR_WORD = re.compile(r"(?<![\d.,:])\d(?!\d|[.,:]\d)|[^\W\d_]++")

_ORDINAL = re.compile(r"(?<!\d)(\d++)(?:st|nd|rd|th)\b")


def with_stand_ins(
    translator: Translator, sentences: EncodedSentences, lost: Mapping[int, Sequence[Occurrence]], language: str | None,
    forced: str | None = None,
) -> Iterator[tuple[int, str]]:  # fmt: skip
    """Translates sentences into a language, such as "en", with digits in place of what was lost of each, which is given
    by the indices of the sentences, and then also in place of whole expressions. Yields the translations in which
    digits appear once, with the numbers in their place, in each way of writing them, and the index of each. If
    ``forced`` is "digits" or "words", translations have these digits, as part of a word or not, or as words, and no
    others. With "digits", sentences of which nothing was lost are translated without any digit."""
    choices: list[tuple[int, list[tuple[Occurrence, str]]]] = [
        (row, []) for row, of_row in lost.items() if forced == "digits" and not of_row
    ]
    choices += [
        (row, pairs)
        for row, of_row in lost.items()
        for items in (of_row, _with_expressions(sentences.texts[row], of_row))
        for pairs in _choices(sentences.texts[row], items, forced is not None)
    ]
    sources = [(sentences.texts[row], {each.span: digit for each, digit in pairs}) for row, pairs in choices]
    texts = [with_context_of(text, spliced(text, digits, digits.values())) for text, digits in sources]
    trained, search, constraints = translator.trained, translator.search, None
    if forced is not None:
        phrases, is_digit_V = _digits(trained.tokenizers.target, trained.compute.device, forced)
        constraints = [tuple(phrases[digit] for _, digit in pairs if phrases[digit]) for _, pairs in choices]
        assert isinstance(translator.engine, TorchEngine)
        translator = replace(translator, engine=replace(translator.engine, reserved_V=is_digit_V))
        # a beam for each number of subwords that are met, of which a word has two at most
        beam = max(search.beam, BEAM if forced == "digits" else 2 * BEAM)
        # a model that is unsure goes on and on before it ends, unless that costs
        search = search.model_copy(update={"beam": beam, "length_penalty": 0.0, "repetition_margin": 100.0})
    search = search.model_copy(update={"n_best": min(search.beam, MOST)})
    subwords = (each[: search.max_source_tokens] for each in trained.tokenizers.source.encode_batch(texts))
    encoded = EncodedSentences(texts, trained.prefixed(subwords, texts), None, constraints)
    for (row, pairs), ranked in zip(choices, searched(translator, encoded, search), strict=True):
        for text, _ in ranked:
            found = {span: each.term.targets for each, digit in pairs if (span := _span(text, digit, language))}
            variants = dict.fromkeys(tuple(each[index % len(each)] for each in found.values()) for index in range(3))
            for variant in variants if found or not pairs else ():
                yield row, _ORDINAL.sub(_ordinal, spliced(text, found, variant))


def _ordinal(match: re.Match[str]) -> str:
    """Writes an English ordinal, whose digit stood for another number, as 1st, 2nd, 3rd, 4th or 11th."""
    endings = {} if match[1][-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}
    return match[1] + endings.get(match[1][-1], "th")


@lru_cache(maxsize=8)
def _digits(tokenizer: Tokenizer, device: torch.device, forced: str) -> tuple[dict[str, Constraint], Tensor]:
    """Returns the phrases of each digit, one of which a translation is forced to have, and a mask of all tokens with
    digits, (V,)."""
    pieces = tokenizer.pieces(range(tokenizer.size))
    phrases: dict[str, Constraint] = {
        digit: tuple((token,) for token, piece in enumerate(pieces) if piece.lstrip(MARK) == digit) for digit in DIGITS
    }
    if forced == "words":
        phrases = {d: ((*tokenizer.encode(d), WORD_END),) if tokens else () for d, tokens in phrases.items()}
    return phrases, torch.tensor([_HAS_DIGIT.match(piece) is not None for piece in pieces], device=device)


def searched(translator: Translator, sentences: EncodedSentences, search: SearchConfig) -> list[list[Candidate]]:
    """Searches for translations of sentences, without telling the progress of the search."""
    assert isinstance(translator.engine, TorchEngine)
    prefixes, constraints = sentences.prefixes, sentences.constraints
    engine = replace(translator.engine, on_batch=None)
    hypotheses = engine.translate_ids(sentences.ids, search, prefixes=prefixes, constraints=constraints)
    return translator.with_texts(sentences, hypotheses)


def _choices(text: str, lost: Sequence[Occurrence], is_forced: bool) -> Iterator[list[tuple[Occurrence, str]]]:
    """Chooses a digit for each number that was lost, of those that are not beside them in the text, best neither as
    words ("zwei"), several times; or once, and only if there are no others, which a forced translation cannot have."""
    others = re.findall(r"\d+", spliced(text, [each.span for each in lost], [" "] * len(lost)))
    said = {known.get(word) for word in re.findall(r"[^\W\d_]+", text.lower()) for known in WORDS.values()}
    free = sorted(set(DIGITS) - set(others), key=lambda digit: (digit in said, text.count(digit), digit))
    tries = TRIES if not is_forced else 0 if others or len(lost) > len(free) else 1
    for first in range(min(tries, len(free)) if lost else 0):
        yield list(zip(lost, free[first:] + free[:first], strict=False))


def _with_expressions(text: str, lost: Sequence[Occurrence]) -> list[Occurrence]:
    """Returns the expressions of a text, such as =SUM(A1:B7), A1:B7 or 3-6, and what else was lost of it; nothing if
    there are no expressions."""
    runs = [(match.start(), match[0].rstrip(".,;:!?…")) for match in _RUN.finditer(text if lost else "")]
    whole = [
        Occurrence(Term(run, (run,)), (begin, begin + len(run)))
        for begin, run in runs
        if _is_expression(run) and not _NUMBER_OR_TIME.fullmatch(run)
    ]
    others = [each for each in lost if not any(each.span[0] in range(*expression.span) for expression in whole)]
    return sorted([*others, *whole], key=lambda each: each.span) if whole else []


def _is_expression(run: str) -> bool:
    """Returns True for several numbers or codes, or a tag or call of a function with one."""
    numerals = sum(any(map(str.isdecimal, part)) for part in re.split(r"\W+", run))
    return numerals > 1 or (numerals == 1 and re.search(r"^<|[\w=]\(", run) is not None)


def _span(text: str, digit: str, language: str | None) -> Span | None:
    """Finds the only place of a digit, or of a word for it, in a translation."""
    known = WORDS.get(without_country(language), {})
    matches = _DIGIT_OR_WORD.finditer(text)
    spans = [match.span() for match in matches if known.get(match[0].lower(), match[0]) == digit]
    return spans[0] if len(spans) == 1 else None
