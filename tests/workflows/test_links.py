"""`nmt links`: links that are there already. The command line runs in this process."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nmt.alignment.formats import read_jsonl, read_npz
from nmt.alignment.symmetrize import HEURISTICS, symmetrize
from tests.workflows.runs import Command, json_lines, write_lines, write_pairs

SOURCES = ["Er geht, heute.", "", "Hund", "a b c d e f"]
TARGETS = ["He goes today .", "x", "dog", "u v w x y"]
FORWARD = "0-0 1p1 2-2\n\n0-0\n" + "0-0 1-1 2-1 3-3 5-4\n"
BACKWARD = "0-0 1-1 2-2 2-3\n\n\n" + "0-0 1-1 1-2 3-3 4-3\n"


@pytest.fixture
def run(nmt: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `nmt` in ``tmp_path``, where ``s`` and ``t`` are files of pairs, ``f`` and ``b`` of links."""
    monkeypatch.chdir(tmp_path)
    write_pairs(SOURCES, TARGETS)
    Path("f").write_text(FORWARD)
    Path("b").write_text(BACKWARD)
    return nmt


PAIRS = ("-s", "s", "-t", "t")
GIVEN = ("links", "f", *PAIRS)
NAMES_OTHERS = "names other words than the two sentences have"


@pytest.mark.parametrize("heuristic", HEURISTICS)
def test_two_files_are_joined(run: Command, heuristic: str) -> None:
    out = run(*GIVEN, "--reverse-links", "b", "--symmetrize", heuristic, "--format", "gold").output
    for line, *sides in zip(out.splitlines(), FORWARD.splitlines(), BACKWARD.splitlines(), strict=True):
        links = [[tuple(map(int, link.replace("p", "-").split("-"))) for link in side.split()] for side in sides]
        joined = symmetrize(*links, heuristic)  # type: ignore[arg-type]
        both = {*links[0]} & {*links[1]}
        assert line == " ".join(f"{s}{'-' if (s, t) in both else 'p'}{t}" for s, t in joined)


def test_the_matrix_says_where_links_are(run: Command) -> None:
    run(*GIVEN, "--format", "jsonl", "-o", "one")
    run(*GIVEN, "--reverse-links", "b", "--format", "npz", "-o", "both")
    found = list(read_jsonl(Path("one")))
    for each, both in zip(found, read_npz(Path("both")), strict=True):
        assert {(s, t) for t, s in np.argwhere(each.weights_TS == 1).tolist()} == set(each.links)
        assert set(each.weights_TS.ravel().tolist()) <= {0.0, 1.0}
        assert set(both.weights_TS.ravel().tolist()) <= {0.0, 0.5, 1.0}
        assert each.source_words == both.source_words
    assert (found[0].source_spans, found[0].sure) == (((0, 2), (3, 8), (9, 15)), {(0, 0), (2, 2)})


@pytest.mark.parametrize(
    ("first", "base"),
    [*((name, base) for name in ("pharaoh", "gold", "tsv") for base in "01"), ("jsonl", ""), ("npz", "")],
)
def test_a_file_of_any_format_gives_the_same_links_again(run: Command, first: str, base: str) -> None:
    def counted(option: str) -> Sequence[str]:
        return (option, base) if base else ()

    assert run(*GIVEN, "--format", first, "-o", "x", *counted("--base"))[0] == 0
    given = ("links", "x", *PAIRS, *counted("--links-base"))
    assert run(*given)[:2] == (0, FORWARD.replace("p", "-"))
    Path("gold").write_text(FORWARD.replace("p", "-"))
    tree = run("evaluate", "--alignment", "x", "--gold", "gold", "--json", *counted("--alignment-base")).tree
    assert (tree["aer"]["value"], tree["predicted"]) == (0, FORWARD.count(" ") + 3)
    if first not in ("pharaoh", "npz"):  # which know sure links alone
        assert run(*given, "--format", "gold")[1] == FORWARD


def test_links_that_put_the_target_first(run: Command) -> None:
    write_lines("turned", (" ".join(link[::-1] for link in line.split()) for line in BACKWARD.splitlines()))
    expected = run(*GIVEN, "--reverse-links", "b")
    assert run(*GIVEN, "--reverse-links", "turned", "--target-first") == expected
    straight = "".join(f"{' '.join(sorted(line.split()))}\n" for line in BACKWARD.splitlines())
    assert run("links", "turned", *PAIRS, "--target-first") == (0, straight, "")
    # A model of the other direction writes such files, which name their words.
    assert run("links", "turned", "-s", "t", "-t", "s", "--format", "jsonl", "-o", "j")[0] == 0
    assert run(*GIVEN, "--reverse-links", "j", "--target-first") == expected
    remedy = "give the files that were aligned, and --text, --links-base and --target-first as they were"
    assert run(*GIVEN, "--reverse-links", "j").error == f"j:1: {NAMES_OTHERS}; {remedy}"


