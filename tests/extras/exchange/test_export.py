"""``nmt export`` and ``nmt translate --engine``, through the command line."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.cli.app import main
from nmt.core.errors import InputError
from nmt.data.atomic_folder import locked
from nmt.extras.exchange.export import export_model
from nmt.models.config import ModelConfig
from tests.extras.exchange.shared import succeeding
from tests.translator.test_windows import check, nasty_lines
from tests.workflows.killing import Bomb, fork
from tests.workflows.runs import SEARCHED_ONCE, error, nmt, sentences, write_corpus

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")

USE = ("translate", "run", "--engine", "ctranslate2")
TEXT = b"eins Hund.\n\n  \nzwei Katze und drei Hund.\n"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    write_corpus(folder)
    (folder / "config.yaml").write_text(SEARCHED_ONCE, encoding="utf-8")
    succeeding("train", "config.yaml", "--precision", "float32", folder=folder)
    done = succeeding("export", "run", folder=folder)
    assert b"10 of 10 sentences are translated alike" in done.stderr
    assert done.stdout == b""
    return folder


@pytest.fixture
def copied(exported: Path, tmp_path: Path) -> Path:
    """The folder of the export, in a copy of the run."""
    shutil.copytree(exported / "run", tmp_path / "run", symlinks=True)
    return tmp_path / "run" / "exported" / "ctranslate2"


def test_the_export_translates_as_the_model_does(exported: Path) -> None:
    options = ["--precision", "float32", "--beam", "1", "--format", "jsonl", "--alignment"]
    found = []
    for engine in ("nmt", "ctranslate2"):
        done = succeeding("translate", "run", "--engine", engine, *options, folder=exported, stdin=TEXT)
        found.append([json.loads(line) for line in done.stdout.splitlines()])
    assert len(found[0]) == 4
    for own, other in zip(*found, strict=True):
        (ours,), (theirs,) = own["translations"], other["translations"]
        assert theirs["text"] == ours["text"]
        assert theirs["alignment"]["links"] == ours["alignment"]["links"]
    quantized = succeeding(*USE, "--precision", "int8", folder=exported, stdin=TEXT)
    assert b"int8" in quantized.stderr
    assert quantized.stdout.count(b"\n") == 4


WITHOUT_TORCH = """
import sys
import nmt
from nmt.cli.app import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code
translator = nmt.load("run", engine="ctranslate2", precision="float32")
assert repr(translator) == "Translator('run/best', CTranslate2Engine)"
translator.translate(["eins Hund.", "zwei Katze."], n_best=2)
assert "torch" not in sys.modules
assert translator.score("eins Hund.", "one dog.").log_prob < 0  # by our own model
assert "torch" in sys.modules
"""


def test_torch_is_not_imported_before_our_own_model_is_used(exported: Path) -> None:
    options = ["--precision", "float32", "--beam", "1", "--document"]
    command = [sys.executable, "-c", WITHOUT_TORCH, *USE, *options]
    done = subprocess.run(command, cwd=exported, input=TEXT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == succeeding("translate", "run", *options, folder=exported, stdin=TEXT).stdout


def test_many_lines_come_in_order_with_their_numbers(exported: Path) -> None:
    """The lines are more than the two windows that are computed at once; the last line is not UTF-8."""
    texts = [source for source, _ in sentences(1300, seed=7)]
    written = "".join(f"{text}\n" for text in texts).encode() + b"eins \xff Hund.\n"
    found = []
    for engine in ("nmt", "ctranslate2"):
        options = ("--engine", engine, "--precision", "float32", "--beam", "1", "--quiet", "--format", "jsonl")
        done = succeeding("translate", "run", *options, folder=exported, stdin=written)
        assert done.stderr.count(b"line 1301: not UTF-8") == 1
        found.append([json.loads(line) for line in done.stdout.splitlines()])
    for answers in found:
        assert [answer["source"] for answer in answers] == [*texts, "eins \ufffd Hund."]
    ours, theirs = ([answer["translations"][0]["text"] for answer in answers] for answers in found)
    # the sums of other kernels may decide otherwise where two tokens are about as probable
    assert sum(own == other for own, other in zip(ours, theirs, strict=True)) > 1200


def test_a_kill_leaves_no_half_export(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each step that changes what is at its place or beside it."""
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "run" / "exported" / "ctranslate2"

    def contents() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in place.rglob("*")}

    for fuse in itertools.count():
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(exported, tmp_path, symlinks=True, dirs_exist_ok=True)
        new = contents()
        (place / "model.bin").write_bytes(b"an older one")
        old = contents()

        def export(bomb: Bomb = Bomb(place.parent, fuse, random.Random(1))) -> None:  # noqa: B008
            os.dup2(3, 2)
            bomb.arm()
            main(["export", "run"])

        code, _ = fork(export)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        assert contents() in (old, new)
        succeeding("export", "run", folder=tmp_path)
        assert contents() == new
        assert {path.name for path in place.parent.iterdir()} == {place.name, f".{place.name}.lock"}
    assert contents() == new
    assert fuse > 1


