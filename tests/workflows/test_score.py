"""``nmt score``: against teacher forcing a pair at a time, and against what search says of its own translations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import nmt as package
from nmt.data.vocabulary import EOS
from tests.workflows.runs import EXACT, call, records, write_pairs

pytestmark = pytest.mark.usefixtures("copied")
SOURCES = ["der hund", "", "eine katze und ein hund", "xyz"]
TARGETS = ["the dog", "a", "a cat and a dog and a cat", ""]


def scored(*arguments: str, sources: list[str] = SOURCES, targets: list[str] = TARGETS) -> list[str]:
    write_pairs(sources, targets)
    return call(Path(), "score", "run", "-s", "s", "-t", "t", *EXACT, *arguments).output.split("\n")[:-1]


@torch.no_grad()
def test_each_token_is_scored_as_by_itself() -> None:
    objects: list[dict[str, Any]] = list(map(json.loads, scored("--format", "jsonl")))
    assert [each["line"] for each in objects] == [1, 2, 3, 4]
    translator = package.load("run", device="cpu", precision="float32")
    model, tokenizers = translator.trained.model, translator.trained.tokenizers
    for source, target, each in zip(SOURCES, TARGETS, objects, strict=True):
        memory = model.encode(torch.tensor([[*tokenizers.source.encode(source), EOS]]))
        state, token = model.start(memory), model.first_token(1, torch.device("cpu"))
        expected = []
        for gold in [*tokenizers.target.encode(target), EOS]:
            step = model.step(token, memory, state)
            expected.append(step.logits_NV.log_softmax(dim=1)[0, gold].item())
            token, state = torch.tensor([gold]), step.state
        assert each["token_log_probs"] == pytest.approx(expected, abs=1e-4)
        assert each["log_prob"] == pytest.approx(sum(expected), abs=1e-4)
        assert each["score"] == pytest.approx(sum(expected) / ((5 + len(expected)) / 6), abs=1e-4)
        assert len(each["tokens"]) == len(expected)


def test_search_says_the_same_of_its_own_translations() -> None:
    tokenizer = package.load("run", precision="float32").trained.tokenizers.target
    compared = 0
    for each in records(Path(), text="".join(f"{line}\n" for line in SOURCES).encode()):
        (best,) = each["translations"]
        if best["tokens"] and tokenizer.pieces(tokenizer.encode(best["text"])) == best["tokens"]:
            (line,) = scored(sources=[each["source"]], targets=[best["text"]])
            assert float(line) == pytest.approx(best["score"], abs=1e-4)
            compared += 1
    assert compared > 0


def test_pairs_that_are_too_long_are_blank_rows() -> None:
    limit = ("--set", "search.max_source_tokens=12")
    sources, targets = [*SOURCES, "hund " * 13, "hund"], [*TARGETS, "dog", "dog"]
    whole = {form: scored("--format", form) for form in ("text", "tsv", "jsonl")}
    nothing = {"line": 5, "score": None, "log_prob": None, "tokens": [], "token_log_probs": []}
    for form, blank in (("text", ""), ("tsv", "\t\t"), ("jsonl", json.dumps(nothing))):
        lines = scored("--format", form, *limit, sources=sources, targets=targets)
        assert (len(lines), lines[:2], lines[4]) == (6, whole[form][:2], blank)
