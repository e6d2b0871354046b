"""``import nmt`` in a program: plain strings, options of the search, errors in the words of Python, training."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
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


def texts(translations: Any) -> list[str]:
    return [each.text for each in translations]


def test_a_string_is_one_text(translator: nmt.Translator) -> None:
    one, other = translator.translate(TEXTS[0]), translator.translate(TEXTS)[0]
    assert one == other
    alignment = translator.align(TEXTS[0], one.text)
    assert alignment.source_words == ("Hund", "und", "Katze.")
    assert alignment.links == translator.align([TEXTS[0]], [one.text])[0].links
    assert translator.score(TEXTS[0], one.text) == translator.score([TEXTS[0]], [one.text])[0]
    assert texts(translator.translate(iter(TEXTS))) == [translator.translate(text).text for text in TEXTS]
    tokenizer = translator.trained.tokenizers.target  # scored is the line as it is written
    ids = tokenizer.encode("the dog .")
    assert list(translator.score("der Hund .", "the dog .").tokens[:-1]) == tokenizer.pieces(ids)
    assert tokenizer.encode_tokens("the dog .").ids != tuple(ids)  # read to align, not to score


def test_results_have_a_repr_of_one_line_and_a_picture(translator: nmt.Translator, tmp_path: Path) -> None:
    translation = translator.translate(TEXTS[0], n_best=3)
    alignment, score = translator.align("eins zwei", "one two"), translator.score("eins zwei", "one two")
    assert repr(translation) == f"Translation({translation.text!r}, score={translation.score:.3f}, 2 alternatives)"
    words = [f"{('eins', 'zwei')[source]}–{('one', 'two')[target]}" for source, target in sorted(alignment.links)]
    assert repr(alignment) == f"Alignment({', '.join(words)})"
    assert repr(score).startswith(f"PairScore({score.score:.3f}, ")
    assert repr(translator).startswith("Translator(")
    assert not any("\n" in repr(each) for each in (translation, alignment, score, translator))
    svg, png = tmp_path / "one.svg", tmp_path / "one.png"
    assert alignment.plot(str(svg))._repr_png_()[:4] == b"\x89PNG"
    assert all(f">{word}<" in svg.read_text() for word in ("eins", "zwei", "one", "two"))
    alignment.plot(png)
    assert png.read_bytes()[:4] == b"\x89PNG"


def test_the_module_and_the_device(translator: nmt.Translator) -> None:
    assert isinstance(translator.model, torch.nn.Module)
    assert not translator.model.training
    moved = translator.to(torch.device("cpu"))
    assert moved.model is not translator.model
    assert moved.trained.compute == translator.trained.compute
    assert moved.translate(TEXTS) == translator.translate(TEXTS)
    assert nmt.load(translator.trained.checkpoint, device=torch.device("cpu")).model is not None


def test_options_of_the_search_are_those_of_the_configuration(trained: Path, translator: nmt.Translator) -> None:
    greedy = nmt.load(trained / "run", device="cpu", precision="float32", overrides=["search.beam=1"])
    assert translator.translate(TEXTS, beam=1) == greedy.translate(TEXTS)
    overrides = ["search.beam=4", "search.n_best=3", "search.length_penalty=0", "search.max_length_ratio=1"]
    several = nmt.load(trained / "run", device="cpu", precision="float32", overrides=overrides)
    found = translator.translate(TEXTS, beam=4, n_best=3, length_penalty=0, max_length_ratio=1)
    assert [texts([one, *one.alternatives]) for one in found] == list(map(texts, several.candidates(TEXTS)))
    assert translator.translate(TEXTS[0]).alternatives == ()
    twice = nmt.load(trained / "run", ensemble=[trained / "run"], device="cpu", precision="float32")
    assert texts(twice.translate(TEXTS)) == texts(translator.translate(TEXTS))


def test_a_dictionary_trains_as_its_file_does(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    config = yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))
    arguments = {"device": "cpu", "precision": "float32"}
    one = nmt.train({**config, "run": tmp_path / "one"}, overrides=["training.stopping.updates=1"], **arguments)
    other = nmt.train("config.yaml", overrides=[f"run={tmp_path}/other", "training.stopping.updates=1"], **arguments)
    assert one == tmp_path / "one"
    weights = [run / "latest" / "model.safetensors" for run in (one, other)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


PAIRS = [("eins zwei drei", "one two three"), ("zwei eins", "two one"), ("drei eins", "three one")]


def test_pairs_are_aligned_without_a_model_as_the_command_does(tmp_path: Path) -> None:
    pairs = runs.sentences(40, seed=3)
    for name, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    done = runs.nmt("align", "--learn", "--source", "source", "--target", "target", folder=tmp_path)
    for arguments in ([pairs], zip(*pairs, strict=True)):
        assert [pharaoh_line(each.links) for each in nmt.align(*arguments)] == done.stdout.decode().splitlines()


def test_a_model_is_evaluated_on_pairs_by_the_names_of_its_languages(translator: nmt.Translator) -> None:
    found = nmt.evaluate(translator, PAIRS)
    # its corpora are files that end in .de and .en, by which the fields are found whatever their order
    turned = nmt.evaluate(translator, ({"translation": {"en": target, "de": source}} for source, target in PAIRS))
    assert found == turned
    assert found.bleu == found.tree()["BLEU"]["value"]
    assert found.predictions["teacher_forcing"].perplexity > 1


def test_training_calls_back_and_stops(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    run = tmp_path / "run"
    overrides = [f"run={run}", "training.stopping.updates=6", "training.log_every=1", "training.validation.every=4"]
    arguments = {"overrides": overrides, "device": torch.device("cpu"), "precision": "float32"}
    events: list[tuple[str, int, Any]] = []

    def note(kind: str, trainer: Trainer, value: Any) -> None:
        """Ends the training at its second update."""
        value = value["loss"] if kind != "checkpoint" else nmt.load(value, device="cpu").trained.checkpoint
        events.append((kind, trainer.position.update, value))
        trainer.should_stop = trainer.position.update == 2

    calls = SimpleNamespace(**{f"on_{kind}": partial(note, kind) for kind in ("update", "validation", "checkpoint")})
    assert nmt.train("config.yaml", callbacks=[calls], **arguments) == run
    first = [event[:2] for event in events]
    assert first == [("update", 1), ("update", 2), ("validation", 2), ("checkpoint", 2)]
    assert (run / "best").resolve() == events[-1][2].resolve() == run / "checkpoints" / "step-00000002"
    nmt.train("config.yaml", callbacks=[calls], **arguments)
    assert events[4][:2] == ("update", 3)
    assert [event[:2] for event in events[-2:]] == [("validation", 6), ("checkpoint", 6)]
    kinds = {"train": "update", "valid": "validation"}
    lines = [(kinds[line["kind"]], line["update"], line["loss"]) for line in metrics.read(run)]
    noted = [(kind, update, float(f"{loss:.6g}")) for kind, update, loss in events if kind != "checkpoint"]
    assert noted == lines
    with pytest.raises(nmt.InputError, match=r"callbacks: training calls on_update, .* has on_validate$"):
        nmt.train("config.yaml", callbacks=[SimpleNamespace(on_validate=print)], **arguments)


def test_pairs_in_a_dictionary_are_trained_on(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = yaml.safe_load((trained / "config.yaml").read_text(encoding="utf-8"))
    pairs = [*runs.sentences(60, seed=1), ("eins\r\nzwei", "one two")]
    config |= {"run": "run", "data": {"subwords": {"kind": "bpe", "size": 60}, "train": {"pairs": iter(pairs)}}}
    config["training"] = {"stopping": {"updates": 1}}
    nmt.train(config, device="cpu", precision="float32")
    found = (Path(f"run/corpus/train-{side}.txt").read_text().splitlines() for side in ("source", "target"))
    assert list(zip(*found, strict=True)) == [*pairs[:-1], ("eins zwei", "one two")]
