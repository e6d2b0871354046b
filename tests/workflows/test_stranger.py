"""A model folder from a stranger: nothing in it is executed, nothing outside it is written, and it takes no more memory
than its files justify."""

from __future__ import annotations

import json
import os
import pickle
import re
import resource
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.extras.aligner.aligner import load_aligner
from nmt.extras.aligner.layer import load_layer
from nmt.extras.exchange.export.export_model import export, export_folder
from nmt.translator.loading import load_trained
from scripts.make_golden_run import copy
from tests.fuzz.readers import make_run

PACKAGE = Path(__file__).parents[2] / "nmt"

DANGEROUS = re.compile(
    r"\bpickle\b|\bmarshal\b|\bshelve\b|\bdill\b|\bjoblib\b|torch\.load\(|(?<![.\w])eval\(|(?<![.\w])exec\(|(?<![.\w])compile\("
    r"|yaml\.(load|full_load|unsafe_load)\b|UnsafeLoader|FullLoader|np\.load\(|numpy\.load\(|allow_pickle=True|shell=True"
    r"|os\.system|os\.popen|__import__|trust_remote_code|extractall\("
)


def test_the_package_has_no_call_that_executes_what_it_reads() -> None:
    assert DANGEROUS.search("torch.load(path)")
    assert not DANGEROUS.search("model.eval()")
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if DANGEROUS.search(line)
    ]
    # the restricted reader of tensors, for imported models
    only = '        loaded = torch.load(path, map_location="cpu", weights_only=True)'
    # an archive of a model, of which only files of a run are taken, and zipfile lets no name out of the folder
    unpacked = "file.extractall(unfinished, entries)  # which lets no name lead out of the folder"
    assert [each for each in found if not each.endswith((only.strip(), unpacked))] == []
    assert [each.partition(":")[0] for each in found] == ["extras/exchange/convert/pickled.py", "translator/archive.py"]


class Payload:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.trace),)


def _load(run: Path) -> object:
    return load_trained(run, device="cpu", precision="float32")


