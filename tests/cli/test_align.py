"""Options of `nmt align` that do not go together, and faults that are found before a model is loaded."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import mistakes
from tests.workflows.runs import Command

MISTAKES = {
    "--symmetrize union": "--symmetrize and --threshold join two models; give --reverse as well",
    "--threshold 0.5": "--symmetrize and --threshold join two models; give --reverse as well",
    "--reverse x --compare": "--compare is of the methods of one model; leave out --reverse, or --compare",
    "--reverse x --level subword":
        "--level subword: two models are joined between words, as their subwords differ; leave it out",
    "--reverse-to de": "--reverse-to is the target language of --reverse; give --reverse as well",
    "--json": "--json is for the report of --compare; add --compare, or use --format jsonl",
    "--compare --method gradient": "--compare prints a report on all methods, between words; leave out --method",
    "--compare --format pharaoh": "--compare prints a report on all methods, between words; leave out --format",
    "--compare --level word": "--compare prints a report on all methods, between words; leave out --level",
    "--compare --output x": "--compare prints a report on all methods, between words; leave out --output",
    "--compare --base 1": "--compare prints a report on all methods, between words; leave out --base",
    "--compare --lexicon x": "--compare prints a report on all methods, between words; leave out --lexicon",
    "--compare --choose-heads entropy":
        "--compare prints a report on all methods, between words; leave out --choose-heads",
    "--compare --view attention": "--compare prints a report on all methods, between words; leave out --view",
    "--raw": "--raw: is of gradients; add --method gradient",
    "--signed --method gradient": "--signed: only products have a sign; add --method input-x-gradient",
    "--raw --method gradient --format heatmap":
        "--raw is of the soft matrix, for --format tsv, jsonl, npz, png, svg or html; add one of these",
    "--raw --method gradient --format npz -o x --reverse y":
        "--raw: derivatives of two models' scores cannot be joined; leave out --reverse",
    "--choose-heads gold": "--choose-heads gold goes by gold links; give --gold as well",
    "--choose-heads entropy --heads *": "--heads names the heads, and --choose-heads looks for them; leave one out",
    "--choose-heads entropy --method gradient":
        "--choose-heads is of attention, which --method gradient does not look at; leave it out",
    "--choose-heads entropy --learn":
        "--learn aligns both directions together, without a model; leave out MODEL, --choose-heads",
    "--format html -o x --view gradient --method attention":
        "--view names methods and heads itself; leave out --method, or --view",
    "--format html -o x --view gradient --heads *":
        "--view names methods and heads itself; leave out --heads, or --view",
    "--format html -o x --view forward:attention":
        "--view forward:attention: is of one of two models; give --reverse as well",
    "": "run: no such run directory, checkpoint or config",
}  # fmt: skip
test_mistakes = mistakes("align run -s s -t t", MISTAKES)

MISTAKES_WITHOUT_A_TARGET = {
    "--reverse x": "--reverse aligns given pairs; give --target as well",
    "--reverse x --free-running":
        "--reverse aligns given pairs, and --free-running the model's own translations; leave one out",
}  # fmt: skip
test_mistakes_without_a_target = mistakes("align run -s s", MISTAKES_WITHOUT_A_TARGET)


def test_mistakes_beside_a_model(trained: Path, run: Command) -> None:
    for arguments, message in (
        ("", "x: no such run directory, checkpoint or config"),
        ("--threshold 0.5", "threshold: is for soft-mean and soft-product, not for grow-diag-final-and; leave it out"),
        ("--symmetrize soft-mean --threshold 0", "threshold 0: give one above 0 and at most 1"),
    ):
        command = ["align", trained / "run", trained / "test.de", trained / "test.en", "--reverse", "x"]
        assert run(*command, *arguments.split()).error == message
