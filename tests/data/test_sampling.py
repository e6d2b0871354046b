from __future__ import annotations

import io
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data import sampling
from nmt.data.sampling import BpeSampler, SegmentationSampler, UnigramSampler, make_sampler
from nmt.data.subword_model import ModelKind, Piece, PieceType, SubwordModel, read_model
from nmt.data.vocabulary import UNK
from tests.data.conftest import Pairs

Processors: TypeAlias = dict[tuple[str, str], sentencepiece.SentencePieceProcessor]
"""Processors by kind and option."""

DRAWS = 3000
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "bytes": {"byte_fallback": True, "vocab_size": 376},
    "user-defined": {"user_defined_symbols": ["und", "ndr", "<x>", "Ω", "<xy>", "äu"]},
    "rare characters": {"character_coverage": 0.98},
    "across words": {"split_by_whitespace": False, "vocab_size": 300},
    "mark behind": {"treat_whitespace_as_suffix": True},
    "all white space": {"remove_extra_whitespaces": False, "add_dummy_prefix": False},
}
each_option = pytest.mark.parametrize("name", OPTIONS)
# Runs of unknown characters, white space, user-defined pieces that overlap, characters of one to four bytes.
WORDS = ["der", "Hund", "ndr", "und", "<x>", "<xy>", "Ω", "Ψ", "Häu", " ", "  ", "\0", "👩\u200d"]
NASTY = st.lists(st.sampled_from(WORDS) | st.characters(exclude_categories=["Cs"]), max_size=12).map("".join)


def learn(texts: list[str], kind: str, **options: Any) -> sentencepiece.SentencePieceProcessor:
    model = io.BytesIO()
    special = {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3}
    options = {"vocab_size": 110, "minloglevel": 2, **special, **options}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, model_type=kind, **options
    )
    return sentencepiece.SentencePieceProcessor.from_proto(model.getvalue())


@pytest.fixture(scope="module")
def processors(pairs: Pairs) -> Processors:
    """Processors by kind and option, learned with SentencePiece alone."""
    texts = [source for source, _ in pairs]
    return {(kind, name): learn(texts, kind, **OPTIONS[name]) for kind in ("unigram", "bpe") for name in OPTIONS}


def sampler_of(processor: sentencepiece.SentencePieceProcessor) -> SegmentationSampler:
    sampler = make_sampler(read_model(processor.serialized_model_proto()))
    assert sampler is not None
    return sampler


def scores_of(processor: sentencepiece.SentencePieceProcessor) -> dict[str, float]:
    """Returns SentencePiece's scores of the pieces that represent text, none of which is user-defined."""
    special = (processor.is_control, processor.is_unknown, processor.is_unused, processor.is_byte)
    ids = [index for index in range(processor.get_piece_size()) if not any(test(index) for test in special)]
    return {processor.id_to_piece(index): processor.get_score(index) for index in ids}


