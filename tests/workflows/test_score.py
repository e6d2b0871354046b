"""``nmt score``: against teacher forcing a pair at a time, and against what search says of its own translations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import nmt as package
from nmt.data.vocabulary import EOS
from tests.workflows.runs import nmt
from tests.workflows.test_commands import error

SOURCES = ["der hund", "", "eine katze und ein hund", "xyz"]
TARGETS = ["the dog", "a", "a cat and a dog and a cat", ""]


def scored(folder: Path, *arguments: str, sources: list[str] = SOURCES, targets: list[str] = TARGETS) -> str:
    (folder / "score.source").write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
    (folder / "score.target").write_text("".join(f"{line}\n" for line in targets), encoding="utf-8")
    files = ["--source", "score.source", "--target", "score.target"]
    done = nmt("score", "run", *files, "--precision", "float32", *arguments, folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@torch.no_grad()
def test_each_token_is_scored_as_by_itself(trained: Path) -> None:
    objects: list[dict[str, Any]] = [json.loads(line) for line in scored(trained, "--format", "jsonl").splitlines()]
    assert [each["line"] for each in objects] == [1, 2, 3, 4]
    translator = package.load(trained / "run", device="cpu", precision="float32")
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


def test_formats_tell_the_same(trained: Path) -> None:
    objects = [json.loads(line) for line in scored(trained, "--format", "jsonl").splitlines()]
    assert scored(trained).splitlines() == [f"{each['score']:.6f}" for each in objects]
    assert scored(trained, "--format", "tsv").splitlines() == [
        f"{each['score']:.6f}\t{each['log_prob']:.6f}\t{len(each['tokens'])}" for each in objects
    ]
    assert scored(trained, "--length-penalty", "0").splitlines() == [f"{each['log_prob']:.6f}" for each in objects]
    scored(trained, "--output", "scores.txt")
    assert (trained / "scores.txt").read_text().splitlines() == [f"{each['score']:.6f}" for each in objects]


def test_search_says_the_same_of_its_own_translations(trained: Path) -> None:
    done = nmt(
        "translate", "run", "--precision", "float32", "--format", "jsonl", folder=trained,
        stdin="".join(f"{line}\n" for line in SOURCES).encode(),
    )  # fmt: skip
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    tokenizer = package.load(trained / "run", precision="float32").trained.tokenizers.target
    compared = 0
    for each in objects:
        (best,) = each["translations"]
        if best["tokens"] and tokenizer.pieces(tokenizer.encode(best["text"])) == best["tokens"]:
            (line,) = scored(trained, sources=[each["source"]], targets=[best["text"]]).splitlines()
            assert float(line) == pytest.approx(best["score"], abs=1e-4)
            compared += 1
    assert compared > 0


def test_pairs_that_are_too_long_are_blank_rows(trained: Path) -> None:
    limit = ("--set", "search.max_source_tokens=12")
    sources, targets = [*SOURCES, "hund " * 13, "hund"], [*TARGETS, "dog", "dog"]
    whole = {form: scored(trained, "--format", form).splitlines() for form in ("text", "tsv", "jsonl")}
    for form, blank in (("text", ""), ("tsv", "\t\t"), ("jsonl", None)):
        lines = scored(trained, "--format", form, *limit, sources=sources, targets=targets).splitlines()
        assert len(lines) == 6
        assert lines[:2] == whole[form][:2]
        if blank is None:
            nothing = {"line": 5, "score": None, "log_prob": None, "tokens": [], "token_log_probs": []}
            assert json.loads(lines[4]) == nothing
        else:
            assert lines[4] == blank


def test_mistakes_are_lines(trained: Path) -> None:
    (trained / "one").write_text("a\n")
    (trained / "two").write_text("a\nb\n")
    (trained / "empty").write_text("")
    for source, target, message in (
        ("one", "two", "one has 1 lines, but two has more: they must go together line by line"),
        ("empty", "empty", "empty: holds no line to score"),
        ("none", "one", "none: no such file"),
    ):
        assert error(nmt("score", "run", "--source", source, "--target", target, folder=trained)) == message


@pytest.mark.parametrize("command", [["score"], ["align"], ["evaluate", "--by-length"], ["align", "--learn"]])
def test_a_file_of_pairs_gives_what_two_files_give(trained: Path, command: list[str]) -> None:
    (trained / "two.de").write_text("".join(f"{line}\n" for line in SOURCES), encoding="utf-8")
    (trained / "two.en").write_text("".join(f"{line}\n" for line in TARGETS), encoding="utf-8")
    (trained / "one.tsv").write_text("".join(map("{}\t{}\n".format, SOURCES, TARGETS)), encoding="utf-8")
    model = [] if "--learn" in command else ["run"]
    outputs = [
        nmt(*command, *model, *files, "--quiet", folder=trained).stdout
        for files in (["two.de", "two.en"], ["one.tsv"], ["--tsv", "one.tsv"])
    ]
    assert outputs[0].count(b"\n") >= len(SOURCES)
    assert outputs == [outputs[0]] * 3
