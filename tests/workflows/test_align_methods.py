"""`nmt align` by gradients, and its comparison of methods, on a tiny run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nmt as package
from nmt.alignment.formats import Alignment, read_jsonl, read_npz
from nmt.core.errors import InputError
from tests.workflows.runs import CONFIG, nmt, write_corpus

PRECISE = ("--precision", "float32")
METHODS = ("attention", "gradient", "input-x-gradient")


def error(done: subprocess.CompletedProcess[bytes]) -> str:
    assert (done.returncode, done.stdout) == (2, b"")
    return done.stderr.decode().splitlines()[-1].removeprefix("error: ")


@pytest.fixture(scope="module")
def without_attention(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As ``trained``, but for its attention."""
    folder = tmp_path_factory.mktemp("without_attention")
    write_corpus(folder)
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    done = nmt("train", "config.yaml", *PRECISE, "--set", "model.attention.score=none", folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder


def same(one: Alignment, other: Alignment, **tolerance: float) -> None:
    assert (one.source_words, one.target_words, one.links) == (other.source_words, other.target_words, other.links)
    assert (one.source_tokens, one.target_tokens) == (other.source_tokens, other.target_tokens)
    np.testing.assert_allclose(one.weights_TS, other.weights_TS, **tolerance)


@pytest.mark.parametrize("method", ["gradient", "input-x-gradient"])
def test_every_format_holds_every_line_by_gradients(trained: Path, tmp_path: Path, method: str) -> None:
    sources, targets = ["Hund und Katze.", "", "zwei Hund", "eins", " "], ["dog and cat.", "x", " ", "one three", ""]
    for name, lines in (("s", sources), ("t", targets)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    arguments = ("align", trained / "run", "--source", "s", "--target", "t", "--method", method, *PRECISE)
    for level in ("word", "subword"):
        for format_ in ("pharaoh", "jsonl", "npz", "png"):
            done = nmt(*arguments, "--level", level, "--format", format_, "-o", format_, folder=tmp_path)
            assert (done.returncode, done.stdout) == (0, b""), done.stderr.decode()
        links = (tmp_path / "pharaoh").read_text().split("\n")
        from_json, from_npz = list(read_jsonl(tmp_path / "jsonl")), list(read_npz(tmp_path / "npz"))
        pictures = sorted(path.name for path in (tmp_path / "png").iterdir())
        assert links.pop() == ""
        assert len(links) == len(from_json) == len(from_npz) == len(pictures) == len(sources)
        translator = package.load(trained / "run", precision="float32")
        expected = translator.align(sources, targets, method=method, level=level)
        by_attention = translator.align(sources, targets, level=level)
        for place, alignment in enumerate(expected):
            same(from_json[place], alignment, atol=1e-6)
            same(from_npz[place], alignment, atol=1e-6)
            assert links[place] == " ".join(f"{s}-{t}" for s, t in alignment.links)
            rows = alignment.weights_TS.sum(axis=1)
            np.testing.assert_allclose(rows, np.ones(len(rows)) if alignment.weights_TS.size else rows, atol=1e-5)
        assert np.abs(expected[0].weights_TS - by_attention[0].weights_TS).max() > 0.01


def ranks(row: np.ndarray) -> np.ndarray:
    """Of values that are all different."""
    return row.argsort().argsort()


@pytest.mark.parametrize("attention", [True, False])
def test_the_comparison_is_that_of_the_single_methods(trained: Path, without_attention: Path, attention: bool) -> None:
    folder = trained if attention else without_attention
    gold = "".join(f"{' '.join(f'{n}-{n}' for n in range(len(line.split())))}\n" for line in open(folder / "test.de"))
    (folder / "gold").write_text(gold)
    files = ("--source", "test.de", "--target", "test.en")
    done = nmt("align", "run", *files, "--gold", "gold", "--compare", "--json", *PRECISE, folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    report = json.loads(done.stdout)
    methods = METHODS if attention else METHODS[1:]
    assert (report["sentences"], tuple(report["methods"])) == (10, methods)
    found: dict[str, list[Alignment]] = {}
    for method in methods:
        single = nmt(
            "align", "run", *files, "--gold", "gold", "--method", method, "--format", "jsonl", "-o", "out",
            *PRECISE, folder=folder,
        )  # fmt: skip
        assert single.returncode == 0, single.stderr.decode()
        found[method] = list(read_jsonl(folder / "out"))
        score = report["methods"][method]
        printed = f"AER {100 * score['aer']:.1f}  precision {100 * score['precision']:.1f}  "
        assert single.stderr.decode().splitlines()[-1].startswith(printed)
        assert score["predicted"] == sum(len(each.links) for each in found[method])
    pairs = [each["methods"] for each in report["agreement"]]
    assert pairs == [[one, other] for place, one in enumerate(methods) for other in methods[place + 1 :]]
    for each in report["agreement"]:
        rows = [
            np.corrcoef(ranks(row), ranks(other_row))[0, 1]
            for one, other in zip(*(found[method] for method in each["methods"]), strict=True)
            for row, other_row in zip(one.weights_TS, other.weights_TS, strict=True)
        ]
        assert each["target_words"] == len(rows)
        assert each["spearman"] == pytest.approx(np.mean(rows), abs=0.02)  # six decimals may swap two ranks
        assert -1 <= each["kendall"] <= 1
    table = nmt("align", "run", *files, "--gold", "gold", "--compare", *PRECISE, folder=folder)
    assert table.returncode == 0, table.stderr.decode()
    lines = table.stdout.decode().splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "links",
        *methods,
        "",
        "rank correlation",
        *(" - ".join(pair) for pair in pairs),
    ]
    assert lines[-1].split()[-3:] == [
        f"{report['agreement'][-1]['spearman']:.3f}",
        f"{report['agreement'][-1]['kendall']:.3f}",
        str(report["agreement"][-1]["target_words"]),
    ]


def test_the_comparison_without_gold_of_own_translations(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("Hund und Katze.\n\neins\n")
    arguments = ("align", trained / "run", "--source", "s", "--free-running", "--compare")
    report = json.loads(nmt(*arguments, "--json", folder=tmp_path).stdout)
    assert report["sentences"] == 3
    assert report["methods"] == dict.fromkeys(METHODS)
    assert len(report["agreement"]) == 3
    # one word has no order
    (tmp_path / "s").write_text("eins\n\n")
    alone: dict[str, Any] = json.loads(nmt(*arguments, "--json", folder=tmp_path).stdout)["agreement"][0]
    assert alone == {"methods": ["attention", "gradient"], "spearman": None, "kendall": None, "target_words": 0}
    lines = nmt(*arguments, folder=tmp_path).stdout.decode().splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["rank", "correlation", "Spearman", "Kendall", "target", "words"],
        ["attention", "-", "gradient", "–", "–", "0"],
    ]


def test_a_model_without_attention_names_the_methods_it_has(without_attention: Path, tmp_path: Path) -> None:
    run = without_attention / "run"
    files = ("--source", without_attention / "test.de", "--target", without_attention / "test.en")
    message = (
        f"{run}/best: has no attention to align by (model.attention.score: none); "
        "use --method gradient, or input-x-gradient"
    )
    for format_ in ("pharaoh", "jsonl", "npz", "png"):
        done = nmt("align", run, *files, "--format", format_, "-o", "out", folder=tmp_path)
        assert error(done) == message
        assert not (tmp_path / "out").exists()
    translator = package.load(run)
    assert translator.methods == METHODS[1:]
    with pytest.raises(InputError, match="has no attention"):
        translator.align(["eins"], ["one"])
    done = nmt("align", run, *files, "--method", "gradient", folder=tmp_path)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json"], "--json is for the report of --compare; add --compare, or use --format jsonl"),
        (["--compare", "--method", "gradient"], "leave out --method"),
        (["--compare", "--format", "pharaoh"], "leave out --format"),
        (["--compare", "--level", "word"], "leave out --level"),
        (["--compare", "--output", "x"], "leave out --output"),
        (["--method", "gradients"], "invalid value for '--method': 'gradients' is not one of"),
    ],
    ids=["json", "method", "format", "level", "output", "unknown"],
)
def test_flags_of_align_that_make_no_sense_together(trained: Path, arguments: list[str], message: str) -> None:
    done = nmt("align", "run", "--source", "test.de", "--target", "test.en", *arguments, folder=trained)
    said = error(done)
    assert message in said
    if "leave out" in message:
        assert said == f"--compare prints a report on all methods, between words; {message}"


def test_the_comparison_keeps_the_errors_of_align(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-99\n" * 10)
    arguments = ("align", trained / "run", "--source", trained / "test.de", "--compare")
    done = nmt(*arguments, "--target", trained / "train.en", folder=tmp_path)
    assert "lines, but" in error(done)
    done = nmt(*arguments, "--target", trained / "test.en", "--gold", "gold", folder=tmp_path)
    assert error(done).startswith("gold:1: link '0-99'")
    done = nmt(*arguments, "--target", "no", folder=tmp_path)
    assert error(done) == "no: no such file"
    (tmp_path / "empty").write_text("")
    done = nmt("align", trained / "run", "--source", "empty", "--compare", folder=tmp_path)
    assert error(done) == "empty: holds no line to align"
