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
from functools import partial
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


@pytest.mark.parametrize(("weights", "updates"), [("softmax", 100), ("hard", 120)])
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
    said = run("sentence_classifier", "--sentences", 5, "--updates", 40, "--output", picture)
    last, mean, attention = percentages(said)
    assert attention > max(80.0, last + 20.0, mean + 5.0)
    heaviest = {word: int(count) for word, count in re.findall(r"\('(\w+)', (\d+)\)", said)}
    assert heaviest["wird"] + heaviest["werden"] > 125
    assert is_png(picture)


def test_an_answer_needs_the_record_or_the_note(tmp_path: Path, run: Run) -> None:
    """With one of the two a model knows half of the answers, and guesses one in 13 of the others."""
    picture = tmp_path / "weights.png"
    said = run("record_and_text", "--updates", 170, "--output", picture)
    (record, *of_record), (text, *of_text), (both, *_), in_record, in_note = map(percentages, said.splitlines())
    assert max(record, text) < 62.0
    assert both > 80.0
    assert of_record[1] < 20.0 < of_record[0]
    assert of_text[0] < 20.0 < 90.0 < of_text[1]
    # weight on the record, and on the answer
    assert min(in_record) > 80.0
    assert in_note[0] < 20.0 < 60.0 < in_note[1]
    assert is_png(picture)


def test_an_answer_is_where_it_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    program, rng = load("record_and_text", monkeypatch), random.Random(1)
    corrected = 0
    for _ in range(400):
        record, note, asked, answer, position = program.draw(rng)
        known = [program.NUMBERS[number] for number in record] + note
        assert known[position] == program.NUMBERS[answer]
        clauses = " ".join(note).split(" and ")
        # a clause corrects if it says so of the field that is asked for
        says = [clause for clause in clauses if program.FIELDS[asked] in clause.split()]
        is_corrected = any(re.search("now|changed|true|please", clause) for clause in says)
        assert is_corrected == (position >= len(record))
        corrected += is_corrected
    assert 160 < corrected < 240


def test_score_functions_have_the_expectation_of_the_exact_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All triples of draws, by their probabilities, and PyTorch's derivative of the expected reward."""
    program = load("score_function", monkeypatch)
    score_S = program.SCORE_S.clone().requires_grad_()
    (score_S.softmax(dim=0) @ program.REWARD_S).backward()
    p_S = score_S.detach().softmax(dim=0)
    chosen_NK = torch.cartesian_prod(*[torch.arange(len(p_S))] * 3)
    p_N = p_S[chosen_NK].prod(dim=1)
    assert p_N.sum().item() == pytest.approx(1.0)
    means, variances = {}, {}
    for name, estimator in program.ESTIMATORS.items():
        estimate_NS = estimator(program.SCORE_S, program.REWARD_S, chosen_NK)
        means[name] = p_N @ estimate_NS
        variances[name] = (p_N @ (estimate_NS - means[name]).square()).sum().item()
    for gradient_S in (program.exact(program.SCORE_S, program.REWARD_S), *map(means.get, ("plain", "baseline", "nmt"))):
        torch.testing.assert_close(gradient_S, score_S.grad, rtol=0.0, atol=1e-10)
    assert variances["baseline"] < variances["nmt"] < 0.5 * variances["plain"]
    # division by a constant keeps the direction, that by a deviation of the same draws does not
    cosines = {name: torch.cosine_similarity(mean_S, score_S.grad, dim=0).item() for name, mean_S in means.items()}
    assert means["divided"].norm() < 0.6 * score_S.grad.norm()  # type: ignore[union-attr]
    assert cosines["divided"] == pytest.approx(1.0)
    assert cosines["nmt div."] < 1.0 - 1e-5


def test_the_error_of_a_score_function_falls_with_the_root_of_the_draws(tmp_path: Path, run: Run) -> None:
    picture = tmp_path / "draws.png"
    rows = [line.split() for line in run("score_function", "--repeats", 60, "--output", picture).splitlines()[2:]]
    variances = {(int(row[0]), " ".join(row[1:-11])): float(row[-3]) for row in rows}
    for name in ("plain", "baseline"):
        for draws in (10, 100, 1000):
            assert draws * variances[draws, name] == pytest.approx(variances[1, name], rel=0.5)
    assert is_png(picture)


