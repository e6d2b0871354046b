"""Arguments of functions and methods of ``import nmt``: what they may be, and errors in the words of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import nmt
from nmt.translator.arguments import check_pairs
from tests.test_api import PAIRS

PAIR, ROWS = "expected a source and a target, found", "expected pairs of a source and a target, found"
TEXT = "expected a text or several of them, found"
DEVICES = "is none of auto, cpu, cuda, cuda:N"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda it: it.translate([None]), "texts[0]: expected text, found None"),
        (lambda it: it.translate(["a", b"b"]), "texts[1]: expected text, found b'b'"),
        (lambda it: it.translate(3), f"texts: {TEXT} 3"),
        (lambda it: it.translate(b"a"), f"texts: {TEXT} b'a'"),
        (lambda it: it.translate({"de": "a"}), f"texts: {TEXT} {{'de': 'a'}}"),
        (lambda it: it.translate("a", num_beams=4), "num_beams: no such argument; use beam in translate"),
        (lambda it: nmt.load(num_beams=4), "num_beams: no such argument; use beam in translate, or overrides=["),
        (lambda it: it.translate("a", max_length=9), "max_length: no such argument; use max_length_ratio"),
        (lambda it: it.translate("a", num_return_sequences=2), "num_return_sequences: no such argument; use n_best in"),
        (lambda it: nmt.load("a", to="en"), "to: no such argument; use target_language"),
        (lambda it: it.to("gpu"), f"device='gpu': {DEVICES}"),
        (lambda it: it.to(torch.device("mps")), f"device='mps': {DEVICES}"),
        (lambda it: it.align(["a"], ["b", "c"]), "1 sources but 2 targets: give one target for each source"),
        (lambda it: nmt.align(["a", "b"]), f"pairs[0]: {PAIR} 'a'"),
        (lambda it: nmt.align([("a", "b"), ("a", None)]), f"pairs[1]: {PAIR} ('a', None)"),
        (lambda it: nmt.align({"train": []}), f"pairs: {ROWS} {{'train': []}}"),
        (lambda it: nmt.evaluate(it, []), "pairs: there are none to evaluate"),
        (lambda it: nmt.evaluate(it, [{"a": "x", "b": "y", "c": "z"}]), f"pairs[0]: {PAIR}"),
        (lambda it: it.align("a b", "c").plot("dog.gif"), "dog.gif: end its name in .png or .svg"),
        (lambda it: it.align("a", ["b"]), "sources and targets: one is a text and the other a list; give two texts"),
        (lambda it: it.score(["a"], [3]), "targets[0]: expected text, found 3"),
        (lambda it: it.translate("a", beam=5000), "beam=5000: expected at most 1000, found 5000"),
        (lambda it: it.translate("a", beam="wide"), "beam='wide': expected a whole number, found text 'wide'"),
        (lambda it: it.translate("a", n_best=30), "n_best=30: 30 translations need as many beams, not 5; add beam=30"),
        (lambda it: nmt.load(it.trained.checkpoint, device="gpu"), f"device='gpu': {DEVICES}"),
        (lambda it: nmt.load(it.trained.checkpoint, device="cpu", precision="float16"), "precision='float16': is for"),
        (lambda it: nmt.load(it.trained.checkpoint, overrides=["seed=x"]), "overrides='seed=x': seed: expected"),
        (lambda it: nmt.load("no/such"), "no/such: no such run directory, checkpoint or config"),
        (lambda it: nmt.train("no/such.yaml"), "no/such.yaml: no such file"),
        (lambda it: nmt.train({"rnu": "x", "data": {"train": {"pairs": "y"}}}), "config: rnu: unknown key; did you"),
        (lambda it: nmt.train({"run": "x"}), "config: data: missing; add this key"),
    ],
)
def test_errors_name_arguments_as_python_does(
    translator: nmt.Translator, wrong: Callable[[Any], object], message: str
) -> None:
    with pytest.raises(nmt.InputError) as caught:
        wrong(translator)
    assert str(caught.value).startswith(message)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    "rows",
    [
        PAIRS,
        [list(pair) for pair in PAIRS],
        iter(PAIRS),
        [{"id": 7, "de": source, "en": target} for source, target in PAIRS],
        [{"target": target, "source": source, "note": "x"} for source, target in PAIRS],
        [{"id": "7", "translation": {"de": source, "en": target}} for source, target in PAIRS],
    ],
    ids=["tuples", "lists", "iterator", "fields", "named", "data set"],
)
def test_pairs_may_be_any_rows(rows: Any) -> None:
    assert check_pairs(rows) == tuple(list(side) for side in zip(*PAIRS, strict=True))