def test_weights_that_are_pickled_are_refused_and_not_executed(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    trace = tmp_path / "trace"
    weights = tmp_path / "run" / "latest" / "model.safetensors"
    pickled = pickle.dumps(Payload(trace))
    weights.write_bytes(pickled)
    with pytest.raises(InputError, match="unreadable checkpoint"):
        _load(tmp_path / "run")
    with zipfile.ZipFile(weights, "w") as archive:  # as torch.save writes it
        archive.writestr("archive/data.pkl", pickled)
    with pytest.raises(InputError, match="unreadable checkpoint"):
        _load(tmp_path / "run")
    for name in ("subwords.model", "lengths.json", "latest/state.json", "config.yaml"):
        make_run(tmp_path / f"run-{name.replace('/', '-')}")
        (tmp_path / f"run-{name.replace('/', '-')}" / name).write_bytes(pickled)
        with pytest.raises(InputError):
            _load(tmp_path / f"run-{name.replace('/', '-')}")
    assert not trace.exists()


def test_yaml_with_python_tags_is_refused_and_not_executed(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    config = tmp_path / "run" / "config.yaml"
    text = config.read_text(encoding="utf-8")
    for tag in ("!!python/object/apply:os.mkdir", "!!python/object/new:os.mkdir", "!!python/name:os.mkdir"):
        config.write_text(text.replace("run: run", f"run: {tag} [{tmp_path / 'trace'}]"), encoding="utf-8")
        with pytest.raises(InputError, match=r"config.yaml:1: the tag .* is not supported"):
            _load(tmp_path / "run")
    assert not (tmp_path / "trace").exists()


def test_paths_in_the_config_are_not_followed_to_load_it(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    os.mkfifo(tmp_path / "pipe")
    config = tmp_path / "run" / "config.yaml"
    text = config.read_text(encoding="utf-8").replace("run: run", f"run: {tmp_path / 'elsewhere'}")
    prepared = f"data:\n  prepared: {tmp_path / 'elsewhere' / 'prepared'}\n"
    valid = f"  valid: {{source: /dev/zero, target: {tmp_path / 'pipe'}}}\n"
    text = text.replace("data:\n", prepared + valid)
    config.write_text(text, encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    _load(tmp_path / "run")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["best", "latest"])
def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    """Otherwise the files that are made for the model would be written beside the target of the link."""
    make_run(tmp_path / "mine")
    make_run(tmp_path / "run")
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).symlink_to(tmp_path / "mine" / "latest")
    with pytest.raises(InputError, match=f"run/{name}: leads out of .*; name the checkpoint that is meant"):
        _load(tmp_path / "run")


def test_an_export_is_not_written_through_a_link(tmp_path: Path) -> None:
    trained = make_run(tmp_path / "run")
    (tmp_path / "outside").mkdir()
    (tmp_path / "run" / "exported").symlink_to(tmp_path / "outside")
    with pytest.raises(InputError, match=r"exported/onnx: leads out of .*; remove the link"):
        export_folder(trained, "onnx")
    pytest.importorskip("onnxscript")
    with pytest.raises(InputError, match="leads out of"):
        export(str(tmp_path / "run"), [], to="onnx", output=None)
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/zero and pipes with names")
@pytest.mark.parametrize("kind", ["zero", "pipe"])
@pytest.mark.parametrize(
    "name",
    [
        "config.yaml", "subwords.model", "latest/model.safetensors", "latest/state.json", "lengths.json",
        "aligner.safetensors", "alignment_layer.safetensors",
    ],
)  # fmt: skip
def test_a_device_or_a_pipe_in_the_folder_is_refused_at_once(tmp_path: Path, kind: str, name: str) -> None:
    run = tmp_path / "run"
    make_run(run)
    (run / name).unlink(missing_ok=True)
    if kind == "zero":
        (run / name).symlink_to("/dev/zero")
    else:
        os.mkfifo(run / name)
    readers: dict[str, Callable[[], object]] = {
        "aligner.safetensors": lambda: load_aligner(run / name),
        "alignment_layer.safetensors": lambda: load_layer(run / name, model="", remedy=""),
    }
    with pytest.raises(InputError, match="is a device or a pipe"):
        readers.get(name, lambda: _load(run))()


@pytest.mark.parametrize("setting", ["size: 4", "size: 5", "size: 6"])
def test_a_config_of_a_larger_model_than_the_weights_are_costs_no_memory(tmp_path: Path, setting: str) -> None:
    make_run(tmp_path / "run")
    config = tmp_path / "run" / "config.yaml"
    text = config.read_text(encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for larger in ("1000000", "1000000000"):
        config.write_text(text.replace(setting, f"size: {larger}"), encoding="utf-8")
        with pytest.raises(InputError):
            _load(tmp_path / "run")
    config.write_text(text.replace(setting, f"{setting}, layers: 1000"), encoding="utf-8")
    with pytest.raises(InputError):
        _load(tmp_path / "run")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10  # of KiB; a million wide takes 16 TB


def test_a_header_that_claims_more_than_the_file_has(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    header = json.dumps({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}).encode()
    weights = tmp_path / "run" / "latest" / "model.safetensors"
    for data in (len(header).to_bytes(8, "little") + header, (1 << 62).to_bytes(8, "little") + header):
        weights.write_bytes(data)
        with pytest.raises(InputError, match="unreadable checkpoint"):
            _load(tmp_path / "run")


def test_loading_opens_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nmt

    make_run(tmp_path / "run")

    def refuse(*arguments: object, **named: object) -> None:
        raise AssertionError("a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    translator = nmt.load(tmp_path / "run", precision="float32")
    assert len(translator.translate(["Ein Hund schläft."])) == 1


def test_no_command_opens_a_socket(tmp_path: Path) -> None:
    """But those that are asked to: a training goes on, and its model translates, aligns, scores and is evaluated."""
    copy(PACKAGE.parent / "tests" / "golden" / "format-1" / "recurrent", tmp_path / "copy")
    code = """
import socket, sys
def refuse(*arguments, **named): raise AssertionError("a socket")
socket.socket.__init__ = socket.create_connection = socket.getaddrinfo = refuse
from nmt.cli import app
given = ["--source", "test.de", "--target", "test.en"]
for arguments in (
    ["train", "config.yaml", "--set", "training.stopping.updates=601"],
    ["translate", "run", "--input", "test.de"], ["align", "run", *given], ["score", "run", *given],
    ["evaluate", "run", "--source", "test.de", "--reference", "test.en"],
):
    try:
        app.main([*arguments, "--device", "cpu", "--precision", "float32"])
    except SystemExit as exit:
        assert not exit.code, arguments
print("all done")
"""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "copy",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all done\n")


def test_no_module_opens_a_socket_when_it_is_imported() -> None:
    code = """
import pkgutil, importlib, socket
def refuse(*arguments, **named): raise AssertionError("a socket")
socket.socket.__init__ = socket.create_connection = socket.getaddrinfo = refuse
import nmt
for module in pkgutil.walk_packages(nmt.__path__, "nmt."):
    if module.name != "nmt.__main__":
        try:
            importlib.import_module(module.name)
        except ImportError:  # an extra that is not installed
            pass
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
