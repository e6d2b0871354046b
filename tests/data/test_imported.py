"""Models whose ids come from a vocabulary of their own, held to SentencePiece and that vocabulary."""

from __future__ import annotations

import pytest
import sentencepiece

from nmt.data.imported import ImportedProcessor, ImportedVocabulary, split
from nmt.data.vocabulary import EOS, PAD, UNK
from tests.data.conftest import Pairs, Tokenizers

LANGUAGES = [">>fra<<", ">>zh_Hant<<"]


@pytest.fixture(scope="module")
def processor(tokenizers: Tokenizers) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor.from_proto(tokenizers["unigram"].source.model)


@pytest.fixture(scope="module")
def vocabulary(processor: sentencepiece.SentencePieceProcessor) -> ImportedVocabulary:
    """As Marian has it: end and unknown first, padding last; every tenth piece is missing, one is new."""
    known = [processor.id_to_piece(number) for number in range(4, processor.get_piece_size()) if number % 10]
    pieces = ("<end>", "<unk>", *known, *LANGUAGES, "\u2581Ωmega", "Ω", "<none>")
    return ImportedVocabulary(pieces, pad=len(pieces) - 1, unk=1, eos=0, start=len(pieces) - 1)


def test_special_pieces_have_the_usual_ids(vocabulary: ImportedVocabulary) -> None:
    assert sorted(vocabulary.order) == list(range(len(vocabulary.pieces)))
    order = [vocabulary.pieces[number] for number in vocabulary.order]
    assert [order[number] for number in (PAD, UNK, EOS)] == ["<none>", "<unk>", "<end>"]
    assert (vocabulary.begin, vocabulary.order[2]) == (PAD, 2)
    own = ImportedVocabulary(("a", "<s>", "u", "e", "p", "b"), pad=4, unk=2, eos=3, start=1)
    assert (own.order, own.begin) == ((4, 2, 1, 3, 0, 5), 2)
    assert vocabulary.languages == {"fra": ">>fra<<", "zh_Hant": ">>zh_Hant<<"}


def test_ids_are_those_of_the_pieces_of_the_model(
    processor: sentencepiece.SentencePieceProcessor, vocabulary: ImportedVocabulary, pairs: Pairs
) -> None:
    imported = ImportedProcessor(*split(vocabulary.joined_to(processor.serialized_model_proto())))
    order = [vocabulary.pieces[number] for number in vocabulary.order]
    texts = [*(source for source, _ in pairs[:40]), "", "Ωmega", ">>xyz<< der"]
    expected = [
        [order.index(piece) if piece in order else UNK for piece in processor.encode(text, out_type=str)]
        for text in texts
    ]
    assert [imported.encode(text) for text in texts] == imported.encode(texts) == expected
    assert [row.tolist() for row in imported.encode(texts, return_type="numpy")] == expected
    assert any(UNK in ids for ids in expected)
    for text, ids in zip(texts, expected, strict=True):
        language = order.index(">>fra<<")
        assert imported.encode(f">>fra<<{text}") == [language, *ids]
        spans = processor.encode(text, return_type="offset_mapping")["offsets"]
        offsets = [(0, 7), *((begin + 7, end + 7) for begin, end in spans)]
        encoded = imported.encode(f">>fra<<{text}", return_type="offset_mapping")
        assert encoded == {"ids": [language, *ids], "offsets": offsets}
        if UNK not in ids:
            assert imported.decode([PAD, *ids, EOS]) == processor.decode(processor.encode(text, out_type=str))
    assert imported.decode([[order.index("\u2581Ωmega")], []]) == [" Ωmega", ""]
    assert imported.decode([]) == ""


def test_a_language_is_a_control_piece_of_the_usual_form(
    processor: sentencepiece.SentencePieceProcessor, vocabulary: ImportedVocabulary
) -> None:
    imported = ImportedProcessor(vocabulary, processor.serialized_model_proto())
    ids = list(range(imported.get_piece_size()))
    pieces = imported.id_to_piece(ids)
    assert len(ids) == len(vocabulary.pieces)
    controls = {piece for piece, number in zip(pieces, ids, strict=True) if imported.is_control(number)}
    assert controls == {"<none>", "<end>", "<2fra>", "<2zh_Hant>"}
    assert [imported.piece_to_id(piece) for piece in ("<2fra>", ">>fra<<")] == [pieces.index("<2fra>"), UNK]


def test_vocabulary_and_model_are_joined_and_split(vocabulary: ImportedVocabulary) -> None:
    joined = vocabulary.joined_to(b"model")
    assert split(joined) == (vocabulary, b"model")
    for damaged in (joined[:40], joined.replace(b'"pad"', b'"dap"'), joined.replace(b'"eos": 0', b'"eos": 9999')):
        with pytest.raises(ValueError, match=r"damaged vocabulary|JSON|delimiter|Unterminated|Expecting"):
            split(damaged)
    with pytest.raises(ValueError, match="empty"):
        ImportedProcessor(vocabulary, b"")
