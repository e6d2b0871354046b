"""``import nmt`` in a program: plain strings, options of the search, errors in the words of Python, training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import nmt

TEXTS = ["Hund und Katze.", "eins zwei", "grün"]


@pytest.fixture(scope="module")
def translator(trained: Path) -> nmt.Translator:
    return nmt.load(trained / "run", device="cpu", precision="float32")


def test_a_string_is_one_text(translator: nmt.Translator) -> None:
    one, other = translator.translate(TEXTS[0]), translator.translate(TEXTS)[0]
    assert one == other
    alignment = translator.align(TEXTS[0], one.text)
    assert alignment.source_words == ("Hund", "und", "Katze.")
    assert alignment.links == translator.align([TEXTS[0]], [one.text])[0].links
    assert translator.score(TEXTS[0], one.text) == translator.score([TEXTS[0]], [one.text])[0]
    assert [each.text for each in translator.translate(iter(TEXTS))] == [translator.translate(t).text for t in TEXTS]


def test_options_of_the_search_are_those_of_the_configuration(trained: Path, translator: nmt.Translator) -> None:
    greedy = nmt.load(trained / "run", device="cpu", precision="float32", overrides=["search.beam=1"])
    assert translator.translate(TEXTS, beam=1) == greedy.translate(TEXTS)
    overrides = ["search.beam=4", "search.n_best=3", "search.length_penalty=0", "search.max_length_ratio=1"]
    several = nmt.load(trained / "run", device="cpu", precision="float32", overrides=overrides)
    found = translator.translate(TEXTS, beam=4, n_best=3, length_penalty=0, max_length_ratio=1)
    assert [
        [one.text, *(other.text for other in one.alternatives)] for one in found
    ] == [[one.text for one in ranked] for ranked in several.candidates(TEXTS)]  # fmt: skip
    assert translator.translate(TEXTS[0]).alternatives == ()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda it: it.translate([None]), "texts[0]: expected text, found None"),
        (lambda it: it.translate(["a", b"b"]), "texts[1]: expected text, found b'b'"),
        (lambda it: it.align("a", ["b"]), "sources and targets: one is a text and the other a list; give two texts"),
        (lambda it: it.score(["a"], [3]), "targets[0]: expected text, found 3"),
        (lambda it: it.translate("a", beam=5000), "beam=5000: expected at most 1000, found 5000"),
        (lambda it: it.translate("a", beam="wide"), "beam='wide': expected a whole number, found text 'wide'"),
        (lambda it: it.translate("a", n_best=30), "n_best=30: 30 translations need as many beams, not 5; add beam=30"),
        (lambda it: nmt.load(it.trained.checkpoint, device="gpu"), "device='gpu': is none of auto, cpu, cuda, cuda:N"),
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


def test_what_is_scored_is_the_line_as_it_is_written(translator: nmt.Translator) -> None:
    tokenizer = translator.trained.tokenizers.target
    assert tokenizer.encode_tokens("the dog .").ids != tuple(
        tokenizer.encode("the dog .")
    )  # read to align, not to score
    scored = translator.score("der Hund .", "the dog .")
    assert list(scored.tokens[:-1]) == tokenizer.pieces(tokenizer.encode("the dog ."))


def test_results_have_a_repr_of_one_line(translator: nmt.Translator) -> None:
    translation = translator.translate(TEXTS[0], n_best=3)
    alignment, score = translator.align("eins zwei", "one two"), translator.score("eins zwei", "one two")
    assert repr(translation) == f"Translation({translation.text!r}, score={translation.score:.3f}, 2 alternatives)"
    words = [f"{('eins', 'zwei')[source]}–{('one', 'two')[target]}" for source, target in sorted(alignment.links)]
    assert repr(alignment) == f"Alignment({', '.join(words)})"
    assert repr(score).startswith(f"PairScore({score.score:.3f}, ")
    assert repr(translator).startswith("Translator(")
    assert not any("\n" in repr(each) for each in (translation, alignment, score, translator))


def test_a_dictionary_trains_as_its_file_does(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    config = yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))
    arguments = {"device": "cpu", "precision": "float32"}
    one = nmt.train({**config, "run": tmp_path / "one"}, overrides=["training.stopping.updates=1"], **arguments)
    other = nmt.train("config.yaml", overrides=[f"run={tmp_path}/other", "training.stopping.updates=1"], **arguments)
    assert one == tmp_path / "one"
    weights = [run / "latest" / "model.safetensors" for run in (one, other)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
