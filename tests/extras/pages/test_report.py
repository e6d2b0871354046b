"""``nmt report``: what the page of a trained run says against what stands in its files, and against sacreBLEU."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch
from safetensors.torch import load_file

import nmt
from nmt.core import cpu
from nmt.experiment import load
from nmt.extras.pages.draw import draw_model
from nmt.extras.pages.report import build
from nmt.extras.pages.report.build import evenly, save_picture
from nmt.extras.pages.report.command import RunReportOptions
from nmt.extras.pages.report.model_summary import facts_of
from tests.extras.pages.samples import Page
from tests.workflows.runs import CONFIG, Command


@pytest.fixture
def report(run: Command, monkeypatch: pytest.MonkeyPatch, trained: Path) -> Command:
    monkeypatch.chdir(trained)
    return partial(run, "report")


@pytest.fixture(scope="module")
def page(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Of the run, with the pictures beside it."""
    folder = tmp_path_factory.mktemp("report")
    output, pictures = folder / "report.html", folder / "pictures" / "of the run"
    exact: dict[str, Any] = {"device": "cpu", "precision": "float32"}
    build.report(RunReportOptions(runs=[str(trained / "run")], output=output, samples=3, pictures=pictures, **exact))
    read = Page(output.read_text(encoding="utf-8"))
    read.references.append(str(pictures))
    return read


def test_the_curves_are_those_of_metrics_jsonl(page: Page, trained: Path) -> None:
    lines = [json.loads(line) for line in (trained / "run" / "metrics.jsonl").read_text().splitlines()]
    traces = page.data("trace")
    figures = [("train", "loss"), ("train", "perplexity"), ("valid", "bleu"), ("valid", "accuracy")]
    figures += [("train", name) for name in ("learning_rate", "gradient_norm", "tokens_per_second")]
    for trace, (kind, figure) in zip(traces, figures, strict=False):
        expected = [[each["update"], each[figure]] for each in lines if each["kind"] == kind]
        found = [[int(x), float(y.replace(",", ""))] for _, _, x, y in trace["lines"][0]["points"]]
        assert found == [[n, pytest.approx(value, rel=1e-3, abs=0.5 * (value >= 1000))] for n, value in expected]
    scores = [[f"{lines[-1][name]:.4g}"] for name in ("bleu", "chrf")]
    assert [[y for *_, y in line["points"]] for line in traces[2]["lines"]] == scores


def test_the_scores_are_sacrebleus_of_the_models_translations(page: Page, trained: Path) -> None:
    translator = nmt.load(trained / "run", device="cpu", precision="float32")
    sources, references = ((trained / f"valid.{side}").read_text().splitlines() for side in ("de", "en"))
    hypotheses = [each.text for each in translator.translate(sources)]
    assert f"BLEU, validation set, beam 5{sacrebleu.corpus_bleu(hypotheses, [references]).score:.1f}" in page.text
    assert f"chrF2, validation set, beam 5{sacrebleu.corpus_chrf(hypotheses, [references]).score:.1f}" in page.text
    assert "seed1" in page.text
    assert "nmt train " in page.text
    assert f"trained on{cpu.name()}, cpu ({torch.get_num_threads()} threads), float32" in page.text
    assert (trained / "run" / "config.yaml").read_text(encoding="utf-8") in page.text
    (pairs,) = page.data("pairs")
    assert [pair[4]["title"] for pair in pairs] == ["1", "4", "7"]  # of 10, evenly
    for pair, row in zip(pairs, (0, 3, 6), strict=True):
        assert pair[4]["texts"][0] == ["Source", sources[row]]
        assert ["".join(each[1:]) for each in pair[4]["texts"][1:]] == [references[row], hypotheses[row]]
        (alignment,) = translator.align([sources[row]], [hypotheses[row]])
        assert pair[:2] == [list(alignment.source_words), list(alignment.target_words)]
        assert pair[2][0][0] == [place for link in sorted(alignment.links) for place in link]
    entropies: list[float] = []
    kept = [row for row, text in enumerate(hypotheses) if text]
    for row in kept:
        (alignment,) = translator.align([sources[row]], [hypotheses[row]], level="subword")
        entropies += [-sum(w * math.log2(w) for w in line if w > 0) for line in alignment.weights_TS.tolist()]
    assert f"entropy of attention{sum(entropies) / len(entropies):.2f} bits" in page.text


def test_parameters_are_those_of_the_checkpoint(page: Page, trained: Path) -> None:
    sizes = {name: tensor.numel() for name, tensor in load_file(trained / "run" / "best" / "model.safetensors").items()}
    assert f"{sum(sizes.values()):,} parameters" in page.text
    attention = sum(size for name, size in sizes.items() if name.startswith("decoder.attention."))
    assert f"attention {attention:,} (" in page.text


def test_every_picture_is_there_as_svg_and_as_png(page: Page) -> None:
    folder = Path(page.references[-1])
    names = {path.stem for path in folder.iterdir()}
    assert {path.name for path in folder.iterdir()} == {f"{name}.{end}" for name in names for end in ("svg", "png")}
    attention = {f"attention-{number:06}" for number in (1, 4, 7)}
    charts = {"loss", "perplexity", "quality", "accuracy", "learning_rate", "gradient_norm", "speed", "lengths"}
    assert names == attention | charts | {"entropy", "coverage", "by-length", "model"}


