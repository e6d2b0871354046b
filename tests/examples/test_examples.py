"""The programs in examples/, run as a reader runs them: what they print is what attention can do, and a broken one not.

Each mechanism has a bar between what it reaches and what weights reach that are uniform or do not learn.
"""

from __future__ import annotations

import ast
import importlib
import io
import json
import math
import random
import re
import runpy
import sys
import tokenize
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pytest
import torch

from nmt import experiment as experiments
from nmt.core.seed import seed_everything
from nmt.data.batching import collate, epoch_batches
from nmt.data.prepared import opened
from nmt.translator.loading import build_model
from tests.workflows.runs import nmt

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


Run: TypeAlias = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a program in this process, and returns its output."""

    def run(name: str, *arguments: object) -> str:
        path = str(ROOT / "examples" / f"{name}.py")
        monkeypatch.setattr(sys, "argv", [path, *map(str, arguments)])
        runpy.run_path(path, run_name="__main__")
        return capsys.readouterr().out

    return run


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "examples")
    return importlib.import_module(name)


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG\r\n")


def percentages(text: str) -> list[float]:
    return [float(each) for each in re.findall(r"([\d.]+)%", text)]


def nadaraya_watson(x: float, points: list[tuple[float, float]], bandwidth: float) -> float:
    """Watson 1964 with a Gaussian kernel, in plain loops."""
    numerator = denominator = 0.0
    nearest = min((x - x_s) ** 2 for x_s, _ in points)  # so that not all kernels underflow
    for x_s, y_s in points:
        weight = math.exp(-((x - x_s) ** 2 - nearest) / (2 * bandwidth**2))
        numerator += weight * y_s
        denominator += weight
    return numerator / denominator


def test_kernel_regression_is_nadaraya_and_watsons(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = tmp_path / "fits.png"
    lines = run("kernel_regression", "--seed", 3, "--points", 40, "--output", picture).splitlines()
    rows = [[float(each) for each in re.findall(r"\d+\.\d+", line)] for line in lines[1:]]
    program = load("kernel_regression", monkeypatch)
    assert [row[0] for row in rows[:-2]] == program.BANDWIDTHS
    torch.manual_seed(3)
    points, new = (
        list(zip(x_S.tolist(), y_S.tolist(), strict=True))
        for x_S, y_S in (program.sample(count, 0.3) for count in (40, 1000))
    )
    for bandwidth, train, others, test in rows:
        estimates = [nadaraya_watson(x, points, bandwidth) - y for x, y in points]
        left_out = [
            nadaraya_watson(x, [*points[:s], *points[s + 1 :]], bandwidth) - y for s, (x, y) in enumerate(points)
        ]
        new_errors = [nadaraya_watson(x, points, bandwidth) - y for x, y in new]
        for printed, errors in ((train, estimates), (others, left_out), (test, new_errors)):
            # a learned bandwidth is printed with four digits
            assert printed == pytest.approx(sum(error**2 for error in errors) / len(errors), rel=0.02, abs=2e-4)
    *grid, overfitted, learned = rows
    assert overfitted[0] < 0.005 < learned[0]
    assert learned[2] < min(row[2] for row in grid) + 1e-3
    assert learned[3] < 0.8 * overfitted[3]
    assert is_png(picture)


@pytest.mark.parametrize(("weights", "updates"), [("softmax", 120), ("hard", 200)])
def test_digits_are_read_where_they_are(tmp_path: Path, weights: str, updates: int, run: Run) -> None:
    """Without knowing where to look: under 45 per cent of digits, and the heaviest column on half of them at most."""
    pytest.importorskip("sklearn", reason="pip install scikit-learn")
    picture = tmp_path / "strips.png"
    said = run("digit_reader", "--weights", weights, "--digits", 2, "--updates", updates, "--output", picture)
    digits, strips, on_digit = percentages(said)
    assert digits > 70.0
    assert strips > 50.0
    assert on_digit > 85.0
    assert is_png(picture)


def test_a_sensor_averages_pixels_around_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain loops over pixels: at the corners, outside of the canvas, and at random places."""
    program = load("glimpses", monkeypatch)
    size, cells = program.CANVAS, program.CELLS
    torch.manual_seed(1)
    place_B2 = torch.cat(
        [torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.4, -0.2]]), 2 * torch.rand(12, 2) - 1]
    )
    canvas_BYX = torch.randn(len(place_B2), size, size)
    rho = program.sensor(canvas_BYX, place_B2).tolist()
    for canvas, place, values in zip(canvas_BYX.tolist(), place_B2.tolist(), rho, strict=True):
        y, x = (math.floor((min(max(each, -1.0), 1.0) + 1.0) / 2.0 * (size - 1) + 0.5) for each in place)
        expected = []
        for width in (1, 2, 4):
            for i in range(-cells // 2, cells // 2):
                for j in range(-cells // 2, cells // 2):
                    rows = range(y + width * i, y + width * (i + 1))
                    columns = range(x + width * j, x + width * (j + 1))
                    inside = [canvas[r][c] for r in rows for c in columns if 0 <= r < size and 0 <= c < size]
                    expected.append(sum(inside) / width**2)
        assert values == pytest.approx(expected, abs=1e-5)


def test_glimpses_learn_to_find_a_digit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a smaller canvas, random places are on the digit in 19 per cent, and their model reads 19 per cent of digits
    after this training; the middle is on it in 47 per cent at most."""
    datasets = pytest.importorskip("sklearn.datasets", reason="pip install scikit-learn")
    program = load("glimpses", monkeypatch)
    monkeypatch.setattr(program, "CANVAS", 20)
    monkeypatch.setattr(program, "BATCH", 192)
    torch.manual_seed(1)
    scans = datasets.load_digits()
    scan_NYX, label_N = torch.tensor(scans.images, dtype=torch.float32) / 16, torch.tensor(scans.target)
    model = program.GlimpseReader(program.LearntPlaces(), 2)
    program.train(model, scan_NYX[:1400], label_N[:1400], 300, curriculum=True)
    canvas_BYX, label_B, corner_B2 = program.draw_canvases(scan_NYX[1400:], label_N[1400:], 500)
    with torch.no_grad():
        logits_BV, place_BT2, _ = model.eval()(canvas_BYX)
    best_B = logits_BV.argmax(dim=1)
    assert (best_B == label_B).float().mean() > 0.38
    assert program.is_on_digit(place_BT2, corner_B2)[:, -1].float().mean() > 0.52
    program.plot(tmp_path / "paths.png", canvas_BYX[:2], label_B[:2], {"learnt": (best_B[:2], place_BT2[:2])})
    assert is_png(tmp_path / "paths.png")


def test_a_plus_is_where_the_insides_of_segments_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of the pixels inside the segments, not the image."""
    program = load("crossings", monkeypatch)
    torch.manual_seed(1)
    counts = []
    for size in (8, 12, 40) * 20:
        image_YX, horizontal, vertical = program.draw(size, 8 * size)
        rows = {(y, x) for y, first, last in horizontal for x in range(first + 1, last)}
        columns = {(y, x) for x, first, last in vertical for y in range(first + 1, last)}
        place_YX = program.detect(image_YX[None], *program.handmade())[0, 0]
        assert dict.fromkeys(rows & columns, 1.0) == {
            (y, x): place_YX[y, x].item() for y, x in place_YX.nonzero().tolist()
        }
        counts.append(len(rows & columns))
    assert 0 in counts
    assert max(counts) > 50


def test_a_template_learns_to_count_and_an_average_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A template that finds nothing is right for none of the larger images."""
    program = load("crossings", monkeypatch)
    torch.manual_seed(1)
    image_BYX, count_B = program.draw_batch(1000, 10, 40)
    larger_BYX, true_B = program.draw_batch(50, 40, 400)
    template = program.learn(image_BYX, count_B, 800)
    sum_B = program.detect(larger_BYX, *template).sum(dim=(1, 2, 3))
    assert (sum_B.round() == true_B).float().mean() > 0.9
    average = program.AverageCounter()
    with torch.no_grad():
        assert torch.allclose(average(image_BYX[:9]), average(image_BYX[:9], twice=True), atol=1e-5)


def test_a_text_is_classified_by_the_word_that_decides(tmp_path: Path, run: Run) -> None:
    picture = tmp_path / "text.png"
    said = run("sentence_classifier", "--sentences", 8, "--updates", 40, "--output", picture)
    last, mean, attention = percentages(said)
    assert attention > max(80.0, last + 20.0, mean + 5.0)
    heaviest = {word: int(count) for word, count in re.findall(r"\('(\w+)', (\d+)\)", said)}
    assert heaviest["wird"] + heaviest["werden"] > 125
    assert is_png(picture)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("kernel_regression", "--points", "1"),
        ("sentence_classifier", "--word", "Zzyzx"),
        ("digit_reader", "--digits", "0"),
        ("glimpses", "--glimpses", "0"),
        ("crossings", "--size", "5"),
    ],
)
def test_a_mistake_is_told_in_a_line(
    name: str, option: str, value: str, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="^2$"):
        run(name, option, value)
    line = capsys.readouterr().err.splitlines()[-1]
    assert ": error: " in line
    assert option in line


WEIGHTS = {
    "embedding.weight": "decoder.embedding.table.weight", "forwards": "encoder.forwards.0",
    "backwards": "encoder.backwards.0", "start_layer": "decoder.handover.layers.0", "attention": "decoder.attention",
    "cell": "decoder.stack", "readout": "decoder.readout", "output.weight": "output.weight_VD",
    "output.bias": "output.bias_V",
}  # fmt: skip
"""Names that weights of the one file, or those of its parts, have in a checkpoint."""

SETTINGS = (
    "run=run", "model.embedding={size: 24, tie: all}", "model.encoder={kind: rnn, cell: gru, size: 16}",
    "model.decoder={kind: rnn, cell: gru, size: 32, query: previous, input_feeding: false}",
    "model.attention.score=additive", "model.dropout={embedding: 0, layers: 0}",
    "data.train={source: train.de, target: train.en}", "data.valid=null", "data.test=[]",
    "data.subwords={kind: bpe, size: 300, joint: true}", "training.batching={batch_tokens: 256}",
    "training.optimizer={kind: adam, learning_rate: 4e-3}", "training.schedule=linear",
    "training.stopping={updates: 20}", "training.log_every=1", "training.validation={metric: loss, bleu: false}",
)  # fmt: skip


def test_the_one_file_trains_as_the_toolkit_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the same weights and over the same batches, it has the same losses."""
    for side in ("de", "en"):
        lines = (ROOT / "data" / "de-en" / f"train.{side}").read_text(encoding="utf-8").splitlines(keepends=True)
        (tmp_path / f"train.{side}").write_text("".join(lines[:400]), encoding="utf-8")
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    config = ROOT / "configs" / "de-en.yaml"
    done = nmt("train", config, *words, "--device", "cpu", "--precision", "float32", folder=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    lines = (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    losses = [line["loss"] for line in map(json.loads, lines) if line["kind"] == "train"]
    # the weights that this training began with, and its batches
    experiment = experiments.load(tmp_path / "run" / "config.yaml", [f"run={tmp_path}/run"])
    data = opened(experiment.data, run=tmp_path / "run")
    seed_everything(experiment.seed)
    weights = build_model(experiment.model, data.tokenizers).state_dict()
    order = [
        pairs_B
        for epoch in range(2)
        for pairs_B in epoch_batches(data.train, experiment.training.batching, seed=experiment.seed, epoch=epoch)
    ]
    batches = (collate(data.train, pairs_B) for pairs_B in order)
    program = load("one_file", monkeypatch)
    model = program.Translator(data.tokenizers.target.size, width=24, size=32)
    for name, parameter in model.named_parameters():
        part = name if name in WEIGHTS else name.partition(".")[0]
        parameter.data.copy_(weights[WEIGHTS[part] + name.removeprefix(part)])
    pairs = ((torch.from_numpy(batch.source_BS), torch.from_numpy(batch.target_BT)) for batch in batches)
    assert list(program.train(model, pairs, 20)) == pytest.approx(losses, rel=1e-6)


def test_the_one_file_translates(tmp_path: Path, run: Run) -> None:
    """It learns to copy numbers that it has not seen."""
    rng = random.Random(1)
    lines = [" ".join(rng.choices("abcdef", k=rng.randint(1, 6))) + "\n" for _ in range(3000)]
    (tmp_path / "letters").write_text("".join(lines), encoding="utf-8")
    said = run("one_file", "--files", *[tmp_path / "letters"] * 2, "--subwords", 14, "--updates", 100)
    assert float(re.search(r"BLEU of 200 lines: ([\d.]+)", said)[1]) > 60.0  # type: ignore[index]


def lines_of_code(text: str) -> int:
    """Counts the lines that have more than a comment or a docstring."""
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.string.strip() and token.type != tokenize.COMMENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def test_each_program_fits_on_three_screens_and_is_in_the_list() -> None:
    page = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    for name in PROGRAMS:
        assert lines_of_code((ROOT / "examples" / name).read_text(encoding="utf-8")) < 150
        assert f"python examples/{name}" in page


def shown(cell: str, names: dict[str, Any]) -> Any:
    """Runs a cell of a notebook as Jupyter does; returns the value of its last line."""
    tree = ast.parse(cell)
    last = ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None  # type: ignore[attr-defined]
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(last, "cell", "eval"), names)


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with fewer pairs and updates, in a folder beside the corpus."""
    notebook = json.loads((ROOT / "examples" / "attention.ipynb").read_text(encoding="utf-8"))
    assert not any(cell.get("outputs") for cell in notebook["cells"])
    (tmp_path / "examples").mkdir()
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path / "examples")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    names: dict[str, Any] = {}
    values = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            text = "".join(cell["source"]).replace("updates = 500", "updates = 20")
            text = re.sub(r'(lines\("train.de"\)), (lines\("train.en"\))', r"\1[:300], \2[:300]", text)
            text = text.replace('"size": 3000', '"size": 300').replace("[:200]", "[:5]").replace("[:2000]", "[:200]")
            text = text.replace("96", "12").replace("192", "24").replace("128", "16").replace("1024", "200")
            values.append(shown(text, names))
    pairs, points, best, others, picture, links, attention, bleu, _, alignment = values
    assert pairs == names["train_pairs"][:3]
    assert points == [(20, pytest.approx(points[0][1]))]
    assert best._repr_html_()
    assert 1 <= len(others) <= 2
    assert picture._repr_png_()[:4] == b"\x89PNG"
    assert isinstance(links, list)
    assert isinstance(attention, torch.nn.Module)
    assert set(bleu) == {"additive", "none"}
    assert is_png(tmp_path / "runs" / "notebook-losses.png")
    assert alignment._repr_html_()
