"""SentencePiece models whose ids come from a separate vocabulary, as in MarianMT (`nmt import hf`).

Such a model divides a text into pieces; the vocabulary, which source and target may share, numbers them. Both are
stored in one file: a SentencePiece model that begins with an additional field, which other readers skip (field numbers
from 200 on are free for extensions, see `sentencepiece_model.proto`). The special pieces get the usual ids of this
toolkit, and a token for a target language, such as `>>fra<<`, gets the usual form `<2fra>`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import sentencepiece

from nmt.data.subword_model import IMPORTED, first_field, sized
from nmt.data.vocabulary import EOS, PAD, UNK


@dataclass(frozen=True)
class ImportedVocabulary:
    """A vocabulary with ids of its own, of which four are special.

    Attributes:
        pieces: The pieces, indexed by their ids in the vocabulary.
        pad, unk, eos: Padding, unknown text and end-of-sentence.
        start: The first token that the decoder reads, which may be one of these.
    """

    pieces: tuple[str, ...]
    pad: int
    unk: int
    eos: int
    start: int

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Ids in the vocabulary, in the order of this toolkit's ids."""
        special = dict.fromkeys([self.pad, self.unk, self.eos, self.start])
        rest = [number for number in range(len(self.pieces)) if number not in special]
        third = self.start if self.start not in (self.pad, self.unk, self.eos) else rest.pop(0)
        return (self.pad, self.unk, third, self.eos, *rest)

    @property
    def begin(self) -> int:
        """This toolkit's id of the decoder's first token."""
        return self.order.index(self.start)

    @cached_property
    def languages(self) -> dict[str, str]:
        """Target languages that have a token, with their tokens."""
        return {piece[2:-2]: piece for piece in self.pieces if piece.startswith(">>") and piece.endswith("<<")}

    def joined_to(self, model: bytes) -> bytes:
        """Joins the vocabulary to a SentencePiece model, which then begins with it."""
        return IMPORTED + sized(json.dumps(asdict(self)).encode()) + model


def split(model: bytes) -> tuple[ImportedVocabulary, bytes]:
    """Splits the vocabulary and the model that `ImportedVocabulary.joined_to` has joined. Raises ValueError if the
    vocabulary is damaged."""
    try:
        value, rest = first_field(model)
        tree = json.loads(value)
        vocabulary = ImportedVocabulary(**{**tree, "pieces": tuple(tree["pieces"])})
        if len({type(vocabulary.pieces[number]) for number in vocabulary.order} | {str}) > 1 or vocabulary.begin > EOS:
            raise ValueError("a piece is not text")
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError(f"a damaged vocabulary: {error}") from None
    return vocabulary, rest


class ImportedProcessor:
    """Part of the interface of SentencePieceProcessor that `Tokenizer` uses, with the ids of a vocabulary.

    A piece that is not in the vocabulary is unknown; a piece that is only in the vocabulary, and not in the model, is
    known. A text may begin with a token for its target language.
    """

    def __init__(self, vocabulary: ImportedVocabulary, model: bytes) -> None:
        """Raises RuntimeError or ValueError if ``model`` is not a SentencePiece model."""
        if not model:
            raise ValueError("empty")
        self._processor = sentencepiece.SentencePieceProcessor.from_proto(model)
        self.vocabulary = vocabulary
        language_of = {token: f"<2{language}>" for language, token in vocabulary.languages.items()}
        spelt = [vocabulary.pieces[number] for number in vocabulary.order]
        self._pieces = [language_of.get(piece, piece) for piece in spelt]
        self._ids = {piece: number for number, piece in enumerate(self._pieces)}
        self._spelt = {piece: number for number, piece in enumerate(spelt)}
        self._languages = frozenset(self._spelt[token] for token in language_of)
        own = self._processor.id_to_piece(list(range(self._processor.get_piece_size())))
        self._unknown = int(self._processor.unk_id())
        self._id_of = np.array([self._spelt.get(piece, UNK) for piece in own], dtype=np.int32)

    def get_piece_size(self) -> int:
        """Returns the number of entries of the vocabulary."""
        return len(self._pieces)

    def id_to_piece(self, ids: Sequence[int]) -> list[str]:
        """Returns the pieces of ids."""
        return [self._pieces[number] for number in ids]

    def piece_to_id(self, piece: str) -> int:
        """Returns the id of a piece, or the id of unknown text."""
        return self._ids.get(piece, UNK)

    def is_control(self, number: int) -> bool:
        """Returns True for ids that represent no text."""
        return number in (PAD, EOS, self.vocabulary.begin) or number in self._languages

    def normalize(self, text: str, **options: Any) -> Any:
        """See SentencePiece."""
        return self._processor.normalize(text, **options)

    def encode(self, texts: str | Sequence[str], *, num_threads: int = 1, return_type: str = "list") -> Any:
        """Encodes a text, with `offset_mapping` together with its offsets; or each of several texts."""
        if not isinstance(texts, str):
            parts = [self._language(text) for text in texts]
            rests = [text[length:] for text, (_, length) in zip(texts, parts, strict=True)]
            rows = self._processor.encode(rests, return_type="numpy", num_threads=num_threads)
            found = [
                np.concatenate([np.array(ids, dtype=np.int32), self._numbered(rest, row)])
                for (ids, _), rest, row in zip(parts, rests, rows, strict=True)
            ]
            return found if return_type == "numpy" else [row.tolist() for row in found]
        language, length = self._language(texts)
        rest = texts[length:]
        if return_type != "offset_mapping":
            return [*language, *self._numbered(rest, self._processor.encode(rest, return_type="numpy")).tolist()]
        encoded = self._processor.encode(rest, return_type="offset_mapping")
        ids = self._numbered(rest, np.array(encoded["ids"], dtype=np.int32)).tolist()
        offsets = [(begin + length, end + length) for begin, end in encoded["offsets"]]
        return {"ids": [*language, *ids], "offsets": [(0, length) for _ in language] + offsets}

    def decode(self, sentences: Any, *, num_threads: int = 1) -> Any:
        """Decodes ids, or each of several rows of ids, to text."""
        is_one = not sentences or isinstance(sentences[0], int)
        rows = [sentences] if is_one else sentences
        kept = [[self._pieces[number] for number in row if number not in (PAD, EOS)] for row in rows]
        # a piece that is not in the model keeps its mark
        texts = [self._processor.decode(row).replace("\u2581", " ") if row else "" for row in kept]
        return texts[0] if is_one else texts

    def _language(self, text: str) -> tuple[list[int], int]:
        """Finds the token for a language at the beginning of a text, and its length."""
        end = text.find("<<") + 2
        number = self._spelt.get(text[:end]) if text.startswith(">>") else None
        return ([], 0) if number not in self._languages or number is None else ([number], end)

    def _numbered(self, text: str, own: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Converts the model's ids of a text to ids of this toolkit."""
        ids = self._id_of[own]
        if (unknown := np.flatnonzero(own == self._unknown)).size:
            pieces = self._processor.encode(text, out_type=str)
            ids[unknown] = [self._spelt.get(pieces[place], UNK) for place in unknown]
        return ids
