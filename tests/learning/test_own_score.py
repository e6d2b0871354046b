"""A new score is one file: put into a folder of one's own it trains, translates and aligns like those that ship."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nmt.attention.registry import SCORES
from tests.workflows.runs import measured, nmt, write_lines

SCORE = '''\
"""Bilinear-tanh score: tanh(query . W key), made sharper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Parameter, Score, Sizes, linear

if TYPE_CHECKING:
    from torch import Tensor


class BilinearTanh(Score):
    """score = b tanh(q . W k), W (Q, K), b learnt."""

    formula: ClassVar[str] = "b tanh(q·W k)"
    source: ClassVar[str] = "this test"

    kind: Literal["bilinear_tanh"] = "bilinear_tanh"
    factor: float = 5.0
    """What b starts at."""

    def parameters(self, sizes: Sizes) -> Mapping[str, Parameter]:
        """W, and b over where it starts."""
        return {"key_weight_AK": Parameter((sizes.query, sizes.key)), "b_1": Parameter((1,), "ones")}

    def precompute_keys(self, keys_BHSK: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """W k."""
        return linear(keys_BHSK, parameters["key_weight_AK"])

    def __call__(self, query_BHTQ: Tensor, keys_BHSQ: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """For all pairs."""
        return (query_BHTQ @ keys_BHSQ.mT).tanh() * parameters["b_1"] * self.factor
'''

CONFIG = """\
run: run
data:
  train: {source: train.source, target: train.target}
  valid: {source: valid.source, target: valid.target}
  subwords: {kind: word, size: 100}
  filters: {identical: false, duplicates: false}
model:
  embedding: {size: 24}
  encoder: {cell: gru, size: 24}
  decoder: {cell: gru, size: 32, query: current, input_feeding: false}
  attention: {score: bilinear_tanh}
  dropout: {embedding: 0.0, layers: 0.0}
training:
  batching: {batch_tokens: 400}
  optimizer: {learning_rate: 1.0e-2}
  schedule: {kind: linear, warmup: 10, hold: 0.3, final: 0.05}
  label_smoothing: 0.0
  stopping: {updates: 40}
  validation: {every: 40, metric: loss}
search: {beam: 1}
alignment: argmax
"""


def reversed_digits(folder: Path) -> None:
    draw = random.Random(5)
    for name, count in (("train", 800), ("valid", 20), ("test", 30)):
        lines = [[str(draw.randrange(10)) for _ in range(draw.randint(2, 6))] for _ in range(count)]
        for side, step in (("source", 1), ("target", -1)):
            write_lines(folder / f"{name}.{side}", (" ".join(line[::step]) for line in lines))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the score in mine/scores/, a corpus, config.yaml and a run with that score in run/."""
    folder = tmp_path_factory.mktemp("own-score")
    (folder / "mine" / "scores").mkdir(parents=True)
    (folder / "mine" / "scores" / "bilinear_tanh.py").write_text(SCORE, encoding="utf-8")
    reversed_digits(folder)
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    done = nmt("train", "config.yaml", "--precision", "float32", folder=folder, environment=mine(folder))
    assert done.returncode == 0, done.stderr.decode()
    return folder


def mine(folder: Path) -> dict[str, str]:
    return {"NMT_MECHANISMS": str(folder / "mine")}


def one_line(stderr: bytes) -> str:
    (line,) = stderr.decode().splitlines()
    assert line.startswith("error: ")
    return line


def test_it_trains(trained: Path) -> None:
    losses = [each["loss"] for each in measured(trained / "run") if "loss" in each]
    assert losses[-1] < 0.7 * losses[0]
    assert "kind: bilinear_tanh\n      factor: 5.0\n" in (trained / "run" / "config.yaml").read_text("utf-8")


def test_it_aligns(trained: Path) -> None:
    done = nmt(
        "align", "run", "--source", "test.source", "--target", "test.target", "--precision", "float32",
        folder=trained, environment=mine(trained),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    sources = (trained / "test.source").read_text("utf-8").splitlines()
    lines = done.stdout.decode().splitlines()
    for line, source in zip(lines, sources, strict=True):
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        length = len(source.split())
        assert links
        assert all(0 <= a < length and 0 <= b < length for a, b in links)


def test_without_its_folder_the_run_is_a_plain_error(trained: Path) -> None:
    for arguments in (("align", "run", "--source", "test.source"), ("train", "config.yaml")):
        done = nmt(*arguments, folder=trained, environment={"NMT_MECHANISMS": ""})
        assert done.returncode == 2
        assert done.stdout == b""
        line = one_line(done.stderr)
        assert "attention.score" in line
        assert "'bilinear_tanh' is not a choice" in line
        assert f"the choices are {', '.join(['none', *SCORES])}" in line


@pytest.mark.parametrize(
    ("score", "words"),
    [
        ("bilinear_than", ["is not a choice; did you mean 'bilinear_tanh'?", "additive, bilinear_tanh, concat"]),
        ("{kind: bilinear_tanh, factro: 3}", ["model.attention.score.factro", "did you mean 'factor'?"]),
    ],
)
def test_it_is_checked_like_any_other(score: str, words: list[str], trained: Path) -> None:
    setting = f"model.attention.score={score}"
    done = nmt("train", "config.yaml", "--set", setting, folder=trained, environment=mine(trained))
    assert done.returncode == 2
    line = one_line(done.stderr)
    assert all(each in line for each in words)


@pytest.mark.parametrize(
    "arguments",
    [("train", "config.yaml"), ("align", "run", "--source", "test.source"), ("translate", "run")],
    ids=lambda arguments: arguments[0],
)
def test_a_folder_that_is_not_there_is_a_plain_error(trained: Path, arguments: tuple[str, ...]) -> None:
    done = nmt(*arguments, folder=trained, environment={"NMT_MECHANISMS": "elsewhere"})
    assert done.returncode == 2
    assert one_line(done.stderr) == (
        "error: NMT_MECHANISMS: elsewhere: has no folder scores and no folder weights; name one that has"
    )
