"""`nmt align` by gradients, and its comparison of methods, on a tiny run. The command line runs in this process."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import nmt as package
from nmt.alignment.formats import Alignment, read_jsonl, read_npz
from nmt.core.errors import InputError
from tests.workflows.runs import CONFIG, Command, in_process, nmt, write_corpus

PRECISE = ("--precision", "float32")
METHODS = ("attention", "shifted-attention", "gradient", "input-x-gradient")
GRADIENTS = METHODS[2:]


@pytest.fixture
def align(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `nmt align` in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)

    return in_process(capsys, "align")


@pytest.fixture(scope="module")
def without_attention(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like ``trained``, with a model without attention."""
    folder = tmp_path_factory.mktemp("without_attention")
    write_corpus(folder)
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    done = nmt("train", "config.yaml", *PRECISE, "--set", "model.attention.score=none", folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder


def same(one: Alignment, other: Alignment) -> None:
    assert (one.source_words, one.target_words, one.links) == (other.source_words, other.target_words, other.links)
    assert (one.source_tokens, one.target_tokens) == (other.source_tokens, other.target_tokens)
    np.testing.assert_allclose(one.weights_TS, other.weights_TS, atol=1e-6)


@pytest.mark.parametrize("method", [pytest.param("gradient", marks=pytest.mark.slow), "input-x-gradient"])
def test_every_format_holds_every_line_by_gradients(trained: Path, align: Command, tmp_path: Path, method: str) -> None:
    sources, targets = ["Hund und Katze.", "", "zwei Hund", "eins", " "], ["dog and cat.", "x", " ", "one three", ""]
    for name, lines in (("s", sources), ("t", targets)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    arguments = (trained / "run", "--source", "s", "--target", "t", "--method", method, *PRECISE)
    translator = package.load(trained / "run", precision="float32")
    for level in ("word", "subword"):
        for format_ in ("pharaoh", "jsonl", "npz", "png"):
            done = align(*arguments, "--level", level, "--format", format_, "-o", format_)
            assert (done.code, done.stdout) == (0, ""), done.stderr
        links = Path("pharaoh").read_text().split("\n")
        from_json, from_npz = list(read_jsonl(Path("jsonl"))), list(read_npz(Path("npz")))
        assert links.pop() == ""
        assert len(links) == len(from_json) == len(from_npz) == len(list(Path("png").iterdir())) == len(sources)
        expected = translator.align(sources, targets, method=method, level=level)
        for place, alignment in enumerate(expected):
            same(from_json[place], alignment)
            same(from_npz[place], alignment)
            assert links[place] == " ".join(f"{s}-{t}" for s, t in alignment.links)
        by_attention = translator.align(sources, targets, level=level)
        assert np.abs(expected[0].weights_TS - by_attention[0].weights_TS).max() > 0.01
        np.testing.assert_allclose(expected[0].weights_TS.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("method", "option"), [("gradient", "--raw"), ("input-x-gradient", "--raw"), ("input-x-gradient", "--signed")]
)
def test_magnitudes_are_summed_over_the_subwords_and_leave_the_links(
    trained: Path, align: Command, tmp_path: Path, method: str, option: str
) -> None:
    sources, targets = ["Hund und Katze.", "", "zwei Hund"], ["dog and cat.", "x", "one three two"]
    for name, lines in (("s", sources), ("t", targets)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    arguments = ("-s", "s", "-t", "t", "--method", method, *PRECISE, "--format")
    found: dict[str, list[Alignment]] = {}
    for level in ("word", "subword"):
        assert align(trained / "run", *arguments, "jsonl", option, "--level", level, "-o", "out").code == 0
        found[level] = list(read_jsonl(Path("out")))
    assert align(trained / "run", *arguments, "jsonl", "-o", "out").code == 0
    tokenizers = package.load(trained / "run").trained.tokenizers
    for place, (words, pieces, relative) in enumerate(
        zip(found["word"], found["subword"], read_jsonl(Path("out")), strict=True)
    ):
        assert words.links == pieces.links == relative.links
        assert words.weights_TS.shape == relative.weights_TS.shape
        if not sources[place]:
            assert not pieces.weights_TS.any()
            continue
        of_source, of_target = (
            [len(tokenizer.encode(word)) for word in line.split()]
            for tokenizer, line in ((tokenizers.source, sources[place]), (tokenizers.target, targets[place]))
        )
        if "." in sources[place]:  # the subword of punctuation at a word does not count
            continue
        columns = np.add.reduceat(pieces.weights_TS[:-1, :-1], np.cumsum([0, *of_source[:-1]]), axis=1)
        summed = np.add.reduceat(columns, np.cumsum([0, *of_target[:-1]]), axis=0)
        np.testing.assert_allclose(words.weights_TS, summed, atol=2e-5)
        assert (words.weights_TS.min() < 0) == (option == "--signed")
        assert not np.allclose(words.weights_TS.sum(axis=1), 1, atol=1e-3)
    for format_ in ("npz", "tsv", "svg", "html"):
        done = align(trained / "run", *arguments, format_, option, "-o", format_)
        assert (done.code, done.stdout) == (0, ""), done.stderr
    if option == "--signed":
        assert "in per cent of the pair's largest" in (tmp_path / "html").read_text(encoding="utf-8")


def ranks(row: np.ndarray) -> np.ndarray:
    """Computes the ranks of values that are all different."""
    return row.argsort().argsort()


@pytest.mark.parametrize("attention", [True, False])
def test_the_comparison_is_that_of_the_single_methods(
    trained: Path, without_attention: Path, align: Command, tmp_path: Path, attention: bool
) -> None:
    folder = trained if attention else without_attention
    lengths = [len(line.split()) for line in (folder / "test.de").read_text().splitlines()]
    gold = tmp_path / "gold"
    gold.write_text("".join(" ".join(f"{n}-{n}" for n in range(length)) + "\n" for length in lengths))
    arguments = (folder / "run", "-s", folder / "test.de", "-t", folder / "test.en", "--gold", gold, *PRECISE)
    done = align(*arguments, "--compare", "--json")
    assert done.code == 0, done.stderr
    report = json.loads(done.stdout)
    methods = METHODS if attention else GRADIENTS
    assert (report["sentences"], tuple(report["methods"])) == (10, methods)
    found: dict[str, list[Alignment]] = {}
    for method in methods:
        single = align(*arguments, "--method", method, "--format", "jsonl", "-o", "out")
        found[method] = list(read_jsonl(Path("out")))
        score = report["methods"][method]
        printed = f"AER {100 * score['aer']:.1f}  precision {100 * score['precision']:.1f}  "
        assert single.stderr.splitlines()[-1].startswith(printed)
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
    lines = align(*arguments, "--compare").stdout.splitlines()
    first_columns = ["links", *methods, "", "rank correlation", *(" - ".join(pair) for pair in pairs)]
    first_columns += ["", "fall without a source word", *methods, *(["", "permuted", "attention"] if attention else [])]
    assert [line.split("  ")[0] for line in lines] == first_columns
    assert (report["permuted"] is not None) == attention
    last = report["agreement"][-1]
    assert lines[first_columns.index(" - ".join(last["methods"]))].split()[-3:] == [
        f"{last['spearman']:.3f}",
        f"{last['kendall']:.3f}",
        str(last["target_words"]),
    ]
    assert lines[1].split()[1:3] == [
        f"{100 * report['methods'][methods[0]][rate]:.1f}" for rate in ("aer", "precision")
    ]


def test_the_comparison_without_gold_of_own_translations(trained: Path, align: Command, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("Hund und Katze.\n\neins\n")
    arguments = (trained / "run", "--source", "s", "--free-running", "--compare")
    report = json.loads(align(*arguments, "--json").stdout)
    assert report["sentences"] == 3
    assert report["methods"] == dict.fromkeys(METHODS)
    assert len(report["agreement"]) == 6
    (tmp_path / "s").write_text("eins\n\n")  # one word has no order
    alone = json.loads(align(*arguments, "--json").stdout)["agreement"][0]
    assert alone == {
        "methods": ["attention", "shifted-attention"],
        "spearman": None,
        "kendall": None,
        "target_words": 0,
    }
    lines = align(*arguments).stdout.splitlines()
    assert ["attention", "–", "–", "–", "0"] in [line.split() for line in lines]
    assert [line.split() for line in lines[:2]] == [
        ["rank", "correlation", "Spearman", "Kendall", "target", "words"],
        ["attention", "-", "shifted-attention", "–", "–", "0"],
    ]


def test_erasure_is_the_score_of_the_pair_without_the_word(trained: Path, align: Command, tmp_path: Path) -> None:
    """The sources have two words, so that the word other than that of the highest weight is the remaining one."""
    sources, targets = ["zwei Hund", "Katze eins", "drei Hund", "", "grün"], ["dog cat", "one", "three dog.", "x", "y"]
    for name, lines in (("s", sources), ("t", targets)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    report = json.loads(align(trained / "run", "-s", "s", "-t", "t", *PRECISE, "--compare", "--json").stdout)
    translator = package.load(trained / "run", precision="float32")

    def probabilities(source: str, target: str) -> list[float]:
        log_p = [*translator.score(source, target).token_log_probs]
        pieces = [len(translator.trained.tokenizers.target.encode(word)) for word in target.split()]
        return [math.exp(sum(log_p.pop(0) for _ in range(count))) for count in pieces]

    for method in METHODS:
        highest, other = [], []
        for source, target in list(zip(sources, targets, strict=True))[:3]:
            whole, *parts = [probabilities(each, target) for each in (source, *reversed(source.split()))]
            for word, row in enumerate(translator.align(source, target, method=method).weights_TS):
                fall = [whole[word] - part[word] for part in parts]
                highest.append(fall[row.argmax()])
                other.append(fall[1 - row.argmax()])
        found = report["erasure"][method]
        assert found["target_words"] == len(highest) == 5
        assert found["highest"] == pytest.approx(np.median(highest), abs=1e-6)
        assert found["other"] == pytest.approx(np.median(other), abs=1e-6)
        assert found["larger"] == pytest.approx(np.mean(np.array(highest) > other))
    assert 0 < report["permuted"]["median_distance"] < 1


def test_a_model_without_attention_names_the_methods_it_has(without_attention: Path, align: Command) -> None:
    run = without_attention / "run"
    arguments = (run, "--source", without_attention / "test.de", "--target", without_attention / "test.en")
    for format_ in ("pharaoh", "jsonl", "npz", "png"):
        assert align(*arguments, "--format", format_, "-o", "out").error == (
            f"{run}/best: has no attention to align by (model.attention.score: none); "
            "use --method gradient, or input-x-gradient"
        )
        assert not Path("out").exists()
    done = align(*arguments, "--method", "gradient")
    assert (done.code, done.stdout.count("\n")) == (0, 10)
    translator = package.load(run)
    assert translator.aligner.methods == GRADIENTS
    with pytest.raises(InputError, match="has no attention"):
        translator.align(["eins"], ["one"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--json"], "--json is for the report of --compare; add --compare, or use --format jsonl"),
        (["--compare", "--method", "gradient"], "leave out --method"),
        (["--compare", "--format", "pharaoh"], "leave out --format"),
        (["--compare", "--level", "word"], "leave out --level"),
        (["--compare", "--output", "x"], "leave out --output"),
        (["--raw"], "--raw: is of gradients; add --method gradient"),
        (["--signed", "--method", "gradient"], "--signed: only products have a sign; add --method input-x-gradient"),
        (
            ["--raw", "--method", "gradient", "--format", "heatmap"],
            "--raw is of the soft matrix, for --format tsv, jsonl, npz, png, svg or html; add one of these",
        ),
        (
            ["--raw", "--method", "gradient", "--format", "npz", "-o", "x", "--reverse", "y"],
            "--raw: derivatives of two models' scores cannot be joined; leave out --reverse",
        ),
    ],
    ids=["json", "method", "format", "level", "output", "raw", "signed", "raw heatmap", "raw reverse"],
)
def test_flags_of_align_that_make_no_sense_together(align: Command, arguments: list[str], message: str) -> None:
    said = align("run", "--source", "x", "--target", "y", *arguments).error
    prints = "--compare prints a report on all methods, between words; " if message.startswith("leave out") else ""
    assert said == prints + message


def test_the_comparison_keeps_the_errors_of_align(trained: Path, align: Command, tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-99\n" * 10)
    (tmp_path / "empty").write_text("")
    arguments = (trained / "run", "--compare", "--source")
    test = trained / "test.de"
    assert "lines, but" in align(*arguments, test, "--target", trained / "train.en").error
    assert align(*arguments, test, "-t", trained / "test.en", "--gold", "gold").error.startswith("gold:1: link '0-99'")
    assert align(*arguments, test, "--target", "no").error == "no: no such file"
    assert align(*arguments, "empty").error == "empty: holds no line to align"
