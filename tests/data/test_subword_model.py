from __future__ import annotations

import pytest
import sentencepiece

from nmt.data.subword_model import PieceType, read_model
from nmt.data.tokenizer import TokenizerPair


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "word", "bytes"])
def test_the_model_is_read_as_sentencepiece_reads_it(tokenizers: dict[str, TokenizerPair], kind: str) -> None:
    tokenizer = tokenizers[kind].source
    processor = sentencepiece.SentencePieceProcessor.from_proto(tokenizer.model)
    model = read_model(tokenizer.model)
    assert model.kind.name.lower() == ("unigram" if kind == "bytes" else kind)
    assert model.byte_fallback == (kind == "bytes")
    assert [piece.text for piece in model.pieces] == [processor.id_to_piece(i) for i in range(tokenizer.size)]
    assert [piece.score for piece in model.pieces] == [processor.get_score(i) for i in range(tokenizer.size)]
    tests = {
        PieceType.CONTROL: processor.is_control,
        PieceType.UNKNOWN: processor.is_unknown,
        PieceType.BYTE: processor.is_byte,
        PieceType.UNUSED: processor.is_unused,
    }
    for index, piece in enumerate(model.pieces):
        assert [name for name, test in tests.items() if test(index)] == [piece.type][: piece.type in tests]
