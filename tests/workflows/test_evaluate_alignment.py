"""`nmt evaluate --alignment`: links in a file against gold links. The command line runs in this process."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nmt.cli import app

Evaluate = Callable[..., tuple[int | str | None, str, str]]

PREDICTED = "0-0 1-1 2-3 5-5\n\n0-1\n"
GOLD = "0-0 1-1 3-3 2p3\n0-0\n0-1 1p1\n"


@pytest.fixture
def evaluate(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Evaluate:
    """Runs `nmt evaluate` in ``tmp_path``, where ``hyp`` and ``gold`` are files of three pairs."""
    monkeypatch.chdir(tmp_path)
    Path("hyp").write_text(PREDICTED)
    Path("gold").write_text(GOLD)

    def run(*arguments: str) -> tuple[int | str | None, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit:
            app.main(["evaluate", *arguments])
        return (exit.value.code, *capsys.readouterr())

    return run


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


def test_rates_and_intervals_are_those_of_plain_loops(evaluate: Evaluate) -> None:
    draw = random.Random(2)
    pairs: list[tuple[set[str], set[str], set[str]]] = []
    for _ in range(40):
        grid = [f"{s} {t}" for s in range(5) for t in range(5)]
        sure = {link for link in grid if draw.random() < 0.2}
        pairs.append(
            (
                {link for link in grid if draw.random() < (0.8 if link in sure else 0.1)},
                sure,
                {link for link in grid if link not in sure and draw.random() < 0.1},
            )
        )
    hypothesis = [" ".join(link.replace(" ", "-") for link in predicted) for predicted, _, _ in pairs]
    gold = [
        " ".join([*(link.replace(" ", "-") for link in sure), *(link.replace(" ", "p") for link in possible)])
        for _, sure, possible in pairs
    ]
    Path("hyp").write_text("\n".join(hypothesis) + "\n")
    Path("gold").write_text("\n".join(gold) + "\n")
    code, out, _ = evaluate("--alignment", "hyp", "--gold", "gold", "--json")
    assert code == 0
    report = json.loads(out)
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


def test_the_table(evaluate: Evaluate) -> None:
    # A 5, S 5, A and S 3, A and P 4
    code, out, err = evaluate("--alignment", "hyp", "--gold", "gold")
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


def test_gold_that_counts_from_1(evaluate: Evaluate) -> None:
    expected = evaluate("--alignment", "hyp", "--gold", "gold", "--json")
    Path("gold").write_text("1-1 2-2 4-4 3p4\r\n1-1\r\n1-2 2p2\r\n")
    assert evaluate("--alignment", "hyp", "--gold", "gold", "--gold-base", "1", "--json") == expected
    assert evaluate("--alignment", "hyp", "--gold", "gold", "--json") != expected
    Path("gold").write_text("1-1\n0-1\n\n")
    code, _, err = evaluate("--alignment", "hyp", "--gold", "gold", "--gold-base", "1")
    assert (code, err) == (
        2,
        (
            "error: gold:2: link '0-1' points at word 0, but the file was to count from 1: "
            "correct the link, or read the file as one that counts from 0\n"
        ),
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alignment", "hyp"], "--alignment is judged by gold links; give --gold as well"),
        (
            ["--gold", "gold"],
            "--gold and --gold-base judge word alignments; give --alignment as well, or use nmt align --gold",
        ),
        (
            ["run", "--alignment", "hyp", "--gold", "gold", "--beam", "3"],
            "--alignment scores links against --gold alone; leave out MODEL, --set and search options",
        ),
        (
            ["--alignment", "hyp", "--gold", "gold", "--reference", "x", "--lowercase", "--device", "cpu"],
            "--alignment scores links against --gold alone; leave out --reference, --lowercase, --device",
        ),
        (["--alignment", "no", "--gold", "gold"], "no: no such file"),
        (["--alignment", "hyp", "--gold", "no"], "no: no such file"),
        (
            ["--alignment", "two", "--gold", "gold"],
            "two has 2 lines, but gold has 3: they must go together line by line",
        ),
        (
            ["--alignment", "words", "--gold", "two"],
            "words:2: '1:1' is not a link: write 3-4 (sure) or 3p4 (possible), source index first, counted from 0",
        ),
        (["--alignment-base", "1"], "--alignment-base is of the links of --alignment; give --alignment as well"),
        (["--alignment", "empty", "--gold", "empty"], "empty: holds no line to score"),
    ],
    ids=["no-gold", "no-alignment", "model", "options", "no-hyp", "no-file", "lines", "no-link", "base", "empty"],
)
def test_errors_are_one_line(evaluate: Evaluate, arguments: list[str], message: str) -> None:
    Path("two").write_text("0-0\n\n")
    Path("words").write_text("0-0\n1:1\n")
    Path("empty").write_text("")
    assert evaluate(*arguments) == (2, "", f"error: {message}\n")


def test_torch_is_not_needed(evaluate: Evaluate) -> None:
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "from nmt.cli import app\n"
        "app.main(['evaluate', '--alignment', 'hyp', '--gold', 'gold'])"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": root}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(" ")
