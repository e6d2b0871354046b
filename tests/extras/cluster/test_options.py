"""What the options for a cluster refuse."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import pytest

from nmt import plugins
from nmt.cli.conflicts import Excludes
from nmt.cli.translate import translate
from tests.workflows.runs import in_process

CONFLICT = "cannot be had together with --ray; leave it out"
FILES = "files are read and written to a folder"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--ray auto --prefix p", f"--prefix: {CONFLICT}"),
        ("--ray auto --constraints p", f"--constraints: {CONFLICT}"),
        ("--ray auto --workers 2", f"--workers: {CONFLICT}"),
        ("--shard 1/2 --workers 2", "--workers: cannot be had together with --shard; leave it out"),
        ("--shard 1/2 --report r", "--report: cannot be had together with --shard; leave it out"),
        ("--ray auto", f"--ray: needs --input: {FILES}"),
        ("--ray auto --input train.de", f"--ray: needs --output: {FILES}"),
        ("--field body", "--field: is for the JSONL and Parquet that --ray and --shard read; leave it out"),
    ],
)
def test_options_that_go_not_together_are_refused(
    arguments: str, message: str, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert in_process(capsys, "translate", str(trained / "run"))(*arguments.split()).error == message


def test_every_option_reaches_the_shards_or_is_refused() -> None:
    of_shards = """
        model ensemble to overrides beam length_penalty max_length_ratio n_best sample temperature top_k top_p seed
        consensus samples replace_unknown markup document context format_ alignment engine device precision batch_tokens
        input_ output ray shard field
    """
    options = cast(Any, translate.parser(plugins.options("translate"))).options
    refused = {"rejected"}  # needs --reject-below
    for rule in (rule for each in options.__mro__ for rule in vars(each).get("conflicts", ())):
        one, other = rule.options.split(), rule.others.split()
        refused.update(
            [*(one if "shard" in other else []), *(other if "shard" in one else [])] * isinstance(rule, Excludes)
        )
    assert {field.name for field in fields(options)} - {*of_shards.split()} <= refused
