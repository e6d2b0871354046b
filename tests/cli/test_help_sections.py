"""Sections of help pages, and which options stand where."""

from __future__ import annotations

import re

import pytest

from nmt.cli.app import COMMANDS
from tests.workflows.runs import Command

WITHOUT_SET = {"init", "import", "filter", "languages", "links", "doctor"}
WITHOUT_DEVICE = {*WITHOUT_SET, "prepare", "average", "states", "export", "info", "config"} - {"init"}


def titles(page: str) -> list[str]:
    return re.findall(r"^(\w.*):$", page, flags=re.MULTILINE)


def test_help_lists_the_commands_and_their_options(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = run("--help").stdout.partition("Your own data:\n")[2]
    assert re.findall(r"^  (\w+)  ", groups, flags=re.MULTILINE) == list(COMMANDS)
    assert titles(groups) == ["Train", "Use", "Look", "More"]
    assert "..." not in groups
    assert "in other languages than the" in groups
    monkeypatch.setenv("COLUMNS", "80")
    for command in COMMANDS:
        page = run(command, "--help").stdout
        assert max(map(len, page.splitlines())) <= 80, command
        options = ("--set", "--quiet", "--verbose", "--device", "--precision")
        device = command not in WITHOUT_DEVICE
        expected = [command not in WITHOUT_SET, True, True, device, device and command != "init"]
        assert [option in page for option in options] == expected, command


def test_the_options_of_align_stand_in_groups_each_once(run: Command) -> None:
    page = run("align", "--help").stdout
    groups = titles(page)
    assert (groups[:2], groups[-1]) == (["Arguments", "Input"], "Other options")
    begins = re.findall(r"^  (-\S+)", page.partition("Input:")[2], flags=re.MULTILINE)
    assert len(begins) == len(set(begins)) > 35
    assert page.index("Output:") < page.index("--output PATH") < page.index("Evaluation:")


GROUPS = [
    ("translate", ["Input and output", "Search", "Random translations", "Text", "Confidence", "Machine"]),
    ("train", ["Resuming", "Machine"]),
    ("evaluate", ["Input and output", "Word alignments, without a model", "Scores", "Search", "Machine"]),
    ("serve", ["Network", "Batches", "Limits", "Search", "Confidence", "Machine"]),
]


@pytest.mark.parametrize(("command", "expected"), GROUPS)
def test_long_help_pages_have_groups(command: str, expected: list[str], run: Command) -> None:
    page = run(command, "--help").stdout
    assert titles(page) == ["Arguments", *expected, "Other options"]
    assert page.partition("Other options:\n")[2].count("\n  -") + 1 <= 5
