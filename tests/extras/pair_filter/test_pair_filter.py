"""The pair filter: its model against plain loops from the paper, the wrong pairs it learns from, and what it finds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.core.errors import InputError
from nmt.extras.pair_filter import pair_filter
from nmt.extras.pair_filter.model import DecomposableAttention
from nmt.extras.pair_filter.pair_filter import PairFilter, _learn_tokenizer, learn_pair_filter, load_pair_filter
from nmt.extras.pair_filter.wrong_pairs import WrongPairs
from tests.workflows.runs import Command, in_process

ROOT = Path(__file__).resolve().parents[3]


def corpus(count: int, name: str = "train") -> list[tuple[str, str]]:
    sides = [(ROOT / f"data/de-en/{name}.{end}").read_text(encoding="utf-8").split("\n") for end in ("de", "en")]
    return list(dict.fromkeys(zip(*sides, strict=True)))[:count]


@contextmanager
def small(updates: int) -> Iterator[None]:
    """A small model is trained."""
    with pytest.MonkeyPatch.context() as patch:
        sizes = {"SIZE": 32, "SUBWORDS": 1000, "BATCH_PAIRS": 64, "LEARNING_RATE": 1e-2, "UPDATES": updates}
        for name, value in sizes.items():
            patch.setattr(pair_filter, name, value)
        yield


@pytest.fixture(scope="module")
def learnt() -> PairFilter:
    with small(updates=100):
        return learn_pair_filter(corpus(3000), seed=1)


@pytest.fixture
def nmt(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "filter")


def make_model() -> DecomposableAttention:
    torch.manual_seed(1)
    model = DecomposableAttention(20, 6)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


def by_hand(model: DecomposableAttention, source: list[int], target: list[int]) -> float:
    """Equations 1 to 6, token by token."""
    weight = {name: each.detach().double().numpy() for name, each in model.state_dict().items()}

    def layer(name: str, x: np.ndarray) -> np.ndarray:
        return weight[f"{name}.weight"] @ x + weight[f"{name}.bias"]

    def hidden(name: str, x: np.ndarray) -> np.ndarray:
        return np.maximum(layer(f"{name}.2", np.maximum(layer(f"{name}.0", x), 0)), 0)

    table = weight["embedding.table.weight"]
    a, b = [table[token] for token in source], [table[token] for token in target]
    e = [[float(hidden("F", one) @ hidden("F", other)) for other in b] for one in a]
    v1, v2 = [], []
    for i, one in enumerate(a):
        total = sum(math.exp(e[i][j]) for j in range(len(b)))
        beta = sum(math.exp(e[i][j]) / total * b[j] for j in range(len(b)))
        v1.append(hidden("G", np.concatenate([one, beta])))
    for j, one in enumerate(b):
        total = sum(math.exp(e[i][j]) for i in range(len(a)))
        alpha = sum(math.exp(e[i][j]) / total * a[i] for i in range(len(a)))
        v2.append(hidden("G", np.concatenate([one, alpha])))
    aggregated = [f(v, axis=0) for v in (v1, v2) for f in (np.sum, np.max)]
    return float(layer("H.4", hidden("H", np.concatenate([*aggregated, [math.log(len(a) / len(b))]])))[0])


def test_log_odds_are_those_of_the_equations_and_do_not_depend_on_padding() -> None:
    model = make_model()
    pairs = [([4, 5, 6, 3], [7, 3]), ([9, 3], [8, 4, 4, 19, 3]), ([3], [5, 3])]
    source_BS, target_BT = torch.zeros(3, 6, dtype=torch.long), torch.zeros(3, 5, dtype=torch.long)
    for row, (source, target) in enumerate(pairs):
        source_BS[row, : len(source)], target_BT[row, : len(target)] = torch.tensor(source), torch.tensor(target)
    expected = [by_hand(model, *pair) for pair in pairs]
    assert max(expected) - min(expected) > 0.2
    assert model(source_BS, target_BT).tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert [model(*(torch.tensor([side]) for side in pair)).item() for pair in pairs] == pytest.approx(
        expected, rel=1e-4, abs=1e-5
    )


def test_wrong_pairs_are_what_they_are_called(learnt: PairFilter) -> None:
    lines = corpus(400)
    encode = learnt.tokenizer.encode_arrays
    pairs = list(zip(*(encode(side) for side in zip(*lines, strict=True)), strict=True))
    wrong = WrongPairs(pairs, learnt.tokenizer, np.random.default_rng(1))
    sides = [{tuple(pair[side]) for pair in pairs} for side in (0, 1)]
    order = sorted((len(target), target.tolist()) for _, target in pairs)
    changed = {kind: [0, 0] for kind in ("cut", "joined", "copied")}
    for row, right in enumerate(pairs):
        whole = [side.tolist() for side in right]
        for kind in ("partner", "similar"):
            source, target = wrong.of(row, kind)
            assert source.tolist() == whole[0]
            assert tuple(target) in sides[1]
            assert target.tolist() != whole[1]
            between = abs(order.index((len(target), target.tolist())) - order.index((len(whole[1]), whole[1])))
            assert kind == "partner" or 4 < between <= 50
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


def test_what_is_wrong_is_found(learnt: PairFilter) -> None:
    sources, targets = map(list, zip(*corpus(500, "valid"), strict=True))
    threshold = learnt.threshold(0.02)
    assert np.mean(learnt.held_out_N < threshold) == pytest.approx(0.02, abs=0.01)
    assert np.mean(learnt.scores(sources, targets) < threshold) < 0.1
    assert np.mean(learnt.scores(sources, targets[1:] + targets[:1]) < threshold) > 0.5
    assert learnt.scores(["ein Hund", " ", ""], ["", "a dog", ""]).tolist() == [-math.inf] * 3
    long, longer = ("Hund " * 1000, "Hund " * 1200)
    assert learnt.scores([long], ["a dog"]) == learnt.scores([longer], ["a dog"]), "both are cut at the same place"


def test_a_filter_is_learnt_saved_and_used(nmt: Command, tmp_path: Path) -> None:
    pairs = [(f"{source}\t", target) for source, target in corpus(300)]
    pairs[7] = ("", "nothing")
    for side, name in enumerate(("a.de", "a.en")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    files = ("--source", tmp_path / "a.de", "--target", tmp_path / "a.en")
    with small(updates=2):
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


def test_a_text_of_few_words_has_a_vocabulary() -> None:
    """More pairs of the same words would not help."""
    names = {"null": "zero", "eins": "one", "zwei": "two", "drei": "three", "vier": "four"}
    draw = np.random.default_rng(1)
    words = [draw.choice(list(names), size=draw.integers(2, 8)).tolist() for _ in range(400)]
    pairs = list(dict.fromkeys((" ".join(each), " ".join(names[word] for word in each)) for each in words))
    assert 20 < _learn_tokenizer(pairs).size < 100
    with pytest.raises(InputError, match="too little text to learn from; give pairs with more different words"):
        _learn_tokenizer([("", "")])


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
