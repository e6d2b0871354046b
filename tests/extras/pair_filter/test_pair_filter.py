"""The pair filter: its model against plain loops from the paper, the wrong pairs it learns from, and what it finds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.core.errors import InputError
from nmt.extras.pair_filter import pair_filter
from nmt.extras.pair_filter.model import WINDOW, PairClassifier
from nmt.extras.pair_filter.pair_filter import PairFilter, learn_pair_filter, load_pair_filter
from nmt.extras.pair_filter.wrong_pairs import KINDS, WrongPairs
from tests.workflows.runs import Command, in_process

ROOT = Path(__file__).resolve().parents[3]


def corpus(count: int, name: str = "train") -> list[tuple[str, str]]:
    sides = [(ROOT / f"data/de-en/{name}.{end}").read_text(encoding="utf-8").split("\n") for end in ("de", "en")]
    return list(dict.fromkeys(zip(*sides, strict=True)))[:count]


@contextmanager
def small(epochs: int) -> Iterator[None]:
    """A small model is trained."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"SIZE": 8, "SUBWORDS": 400, "LEARNING_RATE": 1e-2, "EPOCHS": epochs}.items():
            patch.setattr(pair_filter, name, value)
        yield


def planted(count: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Right pairs, and for 10 % of others wrong ones: partners, halves, copies and swapped ones in turn."""
    pairs = corpus(count + count // 10)
    right, spoilt = pairs[:count], pairs[count:]
    wrong = []
    for row, (source, target) in enumerate(spoilt):
        half = " ".join(target.split()[: len(target.split()) // 2])
        wrong.append(((source, right[row][1]), (source, half), (source, source), (target, source))[row % 4])
    return right, wrong


@pytest.fixture(scope="module")
def learnt() -> PairFilter:
    with small(epochs=8):
        return learn_pair_filter([each for side in planted(1500) for each in side], seed=1)


@pytest.fixture
def nmt(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "filter")


def by_hand(model: PairClassifier, sides: list[list[list[float]]], is_same: float) -> list[float]:
    """Equations 3 to 5, token by token."""
    weight = {name: each.detach().double().numpy() for name, each in model.state_dict().items()}

    def convolved(side: int, x: list[np.ndarray]) -> list[np.ndarray]:
        kernel, bias, reach = weight[f"windows.{side}.weight"], weight[f"windows.{side}.bias"], WINDOW // 2
        sums = []
        for place in range(len(x)):
            total = bias.copy()
            for step in range(-reach, reach + 1):
                if 0 <= place + step < len(x):
                    total += kernel[:, :, step + reach] @ x[place + step]
            sums.append(np.maximum(total, 0))
        return sums

    parts = []
    for side, features in enumerate(sides):
        x = [np.array([*each, 1.0]) for each in features]
        linear, bias = weight[f"tokens.{side}.weight"], weight[f"tokens.{side}.bias"]
        v = [np.maximum(linear @ each + bias, 0) for each in convolved(side, x)]
        total = np.concatenate([sum(v), sum(x)])
        parts += [total / 8, total / len(x), np.max(v, axis=0)]
    logs = [math.log(len(side)) for side in sides]
    h = np.concatenate([*parts, logs, [logs[0] - logs[1], is_same]])
    for layer in (0, 2, 4):
        h = weight[f"H.{layer}.weight"] @ (h if layer == 0 else np.maximum(h, 0)) + weight[f"H.{layer}.bias"]
    return list(map(float, h))


def test_logits_are_those_of_the_equations_and_do_not_depend_on_padding() -> None:
    torch.manual_seed(1)
    model = PairClassifier(3, 4, 6).eval()
    sides = [torch.randn(3, 6, 3), torch.randn(3, 9, 3)]
    pair_B3 = torch.tensor([[6, 2, 0], [1, 9, 0], [4, 4, 1.0]])
    expected = [
        by_hand(model, [sides[0][row, : int(S)].tolist(), sides[1][row, : int(T)].tolist()], is_same)
        for row, (S, T, is_same) in enumerate(pair_B3.tolist())
    ]
    assert np.allclose(model(*sides, pair_B3).detach(), expected, rtol=1e-4, atol=1e-5)


def test_features_are_those_of_the_probabilities(learnt: PairFilter) -> None:
    lexicon, tokens = learnt.folds[0][0], learnt.tokenizer.size
    own, unseen, empty = lexicon.token_32V.double().numpy()
    links = dict(zip(lexicon.pair_E.tolist(), lexicon.link_2E.double().T.tolist(), strict=True))
    pair = [row.tolist() for row in (*learnt.tokenizer.encode_arrays(["der hund schläft .", "the dog sleeps ."]),)]

    def p(source: int, target: int) -> tuple[float, float]:
        one, other = links.get(source * tokens + target, (unseen[0][source], unseen[1][target]))
        return float(one), float(other)

    found = lexicon.features(*(torch.tensor([[*side, 0, 0]]) for side in pair))
    for side, (here, there) in enumerate((pair, pair[::-1])):
        for place, token in enumerate(here):
            cells = [p(token, other) if side == 0 else p(other, token) for other in there]
            exchanged = [other * tokens + token if side == 0 else token * tokens + other for other in there]
            this, that = [[cell[1 - side] for cell in cells], [cell[side] for cell in cells]]
            expected = [
                max(this),
                math.log(sum(map(math.exp, this)) / len(there)),
                max(that),
                max(map(sum, cells)) / 2,
                own[side][token],
                own[1 - side][token],
                empty[side][token],
                max(sum(links.get(key, (-10.0, -10.0))) / 2 for key in exchanged),
                4 * (token in there) - 6,
            ]
            assert found[side][0, place].tolist() == pytest.approx([(each + 6) / 4 for each in expected], abs=1e-4)
    assert min(map(len, pair)) > 2
    assert any(one * tokens + other in links for one in pair[0] for other in pair[1])


def test_no_pair_is_scored_by_what_has_learnt_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: dict[str, list[Any]] = {"learn_lexicon": [], "_examples": [], "_learn_classifier": []}
    for name, seen in calls.items():

        def spy(*arguments: Any, called: Any = getattr(pair_filter, name), seen: list[Any] = seen) -> Any:  # noqa: B008
            seen.append((arguments[0], called(*arguments)))
            return seen[-1][1]

        monkeypatch.setattr(pair_filter, name, spy)
    pairs = corpus(400)
    with small(epochs=1):
        found = learn_pair_filter(pairs, seed=1)
    folds = [fold for fold, _ in calls["_examples"]]
    assert [lines for lines, _ in calls["learn_lexicon"]] == folds[::-1]
    assert [lexicon for lexicon, _ in found.folds] == [lexicon for _, lexicon in calls["learn_lexicon"]]
    made = [batches for _, batches in calls["_examples"]]
    models = {id(model): batches for batches, model in calls["_learn_classifier"]}
    assert all(models[id(model)] is made[1 - fold] for fold, (_, model) in enumerate(found.folds))
    encode = found.tokenizer.encode_arrays
    known = [{(tuple(source), tuple(target)) for source, target in fold} for fold in folds]
    assert sum(map(len, known)) == len(pairs)
    for pair in pairs:
        source, target = (tuple(encode([side])[0]) for side in pair)
        assert (source, target) in known[pair_filter._fold(*pair)]


def test_wrong_pairs_are_what_they_are_called(learnt: PairFilter) -> None:
    lines = corpus(400)
    encode = learnt.tokenizer.encode_arrays
    pairs = list(zip(*(encode(side) for side in zip(*lines, strict=True)), strict=True))
    wrong = WrongPairs(pairs, learnt.tokenizer, np.random.default_rng(1))
    sides = [{tuple(pair[side]) for pair in pairs} for side in (0, 1)]
    changed = {kind: [0, 0] for kind in ("cut", "joined", "copied")}
    for row, right in enumerate(pairs):
        whole = [side.tolist() for side in right]
        source, target = wrong.of(row, "partner")
        assert source.tolist() == whole[0]
        assert tuple(target) in sides[1]
        assert target.tolist() != whole[1]
        assert [side.tolist() for side in wrong.of(row, "swapped")] == whole[::-1]
        assert all(1 <= kind <= len(KINDS) for kind, _ in wrong.drawn(row))
        for kind, counts in changed.items():
            made = [side.tolist() for side in wrong.of(row, kind)]
            (side,) = [side for side in (0, 1) if made[side] != whole[side]]
            counts[side] += 1
            now, then, words = made[side], whole[side], lines[row][side].split()
            if kind == "copied":
                assert now == whole[1 - side]
            elif kind == "joined":
                assert now[: len(then)] == then
                assert tuple(now[len(then) :]) in sides[side]
            else:
                kept = now[:-1] if now[-1] == then[-1] and now != then[-len(now) :] else now
                assert kept in (then[: len(kept)], then[-len(kept) :])
                left = len(learnt.tokenizer.detokenize(kept).split())
                assert len(words) // 3 <= left <= -(-2 * len(words) // 3), (words, left)
    assert min(min(counts) for counts in changed.values()) > 100


def test_what_is_wrong_is_found_in_the_corpus_it_stands_in(learnt: PairFilter) -> None:
    right, wrong = ([learnt.scores(*zip(*side, strict=True))][0] for side in planted(1500))
    threshold = learnt.threshold(0.01)
    assert threshold >= np.quantile(learnt.held_out_N, 0.01)
    assert np.mean(right < threshold) < 0.03
    by_kind = [np.mean(wrong[kind::4] < threshold) for kind in range(4)]
    assert min(by_kind[0], *by_kind[2:]) > 0.85, by_kind
    assert by_kind[1] > 0.6, by_kind
    assert learnt.scores(["ein Hund", " ", ""], ["", "a dog", ""]).tolist() == [-math.inf] * 3
    long, longer = ("Hund " * 1000, "Hund " * 1200)
    assert learnt.scores([long], ["a dog"]) == learnt.scores([longer], ["a dog"]), "both are cut at the same place"


def test_a_text_of_few_words_has_scores() -> None:
    names = {"null": "zero", "eins": "one", "zwei": "two", "drei": "three", "vier": "four"}
    draw = np.random.default_rng(1)
    words = [draw.choice(list(names), size=draw.integers(2, 8)).tolist() for _ in range(400)]
    pairs = list(dict.fromkeys((" ".join(each), " ".join(names[word] for word in each)) for each in words))
    with small(epochs=2):
        found = learn_pair_filter(pairs, seed=1)
        assert np.isfinite(found.scores(*zip(*pairs, strict=True))).all()
        with pytest.raises(InputError, match="some hundred different pairs"):
            learn_pair_filter(pairs[:100], seed=1)


def test_a_filter_is_learnt_saved_and_used(nmt: Command, tmp_path: Path) -> None:
    pairs = [(f"{source}\t", target) for source, target in corpus(300)]
    pairs[7] = ("", "nothing")
    for side, name in enumerate(("a.de", "a.en")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    files = ("--source", tmp_path / "a.de", "--target", tmp_path / "a.en")
    with small(epochs=1):
        printed = nmt(*files)
        assert nmt(*files, "--save", tmp_path / "first").stdout == ""
        for name, seed in (("again", 1), ("other", 2)):
            done = nmt(*files, "--save", tmp_path / name, "--seed", seed, "--output", tmp_path / "scores")
            assert (done.code, done.stdout) == (0, "")
    first, again, other = [(tmp_path / name).read_bytes() for name in ("first", "again", "other")]
    assert first == again != other
    scored = nmt(*files, "--model", tmp_path / "first", "--false-alarms", "0.5")
    assert scored.stdout == printed.stdout
    assert "reach the threshold" in scored.stderr
    scores = list(map(float, scored.stdout.splitlines()))
    assert len(scores) == 300
    assert scores[7] == -math.inf
    kept = nmt(*files, "--model", tmp_path / "first", "--false-alarms", "0.5", "--format", "kept").stdout.splitlines()
    threshold = load_pair_filter(tmp_path / "first").threshold(0.5)
    assert kept == [
        f"{source[:-1]} \t{target}" for (source, target), score in zip(pairs, scores, strict=True) if score >= threshold
    ]
    assert 100 < len(kept) < 200


def test_faults_are_told_in_one_line(nmt: Command, tmp_path: Path) -> None:
    for name, lines in (("a", ["x y", "z"] * 60), ("b", ["x y"] * 119), ("few", ["a b", "b c"]), ("empty", [])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    a, b, few, empty = (tmp_path / name for name in ("a", "b", "few", "empty"))
    pairs = ("-s", a, "-t", a)
    expected: dict[tuple[str | Path, ...], str] = {
        ("-s", a, "-t", b): f"{a} has 120 lines but {b} has 119; ",
        ("-s", a, "-t", tmp_path / "none"): f"{tmp_path / 'none'}: no such file",
        ("-s", empty, "-t", empty): f"{empty} + {empty}: empty; ",
        ("-s", few, "-t", few): "there is too little text to learn from; ",
        pairs: "there is too little text to learn from; ",
        (*pairs, "--model", b): f"{b}: is not a pair filter, or damaged; ",
        (*pairs, "--model", b, "--seed", "1"): "--model: nothing is trained; leave out --seed, or --model",
        (*pairs, "--save", a): f"--save {a}: is an input file of this command; ",
        (*pairs, "--save", "/dev/stdout"): "--save /dev/stdout: cannot be written: name a regular file",
        (*pairs, "--save", empty, "--output", empty): f"--output {empty}: is the file of --save, too; ",
        (*pairs, "--output", tmp_path / "no" / "file"): f"--output {tmp_path / 'no' / 'file'}: cannot be written: ",
        (*pairs, "--false-alarms", "2"): "--false-alarms",
    }
    for arguments, message in expected.items():
        assert nmt(*arguments).error.startswith(message), arguments
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "few", "empty"}
