"""`nmt align --format html`: what the page holds of two tiny models, one of each direction. The command line runs in
this process."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.alignment.formats import read_jsonl
from tests.workflows.runs import CONFIG, Command, in_process, nmt, write_corpus

PRECISE = ("--precision", "float32")
SOURCES = ["Hund und Katze.", "", "zwei Hund </script>", "eins", " ", "grün Katze drei"]
TARGETS = ["dog and cat.", "x", " ", "one three", "", "green cat three"]
GIVEN = ("-s", "s", "-t", "t", *PRECISE)
HEADS = [f"layer{layer}.head{head}" for layer in (1, 2) for head in (1, 2)]


@pytest.fixture
def align(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `nmt align` in ``tmp_path``, where ``s`` and ``t`` are files of pairs."""
    monkeypatch.chdir(tmp_path)
    for name, lines in (("s", SOURCES), ("t", TARGETS)):
        Path(name).write_text("".join(f"{line}\n" for line in lines))

    return in_process(capsys, "align")


@pytest.fixture(scope="module")
def reverse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that translates the other way, with two layers of two heads."""
    folder = tmp_path_factory.mktemp("reverse")
    write_corpus(folder)
    config = CONFIG.replace(".de", ".x").replace(".en", ".de").replace(".x", ".en")
    config = config.replace("rnn, size: 12", "transformer, layers: 1, size: 16, heads: 2")
    config = config.replace("{kind: rnn, size: 20}", "{kind: transformer, layers: 2, size: 16, heads: 2}")
    (folder / "config.yaml").write_text(
        config.replace("16, heads: 2}\nt", "16, heads: 2}\n  attention: {score: scaled_dot}\nt")
    )
    done = nmt("train", "config.yaml", *PRECISE, folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder / "run"


def read(path: str) -> tuple[dict[str, Any], list[dict[str, tuple[list[Any], np.ndarray]]]]:
    """Reads the links and weights of each view of each pair, by the view's name."""
    text = Path(path).read_text(encoding="utf-8")
    (meta,) = re.findall(r'<script type="application/json" id="meta">(.*)</script>', text)
    blocks = re.findall(r'<script type="application/json" class="pairs">(.*)</script>', text)
    views, pairs = json.loads(meta), []
    for source, target, found, _ in (pair for block in blocks for pair in json.loads(block)):
        named = {}
        for name, (flat, weights) in zip(views["views"], found, strict=True):
            steps = np.frombuffer(base64.b64decode(weights), np.uint8).reshape(len(target), len(source))
            named[name] = (list(zip(flat[::2], flat[1::2], strict=True)), steps / 255)
        pairs.append(named)
    return views, pairs


def same(view: list[tuple[list[Any], np.ndarray]], path: str, *, turned: bool = False) -> None:
    """A view is what --format jsonl says."""
    expected = list(read_jsonl(Path(path)))
    assert len(view) == len(expected)
    for (links, weights_TS), each in zip(view, expected, strict=True):
        assert links == sorted((link[1], link[0]) if turned else link for link in each.links)
        np.testing.assert_allclose(weights_TS, each.weights_TS.T if turned else each.weights_TS, atol=1 / 510 + 1e-6)


def test_views_are_what_the_options_give_alone(trained: Path, reverse: Path, align: Command) -> None:
    both = (trained / "run", "--reverse", reverse, *GIVEN)
    views = ["attention", "gradient", "forward:attention", "backward:attention:layer2.*", "backward:each:*"]
    asked = [part for view in views for part in ("--view", view)]
    code, out, err = align(*both, "--format", "html", "-o", "page.html", *asked, "--view", "gradient")
    assert (code, out) == (0, ""), err
    meta, pairs = read("page.html")
    assert meta["views"] == [*views[:4], *(f"backward:attention:{head}" for head in HEADS)]
    assert meta["facts"] == ["s – t", str(trained / "run/best"), str(reverse / "best")]
    turned = (reverse, "-s", "t", "-t", "s", *PRECISE)
    for view, arguments in (
        ("attention", both),
        ("gradient", (*both, "--method", "gradient")),
        ("forward:attention", (trained / "run", *GIVEN)),
        ("backward:attention:layer2.*", (*turned, "--heads", "layer2.*")),
        ("backward:attention:layer1.head2", (*turned, "--heads", "layer1.head2")),
    ):
        assert align(*arguments, "--format", "jsonl", "-o", "alone")[0] == 0
        same([each[view] for each in pairs], "alone", turned=view.startswith("backward"))
    heads = [each[f"backward:attention:{head}"][1] for each in pairs[:1] for head in HEADS]
    assert np.abs(heads[0] - heads[3]).max() > 0.02


def test_without_views_the_page_shows_what_method_and_heads_say(trained: Path, reverse: Path, align: Command) -> None:
    for arguments in (("--method", "gradient"), ("--heads", "layer1.head2"), ("--set", "alignment={kind: argmax}")):
        for name in ("html", "jsonl"):
            assert align(reverse, *GIVEN, *arguments, "--format", name, "-o", name)[0] == 0
        meta, pairs = read("html")
        view = "gradient" if "gradient" in arguments else "attention"
        offered = [f"attention:{head}" for head in HEADS] if "--set" in arguments else []  # where no heads are chosen
        assert meta["views"] == [view, *offered]
        same([each[view] for each in pairs], "jsonl")
        for head in offered[1:3]:
            alone = (*arguments, "--heads", head.partition(":")[2], "--format", "jsonl", "-o", "jsonl")
            assert align(reverse, *GIVEN, *alone)[0] == 0
            same([each[head] for each in pairs], "jsonl")
    rule = "Linked: the strongest weight of each target word."
    mean = " The weights are the mean of 4 heads."
    assert meta["explanations"] == {"attention": rule + mean, **dict.fromkeys(offered, rule)}
    # the only head of a model is what attention shows
    assert align(trained / "run", *GIVEN, "--format", "html", "-o", "one.html")[0] == 0
    assert read("one.html")[0]["views"] == ["attention"]
    assert align(trained / "run", "-s", "s", *PRECISE, "--format", "html", "-o", "own.html")[0] == 0  # of its own
    assert read("own.html")[0]["facts"][0] == "s"


