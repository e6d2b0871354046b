"""Options of ``nmt translate``, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import nmt as package
from nmt.alignment.forced import forced_weights
from nmt.core.errors import InputError
from nmt.evaluation.consensus import consensus
from nmt.workflows.translate import _reading
from tests.workflows.runs import CONFIG, nmt, write_corpus
from tests.workflows.test_commands import error

TEXT = b"der hund\n\neine katze und ein hund\nder hund\n"


def translated(folder: Path, *arguments: str, text: bytes = TEXT) -> bytes:
    done = nmt("translate", "run", "--precision", "float32", *arguments, folder=folder, stdin=text)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def records(folder: Path, *arguments: str, text: bytes = TEXT) -> list[dict[str, Any]]:
    return [json.loads(line) for line in translated(folder, "--format", "jsonl", *arguments, text=text).splitlines()]


def refused(folder: Path, *arguments: str, text: bytes = TEXT) -> str:
    return error(nmt("translate", "run", *arguments, folder=folder, stdin=text))


def test_formats_tell_the_same(trained: Path) -> None:
    plain = translated(trained).decode().split("\n")[:-1]
    rows = [line.split("\t") for line in translated(trained, "--format", "tsv", "--n-best", "3").decode().splitlines()]
    objects = records(trained, "--n-best", "3")
    assert [each["line"] for each in objects] == [1, 2, 3, 4]
    assert [each["source"] for each in objects] == TEXT.decode().split("\n")[:-1]
    assert [each["translations"][0]["text"] for each in objects] == plain
    assert [len(each["translations"]) for each in objects] == [3, 1, 3, 3]
    expected = [
        [str(each["line"]), str(rank), f"{found['score']:.6f}", found["text"]]
        for each in objects
        for rank, found in enumerate(each["translations"], 1)
    ]
    assert rows == expected
    for each in objects:
        scores = [found["score"] for found in each["translations"]]
        assert scores == sorted(scores, reverse=True)
    assert objects[1]["translations"] == [{"text": "", "score": 0.0, "log_prob": 0.0, "tokens": []}]
    tokenizer = package.load(trained / "run").trained.tokenizers.target
    best = objects[0]["translations"][0]
    assert tokenizer.detokenize([tokenizer._processor.piece_to_id(each) for each in best["tokens"]]) == best["text"]


def test_alignments_come_along(trained: Path) -> None:
    objects = records(trained, "--n-best", "2", "--alignment")
    pairs = [(each["source"], found["text"]) for each in objects for found in each["translations"]]
    (trained / "pairs.source").write_text("".join(f"{source}\n" for source, _ in pairs))
    (trained / "pairs.target").write_text("".join(f"{target}\n" for _, target in pairs))
    done = nmt(
        "align", "run", "--source", "pairs.source", "--target", "pairs.target", "--format", "jsonl", "--precision",
        "float32", folder=trained,
    )  # fmt: skip
    expected = [json.loads(line) for line in done.stdout.splitlines()]
    found = [one["alignment"] for each in objects for one in each["translations"]]
    assert [each["links"] for each in found] == [each["links"] for each in expected]
    assert [each["target_words"] for each in found] == [each["target_words"] for each in expected]


def test_what_was_cut_has_no_alignment_and_loses_no_line(trained: Path) -> None:
    objects = records(trained, "--alignment", "--set", "search.max_source_tokens=8")
    assert [each["line"] for each in objects] == [1, 2, 3, 4]
    assert objects[2]["translations"][0]["alignment"] is None


def test_draws_follow_the_seed_alone(trained: Path) -> None:
    first = translated(trained, "--sample", "--n-best", "4", "--format", "tsv")
    assert translated(trained, "--sample", "--n-best", "4", "--format", "tsv") == first
    assert translated(trained, "--seed", "2", "--n-best", "4", "--format", "tsv") != first
    lines = first.decode().splitlines()
    assert [line.split("\t")[0] for line in lines] == ["1"] * 4 + ["2"] + ["3"] * 4 + ["4"] * 4
    assert [line.split("\t")[2:] for line in lines[:4]] == [line.split("\t")[2:] for line in lines[-4:]]  # one sentence
    assert translated(trained, "--top-k", "1") == translated(trained, "--beam", "1")


def test_consensus_is_of_the_draws(trained: Path) -> None:
    draws = records(trained, "--sample", "--n-best", "12")
    for utility in ("chrf", "bleu"):
        chosen = records(trained, "--consensus", utility, "--samples", "12")
        for each, agreed in zip(draws, chosen, strict=True):
            texts = [found["text"] for found in each["translations"]]
            (best,) = agreed["translations"]
            place, value = consensus(texts, utility)[0]  # type: ignore[arg-type]
            if each["source"]:
                assert (best["text"], best["score"]) == (texts[place], pytest.approx(value, abs=1e-6))


def test_translations_begin_with_the_prefix(trained: Path) -> None:
    (trained / "prefix").write_text("the cat\n\n\na\n", encoding="utf-8")
    found = translated(trained, "--prefix", "prefix").decode().split("\n")
    free = translated(trained).decode().split("\n")
    assert found[0].startswith("the cat")
    assert found[3].startswith("a")
    assert (found[1], found[2]) == (free[1], free[2])
    for beam in ("1", "4"):
        assert translated(trained, "--prefix", "prefix", "--beam", beam).decode().startswith("the cat")


def test_a_prefix_file_has_a_line_for_each_line(trained: Path) -> None:
    (trained / "short").write_text("the\n")
    (trained / "long").write_text("the\n" * 5)
    assert refused(trained, "--prefix", "short") == (
        "--prefix short: has no line 2; it needs one for each line of the input, blank where its translation is free"
    )
    assert refused(trained, "--prefix", "long") == "--prefix long: has more than the 4 lines of the input"
    assert refused(trained, "--prefix", "none") == "--prefix none: cannot be read: No such file or directory"


def test_models_translate_together(trained: Path) -> None:
    assert translated(trained, "--ensemble", "run") == translated(trained)
    (trained / "config-2.yaml").write_text((trained / "config.yaml").read_text().replace("run: run", "run: run-2"))
    done = nmt("train", "config-2.yaml", "--set", "seed=7", "--precision", "float32", folder=trained)
    assert done.returncode == 0, done.stderr.decode()
    one, other, both = (
        [each["translations"][0]["log_prob"] for each in records(trained, *arguments)]
        for arguments in ((), ("--ensemble", "run-2"), ("--ensemble", "run-2", "--ensemble", "run-2"))
    )
    assert one != other != both
    done = nmt(
        "train", "config-2.yaml", "--set", "run=run-3", "--set", "data.subwords.size=50", folder=trained
    )  # fmt: skip
    assert "has another vocabulary than" in refused(trained, "--ensemble", "run-3")


def test_unknown_words_are_copied_from_where_the_model_looks(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    words = ["--set", "data.subwords={kind: word, size: 9, joint: false}", "--set", "training.stopping.updates=20"]
    done = nmt("train", "config.yaml", "--precision", "float32", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    text = (tmp_path / "test.de").read_bytes()
    hot = ("--temperature", "50", "--set", "search.min_length=8")  # so that unknown words are drawn
    plain = records(tmp_path, *hot, text=text)
    replaced = translated(tmp_path, "--replace-unknown", *hot, text=text).decode().split("\n")
    translator = package.load(tmp_path / "run", device="cpu", precision="float32")
    tokenizers = translator.trained.tokenizers
    copies = 0
    for each, line in zip(plain, replaced, strict=False):
        (best,) = each["translations"]
        tokens = [tokenizers.target._processor.piece_to_id(piece) for piece in best["tokens"]]
        encoded = tokenizers.source.encode(each["source"])
        ((weights_TS,),) = forced_weights(
            translator.trained.model, [encoded], [tokens], translator.trained.compute, batch_tokens=1
        )
        expected = [
            each["source"].split()[int(weights_TS[place, :-1].argmax())] if piece == "<unk>" else piece.lstrip("▁")
            for place, piece in enumerate(best["tokens"])
        ]
        assert line == " ".join(expected)
        assert ("⁇" in best["text"]) == ("<unk>" in best["tokens"])
        copies += best["tokens"].count("<unk>")
    assert copies >= len(plain) > 0


def test_words_that_must_appear_appear(trained: Path) -> None:
    (trained / "words").write_text("cat\n\ndog\ta house\t\n \n", encoding="utf-8")
    found = translated(trained, "--constraints", "words").decode().split("\n")
    free = translated(trained).decode().split("\n")
    # where words begin; what an untrained model makes of their end is its own
    assert " cat" in f" {found[0]}"
    assert " dog" in f" {found[2]}"
    assert " a house" in f" {found[2]}"
    assert (found[1], found[3]) == (free[1], free[3])
    (trained / "prefix").write_text("the\n" * 4)
    both = translated(trained, "--constraints", "words", "--prefix", "prefix").decode().split("\n")
    assert both[0].startswith("the")
    assert " cat" in both[0]


@pytest.mark.parametrize(
    ("words", "arguments", "message"),
    [
        ("cat\n", [], "--constraints words: has no line 2"),
        ("\n\n日本\n\n", [], "line 3: '日本' cannot be spelt in the model's subwords; leave it out"),
        ("cat\n" * 4, ["--sample"], "search.sampling: cannot be had together with constraints; leave"),
        ("cat\n" * 4, ["--set", "search.no_repeat=2"], "search.no_repeat: cannot be had together with constraints"),
    ],
)
def test_constraints_that_cannot_be_met_are_refused(
    trained: Path, words: str, arguments: list[str], message: str
) -> None:
    (trained / "words").write_text(words, encoding="utf-8")
    assert refused(trained, "--constraints", "words", *arguments).startswith(message)


def test_a_prefix_that_cannot_be_spelt_is_refused(trained: Path) -> None:
    (trained / "prefix").write_text("the\n\nthe 猫\n\n", encoding="utf-8")
    message = "line 3: 'the 猫' cannot be spelt in the model's subwords; leave it out"
    assert refused(trained, "--prefix", "prefix") == message
    translator = package.load(trained / "run", device="cpu")
    with pytest.raises(package.InputError, match="^line 2: '猫' cannot be spelt"):
        translator.translate(["hund", "katze"], prefixes=["the", "猫"])


def test_weights_of_eight_bits(trained: Path) -> None:
    plain = translated(trained).decode().splitlines()
    rounded = nmt("translate", "run", "--precision", "int8", folder=trained, stdin=TEXT)
    assert rounded.returncode == 0, rounded.stderr.decode()
    lines = rounded.stdout.decode().splitlines()
    assert len(lines) == len(plain)
    assert lines[0] == lines[3]
    assert lines[1] == ""
    aligned = ("align", "run", "--source", "test.de", "--target", "test.en", "--precision", "int8")
    assert nmt(*aligned, folder=trained).stdout.count(b"\n") == 10
    assert "--precision int8: has no gradients" in error(nmt(*aligned, "--method", "gradient", folder=trained))
    assert "int8" in error(nmt("train", "config.yaml", "--precision", "int8", folder=trained))
    exact, near = (package.load(trained / "run", precision=precision) for precision in ("float32", "int8"))
    assert near.score("der hund", "the dog").log_prob == pytest.approx(
        exact.score("der hund", "the dog").log_prob, abs=0.3
    )


@pytest.mark.parametrize("option", ["--input", "--prefix"])
def test_the_markup_of_a_document_is_not_translated(tmp_path: Path, option: str) -> None:
    (tmp_path / "d.xlf").write_text('<?xml version="1.0"?>\n<xliff version="1.2"></xliff>\n')
    named = pytest.raises(InputError, match="is an XLIFF file, and lines of plain text are needed")
    with named, _reading(tmp_path / "d.xlf", option):
        pass
    (tmp_path / "text").write_bytes("Hund\nKatze\n".encode("utf-16"))
    with _reading(tmp_path / "text", option) as stream:
        assert stream.read() == b"Hund\nKatze\n"
