"""Text to subword ids and back, by SentencePiece (Kudo and Richardson 2018).

A word is a run of characters that are not white space in the sense of `str.split`. White space of any kind, and
SentencePiece's own mark U+2581, only separates words; a lone surrogate, which is not a character, is read as U+FFFD.
"""

from __future__ import annotations

import functools
import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np
import numpy.typing as npt
import sentencepiece

from nmt.core.errors import InputError
from nmt.core.files import read_whole, reading, replace_file
from nmt.data.config import SubwordsConfig
from nmt.data.subword_model import IMPORTED, read_model, with_control_pieces
from nmt.data.vocabulary import BOS, EOS, PAD, UNK

if TYPE_CHECKING:
    from nmt.data.imported import ImportedVocabulary
    from nmt.data.sampling import SegmentationSampler
    from nmt.data.words import Span

P = ParamSpec("P")
T = TypeVar("T")

MARK = "\u2581"
# a million pieces take 30 MB
_MAX_MODEL_BYTES = 256 << 20
FEW_TEXTS = 16
"""Number of texts below which SentencePiece takes longer to start its threads than to encode them."""
_SPACE = re.compile(r"\s")
# includes all characters that normalisation may read as white space, although Python does not
_ODD = re.compile(r"[^\w\s!-~]")
_SEPARATE_MARK = re.compile(r"(?<=\S)\s+([.,;:!?)\]}])(?!\S)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class EncodedWords(NamedTuple):
    """A sentence as subwords, with the word of each.

    Attributes:
        ids: Subword ids, without special ones.
        words: The words of the text.
        word_of_piece: The index of the word of every id. It never decreases; a word may have no piece.
        written: The part of the text that every id represents, without white space around it.
        word_spans: The begin and end of every word in the text.
        piece_spans: The begin and end of every id in the text. A span may begin or end with white space by
            `str.isspace`, but not with other characters that SentencePiece takes for white space.
        text: The sentence itself.
    """

    ids: tuple[int, ...]
    words: tuple[str, ...]
    word_of_piece: tuple[int, ...]
    written: tuple[str, ...]
    word_spans: tuple[Span, ...] = ()
    piece_spans: tuple[Span, ...] = ()
    text: str = ""


def _sound(method: Callable[Concatenate[Tokenizer, P], T]) -> Callable[Concatenate[Tokenizer, P], T]:
    """Wraps a method of a tokenizer to raise InputError if its model writes invalid UTF-8: a damaged model may do so
    when it normalises or spells a text, which the model file does not show."""

    @functools.wraps(method)
    def checked(self: Tokenizer, *arguments: P.args, **named: P.kwargs) -> T:
        try:
            return method(self, *arguments, **named)
        except UnicodeDecodeError:
            raise InputError(f"{self.name}: a damaged SentencePiece model: it writes what is not UTF-8") from None

    return cast("Callable[Concatenate[Tokenizer, P], T]", checked)


class Tokenizer:
    """One vocabulary and its segmentation. Any str can be encoded. Two tokenizers are equal if their models are equal.

    Args:
        model: A serialised SentencePiece model, as in a `.model` file.
        name: Name of the tokenizer in errors.

    Attributes:
        imported: The vocabulary of an imported model (see `nmt.data.imported`), or None.
        begin: The id that the decoder reads before its first token.

    Raises:
        InputError: The model is not a SentencePiece model, or has other special ids than pad 0, unk 1, bos 2, eos 3.
    """

    def __init__(self, model: bytes, *, name: str = "subword model") -> None:
        try:
            if not model:  # an empty message parses, as a model without any piece
                raise ValueError("empty")
            if model.startswith(IMPORTED):
                from nmt.data.imported import ImportedProcessor, split

                self._processor: Any = ImportedProcessor(*split(model))
            else:
                self._processor = sentencepiece.SentencePieceProcessor.from_proto(model)
        except (RuntimeError, ValueError):
            raise InputError(f"{name}: not a SentencePiece model, or damaged") from None
        self.imported: ImportedVocabulary | None = getattr(self._processor, "vocabulary", None)
        self.begin = BOS if self.imported is None else self.imported.begin
        if self.imported is None:
            special = tuple(getattr(self._processor, f"{what}_id")() for what in ("pad", "unk", "bos", "eos"))
            if special != (PAD, UNK, BOS, EOS):
                raise InputError(f"{name}: special ids are {special}, not (0, 1, 2, 3); let `nmt prepare` make it")
        self.model = model
        self.name = name
        self.fingerprint = hashlib.sha256(model).hexdigest()
        # word models have no lone separator; for them SentencePiece merges neighbouring unknown words into one token
        self._whole_words = self.imported is None and self._processor.piece_to_id(MARK) == UNK

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Reads a model file. Raises InputError."""
        with reading(path):
            return cls(read_whole(path, most=_MAX_MODEL_BYTES), name=str(path))

    @property
    def size(self) -> int:
        """Number of entries of the vocabulary, special ones included."""
        return int(self._processor.get_piece_size())

    @_sound
    def encode(self, text: str) -> list[int]:
        """Returns the most probable segmentation of a text."""
        if self._whole_words:
            return [word_id for word_id, _ in self._words(clean(text))]
        return cast("list[int]", self._processor.encode(clean(text)))

    @_sound
    def encode_batch(self, texts: Sequence[str], *, threads: int = 1) -> list[list[int]]:
        """Encodes many texts with `encode`, in `threads` threads outside Python's lock."""
        if self._whole_words:
            return [self.encode(text) for text in texts]
        cleaned = [clean(text) for text in texts]
        if len(cleaned) < FEW_TEXTS:
            return [self._processor.encode(text) for text in cleaned]
        return cast("list[list[int]]", self._processor.encode(cleaned, num_threads=threads))

    @_sound
    def encode_arrays(self, texts: Sequence[str]) -> list[npt.NDArray[np.int32]]:
        """Encodes many texts in less memory than `encode_batch`."""
        if self._whole_words:
            return [np.array(self.encode(text), dtype=np.int32) for text in texts]
        encoded = self._processor.encode([clean(text) for text in texts], return_type="numpy", num_threads=1)
        return cast("list[npt.NDArray[np.int32]]", encoded)

    @_sound
    def sample(self, text: str, *, alpha: float, seed: int) -> list[int]:
        """Draws a random segmentation, which is a function of model and arguments only, in any process.

        Char and word models have only one segmentation of a text.

        Args:
            text: The sentence.
            alpha: In a unigram model segmentations are drawn from P(segmentation)^alpha (Kudo 2018, "Subword
                Regularization"); in BPE alpha is the rate at which merges are dropped (Provilkov et al. 2020).
            seed: Seed, at least 0.
        """
        if self._sampler is None:
            return self.encode(text)
        return self._sampler.sample(self._processor.normalize(clean(text)), strength=alpha, seed=seed)

    @_sound
    def encode_spans(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Encodes a text; also returns the begin and end of the part of it that each subword represents, including
        white space that it covers."""
        cleaned = clean(text)
        if self._whole_words:
            pieces = self._words(cleaned)
            return [piece_id for piece_id, _ in pieces], [span for _, span in pieces]
        encoded = self._processor.encode(cleaned, return_type="offset_mapping")
        return list(encoded["ids"]), [(begin, end) for begin, end in encoded["offsets"]]

    @_sound
    def encode_words(self, text: str, word_spans: Sequence[Span] | None = None) -> EncodedWords:
        """Encodes a text, with the word that contains each subword: one of `word_spans`, in order, or of the
        white-space words.

        A piece belongs to the word of which it covers most characters of the original text. A piece of no width, which
        normalisation has added, or a piece that covers only white space belongs to the word at its position or the next
        one.
        """
        return self._in_words(text, *self.encode_spans(text), word_spans)

    @_sound
    def encode_tokens(self, text: str, word_spans: Sequence[Span] | None = None) -> EncodedWords:
        """Encodes tokenised text by words, as in `encode_words`. If the vocabulary was learnt from ordinary text,
        spaces before punctuation marks are left out before encoding. Spans still refer to `text`."""
        marks = (match for match in _SEPARATE_MARK.finditer(text) if match[1] in self._marks_without_space)
        spaces = {place for match in marks for place in range(match.start(), match.start(1))}
        kept = [place for place in range(len(text)) if place not in spaces]
        ids, offsets = self.encode_spans("".join(text[place] for place in kept))
        kept.append(len(text))
        offsets = [(kept[begin], kept[end - 1] + 1 if begin < end else kept[begin]) for begin, end in offsets]
        return self._in_words(text, ids, offsets, word_spans)

    @cached_property
    def _marks_without_space(self) -> frozenset[str]:
        """Punctuation marks that rarely follow a space in the text of the vocabulary: no subword in its more frequent
        half is a space and the mark. Empty for a vocabulary of tokenised text or of characters."""
        frequent = {piece[1:] for piece in self._pieces[: self.size // 2] if piece.startswith(MARK)}
        return frozenset() if frequent <= {""} or frequent & {".", ","} else frozenset(".,;:!?)]}") - frequent

    @_sound
    def sample_words(
        self, text: str, *, alpha: float, seed: int, word_spans: Sequence[Span] | None = None
    ) -> EncodedWords:
        """Samples as `sample` does, with the word that contains each subword, as in `encode_words`."""
        if self._sampler is None:
            return self.encode_words(text, word_spans)
        normalized, offsets = self._processor.normalize(clean(text), with_offsets=True)
        ids, spans = self._sampler.sample_spans(normalized, strength=alpha, seed=seed)
        return self._in_words(text, ids, [(offsets[begin], offsets[end]) for begin, end in spans], word_spans)

    def _in_words(
        self, text: str, ids: Sequence[int], offsets: list[Span], word_spans: Sequence[Span] | None
    ) -> EncodedWords:
        cleaned = clean(text)
        from nmt.data.words import white_space_words

        spans = white_space_words(cleaned) if word_spans is None else word_spans
        pieces = self._without_separators(cleaned, offsets)
        word_of_piece: list[int] = []
        word = 0
        for begin, end in pieces:
            while word < len(spans) - 1 and spans[word][1] <= begin:
                word += 1
            best = max(
                range(word, bisect_left(spans, end, word, key=itemgetter(0))),
                key=lambda index: min(end, spans[index][1]) - max(begin, spans[index][0]),
                default=word,
            )
            word_of_piece.append(best)
            word = best
        words = tuple(text[begin:end] for begin, end in spans)
        written = tuple(cleaned[begin:end].strip() for begin, end in offsets)
        return EncodedWords(tuple(ids), words, tuple(word_of_piece), written, tuple(spans), tuple(pieces), text)

    def _without_separators(self, cleaned: str, spans: list[Span]) -> list[Span]:
        """Removes characters that SentencePiece takes for separators, such as a zero width space, from both ends of
        spans: they may be at the end of a word, but count as the mark at the beginning of the next one."""
        if not _ODD.search(cleaned):
            return spans
        normalized, offsets = self._processor.normalize(cleaned, with_offsets=True)
        separators = {
            place
            for number, character in enumerate(normalized)
            if character == MARK
            for place in range(offsets[number], offsets[number + 1])
        }
        stripped: list[Span] = []
        for begin, end in spans:
            while begin < end and begin in separators:
                begin += 1
            while begin < end and end - 1 in separators:
                end -= 1
            stripped.append((begin, end))
        return stripped

    @_sound
    def detokenize(self, ids: Iterable[int]) -> str:
        """Joins subwords to text, with a space between words and always on one line.

        Padding, begin- and end-of-sentence give no text; an unknown token gives ⁇ (U+2047), as a separate word.
        """
        return _as_line(self._processor.decode([int(piece_id) for piece_id in ids]))

    @_sound
    def detokenize_batch(self, sentences: Sequence[Sequence[int]]) -> list[str]:
        """Joins the subwords of each sentence to text, faster than `detokenize` one by one."""
        return [_as_line(text) for text in self._processor.decode([list(ids) for ids in sentences], num_threads=1)]

    @_sound
    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Returns the subwords as in the vocabulary, with U+2581 at the beginning of a word."""
        return [self._pieces[piece_id] for piece_id in ids]

    @cached_property
    def _pieces(self) -> list[str]:
        return cast("list[str]", self._processor.id_to_piece(list(range(self.size))))

    @property
    def of_characters(self) -> bool:
        """Returns True if no subword is longer than a character, except bytes and control pieces such as <0xC3>."""
        return not any(len(piece) > 1 and piece[0] != "<" for piece in self._pieces)

    @cached_property
    def languages(self) -> dict[str, int]:
        """Ids of the tokens for target languages, such as ``<2en>``, by language (Johnson et al. 2017, "Google's
        Multilingual Neural Machine Translation System", section 3)."""
        return {
            piece[2:-1]: number
            for number, piece in enumerate(self._pieces)
            if piece.startswith("<2") and piece.endswith(">") and self._processor.is_control(number)
        }

    @cached_property
    def controls(self) -> tuple[int, ...]:
        """Ids, except end-of-sentence, that no text is segmented into and that represent no text: padding,
        begin-of-sentence, the tokens for languages and so on. It is empty for an imported vocabulary, whose model may
        have been trained with them; see `search.suppress_padding`."""
        is_control = self._processor.is_control
        return () if self.imported else tuple(n for n in range(self.size) if n != EOS and is_control(n))

    def control(self, piece: str) -> int | None:
        """Returns the id of a control piece, or None if the vocabulary does not have it."""
        number = self._processor.piece_to_id(piece)
        return int(number) if self._processor.is_control(number) else None

    def with_controls(self, pieces: Sequence[str]) -> Tokenizer:
        """Returns a tokenizer that also has these control pieces, at the end of its vocabulary. Raises InputError if
        one of them is a piece of text."""
        tokens = [piece for piece in pieces if self.control(piece) is None]
        if tokens and self.imported is not None:
            raise InputError(f"{self.name}: is the vocabulary of an imported model, which has no token {tokens[0]}")
        if clash := [token for token in tokens if token in self._pieces]:
            raise InputError(f"{self.name}: has {clash[0]} as a piece of text; take such marks out of the corpora")
        return Tokenizer(with_control_pieces(self.model, tokens), name=self.name) if tokens else self

    @property
    def samples(self) -> bool:
        """Returns True if a text has more than one segmentation, so that `sample` draws."""
        return self._sampler is not None

    @cached_property
    def _sampler(self) -> SegmentationSampler | None:
        if self.imported is not None:
            return None
        try:
            from nmt.data.sampling import make_sampler

            return make_sampler(read_model(self.model))
        except ValueError as error:
            raise InputError(f"{self.name}: a damaged SentencePiece model: {error}") from None

    def _words(self, cleaned: str) -> list[tuple[int, tuple[int, int]]]:
        """Finds the ids of whole words, each of which is one token, and their spans in the text."""
        normalized, offsets = self._processor.normalize(cleaned, with_offsets=True)
        return [
            (int(self._processor.piece_to_id(match.group())), (offsets[match.start()], offsets[match.end()]))
            for match in re.finditer(f"{MARK}[^{MARK}]+", normalized)
        ]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokenizer) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)


@dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of both languages; they are the same object if they share a vocabulary."""

    source: Tokenizer
    target: Tokenizer
    rare: tuple[int, int] = field(default=(0, 0), compare=False)
    """Number of different words that `min_frequency` has left out of each vocabulary; it is known only just after they
    have been learnt."""

    @property
    def joint(self) -> bool:
        """Returns True if both sides have one vocabulary; imported ones may still segment texts differently."""
        return self.source is self.target or (
            self.source.imported is not None and self.source.imported == self.target.imported
        )

    @property
    def fingerprint(self) -> str:
        """Hash of the vocabularies and of whether they are joint."""
        tokenizers = [self.source] if self.source is self.target else [self.source, self.target]
        return hashlib.sha256(" ".join(each.fingerprint for each in tokenizers).encode()).hexdigest()

    def with_controls(self, pieces: Sequence[str]) -> TokenizerPair:
        """Returns a pair whose source also has these control pieces; see `Tokenizer.with_controls`."""
        source = self.source.with_controls(pieces)
        return replace(self, source=source, target=source if self.source is self.target else self.target)

    def save(self, folder: Path) -> None:
        """Writes `subwords.model`, or `subwords.source.model` and `subwords.target.model`, and removes the other
        form."""
        models = {"subwords.source.model": self.source, "subwords.target.model": self.target}
        if self.source is self.target:
            models = {"subwords.model": self.source}
        for name in ("subwords.model", "subwords.source.model", "subwords.target.model"):
            if name in models:
                replace_file(folder / name, models[name].model)
            else:
                (folder / name).unlink(missing_ok=True)

    @classmethod
    def load(cls, path: Path) -> TokenizerPair:
        """Reads the tokenizers of a folder that `save` has written to, or of a file for both sides. Raises
        InputError."""
        if (path / "subwords.source.model").exists():
            source, target = (Tokenizer.load(path / f"subwords.{side}.model") for side in ("source", "target"))
            return cls(source, target)
        joint = Tokenizer.load(path / "subwords.model" if path.is_dir() else path)
        return cls(joint, joint)


def load_tokenizers(path: Path, config: SubwordsConfig) -> TokenizerPair:
    """Loads the vocabulary or vocabularies of a folder that `TokenizerPair.save` has written to, or of a `.model` file,
    which is for both sides.

    Raises:
        InputError: There is no vocabulary, or it is not compatible with `config.joint` or `config.sampling`.
    """
    try:
        pair = TokenizerPair.load(path)
    except InputError as error:
        raise InputError(f"data.subwords.model: {error}") from None
    if pair.joint != config.joint:
        has, joint_is = ("one vocabulary", "true") if pair.joint else ("a vocabulary for each side", "false")
        raise InputError(f"data.subwords.model: {path}: has {has}; set data.subwords.joint: {joint_is}")
    if config.sampling and not (pair.source.samples and pair.target.samples):
        raise InputError(f"data.subwords.sampling: {path} has one segmentation of a text only; leave sampling out")
    return pair


def _as_line(decoded: str) -> str:
    """Converts decoded text to one line without control characters, which become spaces: the bytes of byte_fallback can
    spell anything, including line ends and escape codes of a terminal. SentencePiece puts spaces around unknown text,
    which are reduced to one."""
    return " ".join((decoded if decoded.isprintable() else _CONTROL.sub(" ", decoded)).split())


def clean(text: str) -> str:
    """Replaces any white space by plain spaces and surrogates by U+FFFD, without changing the number of characters."""
    if text.isprintable():
        return text
    return _SURROGATE.sub("\ufffd", _SPACE.sub(" ", text))
