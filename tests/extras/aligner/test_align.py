"""`nmt align --aligner` and `--learn`, without any model. The command line runs in this process."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nmt.alignment.formats import read_jsonl, read_npz
from nmt.core.errors import InputError
from nmt.extras.aligner import align as learning
from nmt.extras.aligner.align import TextAligner
from nmt.extras.aligner.aligner import IndexedSentences, WordAligner, learn_aligner, load_aligner, save_aligner
from tests.extras.aligner.compounds import pairs
from tests.extras.aligner.test_model_aligner import nmt
from tests.workflows.runs import Command

__all__ = ["nmt"]

PAIRS = pairs(120, seed=1)
ODD = [("", ""), ("roter", "red"), ("", "red"), ("... !", "..."), ("Xaver\u2028Y\0 👩\u200d🚒", "Xaver Y\0 👩\u200d🚒")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("learned")
    lines = [(" ".join(each.source), " ".join(each.target)) for each in PAIRS] + ODD
    for name, side in (("x.de", 0), ("x.en", 1)):
        (folder / name).write_text("".join(f"{line[side]}\n" for line in lines), encoding="utf-8", newline="\n")
    gold = [" ".join(f"{s}-{t}" for s, t in sorted(each.links)) for each in PAIRS] + [""] * len(ODD)
    (folder / "gold").write_text("".join(f"{line}\n" for line in gold))
    sides = [
        IndexedSentences(line.split() for line in (folder / name).read_text("utf-8").split("\n")[:-1])
        for name in ("x.de", "x.en")
    ]
    save_aligner(learn_aligner(*sides), folder / "x.aligner")
    return folder


@pytest.fixture
def given(folder: Path) -> list[str]:
    return ["-s", str(folder / "x.de"), "-t", str(folder / "x.en")]


def test_aligner_is_python(nmt: Command, folder: Path, given: list[str], tmp_path: Path) -> None:
    by_file = nmt("align", "--aligner", folder / "x.aligner", *given, "--gold", folder / "gold")
    learnt = nmt("align", "--learn", *given, "--gold", folder / "gold")
    assert (by_file.code, learnt.code) == (0, 0)
    for done in (by_file, learnt):
        assert float(done.stderr.splitlines()[-1].split()[1]) < 5  # AER
    lines = by_file.stdout.split("\n")
    assert len(lines) == len(PAIRS) + len(ODD) + 1
    assert lines[len(PAIRS)] == lines[len(PAIRS) + 2] == ""
    assert lines[len(PAIRS) + 1] == "0-0"
    sources, targets = ((folder / name).read_text("utf-8").split("\n")[:-1] for name in ("x.de", "x.en"))
    expected = TextAligner(load_aligner(folder / "x.aligner")).align(sources, targets)
    assert lines[:-1] == [" ".join(f"{s}-{t}" for s, t in each.links) for each in expected]
    with pytest.raises(InputError, match="give one target for each source"):
        TextAligner(load_aligner(folder / "x.aligner")).align(sources, targets[1:])


@pytest.mark.parametrize("text", [[], ["--text"]], ids=["tokens", "text"])
def test_pairs_learnt_from_are_aligned_as_by_learn(nmt: Command, folder: Path, tmp_path: Path, text: list[str]) -> None:
    """Byte for byte; and up to rounding with other pairs among them that the aligner has not learnt from."""
    for name in ("x.de", "x.en"):
        lines = (folder / name).read_text("utf-8").split("\n")[:-1]
        (tmp_path / name).write_text("".join(f"{line}.\n" for line in lines), encoding="utf-8")
        (tmp_path / f"more.{name}").write_text("".join(f"{line}.\nblauer neuer\n" for line in lines), encoding="utf-8")
    options = ["--format", "jsonl", *text]
    learnt = nmt("align", "--learn", "-s", "x.de", "-t", "x.en", *options).stdout.splitlines()
    assert nmt("aligner", "-s", "x.de", "-t", "x.en", "-o", "aligner").code == 0
    assert nmt("align", "--aligner", "aligner", "-s", "x.de", "-t", "x.en", *options).stdout.splitlines() == learnt
    mixed = nmt("align", "--aligner", "aligner", "-s", "more.x.de", "-t", "more.x.en", *options).stdout.splitlines()
    save_aligner(WordAligner(load_aligner(tmp_path / "aligner").members), tmp_path / "old")  # does not know its pairs
    by_old = nmt("align", "--aligner", "old", "-s", "more.x.de", "-t", "more.x.en", *options).stdout.splitlines()
    assert mixed[1::2] == by_old[1::2]
    for found, is_alike in ((mixed, True), (by_old, False)):
        pairs_of_weights = zip(map(weights, found[::2]), map(weights, learnt), strict=True)
        assert all(np.allclose(*both, atol=2e-6) for both in pairs_of_weights) == is_alike


def weights(line: str) -> np.ndarray:
    """The weights of a line of jsonl, as long as there are any."""
    return np.array(json.loads(line)["weights"])


@pytest.mark.parametrize("command", [["align", "--learn"], ["aligner", "-o", "out"]], ids=["learn", "aligner"])
def test_few_pairs_are_warned_of_once(nmt: Command, tmp_path: Path, command: list[str]) -> None:
    for count in (1, 2, 600):
        # Blank sides teach nothing, and a pair again teaches little.
        lines = [f"rot {number % (count - count // 4)}\n" for number in range(count)] + ["\n"] * 600
        for name in ("s", "t"):
            (tmp_path / name).write_text("".join(lines))
        warnings = [line for line in nmt(*command, "-s", "s", "-t", "t").stderr.splitlines() if "warning" in line]
        assert len(warnings) == 1
        assert f"learnt from only {count - count // 4} different pairs" in warnings[0]
    for name in ("s", "t"):
        (tmp_path / name).write_text("".join(f"rot {number}\n" for number in range(500)))
    assert "warning" not in nmt(*command, "-s", "s", "-t", "t").stderr


@pytest.mark.parametrize("text", [False, True], ids=["tokens", "text"])
def test_every_format(nmt: Command, folder: Path, given: list[str], tmp_path: Path, text: bool) -> None:
    arguments = ["align", "--aligner", folder / "x.aligner", *given, *(["--text"] if text else [])]
    for format_ in ("pharaoh", "gold", "tsv", "jsonl", "npz", "html"):
        done = nmt(*arguments, "--format", format_, "-o", format_)
        assert (done.code, done.stdout) == (0, ""), done.stderr
    found = list(read_jsonl(Path("jsonl")))
    links = [" ".join(f"{s}-{t}" for s, t in each.links) for each in found]
    assert Path("pharaoh").read_text() == Path("gold").read_text() == "".join(f"{line}\n" for line in links)
    assert [each.links for each in read_npz(Path("npz"))] == [each.links for each in found]
    assert len(found) == len(PAIRS) + len(ODD)
    rows = Path("tsv").read_text("utf-8").split("\n")[1:-1]
    assert len([row for row in rows if row.split("\t")[1]]) == sum(len(each.links) for each in found)
    source = (folder / "x.de").read_text("utf-8").split("\n")
    for line, each in zip(source, found, strict=False):
        assert each.source_spans is not None
        assert [line[begin:end] for begin, end in each.source_spans] == list(each.source_words)
    for each in found:
        assert np.isfinite(each.weights_TS).all()
        assert each.weights_TS.max(initial=0) <= 1.001


def test_a_higher_probability_gives_some_of_the_links(nmt: Command, folder: Path, given: list[str]) -> None:
    found = []
    for least in ("0.1", "0.5", "0.95"):
        done = nmt("align", "--aligner", folder / "x.aligner", *given, "--min-probability", least, "--format", "jsonl")
        Path("x").write_text(done.stdout, encoding="utf-8")
        alignments = list(read_jsonl(Path("x")))
        assert all(each.weights_TS[t, s] >= float(least) - 1e-6 for each in alignments for s, t in each.links)
        found.append(sum(len(each.links) for each in alignments))
    assert found == sorted(found, reverse=True)
    assert found[0] > found[-1] > 0
    refused = nmt("align", *given, "--min-probability", "0.5").error
    assert refused == "--min-probability is of what is learnt from text; give --learn or --aligner as well"


def test_pictures(nmt: Command, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("roter Hund\n\n")
    (tmp_path / "t").write_text("red dog\n\n")
    for format_ in ("svg", "png"):
        arguments = ("-s", "s", "-t", "t", "--format", format_, "-o", format_)
        assert nmt("align", "--aligner", folder / "x.aligner", *arguments).code == 0
        assert {each.name for each in Path(format_).iterdir()} == {f"000001.{format_}", f"000002.{format_}"}


def test_reports(nmt: Command, folder: Path, given: list[str]) -> None:
    done = nmt("align", "--aligner", folder / "x.aligner", *given, "--lexicon", "lexicon")
    assert (done.code, done.stdout) == (0, "")
    assert "roter\tred" in Path("lexicon").read_text()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["--learn", "--aligner", "x"],
            "--learn learns from the given pairs, and --aligner has been learnt; leave one",
        ),
        (["--learn", "run"], "--learn aligns both directions together, without a model; leave out MODEL"),
        (["--learn", "--method", "trained"], "leave out --method"),
        (["--learn", "--heads", "*"], "leave out --heads"),
        (["--learn", "--reverse", "x"], "leave out --reverse"),
        (["--learn", "--level", "word"], "leave out --level"),
        (["--learn", "--beam", "3", "--device", "cpu"], "leave out --set and search options, --device"),
        (["--aligner", "x", "--symmetrize", "union"], "leave out --symmetrize"),
        (["--aligner", "x", "--threshold", "0.0"], "leave out --threshold"),
        (["--aligner", "x", "--compare"], "leave out --compare"),
        (["--aligner", "x", "--view", "attention"], "leave out --view"),
        (["--aligner", "x", "--suspects", "y"], "--suspects asks a model how probable each pair is, and --aligner has"),
        (["--aligner", "no"], "no: cannot be read: No such file or directory"),
        (["--aligner", "."], ".: is a folder, but a file is needed"),
        (["--aligner", "{}/gold"], "gold: is not an aligner, or damaged; make one with nmt aligner"),
        (["--aligner", "{}/x.aligner", "-o", "{}/x.aligner"], "x.aligner: is an input file of this command"),
        (["--aligner", "{}/x.aligner", "--gold", "no"], "no: no such file"),
        (["--learn", "--lexicon", "no/x"], "--lexicon no/x: cannot be written: folder no does not exist"),
        (["--learn", "-o", "no/x"], "--output no/x: cannot be written: folder no does not exist"),
    ],
)
def test_mistakes(
    nmt: Command, folder: Path, given: list[str], arguments: list[str], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "learn_aligner", lambda *_, **__: pytest.fail("it has learnt before it saw this"))
    assert error in nmt("align", *given, *(each.format(folder) for each in arguments)).error


def test_what_cannot_be_learnt_from(nmt: Command, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "blank").write_text("\n \n")
    (tmp_path / "two").write_text("a\nb\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "gold").write_text("0-0\n9-9\n")
    assert nmt("align", "--learn", "-s", "two").error == "--learn aligns given pairs; give --target as well"
    assert nmt("align", "--learn", "-t", "two").error.startswith("--source is missing")
    for source, target, named in (("blank", "two", "blank"), ("two", "blank", "blank"), ("empty", "empty", "empty")):
        refused = nmt("align", "--learn", "-s", source, "-t", target).error
        assert refused == f"{named}: holds no word to learn from"
    assert "lines, but" in nmt("align", "--learn", "-s", "two", "-t", folder / "x.en").error
    assert nmt("align", "--learn", "-s", "two", "-t", "two", "--gold", "gold").error.startswith("gold:2: link '9-9'")
    alone = nmt("align", "--learn", "-s", "two", "-t", "two")
    assert (alone.code, alone.stdout) == (0, "0-0\n0-0\n")


def test_a_line_that_is_too_long_is_named_and_left_blank(nmt: Command, folder: Path, tmp_path: Path) -> None:
    for name in ("s", "t"):
        (tmp_path / name).write_text("roter\n" + "Hund " * 1001 + "\n" + "Hund " * 300 + "\n")
    done = nmt("align", "--aligner", folder / "x.aligner", "-s", "s", "-t", "t")
    said = "line 2: left blank: more than 1000 words and signs on a side are too many to align; split it"
    assert f"warning: {said}\n" in done.stderr
    assert (done.code, done.stdout.split("\n")[:2], done.stdout.count("\n")) == (0, ["0-0", ""], 3)
