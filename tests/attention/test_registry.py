"""One file is all that a new mechanism needs, here or in a folder of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.attention import scores, weights
from nmt.attention.mechanism import Mechanism
from nmt.attention.registry import SCORES, WEIGHTS

ROOT = Path(__file__).resolve().parents[2]

SCORE = '''
from __future__ import annotations

from typing import ClassVar, Literal

from nmt.attention.mechanism import Score


class Mine(Score):
    """score = 0."""

    formula: ClassVar[str] = "0"
    source: ClassVar[str] = "me"
    kind: Literal["mine"] = "mine"
    strength: float = 2.0

    def __call__(self, query_BHTA, keys_BHSA, parameters):
        return 0 * query_BHTA @ keys_BHSA.mT
'''

NORMALIZER = '''
from __future__ import annotations

from typing import ClassVar, Literal

from nmt.attention.mechanism import AttentionWeights, Weighting


class Even(Weighting):
    """All alike."""

    formula: ClassVar[str] = "1 / S"
    source: ClassVar[str] = "me"
    kind: Literal["even"] = "even"

    def __call__(self, scores_BHTS, context, parameters):
        return AttentionWeights((0 * scores_BHTS).softmax(-1))
'''

READ = """
import sys
from nmt.attention.config import AttentionConfig
from nmt.attention.registry import SCORES, WEIGHTS
from nmt.core.errors import InputError
from nmt.config.structure import parse_document, validate
print(*SCORES)
print(*WEIGHTS)
try:
    print(validate(AttentionConfig, parse_document(sys.argv[1], "test")))
except InputError as error:
    print(error)
print("torch" in sys.modules)
"""


def read(text: str, folder: Path | None) -> list[str]:
    """In a process of its own: the kinds of scores, of weights, the configuration or its fault, and whether torch was
    imported."""
    environment = {name: value for name, value in os.environ.items() if name != "NMT_MECHANISMS"}
    if folder is not None:
        environment["NMT_MECHANISMS"] = str(folder)
    done = subprocess.run(
        [sys.executable, "-c", READ, text],
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    for name, text in (("scores/zero.py", SCORE), ("weights/even.py", NORMALIZER)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("package", "found"), [(scores, SCORES), (weights, WEIGHTS)], ids=["scores", "weights"])
def test_every_file_is_found_by_the_name_that_it_has(package: object, found: dict[str, type[Mechanism]]) -> None:
    (folder,) = package.__path__  # type: ignore[attr-defined]
    assert list(found) == sorted(path.stem for path in Path(folder).glob("[a-z]*.py"))
    for kind, mechanism in found.items():
        assert mechanism().kind == kind


def test_a_folder_of_ones_own_adds_its_mechanisms(mine: Path) -> None:
    score_names, weight_names, config, torch = read("score: {kind: mine, strength: 3}\nweights: even", mine)
    assert score_names.split() == sorted([*SCORES, "mine"])
    assert weight_names.split() == sorted([*WEIGHTS, "even"])
    assert config == "score=Mine(kind='mine', strength=3.0) weights=Even(kind='even') key_size=None heads=1"
    assert torch == "False", "configurations are read without it"


def test_a_fault_in_its_configuration_is_one_line_as_of_any_other(mine: Path) -> None:
    assert read("score: {kind: mine, strenght: 3}", mine)[2].startswith(
        "test:1: score.strenght: unknown key; did you mean 'strength'?"
    )
    choices = read("score: mein", mine)[2]
    assert "did you mean 'mine'?" in choices
    assert "location_sensitive, mine, scaled_dot" in choices


def test_without_the_folder_they_are_no_choices() -> None:
    score_names, _, fault, _ = read("score: mine", None)
    assert score_names.split() == list(SCORES)
    assert fault.startswith("test:1: score: text 'mine' is not a choice")


def test_one_of_the_two_folders_is_enough(mine: Path) -> None:
    (mine / "weights" / "even.py").unlink()
    (mine / "weights").rmdir()
    score_names, weight_names, _, _ = read("score: mine", mine)
    assert "mine" in score_names.split()
    assert weight_names.split() == list(WEIGHTS)


FAULTS = {
    "a syntax error": ("scores/zero.py", "def f(:\n", "scores/zero.py:1: invalid syntax"),
    "a missing module": (
        "scores/zero.py",
        "import nosuch\n",
        "scores/zero.py: cannot be imported: ModuleNotFoundError",
    ),
    "a taken kind": ("scores/zero.py", SCORE.replace('"mine"', '"dot"'), "scores/zero.py: kind: dot is taken"),
    "no attention's kind": ("scores/zero.py", SCORE.replace('"mine"', '"none"'), "scores/zero.py: kind: none is taken"),
    "a taken file": ("weights/softmax.py", NORMALIZER, "weights/softmax.py: has the name of a file that ships"),
}


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_fault_of_ones_own_file_is_told_in_one_line(name: str, tmp_path: Path) -> None:
    file, text, expected = FAULTS[name]
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).write_text(text, encoding="utf-8")
    done = command(tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: NMT_MECHANISMS: ")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_folder_without_mechanisms_is_told(tmp_path: Path) -> None:
    done = command(tmp_path)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: NMT_MECHANISMS: {tmp_path}: has no folder scores and no folder weights; name one that has\n"
    )


def command(mechanisms: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "nmt", "prepare", str(ROOT / "configs" / "de-en.yaml")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "NMT_MECHANISMS": str(mechanisms)},
        capture_output=True,
        text=True,
        check=False,
    )