def test_the_exercise_is_solved_as_nmt_does(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    program = load("forward_pass", monkeypatch)
    for arguments in ((), ("--seed", 5)):
        said = run("forward_pass", *arguments)
        assert float(said.split()[-1]) < 1e-6
    passed = program.solve(program.WEIGHTS)
    # the exercise as it stands in the docstring has the translation as its answer
    assert [max(range(3), key=row.__getitem__) for row in passed.a] == [1, 2]
    assert [program.TARGET[max(range(3), key=row.__getitem__)] for row in passed.p] == ["rain", "today"]
    assert sum(len(row) for rows in program.WEIGHTS.values() for row in rows) == 56
    # the numbers of the docstring, which are those of the program
    table = program.__doc__.partition("(f) How many")[2].partition("The solution")[0]
    of_table, of_program = (sorted(map(int, re.findall(r"-?\d+", text))) for text in (table, str(program.WEIGHTS)))
    assert of_table == of_program


def test_gradients_vanish_by_the_product_of_the_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chain rule in plain products, layer by layer, of diag(f') W, with the identity added by a residual."""
    program = load("vanishing", monkeypatch)
    torch.manual_seed(1)
    x_D, identity_DD = torch.randn(6, dtype=torch.float64), torch.eye(6, dtype=torch.float64)
    for name in ("tanh", "tanh, residual", "logistic"):
        stack = program.build(program.NETWORKS[name], 5, 6)
        h_D, product_DD = x_D, identity_DD
        for layer, rnn in enumerate(stack.rnns):
            adds = layer > 0 and "residual" in name
            f_D = program.NETWORKS[name].function(rnn.weight_ih_l0.detach() @ h_D)
            slope_D = f_D * (1 - f_D) if name == "logistic" else 1 - f_D.square()
            product_DD = (slope_D[:, None] * rnn.weight_ih_l0.detach() + adds * identity_DD) @ product_DD
            h_D = f_D + adds * h_D
        torch.testing.assert_close(program.jacobian(stack, x_D[None, None])[0], product_DD)
    # orthogonal weights times 0.9 have singular values of 0.9, and their product has those of 0.9^L
    stack = program.build(program.NETWORKS["linear, orthogonal"], 7, 6)
    for rnn in stack.rnns:
        rnn.weight_ih_l0.data *= 0.9
    assert program.gradient_size(program.jacobian(stack, x_D[None, None])) == pytest.approx(0.9**7)


def test_residuals_and_orthogonal_weights_keep_gradients(tmp_path: Path, run: Run) -> None:
    picture = tmp_path / "depth.png"
    lines = run("vanishing", "--size", 16, "--inputs", 2, "--output", picture).splitlines()[1:]
    factors = {line[:20].strip(): float(line.split()[-1]) for line in lines}
    assert factors["linear, orthogonal"] == 1.0
    assert factors["logistic"] < 0.3 < factors["tanh, small"] < 0.7 < factors["tanh"]
    assert min(factors[name] for name in factors if "residual" in name) > 0.98
    assert is_png(picture)


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("record_and_text", "--updates", "0"),
        ("score_function", "--repeats", "1"),
        ("vanishing", "--size", "0"),
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


def test_the_one_file_translates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """It learns to copy numbers that it has not seen."""
    rng = random.Random(1)
    lines = [" ".join(rng.choices("abcdef", k=rng.randint(1, 6))) + "\n" for _ in range(3000)]
    (tmp_path / "letters").write_text("".join(lines), encoding="utf-8")
    program, files = load("one_file", monkeypatch), [str(tmp_path / "letters")] * 2
    monkeypatch.setattr(program, "Translator", partial(program.Translator, width=32, size=96))
    monkeypatch.setattr(sys, "argv", ["one_file", "--files", *files, "--subwords", "14", "--updates", "130"])
    program.main()
    assert float(re.search(r"BLEU of 200 lines: ([\d.]+)", capsys.readouterr().out)[1]) > 60.0  # type: ignore[index]


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
        text = (ROOT / "examples" / name).read_text(encoding="utf-8")
        assert lines_of_code(text) < 150 or (name == "one_file.py" and text.count("\n") <= 200)
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
