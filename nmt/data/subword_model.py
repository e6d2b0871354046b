"""The pieces of a SentencePiece model file.

The file is a protobuf message (`sentencepiece_model.proto`). SentencePieceProcessor reveals neither the kind of model
nor which pieces are user-defined, and the generated classes need the protobuf package, which is too much for five
fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

T = TypeVar("T", int, bytes)

# Field numbers of the messages ModelProto, ModelProto.SentencePiece and TrainerSpec.
_PIECES, _TRAINER = 1, 2
_TEXT, _SCORE, _TYPE = 1, 2, 3
_KIND, _BYTE_FALLBACK = 3, 35

IMPORTED = b"\x82\xfa\x01"
"""First bytes of a model whose ids come from a vocabulary: the tag of field 4000, of bytes. See `nmt.data.imported`."""


class ModelKind(IntEnum):
    """Values of TrainerSpec.ModelType."""

    UNIGRAM = 1
    BPE = 2
    WORD = 3
    CHAR = 4


class PieceType(IntEnum):
    """Values of ModelProto.SentencePiece.Type."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Piece(NamedTuple):
    """An entry of the vocabulary; its id is its index in `SubwordModel.pieces`.

    Attributes:
        text: The piece in normalised text, with U+2581 for a space.
        score: The log probability in a unigram model; in BPE the priority of the merge that creates it, the highest
            first.
        type: The type; only normal and user-defined pieces represent their text.
    """

    text: str
    score: float
    type: PieceType


class SubwordModel(NamedTuple):
    """The kind and the vocabulary of a model.

    Attributes:
        kind: The kind of segmentation.
        pieces: The pieces, indexed by id.
        byte_fallback: True if unknown characters are spelled as the byte pieces of their UTF-8.
    """

    kind: ModelKind
    pieces: tuple[Piece, ...]
    byte_fallback: bool


def read_model(model: bytes) -> SubwordModel:
    """Parses a serialised model that SentencePiece has accepted. Raises ValueError if it is damaged nevertheless."""
    kind, byte_fallback, pieces = ModelKind.UNIGRAM, False, []
    try:
        for number, value in _fields(model):
            if number == _PIECES:
                pieces.append(_piece(_typed(value, bytes)))
            elif number == _TRAINER:
                options = dict(_fields(_typed(value, bytes)))
                kind = ModelKind(_typed(options.get(_KIND, kind), int))
                byte_fallback = bool(options.get(_BYTE_FALLBACK, byte_fallback))
    except (IndexError, KeyError, struct.error):
        raise ValueError("cut short, or a field without its value") from None
    return SubwordModel(kind, tuple(pieces), byte_fallback)


def with_control_pieces(model: bytes, texts: Sequence[str]) -> bytes:
    """Adds control pieces, which no text is segmented into and which represent no text, to the end of the vocabulary of
    a serialised model. Appending a repeated field to a message means appending its bytes."""
    for text in texts:
        piece = bytes([_TEXT << 3 | 2]) + sized(text.encode()) + bytes([_TYPE << 3, PieceType.CONTROL])
        model += bytes([_PIECES << 3 | 2]) + sized(piece)
    return model


def sized(value: bytes) -> bytes:
    """Encodes the value of a field of bytes as in a message."""
    digits, rest = bytearray(), len(value)
    while rest > 0x7F:
        digits.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*digits, rest]) + value


def first_field(message: bytes) -> tuple[bytes, bytes]:
    """Returns the bytes of the first field of a message, and the message without it. Raises IndexError if the message
    is cut short."""
    _, place = _varint(message, 0)
    size, place = _varint(message, place)
    if place + size > len(message):
        raise IndexError("cut short")
    return message[place : place + size], message[place + size :]


def _piece(message: bytes) -> Piece:
    fields = dict(_fields(message))
    (score,) = struct.unpack("<f", _typed(fields.get(_SCORE, bytes(4)), bytes))
    kind = PieceType(_typed(fields.get(_TYPE, PieceType.NORMAL), int))
    return Piece(_typed(fields[_TEXT], bytes).decode(), score, kind)


def _typed(value: int | bytes, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise ValueError("a field of another type than the schema says")
    return value


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields the number and value of each field of a protobuf message;
    https://protobuf.dev/programming-guides/encoding."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        wire = tag & 7
        if wire == 0:
            value, place = _varint(message, place)
            yield tag >> 3, value
            continue
        if wire == 2:
            size, place = _varint(message, place)
        else:
            size = {1: 8, 5: 4}[wire]
        yield tag >> 3, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """Decodes the integer that begins at `place`, with 7 bits per byte and the lowest first; also returns the position
    after it."""
    value, shift = 0, 0
    while message[place] & 0x80:
        value |= (message[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return value | message[place] << shift, place + 1
