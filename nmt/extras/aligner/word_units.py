"""The units that a word aligner aligns: words, or parts of words.

Whole words have clear translations; parts of words help where a word is rare: *Straßenecke* occurs once, *street
corner* often. Several segmentations of the same text give different wrong links and the same right ones (Asgari, Sabet,
Dufter, Ringlstetter and Schütze 2020, "Subword Sampling for Low Resource Word Alignment").
"""

from __future__ import annotations

import io
import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import sentencepiece

from nmt.data.tokenizer import MARK, Tokenizer
from nmt.data.vocabulary import BOS, EOS, PAD, UNK
from nmt.data.words import Run, is_punctuation, is_unspaced, text_words, words_and_runs

_MARKS = re.compile("[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u064b-\u065f\u0670]")
"""Accents of Latin, Greek and Cyrillic letters, and the vowels that Hebrew and Arabic may leave out."""

_MOST_KNOWN = 1 << 15
"""Maximum number of words whose tokens are cached, unless the last call alone has more; the parts are cached for twice
as many words, of both sides."""

_LONGEST_KNOWN = 32
"""Length from which on words are not cached: they are lines without spaces, which are not repeated."""

_TRAINING_THREADS = 8
"""Number of threads of training, on which the model depends; see ``nmt.data.train_tokenizers``."""


class WordUnits(ABC):
    """A method to segment words."""

    runs: Subwords | None = None
    """Segments runs of words of scripts without spaces; None means that each word is segmented separately."""

    def __init__(self) -> None:
        self._known: dict[str, list[str]] = {}

    def tokens(self, words: Collection[str | Run]) -> tuple[list[str], list[int]]:
        """Returns the tokens of words, and the number of tokens of each word: one or more, but none for a word of a run
        that shares the token of the preceding word."""
        tokens: list[str] = []
        counts: list[int] = []
        if len(self._known) + len(words) > _MOST_KNOWN:
            self._known.clear()
        for word in words:
            word = word[0] if len(word) == 1 else word  # a run of one word is that word
            if isinstance(word, tuple):
                units, counts_of_run = self._cut_run([_plain(each) for each in word])
                counts += counts_of_run
            else:
                units = self._known.get(word) or self._cut(word)
                counts.append(len(units))
                if len(word) < _LONGEST_KNOWN:
                    self._known[word] = units
            tokens += units
        return tokens, counts

    def _cut(self, word: str) -> list[str]:
        tokens: list[str] = []
        for part in plain_parts(word):
            tokens += self._cut_run(part)[0] if is_unspaced(part[0]) else self._cut_part(part[0])
        return tokens or ["".join(word.split())]

    def _cut_run(self, words: Sequence[str]) -> tuple[list[str], list[int]]:
        """Returns the tokens of a run, each of which consists of whole words, and their number for each word."""
        if self.runs is None:
            cut = [self._cut_part(word) for word in words]
            return [token for tokens in cut for token in tokens], list(map(len, cut))
        run = "".join(words)
        ends = {end for _, end in self.runs.tokenizer.encode_spans(run)[1]} | {len(run)}
        tokens, counts, begin, end = [], [], 0, 0
        for word in words:
            counts.append(int(begin == end))
            end += len(word)
            if end in ends:
                tokens.append(run[begin:end])
                begin = end
        return tokens, counts

    @abstractmethod
    def _cut_part(self, part: str) -> Sequence[str]: ...


class Beginnings(WordUnits):
    """The first letters of words without their accents, so that forms of one word become equal; some texts leave out
    accents. If ``letters`` is None, words stay whole."""

    def __init__(self, letters: int | None = None) -> None:
        super().__init__()
        self.letters = letters

    def _cut_part(self, part: str) -> Sequence[str]:
        bare = _MARKS.sub("", unicodedata.normalize("NFD", part))
        return (unicodedata.normalize("NFC", bare)[: self.letters] or part,)


class Subwords(WordUnits):
    """The most probable pieces of a unigram language model (Kudo 2018)."""

    def __init__(self, model: bytes, *, name: str = "subword model") -> None:
        """Raises InputError for bytes that are not such a model; ``name`` is its name in the message."""
        super().__init__()
        self.tokenizer = Tokenizer(model, name=name)

    def _cut_part(self, part: str) -> Sequence[str]:
        ids, spans = self.tokenizer.encode_spans(part)
        # unknown pieces keep their letters; a piece that only marks the beginning of a word is dropped
        texts = [
            part[begin:end] if piece == UNK else text
            for piece, text, (begin, end) in zip(ids, self.tokenizer.pieces(ids), spans, strict=True)
        ]
        return [text for text in texts if text != MARK] or texts

    @classmethod
    def learn(cls, words: Counter[str], share: float) -> Subwords:
        """Learns a vocabulary of at most this share of the number of distinct plain words, and all characters, from
        words with their frequencies. Raises ValueError if there are no words."""
        counts: Counter[str] = Counter()
        for word, count in words.items():
            for part in plain_parts(word):
                for each in part:
                    counts[each] += count
        return cls._learnt(counts, round(share * len(counts)))

    @classmethod
    def learn_runs(cls, words: Counter[str], size: float) -> Subwords | None:
        """Learns the pieces of runs of scripts without spaces: ``size`` times the square root of their length in
        characters, and all characters. Returns None if there is nothing to segment."""
        counts: Counter[str] = Counter()
        for word, count in words.items():
            for part in plain_parts(word):
                if is_unspaced(part[0]):
                    counts["".join(part)] += count
        length = sum(len(run) * count for run, count in counts.items())
        with suppress(ValueError):
            # the mark is in the vocabulary of every tokenizer, but no run begins with it
            options = {"add_dummy_prefix": False, "user_defined_symbols": [MARK], "max_sentencepiece_length": 8}
            return cls._learnt(counts, round(size * length**0.5), **options)
        return None

    @classmethod
    def _learnt(cls, counts: Counter[str], size: int, **options: Any) -> Subwords:
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
                shrinking_factor=0.5, num_sub_iterations=1,  # three fifths of the time, for pieces as good
                **options,
            )  # fmt: skip
        except RuntimeError:  # if there are only words of thousands of letters, or characters without a width
            raise ValueError("no words that can be cut") from None
        return cls(model.getvalue())


def plain_parts(word: str) -> tuple[Run, ...]:
    """Divides a white-space word into words, signs and runs, lower-cased and normalized (NFKC), without punctuation if
    it has no run: the full stops of two sentences are aligned, but *room.* and *sehen.* need not be."""
    return _parts(word) if len(word) < _LONGEST_KNOWN else _parts.__wrapped__(word)


@lru_cache(2 * _MOST_KNOWN)
def _parts(word: str) -> tuple[Run, ...]:
    plain = _plain(word)
    parts = tuple(words_and_runs(plain, text_words(plain)))
    has_run = any(is_unspaced(part[0]) for part in parts)
    return tuple(part for part in parts if has_run or not is_punctuation(part[0])) or parts


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()
