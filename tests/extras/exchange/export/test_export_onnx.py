"""``nmt export --to onnx``, through the command line, and the code with which docs/export.md uses what it writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.extras.exchange.export import session
from tests.extras.exchange.shared import succeeding
from tests.workflows.runs import error, nmt

TEXTS = ["eins Hund.", "zwei Katze und drei grün Hund.", "und."]


@pytest.fixture(scope="module")
def exported(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("onnx", "onnxruntime", "onnxscript"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    folder = tmp_path_factory.mktemp("onnx") / "copy"
    shutil.copytree(trained, folder, symlinks=True)
    done = succeeding("export", "run", "--to", "onnx", folder=folder)
    assert b"10 of 10 sentences are translated alike" in done.stderr
    assert len(done.stderr.splitlines()) == 3  # the exporter has nothing to say
    assert done.stdout == b""
    return folder


def test_the_code_that_the_page_shows_translates_as_the_model_does(exported: Path) -> None:
    page = (Path(__file__).parents[4] / "docs" / "export.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    used = {line.split()[1] for line in code.splitlines() if re.match("(import|from) ", line)}
    assert used == {"json", "pathlib", "numpy", "onnxruntime", "sentencepiece"}
    code, count = re.subn("(?m)^print.*", "", code.replace("runs/de-en/exported", "run/exported"))
    assert count == 1
    use = f"{code}\nfor text in {TEXTS!r}:\n    print(*translate([text]))\nprint(*translate({TEXTS!r}), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", use], cwd=exported, capture_output=True, text=True, check=True)
    alone, together = done.stdout.splitlines()[:3], done.stdout.splitlines()[3:]
    options = ["--beam", "1", "--max-length-ratio", "2", "--precision", "float32"]
    options += ["--set", "search.repetition_margin=null"]
    own = nmt("translate", "run", *options, folder=exported, stdin="".join(f"{text}\n" for text in TEXTS).encode())
    assert alone == own.stdout.decode().splitlines()
    assert len(set(alone)) > 1
    assert len(together) == 3
    assert all(longer.startswith(one) for longer, one in zip(together, alone, strict=True))


def test_the_folder_says_all_that_there_is_to_know(exported: Path) -> None:
    folder = exported / "run" / "exported" / "onnx"
    about = json.loads((folder / "nmt.json").read_text(encoding="utf-8"))
    assert about["format"] == "onnx"
    assert about["checkpoint"] == "step-00000002"
    assert about["special"] == {"pad": 0, "unk": 1, "bos": 2, "eos": 3}
    assert about["heads"] == ["head1"]
    files = {about["encoder"]["file"], about["step"]["file"], *about["subwords"].values()}
    assert {file.name for file in folder.iterdir()} == {*files, "nmt.json"}
    assert about["encoder"]["inputs"] == [{"name": "source", "type": "int64", "shape": ["batch", "source"]}]
    assert about["step"]["inputs"][1:] == about["encoder"]["outputs"]
    assert [each["name"] for each in about["step"]["outputs"][:2]] == ["logits", "weights"]


def test_mistakes_get_one_line(exported: Path, tmp_path: Path) -> None:
    done = nmt("export", "run", "--to", "onxx", folder=exported)
    assert done.returncode == 2
    assert b"onnx" in done.stderr
    (tmp_path / "mine.txt").write_text("keep")
    for output, message in ((tmp_path, "is not an export of ours"), (tmp_path / "mine.txt" / "here", "cannot be made")):
        assert message in error(nmt("export", "run", "--to", "onnx", "--output", output, folder=exported))
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("package", ["onnx", "onnxruntime", "onnxscript"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # what import takes for a package that is not there
    with pytest.raises(InputError, match=r"^--to onnx: .* is not installed: pip install .*\[onnx\]'$"):
        session.required()
