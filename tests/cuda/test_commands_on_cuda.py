"""Commands on a CUDA device: exit code 0, and the results of the CPU."""

from __future__ import annotations

import re
import shutil
import signal
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
    assert found.strip()
    number = r"-?\d+\.\d+(?:e[+-]?\d+)?"
    found, expected = (re.sub(SAMPLED, "", text) for text in (found, expected))
    assert re.sub(number, "#", found).splitlines() == re.sub(number, "#", expected).splitlines()
    numbers, others = ([float(each) for each in re.findall(number, text)] for text in (found, expected))
    assert numbers == pytest.approx(others, rel=1e-2, abs=2e-3)


OPTIONS: dict[str, dict[str, Any]] = {
    "beam": {},
    "replacing unknown words": {"overrides": ["search.replace_unknown=true"]},
    "waiting": {"overrides": ["search.beam=1"], "wait": 2},
}


@each_kind
@pytest.mark.parametrize("name", [*OPTIONS, "ensemble"])
def test_translations_are_those_of_the_cpu(kind: str, name: str, runs: Path) -> None:
    options = OPTIONS.get(name, {"ensemble": [runs / other for other in SIDES if other != kind]})
    load, found = package.load_translator if "wait" in options else package.load, []
    for device in ("cpu", DEVICE):
        translator = load(runs / kind, device=device, precision="float32", **options)
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


PAIRS, LINKED = "-s test.de -t test.en", "-s valid.de -t valid.en"
COMMANDS = {
    **{
        f"translate with {option}": f"translate RUN -i source --format jsonl --n-best 2 --alignment --{option} {option}"
        for option in ("prefix", "constraints")
    },
    **{
        f"align by {method}": f"align RUN {PAIRS} --method {method} --format jsonl"
        for method in ("attention", "shifted-attention", "gradient", "input-x-gradient")
    },
    "align freely": "align RUN -s test.de --free-running --format jsonl",
    "compare methods": f"align RUN {LINKED} --compare --json --gold valid.align",
    "choose heads": f"align RUN {LINKED} --choose-heads entropy",
    "score in text": f"score RUN {PAIRS} --format text",
    "score in jsonl": f"score RUN {PAIRS} --format jsonl",
    "evaluate": "evaluate RUN -s test.de -r test.en --json",
}
"""Commands that print the same on both devices."""

SAMPLED = r'"[^"]*sampl[^"]*": (\{[^}]*\}|[^,}]*),?'
"""Figures of scheduled sampling, which draws, and each device has a generator of its own."""


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in SIDES for name in COMMANDS if (kind, name) != ("rnn", "choose heads")]
)
def test_a_command_prints_what_it_prints_on_the_cpu(kind: str, name: str, nmt: Command, runs: Path) -> None:
    for file, lines in {
        "source": LINES,
        "prefix": ["two", "", "", "one", "", ""],
        "constraints": ["green", "", "cat\tdog", "", "", ""],
    }.items():
        (runs / file).write_text("".join(f"{line}\n" for line in lines))
    assert_alike(*on_both(nmt, *COMMANDS[name].replace("RUN", kind).split()))


@each_kind
def test_align_by_a_layer_that_was_trained_on_the_device(
    kind: str, nmt: Command, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_aligner, "UPDATES", 20)
    shutil.copytree(runs / kind, tmp_path / "run", symlinks=True)
    nmt("aligner", tmp_path / "run", "--device", DEVICE, "--precision", "float32")
    assert_alike(*on_both(nmt, "align", tmp_path / "run", *PAIRS.split(), "--method", "trained", "--format", "jsonl"))


@each_kind
def test_evaluate_by_length(kind: str, nmt: Command) -> None:
    printed = on_both(nmt, "evaluate", kind, "-s", "test.de", "-r", "test.en", "--by-length", "--lowercase")
    assert all("BLEU" in each for each in printed)


@each_kind
def test_pictures_of_states_and_attention(kind: str, nmt: Command, tmp_path: Path) -> None:
    for side in ("encoder", "decoder"):
        curves = ("--curves",) if kind == "transformer" else ()
        nmt("states", kind, *PAIRS.split(), "-o", tmp_path / f"{side}.svg", "--side", side, *curves)
        assert (tmp_path / f"{side}.svg").stat().st_size > 1000
    for format in ("html", "npz"):
        output = tmp_path / f"links.{format}"
        nmt("align", kind, *PAIRS.split(), "--format", format, "-o", output, "--device", DEVICE)
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
def test_train_and_average(kind: str, nmt: Command, runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / kind, tmp_path / "run", symlinks=True)
    settings = [*SIDES[kind], *TRAINED, f"run={tmp_path}/run", "training.stopping.updates=82"]
    common = ("--device", DEVICE, "--precision", "float32")
    done = nmt("train", "config.yaml", *(word for each in settings for word in ("--set", each)), *common)
    assert "going on from update 80" in done.stderr
    nmt("average", tmp_path / "run")
    assert all(each.device.type == "cpu" for each in tensors_of(tmp_path / "run").values())
    nmt("translate", tmp_path / "run", "-i", "test.de", "--device", DEVICE)


@each_kind
def test_a_server_answers_with_the_translations_of_the_cpu(kind: str, runs: Path) -> None:
    """In a process of its own: its model computes in a thread."""
    httpx = pytest.importorskip("httpx")
    served = pytest.importorskip("tests.extras.service.test_command").served
    expected = [each.text for each in package.load(runs / kind, device="cpu", precision="float32").translate(LINES)]
    with served(runs, "--device", DEVICE, run=kind) as (process, address, _):
        answer = httpx.post(f"{address}/translate", json={"text": LINES}, timeout=60, trust_env=False)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    results = answer.json()["results"]
    assert [each["translations"][0]["text"] for each in results] == expected