def test_gold_is_in_the_page_and_judges_each_view(trained: Path, align: Command) -> None:
    Path("gold").write_text("0-0 1-1 2p2\n\n\n0-0 0-1\n\n0-0 1-1 2-2\n")
    arguments = (trained / "run", *GIVEN, "--gold", "gold")
    judged = {}
    for method in ("attention", "gradient"):
        judged[method] = align(*arguments, "--method", method, "-o", "links")[2].splitlines()[-1]
        assert (
            align(*arguments, "--format", "html", "-o", "a", "--method", method)[2].splitlines()[-1] == judged[method]
        )
    views = ("--view", "gradient", "--view", "attention")
    _, _, err = align(*arguments, "--format", "html", "-o", "b", *views)
    assert err.splitlines()[-2:] == [f"{method}: {judged[method]}" for method in ("gradient", "attention")]
    assert "[[0,0,1,1],[2,2]]]," in Path("b").read_text()


def test_svg(trained: Path, align: Command) -> None:
    assert align(trained / "run", *GIVEN, "--format", "svg", "-o", "pictures")[0] == 0
    assert sorted(each.name for each in Path("pictures").iterdir()) == [f"00000{n}.svg" for n in range(1, 7)]
    assert ">Katze.</text>" in Path("pictures/000001.svg").read_text()


HTML = ("--format", "html", "-o", "out")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "html"], "--format html needs --output, a file"),
        (["--format", "svg"], "--format svg needs --output, a folder for the pictures"),
        (["--view", "attention"], "--view chooses what --format html shows; add that, or leave out --view"),
        (
            [*HTML, "--level", "subword"],
            "--level subword: --format html shows words; leave it out, or use --format png",
        ),
        (
            [*HTML, "--view", "gradient", "--method", "attention"],
            "--view names methods and heads itself; leave out --method, or --view",
        ),
        (
            [*HTML, "--view", "gradient", "--heads", "*"],
            "--view names methods and heads itself; leave out --heads, or --view",
        ),
        (
            [*HTML, "--view", "atention"],
            (
                "--view atention: 'atention' is not a method; "
                "choose one of attention, shifted-attention, gradient, input-x-gradient, trained, or each:HEADS"
            ),
        ),
        (
            [*HTML, "--view", "forward:attention"],
            "--view forward:attention: is of one of two models; give --reverse as well",
        ),
        (
            ["--compare", "--view", "attention"],
            "--compare prints a report on all methods, between words; leave out --view",
        ),
        (["--format", "html", "-o", "s"], "--output s: is an input file of this command; write to another file"),
        (["--format", "html", "-o", "."], "--output .: is not a file; name one, such as pairs.html"),
        (
            ["--format", "html", "-o", "no/page.html"],
            "--output no/page.html: cannot be written: No such file or directory",
        ),
    ],
)
def test_mistakes_are_one_line(trained: Path, align: Command, arguments: list[str], message: str) -> None:
    code, out, err = align(trained / "run", *GIVEN, *arguments)
    assert (code, out, err.splitlines()[-1]) == (2, "", f"error: {message}")
    assert not Path("out").exists()


def test_heads_that_a_model_does_not_have_are_said(trained: Path, reverse: Path, align: Command) -> None:
    def fault(*arguments: str | Path) -> str:
        code, out, err = align(*arguments, *GIVEN, *HTML)
        assert (code, out) == (2, "")
        return err.splitlines()[-1]

    known = ", ".join(HEADS)
    for view in ("attention:layer9.*", "each:layer9.*"):
        said = f"error: --view {view}: fits no head of {reverse}/best; it has {known}"
        assert fault(reverse, "--view", view) == said
    both = (trained / "run", "--reverse", reverse)
    said = f"error: --view each:layer1.*: fits no head of {trained}/run/best; it has head1"
    assert fault(*both, "--view", "each:layer1.*") == said
    said = "error: --view each:*: the two models have no such head in common; ask for those of one, "
    assert fault(*both, "--view", "each:*") == f"{said}forward:each:* or backward:each:*"
    said = f"error: --view attention:head1: fits no head of {reverse}/best; it has {known}"
    assert fault(*both, "--view", "attention:head1") == said
    said = f"error: {trained}/run/best: is of the same run as the forward model; "
    assert fault(trained / "run", "--reverse", trained / "run").startswith(said)


def test_a_run_that_fails_leaves_the_old_page(trained: Path, align: Command) -> None:
    Path("out").write_text("old")
    Path("t").write_text("\n".join(TARGETS[:4]) + "\n")
    code, _, err = align(trained / "run", *GIVEN, *HTML)
    assert (code, "they must go together line by line" in err) == (2, True)
    assert Path("out").read_text() == "old"
    assert sorted(each.name for each in Path().iterdir()) == ["out", "s", "t"]
