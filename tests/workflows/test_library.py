"""``import nmt`` in a program: plain strings, options of the search, errors in the words of Python, training."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import nmt
from nmt.alignment.formats import pharaoh_line
from nmt.training import metrics
from nmt.training.trainer import Trainer
from tests.workflows import runs

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


def test_an_ensemble_of_a_model_with_itself_translates_as_it_does(trained: Path, translator: nmt.Translator) -> None:
    twice = nmt.load(trained / "run", ensemble=[trained / "run"], device="cpu", precision="float32")
    assert [each.text for each in twice.translate(TEXTS)] == [each.text for each in translator.translate(TEXTS)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda it: it.translate([None]), "texts[0]: expected text, found None"),
        (lambda it: it.translate(["a", b"b"]), "texts[1]: expected text, found b'b'"),
        (lambda it: it.translate(3), "texts: expected a text or several of them, found 3"),
        (lambda it: it.translate(b"a"), "texts: expected a text or several of them, found b'a'"),
        (lambda it: it.translate({"de": "a"}), "texts: expected a text or several of them, found {'de': 'a'}"),
        (lambda it: it.translate("a", num_beams=4), "num_beams: no such argument; use beam in translate"),
        (lambda it: nmt.load(num_beams=4), "num_beams: no such argument; use beam in translate, or overrides=["),
        (lambda it: it.translate("a", max_length=9), "max_length: no such argument; use max_length_ratio"),
        (
            lambda it: it.translate("a", num_return_sequences=2),
            "num_return_sequences: no such argument; use n_best in translate",
        ),
        (lambda it: nmt.load("a", to="en"), "to: no such argument; use target_language"),
        (lambda it: it.to("gpu"), "device='gpu': is none of auto, cpu, cuda, cuda:N"),
        (lambda it: it.to(torch.device("mps")), "device='mps': is none of auto, cpu, cuda, cuda:N"),
        (lambda it: it.align(["a"], ["b", "c"]), "1 sources but 2 targets: give one target for each source"),
        (lambda it: nmt.align(["a", "b"]), "pairs[0]: expected a source and a target, found 'a'"),
        (
            lambda it: nmt.align([("a", "b"), ("a", None)]),
            "pairs[1]: expected a source and a target, found ('a', None)",
        ),
        (lambda it: nmt.align({"train": []}), "pairs: expected pairs of a source and a target, found {'train': []}"),
        (lambda it: nmt.evaluate(it, []), "pairs: there are none to evaluate"),
        (lambda it: nmt.evaluate(it, [{"a": "x", "b": "y", "c": "z"}]), "pairs[0]: expected a source and a target"),
        (lambda it: it.align("a b", "c").plot("dog.gif"), "dog.gif: end its name in .png or .svg"),
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


def test_the_module_and_the_device(translator: nmt.Translator) -> None:
    assert isinstance(translator.model, torch.nn.Module)
    assert not translator.model.training
    moved = translator.to(torch.device("cpu"))
    assert moved.model is not translator.model
    assert moved.trained.compute == translator.trained.compute
    assert moved.translate(TEXTS) == translator.translate(TEXTS)
    assert nmt.load(translator.trained.checkpoint, device=torch.device("cpu")).model is not None


def test_only_what_is_meant_for_users_is_listed() -> None:
    assert dir(nmt) == sorted(nmt.__all__)
    assert all(getattr(nmt, name) is not None for name in dir(nmt))


def test_an_alignment_is_drawn(translator: nmt.Translator, tmp_path: Path) -> None:
    alignment = translator.align("eins zwei", "one two")
    figure = alignment.plot(str(tmp_path / "one.svg"))
    assert all(f">{word}<" in (tmp_path / "one.svg").read_text() for word in ("eins", "zwei", "one", "two"))
    assert figure._repr_png_()[:4] == b"\x89PNG"
    alignment.plot(tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes()[:4] == b"\x89PNG"


PAIRS = [("eins zwei drei", "one two three"), ("zwei eins", "two one"), ("drei eins", "three one")] * 4
ROWS: dict[str, Callable[[], Any]] = {
    "tuples": lambda: PAIRS,
    "lists": lambda: [list(pair) for pair in PAIRS],
    "generator": lambda: (pair for pair in PAIRS),
    "fields": lambda: [{"id": 7, "de": source, "en": target} for source, target in PAIRS],
    "named": lambda: [{"target": target, "source": source, "note": "x"} for source, target in PAIRS],
    "data set": lambda: [{"id": "7", "translation": {"de": source, "en": target}} for source, target in PAIRS],
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
def test_pairs_may_be_any_rows(rows: Callable[[], Any]) -> None:
    expected = nmt.align([source for source, _ in PAIRS], [target for _, target in PAIRS])
    assert [each.links for each in nmt.align(rows())] == [each.links for each in expected]


def test_pairs_are_aligned_without_a_model_as_the_command_does(tmp_path: Path) -> None:
    pairs = runs.sentences(40, seed=3)
    for name, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    done = runs.nmt("align", "--learn", "--source", "source", "--target", "target", folder=tmp_path)
    assert [pharaoh_line(each.links) for each in nmt.align(pairs)] == done.stdout.decode().splitlines()


def test_a_model_is_evaluated_on_pairs_by_the_names_of_its_languages(translator: nmt.Translator) -> None:
    found = nmt.evaluate(translator, PAIRS)
    # its corpora are files that end in .de and .en, by which the fields are found whatever their order
    turned = nmt.evaluate(translator, ({"translation": {"en": target, "de": source}} for source, target in PAIRS))
    assert found == turned
    assert found.bleu == found.tree()["BLEU"]["value"]
    assert found.predictions["teacher_forcing"].perplexity > 1


class Calls:
    """Notes what training calls, and ends it at an update."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.seen: list[tuple[str, int, Any]] = []

    def on_update(self, trainer: Trainer, figures: Any) -> None:
        self.seen.append(("update", trainer.position.update, figures["loss"]))
        trainer.should_stop = trainer.position.update == self.last

    def on_validation(self, trainer: Trainer, figures: Any) -> None:
        self.seen.append(("validation", trainer.position.update, figures["loss"]))

    def on_checkpoint(self, trainer: Trainer, folder: Path) -> None:
        self.seen.append(("checkpoint", trainer.position.update, nmt.load(folder, device="cpu").trained.checkpoint))


