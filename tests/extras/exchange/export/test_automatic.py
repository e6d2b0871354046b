"""``--engine auto`` translates with CTranslate2 where it can, and says why where it does not."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from safetensors.torch import save_file

import nmt
from nmt.core.errors import InputError
from nmt.extras.exchange.export import engine, export_model
from nmt.extras.exchange.export.engine import CTranslate2Engine, weights_hash
from nmt.search.engine import TorchEngine
from nmt.training import run_directory
from nmt.training.checkpoint import read_tensors
from nmt.translator.translator import Translator
from tests.extras.exchange.shared import succeeding
from tests.workflows.runs import SEARCHED_ONCE, train_in

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

TEXTS = ["eins Hund.", "", "zwei Katze und drei Hund."]
TEXT = "\n".join(TEXTS).encode()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return train_in(tmp_path / "here", SEARCHED_ONCE) / "run"


def load(run: Path, **options: Any) -> Translator:
    return nmt.load_translator(run, engine="auto", **{"device": "cpu"} | options)


def lines(translator: Translator) -> list[str]:
    return [translation.text for translation in translator.translate(TEXTS, beam=1)]


def test_the_first_call_exports_and_translates_as_our_own_engine(run: Path) -> None:
    for times in (1, 0):
        options = ("--engine", "auto", "--beam", "1", "--precision", "auto", "--device", "cpu")
        done = succeeding("translate", "run", *options, folder=run.parent, stdin=TEXT)
        assert done.stderr.count(b"10 of 10 sentences are translated alike") == times
        assert re.search(rb"engine: CTranslate2 .*, cpu, float32\n", done.stderr)
        own = succeeding("translate", "run", "--beam", "1", "--precision", "float32", folder=run.parent, stdin=TEXT)
        assert done.stdout == own.stdout


def test_other_weights_of_the_same_name_are_exported_anew(run: Path) -> None:
    first = load(run)
    before, weights = weights_hash(first.trained), run / "best" / run_directory.MODEL
    tensors = {name: 3.0 * tensor for name, tensor in read_tensors(weights).items()}
    save_file(tensors, weights)
    run_directory.write_checksums(run / "best", (run_directory.MODEL, run_directory.STATE))
    with pytest.raises(InputError, match="was made of other weights than step-00000002 has now"):
        engine.exported_files(first.trained)
    second = load(run)
    assert weights_hash(second.trained) != before
    assert isinstance(second.engine, CTranslate2Engine)
    assert lines(second) == lines(nmt.load_translator(run, device="cpu", precision="float32")) != lines(first)


def test_our_own_engine_takes_what_ctranslate2_cannot(
    run: Path, trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def reason(*arguments: Path, **options: Any) -> str:
        capsys.readouterr()
        assert isinstance(load(*arguments, **options).engine, TorchEngine)
        *_, line = [line for line in capsys.readouterr().err.splitlines() if line.startswith("engine: ")]
        return line.removeprefix("engine: nmt's own: ")

    assert reason(trained / "run") == "model.encoder.kind: is rnn, and CTranslate2 needs transformer"
    assert reason(run, precision="bfloat16") == "--precision bfloat16: is not one of auto, float32, int8"
    assert reason(run, ensemble=[run]) == "--ensemble needs it"
    assert reason(run, overrides=["search.sampling={}"]).startswith("search.sampling: ")
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "ctranslate2", None)
        assert reason(run).startswith("CTranslate2 is not installed: pip install")
    with monkeypatch.context() as patched:
        patched.setattr(engine, "required", lambda: SimpleNamespace(get_cuda_device_count=lambda: 1))
        assert reason(run, device="auto") == "--device auto: it is for CPUs"
    with monkeypatch.context() as patched:  # nothing translates as much alike
        patched.setattr(export_model, "MIN_EQUAL", 2.0)
        assert reason(run).startswith("the exported model translates only ")
    assert reason(run).endswith("ctranslate2.differs: the export of these weights translates otherwise")
    assert not (run / "exported" / "ctranslate2").exists()
    (run / "exported" / "ctranslate2.differs").write_text("other weights")
    assert isinstance(load(run).engine, CTranslate2Engine)


def test_options_choose_our_own_engine(run: Path, tmp_path: Path) -> None:
    (tmp_path / "terms").write_text("Hund\tdog\n")
    (tmp_path / "words").write_text("dog\n\n\n")
    for option, value in {"--workers": "2", "--constraints": str(tmp_path / "words")}.items():
        done = succeeding("translate", "run", "--engine", "auto", option, value, folder=run.parent, stdin=TEXT + b"\n")
        assert f"engine: nmt's own: {option} needs it" in done.stderr.decode()
    options = ("--engine", "auto", "--glossary", tmp_path / "terms")
    assert b"--glossary needs it" in succeeding("translate", "run", *options, folder=run.parent, stdin=TEXT).stderr
