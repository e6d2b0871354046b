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
from tests.workflows.runs import nmt
from tests.workflows.test_commands import error

EXACT = ("--precision", "float32")
TEXT = b"der hund\n\neine katze und ein hund\nder hund\n"


def translated(folder: Path, *arguments: str, text: bytes = TEXT) -> bytes:
    done = nmt("translate", "run", *EXACT, *arguments, folder=folder, stdin=text)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def records(folder: Path, *arguments: str, text: bytes = TEXT) -> list[dict[str, Any]]:
    return [json.loads(line) for line in translated(folder, "--format", "jsonl", *arguments, text=text).splitlines()]


def refused(folder: Path, *arguments: str, text: bytes = TEXT) -> str:
    return error(nmt("translate", "run", *arguments, folder=folder, stdin=text))


def lines(folder: Path, *arguments: str) -> list[str]:
    return translated(folder, *arguments).decode().split("\n")[:-1]


def test_formats_tell_the_same(trained: Path) -> None:
    plain = lines(trained)
    rows = [line.split("\t") for line in lines(trained, "--format", "tsv", "--n-best", "3")]
    objects = records(trained, "--n-best", "3")
    assert [each["line"] for each in objects] == [1, 2, 3, 4]
    assert [each["source"] for each in objects] == TEXT.decode().split("\n")[:-1]
    assert [each["translations"][0]["text"] for each in objects] == plain
    assert [len(each["translations"]) for each in objects] == [3, 1, 3, 3]
    assert rows == [
        [str(each["line"]), str(rank), f"{found['score']:.6f}", found["text"]]
        for each in objects
        for rank, found in enumerate(each["translations"], 1)
    ]
    for each in objects:
        scores = [found["score"] for found in each["translations"]]
        assert scores == sorted(scores, reverse=True)
    assert objects[1]["translations"] == [{"text": "", "score": 0.0, "log_prob": 0.0, "tokens": []}]
    tokenizer = package.load(trained / "run").trained.tokenizers.target
    best = objects[0]["translations"][0]
    assert tokenizer.detokenize([tokenizer._processor.piece_to_id(each) for each in best["tokens"]]) == best["text"]


def test_alignments_come_along(trained: Path) -> None:
    """What was cut has none, and loses no line."""
    objects = records(trained, "--n-best", "2", "--alignment")
    pairs = [(each["source"], found["text"]) for each in objects for found in each["translations"]]
    (trained / "pairs.tsv").write_text("".join(map("{}\t{}\n".format, *zip(*pairs, strict=True))))
    done = nmt("align", "run", "pairs.tsv", "--format", "jsonl", *EXACT, folder=trained)
    expected = [json.loads(line) for line in done.stdout.splitlines()]
    found = [one["alignment"] for each in objects for one in each["translations"]]
    for name in ("links", "target_words"):
        assert [each[name] for each in found] == [each[name] for each in expected]
    objects = records(trained, "--alignment", "--set", "search.max_source_tokens=8")
    assert [each["line"] for each in objects] == [1, 2, 3, 4]
    assert objects[2]["translations"][0]["alignment"] is None


def test_draws_follow_the_seed_alone(trained: Path) -> None:
    draws = ("--n-best", "4", "--format", "tsv")
    first = lines(trained, "--sample", *draws)
    assert lines(trained, "--sample", *draws) == first != lines(trained, "--seed", "2", *draws)
    assert [line.split("\t")[0] for line in first] == ["1"] * 4 + ["2"] + ["3"] * 4 + ["4"] * 4
    assert [line.split("\t")[2:] for line in first[:4]] == [line.split("\t")[2:] for line in first[-4:]]  # one sentence
    assert lines(trained, "--top-k", "1") == lines(trained, "--beam", "1")


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_consensus_is_of_the_draws(trained: Path, utility: Any) -> None:
    chosen = records(trained, "--consensus", utility, "--samples", "12")
    for each, agreed in zip(records(trained, "--sample", "--n-best", "12"), chosen, strict=True):
        texts = [found["text"] for found in each["translations"]]
        (best,) = agreed["translations"]
        place, value = consensus(texts, utility)[0]
        if each["source"]:
            assert (best["text"], best["score"]) == (texts[place], pytest.approx(value, abs=1e-6))


def test_translations_begin_with_the_prefix_and_have_the_words_that_must_appear(trained: Path) -> None:
    """Where words begin; what an untrained model makes of their end is its own."""
    (trained / "prefix").write_text("the cat\n\n\na\n", encoding="utf-8")
    (trained / "words").write_text("cat\n\ndog\ta house\t\n \n", encoding="utf-8")
    free = lines(trained)
    found = lines(trained, "--prefix", "prefix")
    assert found[0].startswith("the cat")
    assert found[3].startswith("a")
    assert found[1:3] == free[1:3]
    for beam in ("1", "4"):
        assert lines(trained, "--prefix", "prefix", "--beam", beam)[0].startswith("the cat")
    found = lines(trained, "--constraints", "words")
    assert " cat" in f" {found[0]}"
    assert " dog" in f" {found[2]}"
    assert " a house" in f" {found[2]}"
    assert (found[1], found[3]) == (free[1], free[3])
    (trained / "prefix").write_text("the\n" * 4)
    both = lines(trained, "--constraints", "words", "--prefix", "prefix")[0]
    assert both.startswith("the")
    assert " cat" in both


NEEDS = "it needs one for each line of the input, blank where its translation is free"
UNSPELT = "cannot be spelt in the model's subwords; leave it out"


