"""`nmt evaluate --alignment`: links in a file against gold links. The command line runs in this process."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.workflows.runs import Command, in_process, write_lines

PREDICTED = "0-0 1-1 2-3 5-5\n\n0-1\n"
GOLD = "0-0 1-1 3-3 2p3\n0-0\n0-1 1p1\n"


@pytest.fixture
def evaluate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs `nmt evaluate` in ``tmp_path``, where ``hyp`` and ``gold`` are files of three pairs."""
    monkeypatch.chdir(tmp_path)
    Path("hyp").write_text(PREDICTED)
    Path("gold").write_text(GOLD)
    return in_process(capsys, "evaluate")


FILES = ("--alignment", "hyp", "--gold", "gold")


def rates(pairs: list[tuple[set[str], set[str], set[str]]]) -> dict[str, float]:
    """Computes the rates of predicted, sure and possible links, by counting one after the other."""
    a = s = a_s = a_p = 0
    for predicted, sure, possible in pairs:
        for link in predicted:
            a += 1
            a_s += link in sure
            a_p += link in sure or link in possible
        s += len(sure)
    return {
        "aer": 1 - (a_s + a_p) / (a + s) if a + s else 0.0,
        "precision": a_p / a if a else 1.0,
        "recall": a_s / s if s else 1.0,
        "f1": 2 * a_s / (a + s) if a + s else 1.0,
    }


def percentile(values: list[float], share: float) -> float:
    """Between the two values that the place falls between, in proportion."""
    ordered, place = sorted(values), share * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def test_rates_and_intervals_are_those_of_plain_loops(evaluate: Command) -> None:
    draw = random.Random(2)
    pairs: list[tuple[set[str], set[str], set[str]]] = []
    for _ in range(40):
        grid = [f"{s} {t}" for s in range(5) for t in range(5)]
        sure = {link for link in grid if draw.random() < 0.2}
        predicted = {link for link in grid if draw.random() < (0.8 if link in sure else 0.1)}
        pairs.append((predicted, sure, {link for link in grid if link not in sure and draw.random() < 0.1}))
    write_lines("hyp", (" ".join(link.replace(" ", "-") for link in predicted) for predicted, _, _ in pairs))
    gold = (
        [*(link.replace(" ", "-") for link in sure), *(link.replace(" ", "p") for link in possible)]
        for _, sure, possible in pairs
    )
    write_lines("gold", map(" ".join, gold))
    report = evaluate(*FILES, "--json").tree
    generator = np.random.default_rng(12345)
    resamples = [rates([pairs[row] for row in generator.choice(40, size=40)]) for _ in range(1000)]
    for name, value in rates(pairs).items():
        resampled = [each[name] for each in resamples]
        assert report[name]["value"] == pytest.approx(value)
        assert report[name]["low"] == pytest.approx(percentile(resampled, 0.025))
        assert report[name]["high"] == pytest.approx(percentile(resampled, 0.975))
        assert report[name]["low"] < value < report[name]["high"]
    counts = {key: value for key, value in report.items() if not isinstance(value, dict)}
    assert counts == {
        "sentences": 40,
        "predicted": sum(len(each[0]) for each in pairs),
        "sure": sum(len(each[1]) for each in pairs),
        "predicted_sure": sum(len(predicted & sure) for predicted, sure, _ in pairs),
        "predicted_possible": sum(len(predicted & (sure | possible)) for predicted, sure, possible in pairs),
    }


def test_the_table(evaluate: Command) -> None:
    # A 5, S 5, A and S 3, A and P 4
    code, out, err = evaluate(*FILES)
    assert (code, err) == (0, "")
    heading, *rows, counts = [line.split() for line in out.splitlines()]
    assert heading == ["rate", "95%", "interval"]
    assert [row[:-3] for row in rows] == [
        ["AER", "30.0"],
        ["precision", "80.0"],
        ["recall", "60.0"],
        ["F1", "(sure)", "60.0"],
    ]
    assert {row[-2] for row in rows} == {"to"}
    assert counts == ["3", "sentences,", "5", "links,", "5", "sure"]


def test_gold_that_counts_from_1(evaluate: Command) -> None:
    expected = evaluate(*FILES, "--json")
    Path("gold").write_text("1-1 2-2 4-4 3p4\r\n1-1\r\n1-2 2p2\r\n")
    assert evaluate(*FILES, "--gold-base", "1", "--json") == expected
    assert evaluate(*FILES, "--json") != expected
    Path("gold").write_text("1-1\n0-1\n\n")
    assert evaluate(*FILES, "--gold-base", "1").error == (
        "gold:2: link '0-1' points at word 0, but the file was to count from 1: "
        "correct the link, or read the file as one that counts from 0"
    )


NOT_JUDGED = "--gold and --gold-base judge word alignments; give --alignment as well, or use nmt align --gold"
ALONE = "--alignment scores links against --gold alone; leave out"
NO_LINK = "is not a link: write 3-4 (sure) or 3p4 (possible), source first, from 0 on"
MISTAKES = {
    "--alignment hyp": "--alignment is judged by gold links; give --gold as well",
    "--gold gold": NOT_JUDGED,
    "run --alignment hyp --gold gold --beam 3": f"{ALONE} MODEL, --set and search options",
    "--alignment hyp --gold gold --reference x --lowercase --device cpu": f"{ALONE} --reference, --lowercase, --device",
    "--alignment no --gold gold": "no: no such file",
    "--alignment hyp --gold no": "no: no such file",
    "--alignment two --gold gold": "two has 2 lines, but gold has 3: they must agree line by line",
    "--alignment words --gold two": f"words:2: '1:1' {NO_LINK}",
    "--alignment-base 1": "--alignment-base is of the links of --alignment; give --alignment as well",
    "--alignment empty --gold empty": "empty: holds no line to score",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_errors_are_one_line(evaluate: Command, arguments: str) -> None:
    for name, text in (("two", "0-0\n\n"), ("words", "0-0\n1:1\n"), ("empty", "")):
        Path(name).write_text(text)
    assert evaluate(*arguments.split()) == (2, "", f"error: {MISTAKES[arguments]}\n")
