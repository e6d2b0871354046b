"""What the options for a cluster refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

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
