"""``nmt translate --wait`` and ``nmt evaluate --wait``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nmt as package
from nmt.evaluation.latency import average_lagging
from nmt.extras.decoding.wait_k import waiting, word_starts
from tests.workflows.runs import TEXT, error, nmt, records, refused, translated


def test_translate_waits(trained: Path) -> None:
    whole = ("--format", "jsonl", "--wait", "50", "--set", "search.split_longer_than=3")
    free = ("--beam", "1", "--set", "search.repetition_margin=null")
    assert translated(trained, *whole) == translated(
        trained, "--format", "jsonl", *free, "--set", "search.split_longer_than=null"
    )
    assert [bool(each["translations"][0]["text"]) for each in records(trained, "--wait", "1")] == [
        bool(line.strip()) for line in TEXT.decode().splitlines()
    ]
    assert refused(trained, "--wait", "2", "--beam", "3", "--prefix", "x") == (
        "--wait: is greedy search for one sentence in each line; leave out --beam, --prefix"
    )
    assert refused(trained, "--wait", "2", "--set", "search.markup=true") == (
        "search.markup: cannot be had together with --wait; leave it at its default"
    )


def test_evaluate_scores_each_wait(trained: Path) -> None:
    files = ("--source", "test.de", "--reference", "test.en", "--precision", "float32", "--beam", "1")
    files += ("--set", "search.repetition_margin=null")
    done = nmt("evaluate", "run", *files, "--wait", "1,3,50", "--json", folder=trained)
    assert done.returncode == 0, done.stderr.decode()
    tree = json.loads(done.stdout)
    assert [each["wait"] for each in tree["wait"]] == [1, 3, 50]
    assert tree["wait"][2]["bleu"] == tree["BLEU"]["value"]
    sources = (trained / "test.de").read_text(encoding="utf-8").splitlines()
    assert tree["wait"][2]["average_lagging"] == sum(len(line.split()) for line in sources) / len(sources)
    translator = package.load(trained / "run", precision="float32")
    for each in tree["wait"]:
        k, begins = each["wait"], word_starts(translator.trained.tokenizers.target)
        laggings = []
        for line, translation in zip(sources, waiting(translator, k).translate(sources), strict=True):
            x, y = len(line.split()), 1 + sum(begins[piece] for piece in translation.tokens[1:])
            laggings.append(average_lagging([min(k + t - 1, x) for t in range(1, y + 1)], x))
        assert each["average_lagging"] == pytest.approx(sum(laggings) / len(laggings))
    done = nmt("evaluate", "run", *files, "--wait", "1,50", folder=trained)
    assert done.stdout.decode().splitlines()[-3:] == [
        "wait  average lagging, words  BLEU",
        f"   1  {tree['wait'][0]['average_lagging']:22.2f}  {tree['wait'][0]['bleu']:4.1f}",
        f"  50  {tree['wait'][2]['average_lagging']:22.2f}  {tree['wait'][2]['bleu']:4.1f}",
    ]
    assert error(nmt("evaluate", "run", *files, "--wait", "3,1", folder=trained)) == (
        "--wait 3,1: give rising whole numbers of at least 1, such as 5,10,20"
    )
