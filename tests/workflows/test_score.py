"""``nmt score``: a line for each pair, with the figures of `Translator.score`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nmt.translator.translator import Translator
from tests.translator.test_scorer import SOURCES, TARGETS
from tests.workflows.runs import EXACT, call, write_pairs

pytestmark = pytest.mark.usefixtures("copied")


def scored(*arguments: str, sources: list[str] = SOURCES, targets: list[str] = TARGETS) -> list[str]:
    write_pairs(sources, targets)
    return call(Path(), "score", "run", "-s", "s", "-t", "t", *EXACT, *arguments).output.split("\n")[:-1]


def test_objects_have_the_figures_of_python(translator: Translator) -> None:
    scores = translator.score(SOURCES, TARGETS)
    for number, (line, score) in enumerate(zip(scored("--format", "jsonl"), scores, strict=True), 1):
        log_probs = [round(each, 6) for each in score.token_log_probs]
        figures = {"score": round(score.score, 6), "log_prob": round(score.log_prob, 6)}
        assert json.loads(line) == {
            "line": number, **figures, "tokens": list(score.tokens), "token_log_probs": log_probs
        }  # fmt: skip


def test_pairs_that_are_too_long_are_blank_rows() -> None:
    limit = ("--set", "search.max_source_tokens=12")
    sources, targets = [*SOURCES, "hund " * 13, "hund"], [*TARGETS, "dog", "dog"]
    whole = {form: scored("--format", form) for form in ("text", "tsv", "jsonl")}
    nothing = {"line": 5, "score": None, "log_prob": None, "tokens": [], "token_log_probs": []}
    for form, blank in (("text", ""), ("tsv", "\t\t"), ("jsonl", json.dumps(nothing))):
        lines = scored("--format", form, *limit, sources=sources, targets=targets)
        assert (len(lines), lines[:2], lines[4]) == (6, whole[form][:2], blank)