@pytest.mark.parametrize(
    ("count", "wanted", "expected"),
    [(10, 3, [0, 3, 6]), (10, 10, list(range(10))), (3, 20, [0, 1, 2]), (1014, 2, [0, 507]), (5, 1, [0]), (0, 4, [])],
)
def test_samples_are_evenly_chosen(count: int, wanted: int, expected: Sequence[int]) -> None:
    assert evenly(count, wanted) == expected


copied = partial(shutil.copytree, symlinks=True)


def test_runs_side_by_side_are_compared_where_their_validation_sets_are_one(
    report: Command, trained: Path, tmp_path: Path
) -> None:
    one, two = (copied(trained / "run", tmp_path / name) for name in ("one", "two"))
    options = ["--precision", "float32", "--device", "cpu", "--samples", "2", "--beam", "1"]
    done = report(one, two, *options)
    assert (done.code, done.stdout) == (0, "")
    read = Page((one / "report.html").read_text(encoding="utf-8"))
    assert "BLEU against the first–+0.0 (+0.0 to +0.0), p = 1.000: not significant" in read.text
    assert [len(trace["lines"]) for trace in read.data("trace")][:3] == [4, 4, 4]

    for side in ("source", "target"):  # the same store, other sentences in it
        text = two / "prepared" / "valid" / f"{side}.text.bin"
        text.write_bytes(text.read_bytes().replace(b"o", b"a"))
    done = report(one, two, *options, "-o", tmp_path / "other.html")
    note = "two: its validation set is not that of one: their translations are not compared"
    assert (done.code, f"warning: {note}" in done.stderr.splitlines()) == (0, True)
    read = Page((tmp_path / "other.html").read_text(encoding="utf-8"))
    assert note in read.text
    assert "against the first" not in read.text


def test_a_run_without_a_corpus_or_a_checkpoint_shows_its_curves(
    report: Command, trained: Path, tmp_path: Path
) -> None:
    run = copied(trained / "run", tmp_path / "run")
    shutil.rmtree(run / "prepared")
    done = report(run, "--precision", "float32", "--device", "cpu")
    why = f"warning: run: nothing is told of its corpus, and nothing translated: {run}/prepared: no prep"
    assert (done.code, why in done.stderr) == (0, True)
    shutil.rmtree(run / "checkpoints")
    for link in ("best", "latest"):
        (run / link).unlink()
    assert "holds no checkpoint yet" in report(run).error
    assert report(run, "--no-translations").code == 0
    read = Page((run / "report.html").read_text(encoding="utf-8"))
    assert "training" in read.ids
    assert "translations" not in read.ids


def test_an_interruption_leaves_no_half_picture(tmp_path: Path) -> None:
    figure = draw_model(())
    save_picture(figure, tmp_path, "model")
    old = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(old) == {"model.svg", "model.png"}

    def interrupted(path: Path, **_: Any) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    figure.savefig = interrupted  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        save_picture(figure, tmp_path, "model")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == old


def test_mistakes_get_one_line(report: Command, trained: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "no" / "report.html"
    for arguments, message in (
        ("no/such", "no/such: no such run directory, checkpoint or config"),
        ("run run", "run: is named twice; name each run once"),
        ("run --samples 3 --no-translations", "--samples: nothing is translated with --no-translations; leave one out"),
        (f"run -o {nowhere}", f"--output {nowhere}: cannot be written: folder {nowhere.parent} does not exist"),
        (f"run -o {tmp_path}", f"--output {tmp_path}: cannot be written: is a folder"),
        ("run -o run/config.yaml", "--output run/config.yaml: is an input file of this command; write to another file"),
        ("run --pictures config.yaml", "--pictures config.yaml: cannot be made: File exists; name another folder"),
    ):
        assert report(*arguments.split()).error == message
    run = copied(trained / "run", tmp_path / "run")
    metrics = run / "metrics.jsonl"
    metrics.write_text('{"kind": "train", "update": 1}\n[]\n')
    assert report(run).error == f"{metrics}:2: is not a measurement; restore the file, or delete this line"
    metrics.write_text("{\n")
    assert report(run).error.startswith(f"{metrics}: cannot be read: ")
    metrics.unlink()
    shutil.rmtree(run / "checkpoints")  # else the model was handed on
    nothing = f"{run}: there are no measurements in metrics.jsonl: nothing has been trained here yet"
    assert report(run).error == nothing
    assert not (run / "report.html").exists()


def test_the_best_is_the_one_that_training_chose(tmp_path: Path) -> None:
    """The best validation is chosen by chrF if BLEU is 0, and then by the loss."""
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    experiment = load(tmp_path / "config.yaml", ["training.validation={metric: bleu}"])
    figures = [(0, 11, 5), (0, 39, 4), (0, 39, 3), (0, 38, 2)]
    lines = [
        {"kind": "valid", "update": update, "bleu": bleu, "chrf": chrf, "loss": loss}
        for update, (bleu, chrf, loss) in enumerate(figures, 1)
    ]
    assert facts_of(experiment, [], lines)["best in training"] == "chrF 39.0 (greedy) at update 3"
    lines.append({"kind": "average", "update": 4, "bleu": 1.0, "chrf": 5.0, "loss": 9.0, "checkpoints": 2})
    assert facts_of(experiment, [], lines)["best in training"] == "BLEU 1.0 (greedy) average of 2 at update 4"
