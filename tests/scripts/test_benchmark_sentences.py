"""The measurement of lines of several sentences, on a tiny run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.workflows.runs import trained

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import benchmark_sentences

__all__ = ["trained"]


def test_lines_are_joined_in_order_without_those_left_over() -> None:
    assert benchmark_sentences.joined(["a", "b", "c", "d", "e"], 2) == ["a b", "c d"]
    assert benchmark_sentences.joined(["a", "b"], 1) == ["a", "b"]


def test_a_measurement_prints_a_line_for_each_figure(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.de").write_text("Hund und Katze.\nEins zwei. Drei Hund.\nZwei Hund.\nGrün.\n")
    (tmp_path / "x.en").write_text("dog and cat.\nOne two. Three dog.\ntwo dog.\nGreen.\n")
    files = [str(tmp_path / f"x.{side}") for side in ("de", "en")]
    read: dict[str, list[str]] = {}
    of_script = benchmark_sentences.translated

    def noted(model: str, lines: list[str], way: str) -> list[str]:
        read[way] = [*read.get(way, []), *lines]
        return of_script(model, lines, way)

    monkeypatch.setattr(benchmark_sentences, "translated", noted)
    monkeypatch.setattr(sys, "argv", ["x", str(trained / "run"), *files, "--lines", "3"])
    benchmark_sentences.main()
    figures = {each["name"]: each["value"] for each in map(json.loads, capsys.readouterr().out.splitlines())}
    ways = ("default", "document", "whole")
    assert list(figures) == [*(f"{n} in a line, {way}" for n in (1, 2) for way in ways), "lines that splitting changes"]
    lines = ["Hund und Katze.", "Eins zwei. Drei Hund.", "Zwei Hund."]
    assert read == {way: [*lines, "Hund und Katze. Eins zwei. Drei Hund."] for way in ways}
    assert figures["lines that splitting changes"] == 1
    whole, default, document = (of_script(str(trained / "run"), ["Eins zwei. Drei Hund."], way) for way in ways[::-1])
    assert default == document != whole
