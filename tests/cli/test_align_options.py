"""The options that `nmt align` and `nmt links` share."""

from __future__ import annotations

from nmt.cli.align_options import AlignmentOptions, listed
from tests.cli.conftest import mistakes

MESSAGES = {
    "--gold-base 1": "--gold-base is of the links of --gold; give --gold as well",
    "--format jsonl --base 1": "--base: jsonl always counts from 0; leave it out, or use pharaoh, gold or tsv",
    "--format html -o x --base 0": "--base: html always counts from 0; leave it out, or use pharaoh, gold or tsv",
    "--format npz": "--format npz needs --output, a file",
    "--format html": "--format html needs --output, a file",
    "--format svg": "--format svg needs --output, a folder for the pictures",
    "--view links": "--view chooses what --format html shows; add that, or leave out --view",
}
test_mistakes_of_align = mistakes("align x -s s -t t", MESSAGES)
test_mistakes_of_links = mistakes("links x -s s -t t", MESSAGES)
test_no_source = mistakes(
    "", dict.fromkeys(["align x -t t", "links x -t t"], "--source is missing; name the file with the source sentences")
)


def test_reports_alone_leave_links_unwritten() -> None:
    assert AlignmentOptions().outputs.writer is not None
    assert (AlignmentOptions(format_="svg").outputs.pictures, AlignmentOptions().outputs.pictures) == (True, False)
    lists = [listed(["a", "b", "c"]), listed(["a", "b"], "or"), listed(["a"]), listed([])]
    assert lists == ["a, b and c", "a or b", "a", ""]
