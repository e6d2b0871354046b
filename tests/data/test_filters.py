from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data import filters
from nmt.data.config import FiltersConfig
from nmt.data.filters import TextFilter, Verdict, length_verdicts, letters, mark_duplicates, pair_hash
from nmt.workflows.build_corpus import PairSample

HELD_OUT = [("Ein Hund. ", "A dog."), ("Ja", "Yes")]


JOINERS = ("soft\u00adhyphen", "join\u200der, \u200fmark, \u00a0space, 😀")
CONTROLS = [("a\0b", "x"), ("x", "a\x9fb"), ("a\u2028b", "x"), ("a\ufeffb", "x"), ("a\x1bb", "a\x1bb")]
VERDICTS = {
    Verdict.KEPT: [
        ("ein Satz", "a sentence"),
        ("tab\tin it", "x"),
        JOINERS,
        ("Same", "same"),
        ("Ein Hund.", "A hound."),
    ],
    Verdict.EMPTY: [("", "x"), ("x", "")],
    Verdict.CONTROL_CHARACTERS: CONTROLS,
    Verdict.IDENTICAL: [("same", "same")],
    Verdict.HELD_OUT: [("Ein Hund.", "A dog.")],
}


@pytest.mark.parametrize(
    ("verdict", "pair"), [(verdict, pair) for verdict, pairs in VERDICTS.items() for pair in pairs]
)
def test_text_filters(verdict: Verdict, pair: tuple[str, str]) -> None:
    assert TextFilter(FiltersConfig(), HELD_OUT)(*pair) is verdict


def test_text_filters_can_be_switched_off() -> None:
    off = TextFilter(FiltersConfig(identical=False, control_characters=False, held_out="none"), HELD_OUT)
    for source, target in [("a\0b", "x"), ("same", "same"), ("Ja", "Yes")]:
        assert off(source, target) is Verdict.KEPT
    assert off("", "x") is Verdict.EMPTY


def test_held_out_by_source_alone() -> None:
    by_source = TextFilter(FiltersConfig(held_out="source"), HELD_OUT)
    assert by_source("Ein Hund.", "A hound.") is Verdict.HELD_OUT
    assert by_source("Eine Katze.", "A dog.") is Verdict.KEPT


@given(st.characters())
def test_the_quick_check_for_control_characters_misses_none(character: str) -> None:
    found = TextFilter(FiltersConfig(), [])(f"a{character}b", "x") is Verdict.CONTROL_CHARACTERS
    assert found == (filters.CONTROL.search(character) is not None)


def test_length_filters_in_their_order() -> None:
    sources, targets = np.array([0, 5, 201, 200, 1, 1, 10]), np.array([5, 0, 1, 200, 9, 10, 201])
    verdicts = length_verdicts(sources, targets, FiltersConfig(max_length=200, max_ratio=9))
    expected = "EMPTY EMPTY TOO_LONG KEPT KEPT LENGTH_RATIO TOO_LONG"
    assert [Verdict(verdict).name for verdict in verdicts] == expected.split()


@settings(max_examples=30)
@given(
    values=st.lists(st.integers(0, 12), max_size=60),
    dropped=st.sets(st.integers(0, 59)),
    partition=st.integers(1, 20),
    chunk=st.integers(1, 20),
)
def test_duplicates_as_a_set_would_find_them(
    tmp_path_factory: pytest.TempPathFactory, values: list[int], dropped: set[int], partition: int, chunk: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    hashes = b"".join(pair_hash(str(value), "", seed=1) for value in values)
    (folder / "hashes").write_bytes(hashes)
    before = [Verdict.IDENTICAL if index in dropped else Verdict.KEPT for index in range(len(values))]
    (folder / "verdicts").write_bytes(bytes(before))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filters, "_CHUNK", chunk)
        mark_duplicates(folder / "verdicts", folder / "hashes", folder, partition=partition)

    seen: set[int] = set()
    expected = []
    for value, verdict in zip(values, before, strict=True):
        if verdict is Verdict.KEPT and value in seen:
            expected.append(Verdict.DUPLICATE)
        else:
            expected.append(verdict)
            if verdict is Verdict.KEPT:
                seen.add(value)
    assert list((folder / "verdicts").read_bytes()) == expected
    assert not list(folder.glob("duplicates-*"))


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("Hallo, Tom!", "hallo TOM", True),
        ("Es ist 3 Uhr.", "Es ist  15 Uhr", True),
        ("STRASSE", "Straße", True),
        ("Haus", "Häuser", False),
        ("कि", "की", False),  # the vowels are combining marks
        ("1984", "1985", False),  # nothing is left of either
        ("?!", "?!", True),
    ],
)
def test_near_duplicates_have_the_same_letters(one: str, other: str, near: bool) -> None:
    assert (letters(one) == letters(other)) == near


def test_pair_hash_keeps_sides_apart_and_depends_on_the_seed() -> None:
    assert len({pair_hash("ab", "c", seed=1), pair_hash("a", "bc", seed=1), pair_hash("ab", "c", seed=2)}) == 3


def offer(sample: PairSample, values: list[int]) -> None:
    texts = [str(value) for value in values]
    hashes = np.frombuffer(b"".join(pair_hash(text, text, seed=3) for text in texts), "<u8")
    sample.offer(hashes, texts, texts)


@given(values=st.lists(st.integers(0, 300), max_size=300), limit=st.integers(1, 50), block=st.integers(1, 70))
def test_the_sample_is_the_pairs_of_least_hash(values: list[int], limit: int, block: int) -> None:
    sample = PairSample(limit)
    for start in range(0, len(values), block):
        offer(sample, values[start : start + block])
    least = sorted({str(value) for value in values}, key=lambda t: int.from_bytes(pair_hash(t, t, seed=3), "little"))
    assert sample.pairs() == [(text, text) for text in least[:limit]]


def test_the_sample_is_uniform_in_bounded_memory() -> None:
    sample = PairSample(2000)
    for start in range(0, 20_000, 200):
        offer(sample, list(range(start, start + 200)))
        assert len(sample._pairs) < 2 * 2000
    drawn = np.array([int(source) for source, _ in sample.pairs()])
    counts, _ = np.histogram(drawn, bins=10, range=(0, 20_000))
    assert (abs(counts - 200) < 5 * np.sqrt(200)).all()
