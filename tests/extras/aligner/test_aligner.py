"""The learnt word aligner: between words against plain loops, what it learns, and its file."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import safetensors.numpy

from nmt.alignment.error_rate import AlignmentScore, Gold, score_pair
from nmt.core.errors import InputError
from nmt.data.words import white_space_words
from nmt.extras.aligner import aligner as module
from nmt.extras.aligner import hmm
from nmt.extras.aligner.aligner import (
    IndexedSentences,
    Member,
    WordAligner,
    between_words,
    learn_aligner,
    learnt_alignments,
    load_aligner,
    save_aligner,
)
from nmt.extras.aligner.hmm import in_order
from tests.extras.aligner.compounds import Pair, pairs

TRAINING = pairs(300, seed=1)
HELD_OUT = pairs(40, seed=2)
SOURCES, TARGETS = [pair.source for pair in TRAINING], [pair.target for pair in TRAINING]


def learn(count: int | None = None) -> WordAligner:
    return learn_aligner(
        IndexedSentences(SOURCES[:count]), IndexedSentences(TARGETS[:count]), shares=(0.2, 0.5), iterations=(3, 3)
    )


@pytest.fixture(scope="module")
def learnt() -> WordAligner:
    return learn()


def error_rate(aligner: WordAligner, gold: list[Pair]) -> float:
    total = AlignmentScore()
    matrices = aligner.matrices([each.source for each in gold], [each.target for each in gold])
    for pair, both in zip(gold, matrices, strict=True):
        spans = [[white_space_words(" ".join(side))] for side in pair[:2]]
        (found,) = learnt_alignments([pair.source], [pair.target], [both], *spans)
        total += score_pair(found.links, Gold(frozenset(pair.links), frozenset(pair.links)))
    return total.aer


def test_between_words_is_a_sum_and_a_mean_and_words_share_tokens() -> None:
    random = np.random.default_rng(1)
    target_counts, source_counts = [2, 1, 0, 3], [1, 0, 4, 2, 1, 0]
    forward_TS, backward_TS = random.random((2, 6, 8)).astype(np.float32)
    found = between_words(
        forward_TS[None], backward_TS[None], *([np.array(each)] for each in (target_counts, source_counts))
    )
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
    assert found.shape == (2, 1, len(counts[0]), len(counts[1]))
    assert not found.any()


def test_the_matrices_are_the_mean_over_the_granularities(learnt: WordAligner) -> None:
    sources, targets = SOURCES[:7], TARGETS[:7]
    alone = [WordAligner([each], learnt.learnt_P).matrices(sources, targets) for each in learnt.members]
    assert len(alone) == 3
    for row, both in enumerate(learnt.matrices(sources, targets)):
        for direction, found_IJ in enumerate(both):
            for i in range(len(targets[row])):
                for j in range(len(sources[row])):
                    mean = sum(float(each[row][direction][i, j]) for each in alone) / 3
                    assert found_IJ[i, j] == pytest.approx(mean, abs=1e-6)
        assert (both[0].sum(axis=1) <= 1 + 1e-5).all()
        assert (both[1].sum(axis=0) <= 1 + 1e-5).all()


def test_it_learns_and_pieces_find_compounds_never_seen(learnt: WordAligner) -> None:
    assert error_rate(learnt, HELD_OUT) < 0.05
    assert error_rate(learn(10), HELD_OUT) > 2 * error_rate(learnt, HELD_OUT)
    few = WordAligner(learn(60).members[1:])
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
    ("source", "target"),
    [
        ([], ["red"]),
        (["roter"], []),
        ([], []),
        (["roter"], ["red"]),
        (["?!", "...", "—"], ["?!", "...", "—"]),
        (["\0", "a\0b"], ["\0"]),
        (["👩\u200d🚒", "字猫"], ["👩\u200d🚒"]),
        (["roter\u2028Hund"], ["red", "dog"]),
        (["Xaver", "Yvonne"], ["Yvonne", "Xaver"]),
        (["x" * 900], ["y" * 900]),
    ],
    ids=["no source", "no target", "blank", "one word", "signs", "nul", "emoji", "U+2028", "names", "long words"],
)
def test_odd_sentences(learnt: WordAligner, source: list[str], target: list[str]) -> None:
    ((forward_IJ, backward_IJ),) = learnt.matrices([source], [target])
    assert forward_IJ.shape == backward_IJ.shape == (len(target), len(source))
    for weights_IJ in (forward_IJ, backward_IJ):
        assert np.isfinite(weights_IJ).all()
        assert ((weights_IJ >= 0) & (weights_IJ <= 1 + 1e-5)).all()
    places = [[[(0, 0)] * len(side)] for side in (source, target)]
    (found,) = learnt_alignments([source], [target], [(forward_IJ, backward_IJ)], *places)
    links = found.links
    if source == ["roter"] and target:
        assert links == ((0, 0),)
    if "Xaver" in source:
        assert links == ((0, 1), (1, 0))  # spelt alike


def test_too_long_for_one_granularity_the_others_speak(learnt: WordAligner, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = ["Schneehund", "Wassertür"] * 5, ["snow", "dog", "water", "door"] * 3
    longest = [
        max(sum(side.word_units.tokens(words)[1]) for side, words in ((each.source, source), (each.target, target)))
        for each in learnt.members
    ]
    assert longest[0] == len(target) < min(longest[1:])
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
    (blank,) = learnt_alignments([source], [target], after[1:], *[[[(0, 1)] * len(side)] for side in (source, target)])
    assert (blank.source_words, blank.target_words, blank.links) == ((), (), ())


def test_pairs_that_are_too_long_teach_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    spoilt = ["Hund"] * 13, ["snow"] * 3
    monkeypatch.setattr(module, "LONGEST", 12)
    with_it = learn_aligner(
        IndexedSentences([*SOURCES[:50], spoilt[0]]),
        IndexedSentences([*TARGETS[:50], spoilt[1]]),
        shares=(),
        iterations=(3, 2),
    )
    without = learn_aligner(
        IndexedSentences(SOURCES[:50]), IndexedSentences(TARGETS[:50]), shares=(), iterations=(3, 2)
    )
    one, other = (each.members[0].models.forward.link_E for each in (with_it, without))
    assert np.array_equal(one, other)


def test_a_full_aligner_forgets_rare_pairs_and_words_that_only_they_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = learn(100)
    for each in (hmm, module):
        monkeypatch.setattr(each, "MOST_PAIRS", 12)
    full = learn(100)
    for now, before in zip(full.members, whole.members, strict=True):
        counts = expected_links(before)
        most = sorted(counts, key=counts.__getitem__, reverse=True)[:12]
        found = expected_links(now)
        assert found == {pair: pytest.approx(counts[pair], rel=1e-3) for pair in most}
        assert set(now.source.number) == {source for source, _ in most}
        assert set(now.target.number) == {target for _, target in most}
    save_aligner(full, tmp_path / "full")
    further = learn_aligner(
        IndexedSentences(SOURCES[100:]), IndexedSentences(TARGETS[100:]), before=load_aligner(tmp_path / "full")
    )
    for now, before in zip(further.members, full.members, strict=True):
        assert len(now.models.pair_E) == 12
        # The links of the first text count too: no pair that stays has fewer than it had.
        old, new = expected_links(before), expected_links(now)
        assert [pair for pair in old.keys() & new.keys() if new[pair] < 0.99 * old[pair]] == []
        assert old.keys() & new.keys()


def expected_links(member: Member) -> dict[tuple[str, str], float]:
    """n + a of each pair of tokens, from (n + a) / (n(s) + a V) and a / (n(s) + a V)."""
    sources, targets, models = list(member.source.number), list(member.target.number), member.models
    numbers = [divmod(pair, len(targets)) for pair in models.pair_E.tolist()]
    links = models.forward.link_E.tolist()
    unseen = models.forward.unseen_U1.tolist()
    return {(sources[s], targets[t]): hmm.PRIOR * p / unseen[s] for (s, t), p in zip(numbers, links, strict=True)}


def test_few_words_are_cut_in_one_more_way(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = SOURCES[:20], TARGETS[:20]
    words = sum(len(words) for side in sides for words in side)
    for small, kinds in ((words, 2), (words + 1, 3)):
        monkeypatch.setattr(module, "SMALL", small)
        after = Mock()
        aligner = learn_aligner(*map(IndexedSentences, sides), after_iteration=after)
        assert (len(aligner.members), after.call_count) == (kinds, 8 * kinds)
        # Further pairs keep the kinds, and take two iterations.
        further = learn_aligner(*map(IndexedSentences, sides), before=aligner, after_iteration=after)
        assert (len(further.members), after.call_count) == (kinds, 10 * kinds)


@pytest.mark.parametrize("side", [0, 1])
def test_a_side_without_words(side: int) -> None:
    both = [[["a"], ["b"]], [["x"], ["y"]]]
    both[side] = [[], []]
    with pytest.raises(ValueError, match="no words"):
        learn_aligner(*map(IndexedSentences, both))


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
    for one, other in zip(
        learnt.matrices(SOURCES[:20], TARGETS[:20]), again.matrices(SOURCES[:20], TARGETS[:20]), strict=True
    ):
        assert np.array_equal(np.stack(one), np.stack(other))
    save_aligner(again, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_same_text_gives_the_same_bytes_with_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set()
    monkeypatch.setattr(hmm, "_CELLS", 500)  # so that there are several batches
    for threads in (1, 2, 1, 4):
        monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
        save_aligner(learn(80), tmp_path / "x")
        found.add(hashlib.sha256((tmp_path / "x").read_bytes()).hexdigest())
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
    said = str(refusal.value)
    assert "\n" not in said
    assert said.startswith(f"{path}: ")
    return said.removeprefix(f"{path}: ")


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


def test_a_header_with_any_bit_turned_gives_a_line_or_an_aligner(file: Path, tmp_path: Path) -> None:
    data = file.read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    random = np.random.default_rng(1)
    path = tmp_path / "x"
    refusals: list[str] = []
    for place in [*range(8), *random.integers(8, header, 60).tolist()]:
        turned = bytearray(data)
        turned[place] ^= 1 << int(random.integers(8))
        path.write_bytes(turned)
        try:
            load_aligner(path).matrices(SOURCES[:2], TARGETS[:2])
        except InputError as error:
            refusals.append(str(error))
    assert len(refusals) > 50
    assert not any("\n" in each for each in refusals)


def _changed(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def apply(arrays: dict[str, Any]) -> None:
        arrays[name] = change(arrays[name].copy())

    return apply


def _put(value: float, place: int = 0) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    "damage",
    [
        _changed("0.forward.link_E", lambda a: a[:-1]),
        _changed("0.forward.link_E", lambda a: a[:, None]),
        _changed("0.forward.link_E", lambda a: a.astype(np.float64)),
        _changed("0.forward.link_E", _put(np.nan)),
        _changed("1.backward.link_E", _put(-0.5)),
        _changed("1.backward.link_E", _put(np.inf)),
        _changed("2.backward.empty_V1", _put(1e30)),
        _changed("2.forward.empty_V1", lambda a: a[1:]),
        _changed("0.forward.jump_J", lambda a: a * 0),
        _changed("0.forward.jump_J", lambda a: a[:-2]),
        _changed("0.backward.first_W1", _put(np.nan, 3)),
        _changed("0.forward.unseen_U1", lambda a: a[1:]),
        _changed("1.backward.empty_probability", lambda a: a[None]),
        _changed("0.source.letters", lambda a: -a),
        _changed("0.pairs", lambda a: a[::-1].copy()),
        _changed("0.pairs", lambda a: a.astype(np.int32)),
        _changed("0.pairs", _put(-5)),
        _changed("0.pairs", _put(1 << 40, -1)),
        _changed("0.source.tokens", lambda a: np.append(a, np.frombuffer(b"\nzzz", np.uint8))),
        _changed("0.source.tokens", lambda a: a.astype(np.float32)),
        _changed("0.target.tokens", lambda a: a[:0]),
        _changed("0.target.tokens", _put(0xFF)),
        _changed("2.source.subwords", lambda a: a[:50]),
        _changed("2.source.subwords", lambda a: a[:0]),
        lambda arrays: arrays.update({"0.source.runs": arrays["2.source.subwords"].astype(np.int32)}),
        _changed("learnt", lambda a: a[::-1].copy()),
        _changed("learnt", lambda a: a[:, None]),
        _changed("learnt", lambda a: a.astype(np.int64)),
        lambda arrays: arrays.pop("1.pairs"),
        lambda arrays: arrays.pop("0.forward.jump_J"),
        lambda arrays: arrays.clear(),
    ],
)
def test_a_strangers_file_is_refused_in_one_line(
    file: Path, tmp_path: Path, damage: Callable[[dict[str, Any]], None]
) -> None:
    arrays = safetensors.numpy.load_file(file)
    damage(arrays)
    safetensors.numpy.save_file(arrays, tmp_path / "x", {"format": "nmt word aligner 3"})
    assert "damaged" in refused(tmp_path / "x")


def test_types_that_numpy_lacks_are_refused(tmp_path: Path) -> None:
    import safetensors.torch
    import torch

    tensors = {"0.pairs": torch.zeros(3, dtype=torch.bfloat16)}
    safetensors.torch.save_file(tensors, tmp_path / "x", {"format": "nmt word aligner 3"})
    assert "damaged" in refused(tmp_path / "x")