@pytest.mark.parametrize(
    ("option", "text", "arguments", "message"),
    [
        ("--prefix", "the\n", [], f"--prefix file: has no line 2; {NEEDS}"),
        ("--prefix", "the\n" * 5, [], "--prefix file: has more than the 4 lines of the input"),
        ("--prefix", None, [], "--prefix file: cannot be read: No such file or directory"),
        ("--prefix", "the\n\nthe 猫\n\n", [], f"line 3: 'the 猫' {UNSPELT}"),
        ("--constraints", "cat\n", [], f"--constraints file: has no line 2; {NEEDS}"),
        ("--constraints", "\n\n日本\n\n", [], f"line 3: '日本' {UNSPELT}"),
        ("--constraints", "cat\n" * 4, ["--sample"], "search.sampling: cannot be had together with constraints; leave"),
        ("--constraints", "cat\n" * 4, ["--set", "search.no_repeat=2"],
         "search.no_repeat: cannot be had together with constraints"),
    ],
)  # fmt: skip
def test_prefixes_and_constraints_that_cannot_be_met_are_refused(
    trained: Path, option: str, text: str | None, arguments: list[str], message: str
) -> None:
    (trained / "file").unlink(missing_ok=True)
    if text is not None:
        (trained / "file").write_text(text, encoding="utf-8")
    assert refused(trained, option, "file", *arguments).startswith(message)


def test_python_names_the_prefix_that_cannot_be_spelt(trained: Path) -> None:
    translator = package.load(trained / "run", device="cpu")
    with pytest.raises(package.InputError, match="^line 2: '猫' cannot be spelt"):
        translator.translate(["hund", "katze"], prefixes=["the", "猫"])


def train(folder: Path, *settings: str) -> None:
    changes = [part for each in settings for part in ("--set", each)]
    done = nmt("train", "config.yaml", *EXACT, *changes, folder=folder)
    assert done.returncode == 0, done.stderr.decode()


def test_models_translate_together(trained: Path) -> None:
    assert translated(trained, "--ensemble", "run") == translated(trained)
    train(trained, "run=run-2", "seed=7")
    one, other, both = (
        [each["translations"][0]["log_prob"] for each in records(trained, *arguments)]
        for arguments in ((), ("--ensemble", "run-2"), ("--ensemble", "run-2", "--ensemble", "run-2"))
    )
    assert one != other != both
    train(trained, "run=run-3", "data.subwords.size=50")
    assert "has another vocabulary than" in refused(trained, "--ensemble", "run-3")


def test_unknown_words_are_copied_from_where_the_model_looks(here: Path) -> None:
    train(here, "data.subwords={kind: word, size: 9, joint: false}", "training.stopping.updates=20")
    text = Path("test.de").read_bytes()
    hot = ("--temperature", "50", "--set", "search.min_length=8")  # so that unknown words are drawn
    plain = records(here, *hot, text=text)
    replaced = translated(here, "--replace-unknown", *hot, text=text).decode().split("\n")
    trained = package.load("run", device="cpu", precision="float32").trained
    source, target = trained.tokenizers.source, trained.tokenizers.target
    copies = 0
    for each, line in zip(plain, replaced, strict=False):
        (best,) = each["translations"]
        tokens = [target._processor.piece_to_id(piece) for piece in best["tokens"]]
        encoded = [source.encode(each["source"])]
        ((weights_TS,),) = forced_weights(trained.model, encoded, [tokens], trained.compute, batch_tokens=1)
        expected = [
            each["source"].split()[int(weights_TS[place, :-1].argmax())] if piece == "<unk>" else piece.lstrip("▁")
            for place, piece in enumerate(best["tokens"])
        ]
        assert line == " ".join(expected)
        assert ("⁇" in best["text"]) == ("<unk>" in best["tokens"])
        copies += best["tokens"].count("<unk>")
    assert copies >= len(plain) > 0


def test_weights_of_eight_bits(trained: Path) -> None:
    rounded = nmt("translate", "run", "--precision", "int8", folder=trained, stdin=TEXT)
    assert rounded.returncode == 0, rounded.stderr.decode()
    found = rounded.stdout.decode().splitlines()
    assert len(found) == len(lines(trained))
    assert (found[0], found[1]) == (found[3], "")
    aligned = ("align", "run", "--source", "test.de", "--target", "test.en", "--precision", "int8")
    assert nmt(*aligned, folder=trained).stdout.count(b"\n") == 10
    assert "--precision int8: has no gradients" in error(nmt(*aligned, "--method", "gradient", folder=trained))
    exact, near = (
        package.load(trained / "run", precision=precision).score("der hund", "the dog").log_prob
        for precision in ("float32", "int8")
    )
    assert near == pytest.approx(exact, abs=0.3)


@pytest.mark.parametrize("option", ["--input", "--prefix"])
def test_the_markup_of_a_document_is_not_translated(tmp_path: Path, option: str) -> None:
    (tmp_path / "d.xlf").write_text('<?xml version="1.0"?>\n<xliff version="1.2"></xliff>\n')
    named = pytest.raises(InputError, match="is an XLIFF file, and lines of plain text are needed")
    with named, _reading(tmp_path / "d.xlf", option):
        pass
    (tmp_path / "text").write_bytes("Hund\nKatze\n".encode("utf-16"))
    with _reading(tmp_path / "text", option) as stream:
        assert stream.read() == b"Hund\nKatze\n"
