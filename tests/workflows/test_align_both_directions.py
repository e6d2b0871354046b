"""`nmt align --reverse`: two tiny models, one of each direction, with other subwords. The command line runs in this
process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nmt as package
from nmt.alignment.directions import SYMMETRIZATIONS, join
from nmt.alignment.formats import read_jsonl, read_npz
from nmt.translator.both_directions import BothDirections
from tests.workflows.runs import CONFIG, Command, in_process, nmt, write_corpus

PRECISE = ("--precision", "float32")
SOURCES = ["Hund und Katze.", "", "zwei Hund", "eins", " ", "grün Katze drei"]
TARGETS = ["dog and cat.", "x", " ", "one three", "", "green cat three"]


@pytest.fixture
def align(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `nmt align` in ``tmp_path``, where ``s`` and ``t`` are files of pairs."""
    monkeypatch.chdir(tmp_path)
    for name, lines in (("s", SOURCES), ("t", TARGETS)):
        Path(name).write_text("".join(f"{line}\n" for line in lines))

    return in_process(capsys, "align")


def train_reverse(folder: Path, *settings: str) -> Path:
    write_corpus(folder)
    config = CONFIG.replace(".de", ".x").replace(".en", ".de").replace(".x", ".en").replace("size: 60", "size: 52")
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    done = nmt("train", "config.yaml", *PRECISE, *settings, folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder / "run"


@pytest.fixture(scope="module")
def reverse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that translates the other way."""
    return train_reverse(tmp_path_factory.mktemp("reverse"))


@pytest.fixture(scope="module")
def reverse_without_attention(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_reverse(tmp_path_factory.mktemp("reverse_without"), "--set", "model.attention.score=none")


@pytest.mark.parametrize("name", SYMMETRIZATIONS)
def test_the_command_joins_what_each_model_finds_alone(trained: Path, reverse: Path, align: Command, name: str) -> None:
    both = (trained / "run", "--reverse", reverse, "-s", "s", "-t", "t", *PRECISE)
    code, out, err = align(*both, "--symmetrize", name)
    assert code == 0, err
    singles = []
    for run, source, target in ((trained / "run", "s", "t"), (reverse, "t", "s")):
        assert align(run, "-s", source, "-t", target, *PRECISE, "--format", "jsonl", "-o", "single")[0] == 0
        singles.append(list(read_jsonl(Path("single"))))
    assert align(*both, "--symmetrize", name, "--format", "jsonl", "-o", "jsonl")[0] == 0
    found = list(read_jsonl(Path("jsonl")))
    assert [each.source_words for each in found] == [tuple(line.split()) for line in SOURCES]
    for line, each, forward, backward in zip(out.splitlines(), found, *singles, strict=True):
        assert line == " ".join(f"{s}-{t}" for s, t in each.links)
        assert (each.source_words, each.target_words) == (backward.target_words, backward.source_words)
        p_TS, q_TS = forward.weights_TS, backward.weights_TS.T
        product = name == "soft-product"
        np.testing.assert_allclose(each.weights_TS, p_TS * q_TS if product else (p_TS + q_TS) / 2, atol=2e-6)
        swapped = {(source, target) for target, source in backward.links}
        if name == "intersection":
            assert set(each.links) == set(forward.links) & swapped
        elif name.startswith("soft"):
            # Each of the pairs with words has more than one on one side; their rows are not constant.
            cells = zip(*np.nonzero(each.weights_TS >= (0.05 if product else 0.25)), strict=True)
            assert set(each.links) == {(int(s), int(t)) for t, s in cells}
        else:
            assert set(forward.links) & swapped <= set(each.links) <= set(forward.links) | swapped
    assert any(each.links for each in found)


@pytest.mark.parametrize("method", ["attention", "gradient"])
def test_every_format_holds_every_line(trained: Path, reverse: Path, align: Command, method: str) -> None:
    arguments = (trained / "run", "--reverse", reverse, "-s", "s", "-t", "t", "--method", method, *PRECISE)
    for format_ in ("pharaoh", "jsonl", "npz", "png"):
        code, out, err = align(*arguments, "--format", format_, "-o", format_)
        assert (code, out) == (0, ""), err
    forward, backward = (package.load(run, precision="float32") for run in (trained / "run", reverse))
    both = BothDirections(forward, backward, join())
    expected = both.align(SOURCES, TARGETS, method=method)  # type: ignore[arg-type]
    links = Path("pharaoh").read_text().splitlines()
    files = list(read_jsonl(Path("jsonl"))), list(read_npz(Path("npz")))
    assert len(links) == len(files[0]) == len(files[1]) == len(list(Path("png").iterdir())) == len(SOURCES)
    for place, alignment in enumerate(expected):
        assert links[place] == " ".join(f"{s}-{t}" for s, t in alignment.links)
        for file in files:
            assert (file[place].links, file[place].level) == (alignment.links, "word")
            assert file[place].source_words == file[place].source_tokens == alignment.source_words
            np.testing.assert_allclose(file[place].weights_TS, alignment.weights_TS, atol=1e-6)


def test_gold_links_judge_the_joined_ones_and_settings_hold_for_both(
    trained: Path, reverse: Path, align: Command
) -> None:
    Path("gold").write_text("0-0 1-1 2-2\n\n\n0-0 0-1\n\n0-0 1-1 2-2\n")
    arguments = (trained / "run", "--reverse", reverse, "-s", "s", "-t", "t", *PRECISE, "--gold", "gold")
    _, out, err = align(*arguments, "--symmetrize", "union")
    predicted = [set(line.split()) for line in out.splitlines()]
    gold = [set(line.split()) for line in Path("gold").read_text().splitlines()]
    a, s = sum(map(len, predicted)), sum(map(len, gold))
    right = sum(len(one & other) for one, other in zip(predicted, gold, strict=True))
    assert err.splitlines()[-1].startswith(f"AER {100 * (1 - 2 * right / (a + s)):.1f}  ")
    # With argmax every target word has one link by the forward model, every source word by the backward one: no word
    # of either side is without.
    _, out, _ = align(*arguments, "--symmetrize", "union", "--set", "alignment=argmax")
    for line, source, target in zip(out.splitlines(), SOURCES, TARGETS, strict=True):
        links = [link.split("-") for link in line.split()]
        if source.strip() and target.strip() and len(source.split()) > 1:
            assert {int(s) for s, _ in links} == set(range(len(source.split())))
            assert {int(t) for _, t in links} == set(range(len(target.split())))
    _, out, _ = align(*arguments, "--symmetrize", "soft-mean", "--threshold", "1")
    assert {link for line in out.splitlines() for link in line.split()} <= {"0-0"}


def test_two_models_of_one_run_are_refused(trained: Path, align: Command) -> None:
    run = trained / "run"
    code, out, err = align(run, "--reverse", run / "best", "-s", "s", "-t", "t")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == (
        f"error: {run}/best: is of the same run as the forward model; name one that translates the target to the source"
    )


def test_a_reverse_model_without_attention_is_named(
    trained: Path, reverse_without_attention: Path, align: Command
) -> None:
    arguments = (trained / "run", "--reverse", reverse_without_attention, "-s", "s", "-t", "t", "-o", "out")
    code, _, err = align(*arguments)
    assert (code, err.splitlines()[-1]) == (
        2,
        (
            f"error: {reverse_without_attention}/best: has no attention to align by (model.attention.score: none); "
            "use --method gradient, or input-x-gradient"
        ),
    )
    assert not Path("out").exists()
    assert align(*arguments, "--method", "gradient")[0] == 0
    assert len(Path("out").read_text().splitlines()) == len(SOURCES)


GIVEN = ["-s", "s", "-t", "t"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*GIVEN, "--symmetrize", "union"], "--symmetrize and --threshold join two models; give --reverse as well"),
        ([*GIVEN, "--threshold", "0.5"], "--symmetrize and --threshold join two models; give --reverse as well"),
        (["-s", "s", "--reverse", "x"], "--reverse aligns given pairs; give --target as well"),
        (
            ["-s", "s", "--reverse", "x", "--free-running"],
            "--reverse aligns given pairs, and --free-running the model's own translations; leave one out",
        ),
        (
            [*GIVEN, "--reverse", "x", "--compare"],
            "--compare is of the methods of one model; leave out --reverse, or --compare",
        ),
        (
            [*GIVEN, "--reverse", "x", "--level", "subword"],
            "--level subword: two models are joined between words, as their subwords differ; leave it out",
        ),
        (
            [*GIVEN, "--reverse", "x", "--threshold", "0.5"],
            "threshold: is for soft-mean and soft-product, not for grow-diag-final-and; leave it out",
        ),
        (
            [*GIVEN, "--reverse", "x", "--symmetrize", "soft-mean", "--threshold", "0"],
            "threshold 0: give one above 0 and at most 1",
        ),
        ([*GIVEN, "--reverse", "x"], "x: no such run directory, checkpoint or config"),
    ],
    ids=["symmetrize", "threshold", "target", "free", "compare", "subword", "not-soft", "zero", "no-model"],
)
def test_options_that_make_no_sense_together(trained: Path, align: Command, arguments: list[str], message: str) -> None:
    assert align(trained / "run", *arguments) == (2, "", f"error: {message}\n")
