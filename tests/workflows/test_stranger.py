"""A model folder from a stranger: nothing in it is executed, nothing outside it is written, and it takes no more memory
than its files justify."""

from __future__ import annotations

import json
import os
import pickle
import re
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.extras.aligner.aligner import load_aligner
from nmt.extras.aligner.layer import load_layer
from nmt.extras.exchange.export.engine import export_folder
from nmt.extras.exchange.export.export_model import export
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
    files = [each.partition(":")[0] for each in found]
    assert files == ["extras/exchange/convert/from_marian.py", "translator/find_run.py"]


class Payload:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.trace),)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    make_run(tmp_path / "run")
    return tmp_path / "run"


def load(run: Path) -> object:
    return load_trained(run, device="cpu", precision="float32")


def test_weights_that_are_pickled_are_refused_and_not_executed(run: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    weights = run / "latest" / "model.safetensors"
    pickled = pickle.dumps(Payload(trace))
    weights.write_bytes(pickled)
    with pytest.raises(InputError, match="unreadable checkpoint"):
        load(run)
    with zipfile.ZipFile(weights, "w") as archive:  # as torch.save writes it
        archive.writestr("archive/data.pkl", pickled)
    with pytest.raises(InputError, match="unreadable checkpoint"):
        load(run)
    for number, name in enumerate(("subwords.model", "lengths.json", "latest/state.json", "config.yaml")):
        other = tmp_path / f"run-{number}"
        make_run(other)
        (other / name).write_bytes(pickled)
        with pytest.raises(InputError):
            load(other)
    assert not trace.exists()


@pytest.mark.parametrize("tag", ["object/apply:os.mkdir", "object/new:os.mkdir", "name:os.mkdir"])
def test_yaml_with_python_tags_is_refused_and_not_executed(tag: str, run: Path, tmp_path: Path) -> None:
    change_config(run, "run: run", f"run: !!python/{tag} [{tmp_path / 'trace'}]")
    with pytest.raises(InputError, match=r"config.yaml:1: the tag .* is not supported"):
        load(run)
    assert not (tmp_path / "trace").exists()


def change_config(run: Path, old: str, new: str) -> None:
    config = run / "config.yaml"
    text = config.read_text(encoding="utf-8")
    assert old in text
    config.write_text(text.replace(old, new), encoding="utf-8")


def test_paths_in_the_config_are_not_followed_to_load_it(run: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    elsewhere = tmp_path / "elsewhere"
    valid = f"{{source: /dev/zero, target: {tmp_path / 'pipe'}}}"
    change_config(run, "run: run", f"run: {elsewhere}")
    change_config(run, "data:\n", f"data:\n  prepared: {elsewhere / 'prepared'}\n  valid: {valid}\n")
    before = sorted(tmp_path.rglob("*"))
    load(run)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["best", "latest"])
def test_a_link_out_of_the_folder_is_refused(run: Path, tmp_path: Path, name: str) -> None:
    """Otherwise the files that are made for the model would be written beside the target of the link."""
    make_run(tmp_path / "mine")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(tmp_path / "mine" / "latest")
    with pytest.raises(InputError, match=f"run/{name}: leads out of .*; name the checkpoint that is meant"):
        load(run)


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


READERS: dict[str, Callable[[Path], object]] = {
    "aligner.safetensors": lambda run: load_aligner(run / "aligner.safetensors"),
    "alignment_layer.safetensors": lambda run: load_layer(run / "alignment_layer.safetensors", model="", remedy=""),
}
NAMES = ("config.yaml", "subwords.model", "latest/model.safetensors", "latest/state.json", "lengths.json", *READERS)


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/zero and pipes with names")
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")], ids=["pipe", "zero"])
@pytest.mark.parametrize("name", NAMES)
def test_a_device_or_a_pipe_in_the_folder_is_refused_at_once(
    run: Path, make: Callable[[Path], None], name: str
) -> None:
    (run / name).unlink(missing_ok=True)
    make(run / name)
    with pytest.raises(InputError, match="is a device or a pipe"):
        READERS.get(name, load)(run)


@pytest.mark.parametrize("setting", ["size: 4", "size: 5", "size: 6"])
@pytest.mark.parametrize("larger", ["size: 1000000", "size: 1000000000", "{setting}, layers: 1000"])
def test_a_config_of_a_larger_model_than_the_weights_are_costs_no_memory(run: Path, setting: str, larger: str) -> None:
    change_config(run, setting, larger.format(setting=setting))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError):
        load(run)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10  # of KiB; a million wide takes 16 TB


def test_a_header_that_claims_more_than_the_file_has(run: Path) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}).encode()
    for size in (len(header), 1 << 62):
        (run / "latest" / "model.safetensors").write_bytes(size.to_bytes(8, "little") + header)
        with pytest.raises(InputError, match="unreadable checkpoint"):
            load(run)


def without_sockets(code: str, folder: Path) -> None:
    """Runs a program that must not open a socket."""
    refuse = """
import importlib, pkgutil, socket
def refuse(*arguments, **named): raise AssertionError("a socket")
socket.socket.__init__ = socket.create_connection = socket.getaddrinfo = refuse
"""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", f"{refuse}{code}print('all done')"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[-9:]) == (0, "all done\n"), done.stderr


def test_no_command_opens_a_socket(tmp_path: Path) -> None:
    """But those that are asked to: a training goes on, and its model translates, aligns, scores and is evaluated."""
    copy(PACKAGE.parent / "tests" / "golden" / "format-1" / "recurrent", tmp_path / "copy")
    code = """
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
"""
    without_sockets(code, tmp_path / "copy")


def test_no_module_opens_a_socket_when_it_is_imported(tmp_path: Path) -> None:
    code = """
import nmt
for module in pkgutil.walk_packages(nmt.__path__, "nmt."):
    if module.name != "nmt.__main__":
        try:
            importlib.import_module(module.name)
        except ImportError:  # an extra that is not installed
            pass
"""
    without_sockets(code, tmp_path)
