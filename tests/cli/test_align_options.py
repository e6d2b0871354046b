"""The options that `nmt align` and `nmt links` share."""

from __future__ import annotations

import pytest

from nmt.cli.align_options import AlignmentOptions, listed
from tests.workflows.runs import Command


@pytest.mark.parametrize("command", ["align", "links"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("-t t", "--source is missing; name the file with the source sentences"),
        ("-s s -t t --gold-base 1", "--gold-base is of the links of --gold; give --gold as well"),
        ("-s s -t t --format jsonl --base 1",
         "--base: jsonl always counts from 0; leave it out, or use pharaoh, gold or tsv"),
        ("-s s -t t --format html -o x --base 0",
         "--base: html always counts from 0; leave it out, or use pharaoh, gold or tsv"),
        ("-s s -t t --format npz", "--format npz needs --output, a file"),
        ("-s s -t t --format html", "--format html needs --output, a file"),
        ("-s s -t t --format svg", "--format svg needs --output, a folder for the pictures"),
        ("-s s -t t --view links", "--view chooses what --format html shows; add that, or leave out --view"),
    ],
)  # fmt: skip
def test_mistakes(command: str, arguments: str, message: str, run: Command) -> None:
    assert run(command, "x", *arguments.split()).error == message


def test_reports_alone_leave_links_unwritten() -> None:
    assert AlignmentOptions().outputs.writer is not None
    assert (AlignmentOptions(format_="svg").outputs.pictures, AlignmentOptions().outputs.pictures) == (True, False)
    lists = [listed(["a", "b", "c"]), listed(["a", "b"], "or"), listed(["a"]), listed([])]
    assert lists == ["a, b and c", "a or b", "a", ""]
