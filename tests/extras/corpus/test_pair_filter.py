"""The pair filter: its inputs and its model against plain loops, the wrong pairs it learns from, and what it finds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.core.errors import InputError
from nmt.extras.corpus.pair_filter import pair_filter
from nmt.extras.corpus.pair_filter.lexicon import Lexicon
from nmt.extras.corpus.pair_filter.model import INPUTS, PairClassifier, line_facts, summary
from nmt.extras.corpus.pair_filter.pair_filter import PairFilter, learn_pair_filter, load_pair_filter
from nmt.extras.corpus.pair_filter.wrong_pairs import KINDS, examples_of, wrong_pair
from tests.workflows.runs import Command, in_process

ROOT = Path(__file__).resolve().parents[3]


def corpus(count: int, name: str = "train") -> list[tuple[str, str]]:
    sides = [(ROOT / f"data/de-en/{name}.{end}").read_text(encoding="utf-8").split("\n") for end in ("de", "en")]
    return list(dict.fromkeys(zip(*sides, strict=True)))[:count]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small model is trained."""
    monkeypatch.setattr(pair_filter, "SUBWORDS", 400)
    monkeypatch.setattr(pair_filter, "EPOCHS", (1, 1))


def planted(count: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Right pairs, and for 20 % of others wrong ones: partners, halves, copies and swapped ones in turn."""
    pairs = corpus(count + count // 5)
    right, spoilt = pairs[:count], pairs[count:]
    wrong = []
    for row, (source, target) in enumerate(spoilt):
        words = target.split()
        half = " ".join(words[: len(words) // 2] if row % 8 < 4 else words[len(words) // 2 :])
        wrong.append(((source, right[row][1]), (source, half), (source, source), (target, source))[row % 4])
    return right, wrong


@pytest.fixture(scope="module")
def learnt() -> PairFilter:
    return learn_pair_filter([each for side in planted(1500) for each in side], seed=1)


@pytest.fixture
def nmt(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "filter")


def test_inputs_and_logits_are_those_of_the_equations_and_do_not_depend_on_padding() -> None:
    torch.manual_seed(1)
    features_BTF, lengths = torch.randn(4, 7, 3), [7, 1, 2, 5]
    found = summary(features_BTF, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        x, third = features_BTF[row, :length].numpy(), math.ceil(length / 3)
        expected = [x.mean(0), x[:third].mean(0), x[length - third :].mean(0), x.min(0)]
        assert np.allclose(found[row], np.concatenate(expected), atol=1e-5)
    assert line_facts(" Ein Hund. ", "ein hund") == pytest.approx(
        [1, 0, 1, math.log(9), 0, 1, 0, math.log(8), math.log(9 / 8), 0, 0]
    )
    assert line_facts("7!", "7!")[-2:] == [1, 1]
    model = PairClassifier(torch.randn(INPUTS), torch.rand(INPUTS), 4, 6)
    x_BX = torch.randn(3, INPUTS)
    weight = {name: each.detach().double().numpy() for name, each in model.state_dict().items()}
    for row, x in enumerate(x_BX.double().numpy()):
        h = np.clip((x - weight["mean_X"]) / weight["deviation_X"], -5, 5)
        for name in ("hidden.0", "hidden.2"):
            h = np.maximum(weight[f"{name}.weight"] @ h + weight[f"{name}.bias"], 0)
        expected_K = weight["output.weight"] @ h + weight["output.bias"]
        assert np.allclose(model(x_BX)[row].detach(), expected_K, atol=1e-4)


def test_features_are_those_of_the_probabilities(learnt: PairFilter) -> None:
    lexicon, tokens = learnt.lexicons[0], learnt.tokenizer.size
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
            expected = [max(this), max(that), max(sum(links.get(key, (-10.0, -10.0))) / 2 for key in exchanged)]
            expected += [float(token in there), own[side][token], own[1 - side][token], empty[side][token]]
            assert found[side][0, place].tolist() == pytest.approx(expected, abs=1e-4)
    assert min(map(len, pair)) > 2
    assert any(one * tokens + other in links for one in pair[0] for other in pair[1])


@pytest.mark.usefixtures("small")
def test_no_pair_is_scored_by_what_has_learnt_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: dict[str, list[Any]] = {"learn_lexicon": [], "_inputs": [], "_learn_classifier": []}
    for name, seen in calls.items():

        def spy(*arguments: Any, called: Any = getattr(pair_filter, name), seen: list[Any] = seen) -> Any:  # noqa: B008
            seen.append((arguments, called(*arguments)))
            return seen[-1][1]

        monkeypatch.setattr(pair_filter, name, spy)
    pairs = corpus(400)
    found = learn_pair_filter(pairs, seed=1)
    folds = [{pair for pair in pairs if pair_filter._fold(*pair) == fold} for fold in range(pair_filter.FOLDS)]

    def tokens(part: set[tuple[str, str]]) -> set[tuple[tuple[int, ...], ...]]:
        return {tuple(tuple(found.tokenizer.encode_arrays([side])[0]) for side in pair) for pair in part}

    inputs = [x_NX for _, (x_NX, _) in calls["_inputs"]]
    for fold, ((known, *_), lexicon) in enumerate(calls["learn_lexicon"]):
        assert found.lexicons[fold] is lexicon
        assert {tuple(map(tuple, pair)) for pair in known} == tokens(set(pairs) - folds[fold])
        assert set(calls["_inputs"][fold][0][2][:: 1 + pair_filter.WRONG]) == folds[fold]
    for half in (0, 1):
        (x_NX, *_), model = calls["_learn_classifier"][2 + half]
        assert found.models[half] is model
        other = {tuple(row) for x in inputs[1 - half :: 2] for row in x.tolist()}
        assert {tuple(row) for row in x_NX.tolist()} <= other


def test_wrong_pairs_are_what_they_are_called() -> None:
    pairs = [*corpus(400), ("猫は床で寝ている", "ok")]
    draw = np.random.default_rng(1)
    sides = [{pair[side] for pair in pairs} for side in (0, 1)]
    at_end = [0, 0]
    for row, right in enumerate(pairs):
        source, target = wrong_pair(pairs, row, "partner", draw)
        assert source == right[0]
        assert target in sides[1] - {right[1]}
        assert wrong_pair(pairs, row, "swapped", draw) == right[::-1]
        drawn = list(examples_of(pairs, row, 2, draw))
        assert drawn[0] == (0, right)
        assert all(kind in range(1, len(KINDS)) and made != right for kind, made in drawn[1:])
        for kind in KINDS[2:-1]:
            made = wrong_pair(pairs, row, kind, draw)
            side = int(kind.startswith("target"))
            now, then = made[side], right[side]
            if kind.endswith("copied"):
                assert made == (right[side], right[side])
                continue
            assert made[1 - side] == right[1 - side]
            if kind.endswith("joined"):
                assert now.startswith(f"{then} ")
                assert now[len(then) + 1 :] in sides[side]
            else:
                kept = now if then.startswith(now) or then.endswith(now) else now[:-1]
                assert then.startswith(kept) or (then.endswith(now) and kept == now)
                whole = len(then.split()) if " " in then else len(then)
                left = len(kept.split()) if " " in then else len(kept)
                assert whole // 3 <= left <= -(-2 * whole // 3), (then, now)
                at_end[side] += then.startswith(kept)
    assert all(100 < count < 300 for count in at_end)
    assert {kind for kind, _ in examples_of([("a", "a"), ("a", "a")], 0, 90, draw)} == {0, *range(2, 6)}


def test_what_is_wrong_is_found_in_the_corpus_it_stands_in(learnt: PairFilter) -> None:
    right, wrong = (learnt.scores(*map(list, zip(*side, strict=True))) for side in planted(1500))
    assert learnt.threshold(0.0) == pytest.approx(0, abs=0.2)
    assert np.mean(learnt.held_out_N < learnt.threshold(0.5)) == pytest.approx(0.5, abs=0.01)
    assert np.mean(right < 0) < 0.03
    by_kind = [np.mean(wrong[kind::4] < 0) for kind in range(4)]
    assert min(by_kind[0], *by_kind[2:]) > 0.85, by_kind
    assert by_kind[1] > 0.6, by_kind
    assert learnt.scores(["ein Hund", " ", ""], ["", "a dog", ""]).tolist() == [-math.inf] * 3


@pytest.mark.usefixtures("small")
def test_a_text_of_few_words_has_scores() -> None:
    names = {"null": "zero", "eins": "one", "zwei": "two", "drei": "three", "vier": "four"}
    draw = np.random.default_rng(1)
    words = [draw.choice(list(names), size=draw.integers(2, 8)).tolist() for _ in range(400)]
    pairs = list(dict.fromkeys((" ".join(each), " ".join(names[word] for word in each)) for each in words))
    found = learn_pair_filter(pairs, seed=1)
    assert np.isfinite(found.scores(*zip(*pairs, strict=True))).all()
    with pytest.raises(InputError, match="some hundred different pairs"):
        learn_pair_filter(pairs[:100], seed=1)


@pytest.mark.usefixtures("small")
def test_a_filter_is_learnt_saved_and_used(nmt: Command, tmp_path: Path) -> None:
    pairs = [(f"{source}\t", target) for source, target in corpus(300)]
    pairs[7] = ("", "nothing")
    for side, name in enumerate(("a.de", "a.en")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    files = ("--source", tmp_path / "a.de", "--target", tmp_path / "a.en")
    printed = nmt(*files)
    assert nmt(*files, "--save", tmp_path / "first").stdout == ""
    for name, seed in (("again", 1), ("other", 2)):
        done = nmt(*files, "--save", tmp_path / name, "--seed", seed, "--output", tmp_path / "scores")
        assert (done.code, done.stdout) == (0, "")
        assert ((tmp_path / "scores").read_text() == printed.stdout) == (seed == 1)
    first, again, other = [(tmp_path / name).read_bytes() for name in ("first", "again", "other")]
    assert first == again != other
    scored = nmt(*files, "--model", tmp_path / "first", "--false-alarms", "0.4")
    assert scored.stdout == printed.stdout
    assert "reach the threshold" in scored.stderr
    scores = list(map(float, scored.stdout.splitlines()))
    assert len(scores) == 300
    assert scores[7] == -math.inf
    kept = nmt(*files, "--model", tmp_path / "first", "--false-alarms", "0.4", "--format", "kept").stdout.splitlines()
    threshold = load_pair_filter(tmp_path / "first").threshold(0.4)
    assert kept == [
        f"{source[:-1]} \t{target}" for (source, target), score in zip(pairs, scores, strict=True) if score >= threshold
    ]
    assert 100 < len(kept) < 200


def test_a_lexicon_of_a_file_fits_the_vocabulary_and_has_an_entry() -> None:
    def fits(entries: int, tokens: int) -> bool:
        pair_E, link_2E = torch.zeros(entries, dtype=torch.int64), torch.zeros(2, entries)
        return Lexicon(pair_E, link_2E, torch.zeros(3, 2, 5)).fits(tokens)

    assert (fits(1, 5), fits(7, 5), fits(0, 5), fits(1, 6)) == (True, True, False, False)


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