def test_a_line_gives_a_line_whatever_ends_lines_elsewhere(exported: Path) -> None:
    text = "".join(f"{line}\n" for line in nasty_lines()).encode()
    options = ("--engine", "ctranslate2", "--beam", "1", "--format", "tsv", "--document", "--markup")
    done = succeeding("translate", "run", *options, folder=exported, stdin=text)
    check(done.stdout.decode(), "tsv")


def test_the_folder_of_an_archive_is_made(exported: Path) -> None:
    done = succeeding("export", "run", "--to", "nmt", "-o", "no/such/m.zip", folder=exported)
    assert b"wrote no/such/m.zip" in done.stderr
    assert (exported / "no/such/m.zip").is_file()
    (exported / "file").touch()
    done = nmt("export", "run", "--to", "nmt", "-o", "file/m.zip", folder=exported)
    assert error(done) == "file/m.zip: cannot be written: File exists"


def test_mistakes_get_one_line(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("one\ntwo\none\ntwo\n")
    mistakes = {
        ("--constraints", str(tmp_path / "words")): "--constraints: --engine ctranslate2 knows none",
        ("--sample",): "search.sampling: --engine ctranslate2",
        ("--ensemble", "run"): "--ensemble: --engine ctranslate2 knows one model",
        ("--precision", "float16"): "CTranslate2 cannot load it with --device auto and --precision float16: Requested",
        ("--device", "gpu"): "--device gpu: is none of auto, cpu, cuda, cuda:N",
        ("--device", "cuda:99"): "CTranslate2 cannot load it with --device cuda:99 and --precision auto: ",
    }
    for options, message in mistakes.items():
        done = nmt(*USE, *options, folder=exported, stdin=TEXT)
        assert message in error(done)
    (tmp_path / "full").mkdir()
    assert "is not an export of ours" in error(nmt("export", "run", "--output", tmp_path / "full", folder=exported))
    assert (tmp_path / "full").is_dir()


def test_an_export_belongs_to_its_checkpoint(copied: Path, tmp_path: Path) -> None:
    about = copied / "nmt.json"
    told = json.loads(about.read_text())
    about.write_text(json.dumps({**told, "checkpoint": "step-00000001"}))
    assert "was made of step-00000001, not of step-00000002" in error(nmt(*USE, folder=tmp_path, stdin=TEXT))
    shutil.rmtree(copied.parent)
    assert "make it with: nmt export" in error(nmt(*USE, folder=tmp_path, stdin=TEXT))
    # the corpus is not there: the check falls back on random subwords; made anew over what stands there, both work
    for _ in range(2):
        done = succeeding("export", "run", folder=tmp_path)
        assert b"compared on random subwords" in done.stderr
    succeeding(*USE, folder=tmp_path, stdin=TEXT)


def another_order(data: bytes) -> bytes:
    return json.dumps(json.loads(data)[::-1]).encode()


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes | None]]] = {
    "cut short": ("model.bin", lambda data: data[:-1000]),
    "empty": ("model.bin", lambda _: b""),
    "other weights": ("model.bin", lambda data: data[:-1000] + bytes(1000)),
    "missing": ("model.bin", lambda _: None),
    "words in another order": ("shared_vocabulary.json", another_order),
    "few words": ("shared_vocabulary.json", lambda _: b'["one", "two"]'),
    "no words": ("shared_vocabulary.json", lambda _: None),
    "no settings": ("config.json", lambda _: b"{}"),
}


