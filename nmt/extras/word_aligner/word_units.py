"""The units that a word aligner aligns: words, or parts of words.

Whole words have clear translations; parts of words help where a word is rare: *Straßenecke* occurs once, *street
corner* often. Several ways to cut the same text give different wrong links and the same right ones (Asgari, Sabet,
Dufter, Ringlstetter and Schütze 2020, "Subword Sampling for Low Resource Word Alignment").
"""

from __future__ import annotations

import io
import os
import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

import sentencepiece

from nmt.data.tokenizer import Tokenizer
from nmt.data.vocabulary import BOS, EOS, PAD, UNK
from nmt.data.words import is_punctuation, is_unspaced, text_words

_MARK = "\u2581"

_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u065f\u0670]")
"""Accents of Latin, Greek and Cyrillic letters, and the vowels that Hebrew and Arabic may leave out."""

_MOST_KNOWN = 1 << 16
"""Words whose tokens are kept."""

_TRAINING_THREADS = 8
"""The model depends on their number; see ``nmt.data.tokenizer``."""


Run: TypeAlias = tuple[str, ...]
"""Words of a script without spaces that are written together."""


class WordUnits(ABC):
    """A way to cut words."""

    runs: Tokenizer | None = None
    """Cuts words of scripts without spaces that are written together; None: each is a token."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}

    def tokens(self, words: Iterable[str | Run]) -> tuple[list[str], list[int]]:
        """The tokens of words, and how many each word has: at least one, or 0 for a word of a run that shares the token
        of the word before it."""
        tokens: list[str] = []
        counts: list[int] = []
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        for word in words:
            if isinstance(word, tuple):
                of_run = self._cut_run([_plain(each) for each in word])
                tokens += of_run[0]
                counts += of_run[1]
                continue
            units = self._known.get(word)
            if units is None:
                units = self._known[word] = self._cut(word)
            tokens += units
            counts.append(len(units))
        return tokens, counts

    def _cut(self, word: str) -> tuple[str, ...]:
        tokens: list[str] = []
        for is_run, parts in groupby(plain_parts(word), is_unspaced):
            if is_run:
                tokens += self._cut_run(list(parts))[0]
            else:
                tokens += [token for part in parts for token in self._cut_part(part)]
        return tuple(tokens) or ("".join(word.split()),)

    def _cut_run(self, words: Sequence[str]) -> tuple[list[str], list[int]]:
        if self.runs is None:
            cut = [self._cut_part(word) for word in words]
            return [token for tokens in cut for token in tokens], [len(tokens) for tokens in cut]
        run = "".join(words)
        cuts = {end for _, end in self.runs.encode_spans(run)[1]}
        tokens, counts, begin, end = [], [], 0, 0
        for word in words:
            counts.append(int(begin == end))
            end += len(word)
            if end in cuts or end == len(run):
                tokens.append(run[begin:end])
                begin = end
        return tokens, counts

    @abstractmethod
    def _cut_part(self, part: str) -> Sequence[str]: ...


class WholeWords(WordUnits):
    """Words without their punctuation."""

    def _cut_part(self, part: str) -> Sequence[str]:
        return (part,)


class Beginnings(WordUnits):
    """The first letters of words without their accents: forms of one word become one. Texts write accents or leave them
    out; with ``letters`` None words stay whole."""

    def __init__(self, letters: int | None = None) -> None:
        super().__init__()
        self.letters = letters

    def _cut_part(self, part: str) -> Sequence[str]:
        bare = _MARKS.sub("", unicodedata.normalize("NFD", part))
        return (unicodedata.normalize("NFC", bare)[: self.letters] or part,)


class Subwords(WordUnits):
    """The most probable pieces of a unigram language model (Kudo 2018)."""

    def __init__(self, model: bytes, *, name: str = "subword model") -> None:
        """Raises InputError for bytes of anything else; ``name`` is the name in the message."""
        super().__init__()
        self._tokenizer = Tokenizer(model, name=name)

    @property
    def model(self) -> bytes:
        """The bytes of the model file."""
        return self._tokenizer.model

    @cached_property
    def size(self) -> int:
        """Entries of the vocabulary, special ones included."""
        return self._tokenizer.size

    def _cut_part(self, part: str) -> Sequence[str]:
        ids, spans = self._tokenizer.encode_spans(part)
        # Unknown pieces keep their letters; a piece that only marks the beginning of a word is dropped.
        texts = [
            part[begin:end] if piece == UNK else text
            for piece, text, (begin, end) in zip(ids, self._tokenizer.pieces(ids), spans, strict=True)
        ]
        return [text for text in texts if text != _MARK] or texts

    @classmethod
    def learn(cls, words: Counter[str], share: float) -> Subwords:
        """Learns a vocabulary of at most this share of the number of distinct plain words, and all characters, from
        words with their frequencies. Raises ValueError where there are no words."""
        counts: Counter[str] = Counter()
        for word, count in words.items():
            for part in plain_parts(word):
                counts[part] += count
        size = round(share * len(counts))
        rows = [f"{part}\t{count}" for part, count in sorted(counts.items()) if "\t" not in part and "\0" not in part]
        if not rows:
            raise ValueError("no words")
        characters = len(set("".join(counts)))
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(rows), input_format="tsv", model_writer=model, model_type="unigram",
                vocab_size=max(size, characters + 8), hard_vocab_limit=False, character_coverage=1.0,
                num_threads=_TRAINING_THREADS, minloglevel=2, pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS,
            )  # fmt: skip
        except RuntimeError:  # only words of thousands of letters, or characters without a width
            raise ValueError("no words that can be cut") from None
        return cls(model.getvalue())


def learn_runs(words: Counter[str], size: float) -> Tokenizer | None:
    """Learns pieces of the runs of scripts without spaces; None without runs."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        if any(map(is_unspaced, word)):
            for is_run, parts in groupby(plain_parts(word), is_unspaced):
                if is_run:
                    counts["".join(parts)] += count
    letters = sum(len(run) * count for run, count in counts.items())
    if not letters:
        return None
    size = round(size * letters**0.5) + len(set("".join(counts)))
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(f"{run}\t{count}" for run, count in sorted(counts.items())), input_format="tsv",
            model_writer=model, model_type=os.environ.get("X_TYPE", "unigram"),
            vocab_size=size + 8, hard_vocab_limit=False, character_coverage=1.0, add_dummy_prefix=False, user_defined_symbols=[_MARK],
            num_threads=_TRAINING_THREADS, minloglevel=2, pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS,
        )  # fmt: skip
    except RuntimeError:
        return None
    return Tokenizer(model.getvalue())


def plain_parts(word: str) -> list[str]:
    """The words and signs of a white-space word, lower-cased and normalized (NFKC), without punctuation: the full stops
    of two sentences are aligned, but *room.* and *sehen.* need not be."""
    parts = words_and_signs(word)
    if any(map(is_unspaced, parts)):
        return parts
    return [part for part in parts if not is_punctuation(part)] or parts


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


def words_and_signs(text: str) -> list[str]:
    """All words and signs of a text, lower-cased and normalized (NFKC)."""
    plain = _plain(text)
    return [plain[begin:end] for begin, end in text_words(plain)]
