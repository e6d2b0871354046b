"""The learnt word aligner: between words against plain loops, what it learns, and its file."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from nmt.alignment import Links, Weights
from nmt.alignment.error_rate import AlignmentScore, Gold, score_pair
from nmt.core.errors import InputError
from nmt.core.files import umask
from nmt.extras.aligner import aligner as module
from nmt.extras.aligner import hmm
from nmt.extras.aligner.aligner import IndexedSentences, Member, WordAligner, between_words, load_aligner, save_aligner
from nmt.extras.aligner.hmm import in_order
from tests.extras.aligner.compounds import Pair, pairs

Words = list[str]

TRAINING = pairs(300, seed=1)
HELD_OUT = pairs(40, seed=2)
SOURCES, TARGETS = [pair.source for pair in TRAINING], [pair.target for pair in TRAINING]


def learn(sources: Sequence[Words] = SOURCES, targets: Sequence[Words] = TARGETS, **options: Any) -> WordAligner:
    return module.learn_aligner(IndexedSentences(sources), IndexedSentences(targets), **options)


def learn_first(count: int | None = None) -> WordAligner:
    return learn(SOURCES[:count], TARGETS[:count], shares=(0.2, 0.5), iterations=(3, 3))


def links(source: Words, target: Words, both: tuple[Weights, Weights]) -> Links:
    spans = [[[(0, 0)] * len(side)] for side in (source, target)]
    (found,) = module.learnt_alignments([source], [target], [both], *spans)
    return found.links


@pytest.fixture(scope="module")
def learnt() -> WordAligner:
    return learn_first()


def error_rate(aligner: WordAligner, gold: list[Pair]) -> float:
    total = AlignmentScore()
    matrices = aligner.matrices([each.source for each in gold], [each.target for each in gold])
    for pair, both in zip(gold, matrices, strict=True):
        total += score_pair(links(pair.source, pair.target, both), Gold(frozenset(pair.links)))
    return total.aer


def test_between_words_is_a_sum_and_a_mean_and_words_share_tokens() -> None:
    random = np.random.default_rng(1)
    target_counts, source_counts = [2, 1, 0, 3], [1, 0, 4, 2, 1, 0]
    forward_TS, backward_TS = random.random((2, 6, 8)).astype(np.float32)
    counts = ([np.array(each)] for each in (target_counts, source_counts))
    found = between_words(forward_TS[None], backward_TS[None], *counts)
    expected = np.zeros((2, 1, 4, 6))
    target_tokens, source_tokens = [[0, 1], [2], [2], [3, 4, 5]], [[0], [0], [1, 2, 3, 4], [5, 6], [7], [7]]
    for i, rows in enumerate(target_tokens):
        for j, columns in enumerate(source_tokens):
            for t in rows:
                for s in columns:
                    expected[0, 0, i, j] += float(forward_TS[t, s]) / len(rows)
                    expected[1, 0, i, j] += float(backward_TS[t, s]) / len(columns)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("counts", [([], []), ([1], []), ([], [2, 1]), ([0], [3]), ([0, 0], [0])])
def test_between_words_of_nothing(counts: tuple[list[int], list[int]]) -> None:
    nothing = np.zeros((1, sum(counts[0]), sum(counts[1])), np.float32)
    found = between_words(nothing, nothing, *([np.array(each, np.int64)] for each in counts))
    assert np.array_equal(found, np.zeros((2, 1, len(counts[0]), len(counts[1]))))


def test_the_matrices_are_the_mean_over_the_granularities(learnt: WordAligner) -> None:
    sources, targets = SOURCES[:7], TARGETS[:7]
    alone = [WordAligner([each], learnt.learnt_P).matrices(sources, targets) for each in learnt.members]
    assert len(alone) == 3
    for row, both in enumerate(learnt.matrices(sources, targets)):
        np.testing.assert_allclose(np.stack(both), np.mean([each[row] for each in alone], axis=0), atol=1e-6)
        assert (both[0].sum(axis=1) <= 1 + 1e-5).all()
        assert (both[1].sum(axis=0) <= 1 + 1e-5).all()


def test_it_learns_and_pieces_find_compounds_never_seen(learnt: WordAligner) -> None:
    assert error_rate(learnt, HELD_OUT) < 0.05
    assert error_rate(learn_first(10), HELD_OUT) > 2 * error_rate(learnt, HELD_OUT)
    few = WordAligner(learn_first(60).members[1:])
    seen = {word for source in SOURCES[:60] for word in source}
    unseen = [pair for pair in HELD_OUT if not set(pair.source) <= seen]
    assert len(unseen) > 10
    assert error_rate(few, unseen) < 0.2


def test_other_pairs_and_their_order_change_nothing(learnt: WordAligner) -> None:
    together = learnt.matrices(SOURCES[:30], TARGETS[:30])
    backwards = learnt.matrices(SOURCES[:30][::-1], TARGETS[:30][::-1])[::-1]
    for row in range(30):
        (alone,) = learnt.matrices([SOURCES[row]], [TARGETS[row]])
        np.testing.assert_allclose(np.stack(together[row]), np.stack(alone), atol=1e-5)
        np.testing.assert_allclose(np.stack(backwards[row]), np.stack(alone), atol=1e-5)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ([], ["red"], ()),
        (["roter"], [], ()),
        ([], [], ()),
        (["roter"], ["red"], ((0, 0),)),
        (["?!", "...", "—"], ["?!", "...", "—"], None),
        (["\0", "a\0b"], ["\0"], None),
        (["👩\u200d🚒", "字猫"], ["👩\u200d🚒"], None),
        (["roter\u2028Hund"], ["red", "dog"], None),
        (["Xaver", "Yvonne"], ["Yvonne", "Xaver"], ((0, 1), (1, 0))),  # spelt alike
        (["x" * 900], ["y" * 900], None),
    ],
    ids=["no source", "no target", "blank", "one word", "signs", "nul", "emoji", "U+2028", "names", "long words"],
)
def test_odd_sentences(learnt: WordAligner, source: list[str], target: list[str], expected: Links | None) -> None:
    (both,) = learnt.matrices([source], [target])
    for weights_IJ in both:
        assert weights_IJ.shape == (len(target), len(source))
        assert ((weights_IJ >= 0) & (weights_IJ <= 1 + 1e-5)).all()  # NaN fails every comparison
    assert expected in (None, links(source, target, both))


def test_too_long_for_one_granularity_the_others_speak(learnt: WordAligner, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = ["Schneehund", "Wassertür"] * 5, ["snow", "dog", "water", "door"] * 3
    sides = ([(each.source, source), (each.target, target)] for each in learnt.members)
    first, *others = (max(sum(side.word_units.tokens(words)[1]) for side, words in both) for both in sides)
    assert first == len(target) < min(others)
    monkeypatch.setattr(module, "LONGEST", len(target))
    (alone,) = WordAligner(learnt.members[:1]).matrices([source], [target])
    (short,) = learnt.matrices([SOURCES[0]], [TARGETS[0]])
    mixed = learnt.matrices([source, SOURCES[0]], [target, TARGETS[0]])
    np.testing.assert_allclose(np.stack(mixed[0]), np.stack(alone), atol=1e-6)
    np.testing.assert_allclose(np.stack(mixed[1]), np.stack(short), atol=1e-5)
    monkeypatch.setattr(module, "LONGEST", len(target) - 1)
    assert not learnt.fits(source, target)
    after = learnt.matrices([SOURCES[0], source], [TARGETS[0], target], first_line=7)
    np.testing.assert_allclose(np.stack(after[0]), np.stack(short), atol=1e-5)
    assert [each.shape for each in after[1]] == [(0, 0)] * 2
    spans = [[[(0, 1)] * len(side)] for side in (source, target)]
    (blank,) = module.learnt_alignments([source], [target], after[1:], *spans)
    assert (blank.source_words, blank.target_words, blank.links) == ((), (), ())


def test_pairs_that_are_too_long_teach_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 12)
    with_it = learn([*SOURCES[:50], ["Hund"] * 13], [*TARGETS[:50], ["snow"] * 3], shares=(), iterations=(3, 2))
    without = learn(SOURCES[:50], TARGETS[:50], shares=(), iterations=(3, 2))
    one, other = (each.members[0].models.forward.link_E for each in (with_it, without))
    assert np.array_equal(one, other)


def test_a_full_aligner_forgets_rare_pairs_and_words_that_only_they_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = learn_first(100)
    for each in (hmm, module):
        monkeypatch.setattr(each, "MOST_PAIRS", 12)
    full = learn_first(100)
    for now, before in zip(full.members, whole.members, strict=True):
        counts = expected_links(before)
        most = sorted(counts, key=counts.__getitem__, reverse=True)[:12]
        assert expected_links(now) == {pair: pytest.approx(counts[pair], rel=1e-3) for pair in most}
        assert set(now.source.number) == {source for source, _ in most}
        assert set(now.target.number) == {target for _, target in most}
    save_aligner(full, tmp_path / "full")
    further = learn(SOURCES[100:], TARGETS[100:], before=load_aligner(tmp_path / "full"))
    for now, before in zip(further.members, full.members, strict=True):
        assert len(now.models.pair_E) == 12
        # The links of the first text count too: no pair that stays has fewer than it had.
        old, new = expected_links(before), expected_links(now)
        assert [pair for pair in old.keys() & new.keys() if new[pair] < 0.99 * old[pair]] == []
        assert old.keys() & new.keys()


def expected_links(member: Member) -> dict[tuple[str, str], float]:
    """n + a of each pair of tokens, from (n + a) / (n(s) + a V) and a / (n(s) + a V)."""
    sources, targets, models = list(member.source.number), list(member.target.number), member.models
    source_E, target_E = np.divmod(models.pair_E, len(targets))
    count_E = hmm.PRIOR * models.forward.link_E / models.forward.unseen_U1[source_E]
    return {(sources[s], targets[t]): float(n) for s, t, n in zip(source_E, target_E, count_E, strict=True)}


def test_few_words_are_cut_in_one_more_way(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = SOURCES[:20], TARGETS[:20]
    words = sum(len(words) for side in sides for words in side)
    for small, kinds in ((words, 2), (words + 1, 3)):
        monkeypatch.setattr(module, "SMALL", small)
        after = Mock()
        aligner = learn(*sides, after_iteration=after)
        assert (len(aligner.members), after.call_count) == (kinds, 8 * kinds)
        # Further pairs keep the kinds, and take two iterations.
        further = learn(*sides, before=aligner, after_iteration=after)
        assert (len(further.members), after.call_count) == (kinds, 10 * kinds)


@pytest.mark.parametrize("sides", [([[], []], [["x"], ["y"]]), ([["a"], ["b"]], [[], []])])
def test_a_side_without_words(sides: tuple[list[list[str]], list[list[str]]]) -> None:
    with pytest.raises(ValueError, match="no words"):
        learn(*sides)


def test_threads_give_all_results_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for threads in ("1", "3"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        assert list(in_order(lambda n: n * n, range(8))) == [n * n for n in range(8)]
        with pytest.raises(ZeroDivisionError):
            list(in_order(lambda n: 1 // n, [1, 0]))


# -------------------------------------------------------------------------------------------------------------- files


@pytest.fixture(scope="module")
def file(learnt: WordAligner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("aligner") / "x.aligner"
    save_aligner(learnt, path)
    return path


def test_a_file_holds_the_aligner_bit_for_bit(learnt: WordAligner, file: Path, tmp_path: Path) -> None:
    again = load_aligner(file)
    both = zip(*(each.matrices(SOURCES[:20], TARGETS[:20]) for each in (learnt, again)), strict=True)
    assert all(np.array_equal(np.stack(one), np.stack(other)) for one, other in both)
    save_aligner(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~umask()


def test_the_same_text_gives_the_same_bytes_with_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set()
    monkeypatch.setattr(hmm, "_CELLS", 500)  # so that there are several batches
    for threads in (1, 2, 4):
        monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
        save_aligner(learn_first(80), tmp_path / "x")
        found.add((tmp_path / "x").read_bytes())
    assert len(found) == 1


def test_what_is_interrupted_leaves_nothing(
    learnt: WordAligner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(arrays: object, path: Path, metadata: object) -> None:
        Path(path).write_bytes(b"half")
        raise KeyboardInterrupt

    (tmp_path / "x").write_bytes(b"old")
    monkeypatch.setattr(safetensors.numpy, "save_file", half)
    with pytest.raises(KeyboardInterrupt):
        save_aligner(learnt, tmp_path / "x")
    assert [each.name for each in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_bytes() == b"old"


def refused(path: Path) -> str:
    with pytest.raises(InputError) as refusal:
        load_aligner(path)
    match = re.fullmatch(f"{re.escape(str(path))}: (.*)", str(refusal.value))
    assert match is not None
    return match[1]


def test_files_that_are_no_aligner(file: Path, tmp_path: Path) -> None:
    assert refused(tmp_path / "no") == "cannot be read: No such file or directory"
    assert refused(tmp_path) == "is a folder, but a file is needed"
    data = file.read_bytes()
    path = tmp_path / "x"
    for other in (b"", b"0-0 1-1\n", data[:7], data[:100], data[:-1], data + b"x", b"\xff" * 64, b"PK\x03\x04" * 20):
        path.write_bytes(other)
        assert refused(path) == "is not an aligner, or damaged; make one with nmt aligner"
    for metadata in (None, {"format": "nmt alignment layer 1"}, {"format": "nmt word aligner 1"}):
        safetensors.numpy.save_file({"x": np.zeros(1)}, path, metadata)
        assert refused(path) == "is not an aligner of this version of nmt; make one with nmt aligner"
    safetensors.numpy.save_file({"x": np.zeros(1)}, path, {"format": "nmt word aligner 2"})
    assert refused(path) == "is damaged; make it anew with nmt aligner"
    # a type that numpy lacks
    safetensors.torch.save_file({"0.pairs": torch.zeros(3).bfloat16()}, path, {"format": "nmt word aligner 3"})
    assert "damaged" in refused(path)


def put(value: float, place: int = 0) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("0.forward.link_E", lambda a: a[:-1]), ("0.forward.link_E", lambda a: a[:, None]),
        ("0.forward.link_E", lambda a: a.astype(np.float64)), ("0.forward.link_E", put(np.nan)),
        ("1.backward.link_E", put(-0.5)), ("1.backward.link_E", put(np.inf)),
        ("2.backward.empty_V1", put(1e30)), ("2.forward.empty_V1", lambda a: a[1:]),
        ("0.forward.jump_J", lambda a: a * 0), ("0.forward.jump_J", lambda a: a[:-2]),
        ("0.forward.jump_J", lambda a: None), ("0.backward.first_W1", put(np.nan, 3)),
        ("0.forward.unseen_U1", lambda a: a[1:]), ("1.backward.empty_probability", lambda a: a[None]),
        ("0.source.letters", lambda a: -a), ("1.pairs", lambda a: None),
        ("0.pairs", lambda a: a[::-1].copy()), ("0.pairs", lambda a: a.astype(np.int32)),
        ("0.pairs", put(-5)), ("0.pairs", put(1 << 40, -1)),
        ("0.source.tokens", lambda a: np.append(a, np.frombuffer(b"\nzzz", np.uint8))),
        ("0.source.tokens", lambda a: a.astype(np.float32)), ("0.target.tokens", lambda a: a[:0]),
        ("0.target.tokens", put(0xFF)), ("2.source.subwords", lambda a: a[:50]),
        ("2.source.subwords", lambda a: a[:0]), ("0.source.runs", lambda _: np.zeros(9, np.int32)),
        ("learnt", lambda a: a[::-1].copy()), ("learnt", lambda a: a[:, None]),
        ("learnt", lambda a: a.astype(np.int64)),
    ],
)  # fmt: skip
def test_a_strangers_file_is_refused_in_one_line(
    file: Path, tmp_path: Path, name: str, change: Callable[[Any], Any]
) -> None:
    arrays = safetensors.numpy.load_file(file)
    changed = change(arrays.pop(name).copy() if name in arrays else None)
    if changed is not None:
        arrays[name] = changed
    safetensors.numpy.save_file(arrays, tmp_path / "x", {"format": "nmt word aligner 3"})
    assert "damaged" in refused(tmp_path / "x")
