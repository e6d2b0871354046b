"""One file is all that a new mechanism needs, here or in a folder of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from nmt.attention import registry, scores, weights
from nmt.attention.mechanism import Mechanism
from nmt.attention.registry import SCORES, WEIGHTS
from nmt.core.errors import InputError

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
for text in sys.argv[1:]:
    try:
        print(validate(AttentionConfig, parse_document(text, "test")))
    except InputError as error:
        print(error)
print("torch" in sys.modules)
"""


def write(folder: Path, file: str, text: str) -> None:
    (folder / file).parent.mkdir()
    (folder / file).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("package", "found"), [(scores, SCORES), (weights, WEIGHTS)], ids=["scores", "weights"])
def test_every_file_is_found_by_the_name_that_it_has(package: object, found: dict[str, type[Mechanism]]) -> None:
    (folder,) = package.__path__  # type: ignore[attr-defined]
    assert list(found) == sorted(path.stem for path in Path(folder).glob("[a-z]*.py"))
    for kind, mechanism in found.items():
        assert mechanism().kind == kind


def test_a_folder_of_ones_own_adds_its_mechanisms(tmp_path: Path) -> None:
    """A fault in the configuration of one is one line as of any other."""
    write(tmp_path, "scores/zero.py", SCORE)
    write(tmp_path, "weights/even.py", NORMALIZER)
    texts = ["score: {kind: mine, strength: 3}\nweights: even", "score: {kind: mine, strenght: 3}", "score: mein"]
    environment = {**os.environ, "NMT_MECHANISMS": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", READ, *texts]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    score_names, weight_names, config, unknown_key, unknown_kind, torch = done.stdout.splitlines()
    assert score_names.split() == sorted([*SCORES, "mine"])
    assert weight_names.split() == sorted([*WEIGHTS, "even"])
    assert config == "score=Mine(kind='mine', strength=3.0) weights=Even(kind='even') key_size=None heads=1"
    assert unknown_key.startswith("test:1: score.strenght: unknown key; did you mean 'strength'?")
    assert "did you mean 'mine'?" in unknown_kind
    assert "location_sensitive, mine, scaled_dot" in unknown_kind
    assert torch == "False", "configurations are read without it"


Discover = Callable[[ModuleType], list[str]]


@pytest.fixture
def discover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Discover]:
    """Names the mechanisms of a package and those of a folder of one's own, in this process."""
    modules = set(sys.modules)

    def discovered(package: ModuleType) -> list[str]:
        monkeypatch.setenv("NMT_MECHANISMS", str(tmp_path))
        monkeypatch.setattr(package, "__path__", list(package.__path__))
        return list(registry._discover(package, Mechanism))  # type: ignore[type-abstract]

    yield discovered
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def test_one_of_the_two_folders_is_enough(tmp_path: Path, discover: Discover) -> None:
    write(tmp_path, "scores/zero.py", SCORE)
    assert discover(weights) == list(WEIGHTS)
    assert discover(scores) == sorted([*SCORES, "mine"])


FAULTS = {
    "a syntax error": ("scores/zero.py", "def f(:\n", "scores/zero.py:1: invalid syntax"),
    "a missing module": (
        "scores/zero.py",
        "import no\n",
        "scores/zero.py: cannot be imported: ModuleNotFoundError: No ",
    ),
    "a taken kind": ("scores/zero.py", SCORE.replace('"mine"', '"dot"'), "scores/zero.py: kind: dot is taken"),
    "no attention's kind": ("scores/zero.py", SCORE.replace('"mine"', '"none"'), "scores/zero.py: kind: none is taken"),
    "a taken file": ("weights/softmax.py", NORMALIZER, "weights/softmax.py: has the name of a file that ships"),
    "no folder": ("more/zero.py", SCORE, ": has no folder scores and no folder weights; name one that has"),
}


@pytest.mark.parametrize("name", list(FAULTS))
def test_a_fault_of_ones_own_file_is_told_in_one_line(name: str, tmp_path: Path, discover: Discover) -> None:
    file, text, expected = FAULTS[name]
    write(tmp_path, file, text)
    with pytest.raises(InputError) as refused:
        discover(weights if file.startswith("weights") else scores)
    assert str(refused.value).startswith(f"NMT_MECHANISMS: {tmp_path}")
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)
