"""Arguments and options that several commands share, and their faults, which are found without PyTorch."""

from __future__ import annotations

from nmt.cli.options import ModelOptions, choices_help
from nmt.plugins import Choice
from tests.cli.conftest import mistakes


def test_search_options_are_changes_of_the_configuration() -> None:
    options = ModelOptions(overrides=["a=1"], beam=3, length_penalty=2.0, max_length_ratio=1.5, batch_tokens=9, to="1")
    search = ["beam=3", "length_penalty=2", "max_length_ratio=1.5", "batch_tokens=9", "to=1"]
    assert options.changes == ["a=1", *(f"search.{each}" for each in search)]
    assert ModelOptions().changes == []


def test_choices_with_the_same_help_stand_together() -> None:
    choices = {"png": Choice("", "a picture"), "html": Choice("", "a page"), "svg": Choice("", "a picture")}
    assert choices_help(choices) == "png, svg: a picture; html: a page"


MISTAKES = {
    "train no/such.yaml": "no/such.yaml: no such file",
    "serve no/such": "no/such: no such run directory, checkpoint or config",
    "serve --queue 100": "--max-sentences 256: exceeds --queue 100",
}
test_mistakes = mistakes("", MISTAKES)
