"""Time to a score: the trainings, and the test that several seeds have reached it."""

from __future__ import annotations

from pathlib import Path

import pytest
import speedrun

from tests.workflows.runs import Command

GUIDED = '"data.train.links={links} training.guided_attention.weight=0.3"'


@pytest.mark.parametrize(("count", "t"), [(2, 31.821), (3, 6.965), (5, 3.747), (30, 2.462)])
def test_the_probability_is_that_of_students_tables(count: int, t: float) -> None:
    """One-sided 0.01: "Student" 1908, as printed in every table of t."""
    scores = [-1.0, 1.0] * (count // 2) + [0.0] * (count % 2)
    deviation = (sum(score**2 for score in scores) / (count - 1)) ** 0.5
    assert speedrun.probability(scores, -t * deviation / count**0.5) == pytest.approx(0.01, rel=2e-3)


def test_each_system_is_trained_once_and_without_each_change(here: Path, run_script: Command) -> None:
    (here / "systems.yaml").write_text(f"fast: [training.stopping.updates=3, {GUIDED}]\nslow: []\n")
    arguments = ["config.yaml", "--file=systems.yaml", "--systems=fast", "--metric=loss", "--seeds=1"]
    arguments += ["--processes=1", "--leave-one-out", "--output=all"]
    first = run_script(speedrun, *arguments)
    assert first.code == 0, first.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:6]] for line in first.stdout.splitlines()[2:]]
    assert [(row[0], row[4]) for row in rows] == [
        ("fast", "3"),
        ("fast without updates", "2"),
        ("fast without links", "3"),
    ]
    assert "guidance" in (here / "all" / "fast" / "seed-1" / "run" / "metrics.jsonl").read_text()
    (here / "train.de").unlink()  # a second training would fail
    assert run_script(speedrun, *arguments).stdout == first.stdout
