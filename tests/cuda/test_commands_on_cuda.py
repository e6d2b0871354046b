"""Commands on a CUDA device: exit code 0, and the results of the CPU."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import nmt as package
from nmt.extras.aligner import model_aligner
from tests.cuda.on_device import DEVICE, IS_GPU, SIDES, each_kind, only_on_a_gpu, tensors_of, train_in, write_config
from tests.workflows.runs import Command, in_process

pytestmark = pytest.mark.cuda

LINES = ["eins zwei.", "", "Hund und Katze.", "drei Hund und eins Katze und zwei Hund.", "", "grün."]

TRAINED = ["training.optimizer.learning_rate=0.02", "training.validation.every=80"]
"""So that probabilities lie apart, and rounding changes no translation."""


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs ``rnn`` and ``transformer``, trained on the device, and a text with translations."""
    folder = tmp_path_factory.mktemp("runs")
    write_config(folder)
    for kind, settings in SIDES.items():
        train_in(folder, *settings, *TRAINED, f"run={folder}/{kind}", updates=80)
    return folder


@pytest.fixture
def nmt(runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in ``runs``; it must succeed."""
    monkeypatch.chdir(runs)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    run = in_process(capsys)

    def succeeding(*arguments: str | Path) -> Any:
        done = run(*arguments)
        assert done.code in (0, None), done.stderr
        return done

    return succeeding


def on_both(nmt: Command, *arguments: str | Path) -> list[str]:
    """Returns the output of a command on the CPU and on the device."""
    return [nmt(*arguments, "--device", device, "--precision", "float32").stdout for device in ("cpu", DEVICE)]


def assert_alike(expected: str, found: str) -> None:
    """Asserts that two outputs are the same but for rounding of their numbers."""
    number = r"-?\d+\.\d+(?:e[+-]?\d+)?"
    assert found.strip()
    assert re.sub(number, "#", found).splitlines() == re.sub(number, "#", expected).splitlines()
    numbers, others = ([float(each) for each in re.findall(number, text)] for text in (found, expected))
    assert numbers == pytest.approx(others, rel=1e-2, abs=2e-3)


OPTIONS: dict[str, dict[str, Any]] = {
    "greedy": {"overrides": ["search.beam=1"]},
    "beam": {},
    "n-best": {"overrides": ["search.n_best=3", "search.beam=4"]},
    "diverse": {"overrides": ["search.groups=2", "search.beam=4"]},
    "draws": {"overrides": ["search.sampling={seed: 3}"]},
    "consensus": {"overrides": ["search.consensus={samples: 4}"]},
    "replacing unknown words": {"overrides": ["search.replace_unknown=true"]},
    "waiting": {"overrides": ["search.beam=1"], "wait": 2},
}


@each_kind
@pytest.mark.parametrize("name", [*OPTIONS, "ensemble"])
def test_translations_are_those_of_the_cpu(kind: str, name: str, runs: Path) -> None:
    options = OPTIONS.get(name, {"ensemble": [runs / other for other in SIDES if other != kind]})
    found = []
    for device in ("cpu", DEVICE):
        translator = package.load(runs / kind, device=device, precision="float32", **options) if "wait" not in options \
            else package.load_translator(runs / kind, device=device, precision="float32", **options)  # fmt: skip
        found.append([each.text for each in translator.translate(LINES)])
    assert found[0] == found[1]
    assert found[1][1] == found[1][4] == ""


@each_kind
@pytest.mark.parametrize("precision", ["auto", "bfloat16", pytest.param("float16", marks=only_on_a_gpu)])
def test_half_precision_translates_nearly_alike(kind: str, precision: str, runs: Path) -> None:
    lines = (runs / "test.de").read_text().splitlines()
    exact, found = (
        [each.text for each in package.load(runs / kind, device=device, precision=each_precision).translate(lines)]
        for device, each_precision in (("cpu", "float32"), (DEVICE, precision))
    )
    assert sum(one == other for one, other in zip(exact, found, strict=True)) >= 0.7 * len(lines)


@each_kind
def test_translate_with_prefixes_constraints_and_alignments(kind: str, nmt: Command, tmp_path: Path) -> None:
    for name, lines in {
        "source": LINES,
        "prefix": ["two", "", "", "one", "", ""],
        "constraints": ["green", "", "cat\tdog", "", "", ""],
    }.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    common = ("translate", kind, "-i", tmp_path / "source", "--format", "jsonl", "--n-best", "2", "--alignment")
    for restriction in ("prefix", "constraints"):
        assert_alike(*on_both(nmt, *common, f"--{restriction}", tmp_path / restriction))


@each_kind
@pytest.mark.parametrize("method", ["attention", "shifted-attention", "gradient", "input-x-gradient", "free-running"])
def test_align(kind: str, method: str, nmt: Command) -> None:
    pairs = ("-s", "test.de", *(() if method == "free-running" else ("-t", "test.en")))
    chosen = ("--free-running",) if method == "free-running" else ("--method", method)
    assert_alike(*on_both(nmt, "align", kind, *pairs, *chosen, "--format", "jsonl"))


@each_kind
def test_align_by_a_layer_that_was_trained_on_the_device(
    kind: str, nmt: Command, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_aligner, "UPDATES", 20)
    shutil.copytree(runs / kind, tmp_path / "run", symlinks=True)
    nmt("aligner", tmp_path / "run", "--device", DEVICE, "--precision", "float32")
    pairs = ("-s", "test.de", "-t", "test.en")
    assert_alike(*on_both(nmt, "align", tmp_path / "run", *pairs, "--method", "trained", "--format", "jsonl"))


@each_kind
def test_align_compares_methods_and_chooses_heads(kind: str, nmt: Command) -> None:
    pairs = ("-s", "valid.de", "-t", "valid.en")
    assert_alike(*on_both(nmt, "align", kind, *pairs, "--compare", "--json", "--gold", "valid.align"))
    if kind == "transformer":
        assert_alike(*on_both(nmt, "align", kind, *pairs, "--choose-heads", "entropy"))


@each_kind
@pytest.mark.parametrize("format", ["text", "jsonl"])
def test_score(kind: str, format: str, nmt: Command) -> None:
    assert_alike(*on_both(nmt, "score", kind, "-s", "test.de", "-t", "test.en", "--format", format))


@each_kind
def test_evaluate(kind: str, nmt: Command) -> None:
    """Scheduled sampling draws, and each device has a generator of its own."""
    found = []
    for printed in on_both(nmt, "evaluate", kind, "-s", "test.de", "-r", "test.en", "--json"):
        figures = json.loads(printed)
        found.append(re.sub(r'"[^"]*sampl[^"]*": (\{[^}]*\}|[^,}]*),?', "", json.dumps(figures)))
    assert_alike(*found)


@each_kind
def test_evaluate_by_length(kind: str, nmt: Command) -> None:
    printed = on_both(nmt, "evaluate", kind, "-s", "test.de", "-r", "test.en", "--by-length", "--lowercase")
    assert all("BLEU" in each for each in printed)


@each_kind
def test_pictures_of_states_and_attention(kind: str, nmt: Command, tmp_path: Path) -> None:
    pairs = ("-s", "test.de", "-t", "test.en")
    for side in ("encoder", "decoder"):
        curves = ("--curves",) if kind == "transformer" else ()
        nmt("states", kind, *pairs, "-o", tmp_path / f"{side}.svg", "--side", side, *curves)
        assert (tmp_path / f"{side}.svg").stat().st_size > 1000
    for format in ("html", "npz"):
        output = tmp_path / f"links.{format}"
        nmt("align", kind, *pairs, "--format", format, "-o", output, "--device", DEVICE)
        assert output.stat().st_size > 500
    nmt("info", kind)


def test_doctor_names_the_device(nmt: Command) -> None:
    printed = nmt("doctor").stdout
    assert ("cuda:0 (" in printed) == IS_GPU
    if IS_GPU:
        assert re.search(r"precision +auto is (bfloat16|float16)", printed)


@pytest.mark.parametrize(
    ("to", "kind", "needs"),
    [("onnx", "rnn", ("onnx", "onnxruntime", "onnxscript")), ("ctranslate2", "transformer", ("ctranslate2",))],
)
def test_a_run_of_the_device_can_be_exported(
    to: str, kind: str, needs: tuple[str, ...], nmt: Command, tmp_path: Path
) -> None:
    for each in needs:
        pytest.importorskip(each)
    done = nmt("export", kind, "--to", to, "-o", tmp_path / "exported")
    assert re.search(r"(\d+) of \1 sentences are translated alike", done.stderr), done.stderr


@each_kind
def test_average(kind: str, nmt: Command, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / kind, tmp_path / "run", symlinks=True)
    name = f"run={tmp_path}/run"
    (tmp_path / "config.yaml").write_text((runs / "config.yaml").read_text())
    train_in(tmp_path, *SIDES[kind], *TRAINED, name, updates=82)
    nmt("average", tmp_path / "run")
    assert all(each.device.type == "cpu" for each in tensors_of(tmp_path / "run").values())
    nmt("translate", tmp_path / "run", "-i", "test.de", "--device", DEVICE)


@each_kind
def test_a_server_answers_with_the_translations_of_the_cpu(kind: str, runs: Path) -> None:
    """In a process of its own: its model computes in a thread."""
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    expected = [each.text for each in package.load(runs / kind, device="cpu", precision="float32").translate(LINES)]
    command = ["serve", kind, "--port", "0", "--device", DEVICE, "--precision", "float32"]
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-m", "nmt", *command],
        cwd=runs,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"},
    ) as process:
        try:
            assert process.stderr is not None
            said = []
            while "ready: " not in (line := process.stderr.readline()):
                said.append(line)
                assert line, said
            address = line.split("ready: ")[1].split()[0]
            body = json.dumps({"text": LINES}).encode()
            asked = urllib.request.Request(f"{address}/translate", body, {"Content-Type": "application/json"})
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(asked, timeout=60) as answer:
                results = json.load(answer)["results"]
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        finally:
            process.kill()
    assert [each["translations"][0]["text"] for each in results] == expected