def test_a_damaged_export_is_refused(copied: Path, tmp_path: Path) -> None:
    """Some damages still load, but would change translations or end the process."""
    for name, damage in DAMAGES.values():
        data = (copied / name).read_bytes()
        (copied / name).unlink()
        if (damaged := damage(data)) is not None:
            (copied / name).write_bytes(damaged)
        done = nmt(*USE, folder=tmp_path, stdin=TEXT)
        assert f"exported/ctranslate2/{name}: damaged or missing; make it anew with: nmt export" in error(done)
        assert done.stdout == b""
        (copied / name).write_bytes(data)
    (copied / "model.bin").unlink()
    os.mkfifo(copied / "model.bin")
    assert "model.bin: is a device or a pipe" in error(nmt(*USE, folder=tmp_path, stdin=TEXT))


def test_an_export_of_an_older_version_is_taken_as_it_is(copied: Path, tmp_path: Path) -> None:
    about = copied / "nmt.json"
    told = json.loads(about.read_text())
    assert set(told.pop("files")) == {"config.json", "model.bin", "shared_vocabulary.json"}
    about.write_text(json.dumps(told))
    succeeding(*USE, folder=tmp_path, stdin=TEXT)
    about.write_text(json.dumps({**told, "files": ["model.bin"]}))
    assert "nmt.json: is damaged" in error(nmt(*USE, folder=tmp_path, stdin=TEXT))


def test_of_two_exports_at_once_one_waits(exported: Path) -> None:
    command = [sys.executable, "-m", "nmt", "export", "run", "--output", "both"]
    with locked(exported / "both"):
        process = subprocess.Popen(command, cwd=exported, stderr=subprocess.PIPE)
        assert process.stderr is not None
        assert any(b"both: another process is making it; waiting" in line for line in process.stderr)
        assert not (exported / "both").exists()
    process.communicate()
    assert process.returncode == 0
    assert (exported / "both" / "model.bin").exists()


def test_recurrent_models_are_refused(trained: Path) -> None:
    assert "model.encoder.kind: is rnn, and CTranslate2 needs transformer" in error(
        nmt("export", "run", folder=trained)
    )
    assert not (trained / "run" / "exported").exists()
    assert error(nmt("export", "run", "--to", "hf", folder=trained)).endswith("; use --to onnx")


KIND = "model.decoder.kind: {} cannot be exported; rnn and transformer can"
DEEP = "model.encoder: layer_norm and transitions cannot be exported, in the decoder alone they can"


@pytest.mark.parametrize(
    ("model", "refusal", "to"),
    [
        *(
            ({"decoder": {"kind": kind}}, KIND.format(kind), to)
            for kind in ("reencoding", "glimpses")
            for to in ("onnx", "ctranslate2")
        ),
        *(({"encoder": deep}, DEEP, "onnx") for deep in ({"layer_norm": True}, {"transitions": 1})),
    ],
)
def test_what_no_engine_computes_is_refused(
    model: dict[str, Any], refusal: str, to: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ModelConfig.model_validate(model)
    trained = SimpleNamespace(experiment=SimpleNamespace(model=config))
    monkeypatch.setattr(export_model, "load_trained", lambda *_, **__: trained)
    with pytest.raises(InputError, match=f"^{refusal}$"):
        export_model.export("run", [], to=to, output=None)