def test_training_calls_back_and_stops(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    run = tmp_path / "run"
    overrides = [f"run={run}", "training.stopping.updates=6", "training.log_every=1", "training.validation.every=4"]
    arguments = {"overrides": overrides, "device": torch.device("cpu"), "precision": "float32"}
    calls = Calls(last=2)
    assert nmt.train("config.yaml", callbacks=[calls], **arguments) == run
    assert [(name, update) for name, update, _ in calls.seen] == [
        ("update", 1), ("update", 2), ("validation", 2), ("checkpoint", 2)
    ]  # fmt: skip
    assert (run / "best").resolve() == calls.seen[-1][2].resolve() == run / "checkpoints" / "step-00000002"
    rest = Calls(last=0)
    nmt.train("config.yaml", callbacks=[rest], **arguments)
    events = [(name, update) for name, update, _ in rest.seen]
    assert events[0] == ("update", 3)
    assert events[-2:] == [("validation", 6), ("checkpoint", 6)]
    lines = [(line["kind"].replace("valid", "validation").replace("train", "update"), line["update"], line["loss"])
             for line in metrics.read(run)]  # fmt: skip
    noted = [
        (name, update, float(f"{loss:.6g}")) for name, update, loss in calls.seen + rest.seen if name != "checkpoint"
    ]
    assert noted == lines
    with pytest.raises(nmt.InputError, match=r"callbacks: training calls on_update, .* has on_validate$"):
        nmt.train("config.yaml", callbacks=[type("Mine", (), {"on_validate": print})()], **arguments)


def test_pairs_in_a_dictionary_are_trained_on(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    pairs = [*runs.sentences(60, seed=1), ("eins\r\nzwei", "one two")]
    config |= {"run": "run", "data": {"subwords": {"kind": "bpe", "size": 60}, "train": {"pairs": iter(pairs)}}}
    config["training"] = {"stopping": {"updates": 1}}
    nmt.train(config, device="cpu", precision="float32")
    found = [
        (tmp_path / "run" / "corpus" / f"train-{side}.txt").read_text().splitlines() for side in ("source", "target")
    ]
    assert list(zip(*found, strict=True)) == [*pairs[:-1], ("eins zwei", "one two")]