def assert_drawn_from(
    expected: dict[tuple[int, ...], float], sampler: SegmentationSampler, text: str, strength: float
) -> None:
    """Pearson's chi-squared test at five standard deviations; outcomes expected less than 5 times count together."""
    drawn = Counter(tuple(sampler.sample(text, strength=strength, seed=seed)) for seed in range(DRAWS))
    assert math.isclose(sum(expected.values()), 1.0)
    assert drawn.keys() <= expected.keys()
    cells: defaultdict[object, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for outcome, probability in expected.items():
        cell = cells[outcome if probability * DRAWS >= 5 else None]
        cell[0] += probability * DRAWS
        cell[1] += drawn[outcome]
    statistic = sum((observed - mean) ** 2 / mean for mean, observed in cells.values())
    freedom = len(cells) - 1
    assert freedom >= 2, "too few segmentations to test anything"
    assert statistic < freedom + 5 * math.sqrt(2 * freedom)


def segmentations(text: str, scores: dict[str, float]) -> Iterator[tuple[str, ...]]:
    """All of them; a character that is not a piece stands for itself."""
    if not text:
        yield ()
    for end in range(1, len(text) + 1):
        if text[:end] in scores or end == 1:
            for rest in segmentations(text[end:], scores):
                yield (text[:end], *rest)


def dropout_outcomes(
    symbols: tuple[str, ...], scores: dict[str, float], dropout: float
) -> Iterator[tuple[tuple[str, ...], float]]:
    """Final symbols of the paper's algorithm 1 and their probabilities, path by path."""
    merges = [place for place in range(len(symbols) - 1) if symbols[place] + symbols[place + 1] in scores]
    merges.sort(key=lambda place: (-scores[symbols[place] + symbols[place + 1]], place))
    for dropped, place in enumerate(merges):
        merged = (*symbols[:place], symbols[place] + symbols[place + 1], *symbols[place + 2 :])
        for outcome, probability in dropout_outcomes(merged, scores, dropout):
            yield outcome, dropout**dropped * (1 - dropout) * probability
    yield symbols, dropout ** len(merges)


def spelled(symbols: tuple[str, ...], processor: sentencepiece.SentencePieceProcessor) -> tuple[int, ...]:
    """Ids of symbols, runs of unknown ones as one, or as bytes where the model has them."""
    scores = scores_of(processor)
    by_byte = processor.piece_to_id("<0x41>") != processor.unk_id()
    ids: list[int] = []
    for symbol in symbols:
        if symbol in scores:
            ids.append(processor.piece_to_id(symbol))
        elif by_byte:
            ids += [processor.piece_to_id(f"<0x{byte:02X}>") for byte in symbol.encode()]
        elif ids[-1:] != [processor.unk_id()]:
            ids.append(processor.unk_id())
    return tuple(ids)


@pytest.mark.parametrize("name", ["plain", "bytes", "rare characters", "across words", "mark behind"])
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_unigram_is_drawn_from_all_segmentations(processors: Processors, name: str, alpha: float) -> None:
    processor = processors["unigram", name]
    sampler, scores = sampler_of(processor), scores_of(processor)
    for text in ("Hund ΩΨ läuft", "schläftΩHunden"):
        normalized = processor.normalize(text)
        weights: Counter[tuple[int, ...]] = Counter()
        for symbols in segmentations(normalized, scores):
            score = sum(scores.get(symbol, min(scores.values()) - 10.0) for symbol in symbols)
            weights[spelled(symbols, processor)] += math.exp(alpha * score)  # type: ignore[assignment]
        total = sum(weights.values())
        expected = {ids: weight / total for ids, weight in weights.items()}
        assert_drawn_from(expected, sampler, normalized, alpha)


@pytest.mark.parametrize("name", ["plain", "bytes", "rare characters", "across words", "mark behind"])
@pytest.mark.parametrize("dropout", [0.1, 0.7])
def test_bpe_dropout_is_drawn_as_the_paper_says(processors: Processors, name: str, dropout: float) -> None:
    processor = processors["bpe", name]
    sampler, scores = sampler_of(processor), scores_of(processor)
    normalized = processor.normalize("Hund ΩΨläuft")
    # Words that no piece crosses are segmented apart, so that the rate of one word's drops does not depend on another.
    across = any("\u2581" in piece[1:] for piece in scores)
    assert across == (name in ("across words", "mark behind"))
    words = [normalized] if across else normalized.replace("\u2581", " \u2581").split()
    outcomes: dict[tuple[str, ...], float] = {(): 1.0}
    for word in words:
        longer: defaultdict[tuple[str, ...], float] = defaultdict(float)
        for symbols, probability in dropout_outcomes(tuple(word), scores, dropout):
            for before, so_far in outcomes.items():
                longer[before + symbols] += so_far * probability
        outcomes = dict(longer)
    expected: defaultdict[tuple[int, ...], float] = defaultdict(float)
    for symbols, probability in outcomes.items():
        expected[spelled(symbols, processor)] += probability
    assert_drawn_from(expected, sampler, normalized, dropout)


@each_option
@settings(max_examples=60)
@given(text=NASTY)
def test_without_dropout_bpe_is_sentencepiece_and_with_nothing_else_characters(
    processors: Processors, name: str, text: str
) -> None:
    processor = processors["bpe", name]
    normalized, offsets = processor.normalize(text, with_offsets=True)
    sampler, encoded = sampler_of(processor), processor.encode(text, return_type="offset_mapping")
    ids, spans = sampler.sample_spans(normalized, strength=0.0, seed=1)
    assert ids == sampler.sample(normalized, strength=0.0, seed=1) == list(encoded["ids"])
    assert [(offsets[begin], offsets[end]) for begin, end in spans] == list(encoded["offsets"])
    if name != "user-defined":
        characters = spelled(tuple(normalized), processor)
        assert tuple(sampler.sample(normalized, strength=1.0, seed=1)) == characters


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@each_option
@settings(max_examples=20)
@given(text=NASTY, seed=st.integers(0, 100))
def test_spans_are_of_the_same_draw_and_side_by_side(
    processors: Processors, kind: str, name: str, text: str, seed: int
) -> None:
    processor = processors[kind, name]
    normalized = processor.normalize(text)
    sampler = sampler_of(processor)
    ids, spans = sampler.sample_spans(normalized, strength=0.4, seed=seed)
    assert ids == sampler.sample(normalized, strength=0.4, seed=seed)
    assert [0, *(end for _, end in spans)] == [*(begin for begin, _ in spans), len(normalized)]
    for piece_id, (begin, end) in zip(ids, spans, strict=True):
        if not (processor.is_unknown(piece_id) or processor.is_byte(piece_id)):
            assert processor.id_to_piece(piece_id) == normalized[begin:end]


@each_option
@settings(max_examples=30)
@given(text=NASTY)
def test_a_large_alpha_leaves_the_best_segmentation(processors: Processors, name: str, text: str) -> None:
    processor = processors["unigram", name]
    drawn = sampler_of(processor).sample(processor.normalize(text), strength=1e7, seed=1)
    best = processor.encode(text)
    # Of equally good ones either is right.
    scores = [sum(processor.get_score(token) for token in ids) for ids in (drawn, best)]
    assert drawn == best or (len(drawn) == len(best) and math.isclose(*scores, abs_tol=1e-4))


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@each_option
def test_ordinary_sentences_are_segmented_as_sentencepiece_does(
    processors: Processors, pairs: Pairs, kind: str, name: str
) -> None:
    processor = processors[kind, name]
    sampler = sampler_of(processor)
    for text, _ in pairs:
        strength = 1e7 if kind == "unigram" else 0.0
        assert sampler.sample(processor.normalize(text), strength=strength, seed=1) == processor.encode(text)


@pytest.mark.parametrize("strength", [0.0, 0.4])
def test_long_words_are_drawn_like_cached_ones(
    processors: Processors, pairs: Pairs, monkeypatch: pytest.MonkeyPatch, strength: float
) -> None:
    processor = processors["unigram", "plain"]
    normalized = [processor.normalize(source.replace(" ", "")) for source, _ in pairs[:40]]

    def draw() -> list[list[int]]:
        sampler = sampler_of(processor)
        return [sampler.sample(text, strength=strength, seed=3) for text in normalized * 2]

    monkeypatch.setattr(sampling, "_CACHED_LENGTH", 1000)
    cached = draw()
    monkeypatch.setattr(sampling, "_CACHED_LENGTH", 0)
    assert draw() == cached
    assert cached[:40] == cached[40:]


def test_thousands_of_characters_without_white_space(processors: Processors) -> None:
    text = "HundläuftΩ" * 1000
    for kind in ("unigram", "bpe"):
        processor = processors[kind, "plain"]
        ids = sampler_of(processor).sample(processor.normalize(text), strength=0.2, seed=1)
        assert processor.decode(ids) == processor.decode(processor.encode(text))


def model_of(kind: ModelKind, pieces: list[tuple[str, float]]) -> SubwordModel:
    special = [Piece(f"<{index}>", 0.0, PieceType.CONTROL) for index in range(4)]
    special[1] = Piece("<unk>", 0.0, PieceType.UNKNOWN)
    return SubwordModel(kind, (*special, *(Piece(text, score, PieceType.NORMAL) for text, score in pieces)), False)


def test_an_unknown_character_competes_with_a_piece_that_holds_it() -> None:
    sampler = UnigramSampler(model_of(ModelKind.UNIGRAM, [("a", -2.0), ("ab", -7.0), ("aba", -9.0)]))
    a, ab, aba = 4, 5, 6
    # SentencePiece puts an unknown character 10 below the rarest piece: at -19.
    weights = {(a, UNK, a): math.exp(-2.3), (ab, a): math.exp(-0.9), (aba,): math.exp(-0.9)}
    expected = {ids: weight / sum(weights.values()) for ids, weight in weights.items()}
    assert_drawn_from(expected, sampler, "aba", 0.1)


def test_draws_are_the_same_on_every_platform() -> None:
    scores = {"a": -2.0, "b": -2.5, "ab": -3.0, "ba": -3.5, "\u2581": -1.0}
    merges = ["ab", "abab", "ba", "a", "b", "\u2581"]
    samplers = (
        UnigramSampler(model_of(ModelKind.UNIGRAM, list(scores.items()))),
        BpeSampler(model_of(ModelKind.BPE, [(text, -1.0 - rank) for rank, text in enumerate(merges)])),
    )
    for sampler, expected in zip(
        samplers, (["86645875", "86456875", "86456875"], ["94478984", "94478968", "978478984"]), strict=True
    ):
        drawn = (sampler.sample("\u2581ababab\u2581bab", strength=0.5, seed=seed) for seed in (0, 1, 2**40))
        assert ["".join(map(str, ids)) for ids in drawn] == expected


def test_user_defined_pieces_are_known_as_such(processors: Processors) -> None:
    for kind in ("unigram", "bpe"):
        model = read_model(processors[kind, "user-defined"].serialized_model_proto())
        found = {piece.text for piece in model.pieces if piece.type == PieceType.USER_DEFINED}
        assert found == set(OPTIONS["user-defined"]["user_defined_symbols"])
