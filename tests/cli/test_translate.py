"""Options of `nmt translate`, as they reach the workflow, and those that do not go together."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from nmt.cli.translate import TranslateOptions
from nmt.translator import find_run
from nmt.translator.windows import OutputOptions
from nmt.workflows import translate
from tests.workflows.runs import Command

OPTIONS = """runs/x --input i --output o --length-penalty 0.6 --max-length-ratio 2 --batch-tokens 99
--device cuda:1 --precision bfloat16 --set a.b=1 --set c=[2] --n-best 3 --sample --temperature 0.5 --top-k 4 --top-p 0.9
--seed 5 --consensus --samples 6 --prefix p --format jsonl --alignment --constraints c --replace-unknown --markup
--document --context --workers 2"""
CHANGES = """a.b=1 c=[2] search.length_penalty=0.6 search.max_length_ratio=2 search.batch_tokens=99
search.n_best=3 search.sampling={} search.sampling.temperature=0.5 search.sampling.top_k=4 search.sampling.top_p=0.9
search.sampling.seed=5 search.consensus={} search.consensus.samples=6 search.replace_unknown=true
search.markup=true search.document=true"""


def test_options_reach_the_workflow(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    workflow = Mock()
    monkeypatch.setattr(translate, "translate", workflow)
    monkeypatch.setattr(find_run, "validate_model", Mock())
    assert run("translate", *OPTIONS.split()) == (0, "", "")
    (model, load), named = workflow.call_args
    expected: dict[str, Any] = {
        "constraints": Path("c"), "context": True, "input": Path("i"), "output": Path("o"),
        "options": OutputOptions("jsonl", alignment=True), "prefix": Path("p"), "workers": 2,
    }  # fmt: skip
    loading = {"device": "cuda:1", "engine": "nmt", "ensemble": [], "model": "runs/x", "precision": "bfloat16"}
    assert (model, named) == ("runs/x", expected)
    given = {name: value for name, value in load.keywords.items() if value is not None}
    assert given == loading | {"overrides": CHANGES.split()}
    assert TranslateOptions().changes == []


FAULTS = [
    ("--n-best 2", "--format text: has one line for each text; use tsv or jsonl for --n-best 2 and more"),
    ("--n-best 9 --format tsv", "--n-best 9: 9 translations need as many beams, not 5; add --beam 9"),
    ("--alignment", "--alignment: needs --format jsonl; nmt align writes alignments in other formats"),
    ("--samples 3", "--samples: is for --consensus; to be given several draws, use --sample --n-best"),
    ("--set search.groups=2", "groups: 5 beams cannot be shared out equally among 2 groups"),
    ("--set search.min_length=9 --set search.max_length=3", "min_length: 9 is more than max_length, 3"),
    ("--beam 3 --temperature 2", "--beam: draws have no beams; leave it out, or --temperature"),
    ("--temperature 0", "--temperature 0: expected more than 0, found 0"),
    ("--ensemble nowhere", "nowhere: no such run directory, checkpoint or config"),
    ("--engine ctranslate2 --workers 2", "--workers: --engine ctranslate2 shares out its work by itself; leave"),
]


@pytest.mark.parametrize(("arguments", "message"), FAULTS)
def test_mistakes(arguments: str, message: str, trained: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    assert message in run("translate", "run", "--input", "test.de", *arguments.split()).error
