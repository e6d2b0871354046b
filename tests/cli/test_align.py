"""Options of `nmt align` that do not go together, and faults that are found before a model is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workflows.runs import Command

COMPARE = "--compare prints a report on all methods, between words; leave out "
OF_ALIGNMENTS = (
    "--method gradient", "--format pharaoh", "--level word", "--output x", "--base 1", "--lexicon x",
    "--choose-heads entropy", "--view attention",
)  # fmt: skip
JOINED = "--symmetrize and --threshold join two models; give --reverse as well"
VIEWS = "choose one of attention, shifted-attention, gradient, input-x-gradient, trained, or each:HEADS"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        # two models
        ("-t t --symmetrize union", JOINED),
        ("-t t --threshold 0.5", JOINED),
        ("--reverse x", "--reverse aligns given pairs; give --target as well"),
        ("--reverse x --free-running",
         "--reverse aligns given pairs, and --free-running the model's own translations; leave one out"),
        ("-t t --reverse x --compare",
         "--compare is of the methods of one model; leave out --reverse, or --compare"),
        ("-t t --reverse x --level subword",
         "--level subword: two models are joined between words, as their subwords differ; leave it out"),
        ("-t t --reverse-to de", "--reverse-to is the target language of --reverse; give --reverse as well"),
        # methods and heads
        ("-t t --json", "--json is for the report of --compare; add --compare, or use --format jsonl"),
        *((f"-t t --compare {option}", f"{COMPARE}{option.split()[0]}") for option in OF_ALIGNMENTS),
        ("-t t --raw", "--raw: is of gradients; add --method gradient"),
        ("-t t --signed --method gradient",
         "--signed: only products have a sign; add --method input-x-gradient"),
        ("-t t --raw --method gradient --format heatmap",
         "--raw is of the soft matrix, for --format tsv, jsonl, npz, png, svg or html; add one of these"),
        ("-t t --raw --method gradient --format npz -o x --reverse y",
         "--raw: derivatives of two models' scores cannot be joined; leave out --reverse"),
        ("-t t --choose-heads gold", "--choose-heads gold goes by gold links; give --gold as well"),
        ("-t t --choose-heads entropy --heads *",
         "--heads names the heads, and --choose-heads looks for them; leave one out"),
        ("-t t --choose-heads entropy --method gradient",
         "--choose-heads is of attention, which --method gradient does not look at; leave it out"),
        ("-t t --choose-heads entropy --learn",
         "--learn aligns both directions together, without a model; leave out MODEL, --choose-heads"),
        # views
        ("-t t --format html -o x --view gradient --method attention",
         "--view names methods and heads itself; leave out --method, or --view"),
        ("-t t --format html -o x --view gradient --heads *",
         "--view names methods and heads itself; leave out --heads, or --view"),
        ("-t t --format html -o x --view atention", f"--view atention: 'atention' is not a method; {VIEWS}"),
        ("-t t --format html -o x --view forward:attention",
         "--view forward:attention: is of one of two models; give --reverse as well"),
        # the model, found before it is loaded
        ("-t t", "run: no such run directory, checkpoint or config"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line_before_a_model_is_loaded(
    arguments: str, message: str, run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("align", "run", "-s", "s", *arguments.split()).error == message
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--reverse x", "x: no such run directory, checkpoint or config"),
        ("--reverse x --threshold 0.5",
         "threshold: is for soft-mean and soft-product, not for grow-diag-final-and; leave it out"),
        ("--reverse x --symmetrize soft-mean --threshold 0", "threshold 0: give one above 0 and at most 1"),
    ],
)  # fmt: skip
def test_mistakes_beside_a_model(
    trained: Path, arguments: str, message: str, run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("s", "t"):
        Path(name).write_text("eins\n")
    assert run("align", trained / "run", "-s", "s", "-t", "t", *arguments.split()).error == message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "t"]