def test_a_table_of_other_sentences_is_refused_with_its_row(run: Command) -> None:
    assert run(*GIVEN, "--format", "tsv", "--base", "1", "-o", "tsv")[0] == 0
    given = ("links", "tsv", *PAIRS)
    assert run(*given).error.startswith(f"tsv:2: {NAMES_OTHERS};")
    points = "tsv:4: link '3-3' points at source word 3, but that sentence has 2 words, counted from 1"
    for sentence, message in (("Er geht, morgen.", f"tsv:4: {NAMES_OTHERS};"), ("Er geht,", points)):
        Path("s").write_text("\n".join([sentence, *SOURCES[1:]]))
        assert run(*given, "--links-base", "1").error.startswith(message)


def test_matrices_of_two_files_are_joined(run: Command) -> None:
    draw = random.Random(0)
    trees = []
    for name in ("f.jsonl", "b.jsonl"):
        run(*GIVEN, "--format", "jsonl", "-o", name)
        lines = json_lines(name)
        for line in lines:
            line["weights"] = [[draw.random() for _ in row] for row in line["weights"]]
        write_lines(name, map(json.dumps, lines))
        trees.append(lines)
    join = ("--reverse-links", "b.jsonl", "--symmetrize", "soft-product", "--threshold", "0.3")
    out = run("links", "f.jsonl", *PAIRS, *join).output
    for line, *sides in zip(out.splitlines(), *trees, strict=True):
        p, q = (np.array(each["weights"]).reshape(len(each["target_words"]), -1) for each in sides)
        if p.shape[0] > 1 and p.shape[1] > 1:
            assert set(line.split()) == {f"{s}-{t}" for t, s in np.argwhere(p * q >= 0.3).tolist()}


def test_gold_links_judge_and_text_has_other_words(run: Command) -> None:
    Path("gold").write_text("1-1 2p2\n\n1-1\n1-1\n")
    code, _, err = run(*GIVEN, "--gold", "gold", "--gold-base", "1")
    # A 9, S 3, A and S 3, A and P 4
    assert (code, err.split("  ")[0]) == (0, "AER 41.7")
    Path("x").write_text("2-4 4-3\n\n0-0\n\n")
    given = ("links", "x", *PAIRS)
    # the target has its full stop as word 3, and no word 4
    assert [run(*given).code, run(*given, "--text").code] == [2, 2]
    Path("x").write_text("2-2 4-3\n\n0-0\n\n")
    rows = [line.split("\t") for line in run(*given, "--text", "--format", "tsv").stdout.splitlines()[1:]]
    assert [row[3:5] for row in rows] == [[",", "today"], [".", "."], ["", ""], ["Hund", "dog"], ["", ""]]
    for row in rows:
        for word, begin, end, line in ((row[3], *row[7:9], SOURCES), (row[4], *row[9:11], TARGETS)):
            assert word == (line[int(row[0]) - 1][int(begin) : int(end)] if begin else "")


INPUT = "is an input file of this command; write to another file"
IF_0 = "correct the link, or read the file as one that counts from 0"
IF_1 = "if the file counts from 1, give --links-base 1"
FEW = "short has 1 pairs, but s has more: they must go together one by one"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("out", f"out:4: link '6-0' points at source word 6, but that sentence has 6 words, counted from 0; {IF_1}"),
        ("one --links-base 1", f"one:2: link '0-1' points at word 0, but the file was to count from 1: {IF_0}"),
        ("short", FEW),
        ("long", "s has 4 pairs, but long has more: they must go together one by one"),
        ("f --reverse-links short", FEW),
        ("none", "none: no such file"),
        ("empty -s empty -t empty", "empty: holds no line to align"),
        ("f -o f", f"--output f: {INPUT}"),
        ("f --reverse-links b --format html -o b", f"--output b: {INPUT}"),
        ("f --lexicon f", f"--lexicon f: {INPUT}"),
        ("f --reverse-links b --symmetrize soft-mean",
         "f:1: holds no matrix between words, as soft-mean and soft-product need; choose another --symmetrize"),
    ],
)  # fmt: skip
def test_faults_of_files(run: Command, arguments: str, message: str) -> None:
    texts = {"out": "0-0\n\n\n6-0\n", "one": "1-1\n0-1\n\n\n", "short": "0-0\n", "long": "\n" * 5, "empty": ""}
    for name, text in texts.items():
        Path(name).write_text(text)
    done = run("links", *arguments.split(), *(() if " -s " in arguments else PAIRS))
    assert (done.code, done.stderr) == (2, f"error: {message}\n")
