"""``nmt translate``, through the command line: lines of all kinds, the models that it takes, and its options."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest

import nmt as package
from nmt.alignment.forced import forced_weights
from nmt.core.device import compute
from nmt.core.errors import InputError
from nmt.evaluation.consensus import consensus
from nmt.translator.find_run import record_last_run
from nmt.workflows.translate import _reading
from tests.workflows.runs import CONFIG, EXACT, TEXT, Command, json_lines, lines_of, records, refused, train_here
from tests.workflows.runs import translated as translated_in

HERE = Path()
pytestmark = pytest.mark.usefixtures("copied")


def translated(*arguments: str, text: bytes = TEXT) -> list[str]:
    """The lines of a translation by the run in the current folder."""
    return translated_in(HERE, *arguments, text=text).decode().split("\n")[:-1]


# ------------------------------------------------------------------------------------------------ what comes in and out


def test_one_line_out_for_each_line_in_whatever_comes(nmt: Command) -> None:
    long = b"Hund " * 20_000
    lines = [
        b"eins zwei.", b"", b"   ", b"\t", b"Hund\r", b"bad \xff byte", b"nul \x00 here", "emoji 🙂 é".encode(),
        "line\u2028separator\u0085next".encode(), b"vertical\x0btab", long, b"\r", "\u00a0".encode(), b"no newline",
    ]  # fmt: skip
    done = nmt("translate", "run", "--beam", "2", stdin=b"\n".join(lines))
    *out, end = done.output.split("\n")
    assert (len(out), end) == (len(lines), "")
    assert [number for number, line in enumerate(out, 1) if not line.strip()] == [2, 3, 4, 12, 13]
    warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert all(any(f"line {number}" in warning for warning in warnings) for number in (6, 11))
    assert nmt("translate", "run").output == ""
    cut = nmt("translate", "run", "--set", "search.max_source_tokens=5", stdin=b"Hund und Katze und Hund.\n")
    assert cut.output.count("\n") == 1
    assert "line 1: its last " in cut.stderr


def test_files_give_what_pipes_give(nmt: Command) -> None:
    source = Path("test.de").read_bytes()
    translate = ("translate", "run", "--beam", "3")
    piped = nmt(*translate, stdin=source).output
    nmt(*translate, "--input", "test.de", "--output", "out.txt")
    assert Path("out.txt").read_text() == piped
    Path("packed").write_bytes(packed := gzip.compress(source))
    assert nmt(*translate, "--input", "packed").output == piped
    Path("cut.gz").write_bytes(packed[:-9])
    damaged = "cut.gz: the compressed file is damaged or cut short; fetch it again"
    assert nmt(*translate, "--input", "cut.gz").error == damaged
    is_input = "is an input file of this command; write to another file"
    assert nmt(*translate, "--input", "test.de", "--output", "./test.de").error == f"--output test.de: {is_input}"
    assert nmt("align", "run", "--source", "test.de", "--output", "test.de").error == f"--output test.de: {is_input}"
    assert Path("test.de").read_bytes() == source


@pytest.mark.parametrize("precision", ["float32", "auto"])
@pytest.mark.parametrize("beam", ["1", "4"])
def test_a_translation_does_not_depend_on_its_company(trained: Path, beam: str, precision: str) -> None:
    lines = lines_of(trained / "train.de")[:12]
    together, alone = (
        package.load(trained / "run", overrides=[f"search.beam={beam}", *more], precision=precision).translate(lines)
        for more in ([], ["search.batch_tokens=1"])
    )
    assert [each.text for each in together] == [each.text for each in alone]
    # oneDNN's products in bfloat16 may round otherwise by how many rows they have
    tolerance = 0.02 if compute("cpu", precision).precision == "bfloat16" else 1e-4
    assert [each.score for each in together] == pytest.approx([each.score for each in alone], abs=tolerance)


def test_a_line_of_a_huge_file_is_cut_or_refused(nmt: Command) -> None:
    with Path("huge").open("wb") as file:  # a hole, which takes no room on the disk
        file.write(b"eins.\n")
        file.truncate(300 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\nzwei.\n")
    Path("long").write_text(f"eins.\n{'eins ' * 20000}\nzwei.\n")
    Path("short").write_text("one.\none\ntwo.\n")
    done = nmt("translate", "run", "--input", "huge")
    assert done.output.count("\n") == 3
    assert "line 2: 314,572,794 bytes long; cut to the first 65,536" in done.stderr
    for name, message in (("huge", "huge: a line of more than 16 MiB"), ("long", "long:2: 100,000 characters are")):
        for command in (
            f"score run --source {name} --target short",
            f"align run --source short --target {name}",
            f"align run --source {name}",
            f"evaluate --hypothesis {name} --reference short",
            f"evaluate run --source short --reference {name}",
        ):
            done = nmt(*command.split())
            if name == "long" and not command.startswith("evaluate"):
                assert done.output.count("\n") == 3, command
                assert "warning: line 2: " in done.stderr, command
            else:
                assert message in done.error, command


@pytest.mark.parametrize("option", ["--input", "--prefix"])
def test_the_markup_of_a_document_is_not_translated(tmp_path: Path, option: str) -> None:
    (tmp_path / "d.xlf").write_text('<?xml version="1.0"?>\n<xliff version="1.2"></xliff>\n')
    named = pytest.raises(InputError, match="is an XLIFF file, and lines of plain text are needed")
    with named, _reading(tmp_path / "d.xlf", option):
        pass
    (tmp_path / "text").write_bytes("Hund\nKatze\n".encode("utf-16"))
    with _reading(tmp_path / "text", option) as stream:
        assert stream.read() == b"Hund\nKatze\n"


# ------------------------------------------------------------------------------------------------------------ the model


NOWHERE = "no such run directory, checkpoint or config"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nowhere", f"nowhere: {NOWHERE}"),
        ("train.de", f"train.de: {NOWHERE}; to translate a file: nmt translate"),
        (".", ".: holds no checkpoint yet"),
        ("damaged.zip", "damaged.zip: cannot be unpacked: File is not a zip file"),
        ("other.yaml", "other.yaml: its run untrained has not been trained yet; nmt train other.yaml"),
        ("run --set model.encoder.layers=2", "--set model.encoder.layers: a trained model cannot be changed; train an"),
        ("run --device tpu", "--device tpu: is none of auto, cpu, cuda, cuda:N"),
    ],
)
def test_a_model_that_is_none_is_named(arguments: str, message: str, nmt: Command) -> None:
    Path("other.yaml").write_text(CONFIG.replace("run: run", "run: untrained"))
    Path("damaged.zip").write_bytes(b"PK")
    assert nmt("translate", *arguments.split()).error.startswith(message)


def test_a_model_is_found_by_run_checkpoint_or_config_and_else_the_last_one_is_taken(nmt: Command) -> None:
    text = {"stdin": b"eins zwei.\n"}
    expected = nmt("translate", "run", **text).output
    for model in ("run/best", "run/latest", "run/checkpoints/step-00000002", "config.yaml"):
        assert nmt("translate", model, **text).output == expected
    assert "no trained model under runs/" in nmt("translate").error
    for name in ("old", "new"):
        shutil.copytree("run", f"runs/{name}", symlinks=True)
    both = "runs/: cannot be told which of runs/new, runs/old was trained last; name one"
    assert both in nmt("translate").error
    record_last_run(Path("runs/new"))
    done = nmt("translate", **text)
    assert done.output == expected
    assert "runs/new" in done.stderr
    record_last_run(Path("runs/old"))
    os.utime("runs/old/latest", (0, 0), follow_symlinks=False)  # by a clock that was set back
    assert "runs/old" in nmt("translate", **text).stderr


def test_damaged_and_foreign_checkpoints_are_named(nmt: Command) -> None:
    weights = Path("run/best/model.safetensors")
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    assert "model.safetensors: unreadable checkpoint" in nmt("translate", "run").error
    weights.write_bytes(whole)
    nmt("prepare", "config.yaml", "--set", "run=other", "--set", "data.subwords.size=50")
    shutil.copy("other/prepared/subwords.model", "run/subwords.model")
    assert "was trained with another vocabulary" in nmt("translate", "run").error


def test_models_translate_together() -> None:
    assert translated("--ensemble", "run") == translated()
    train_here("run=run-2", "seed=7")
    one, other, both = (
        [each["translations"][0]["log_prob"] for each in records(HERE, *arguments)]
        for arguments in ((), ("--ensemble", "run-2"), ("--ensemble", "run-2", "--ensemble", "run-2"))
    )
    assert one != other != both
    train_here("run=run-3", "data.subwords.size=50")
    assert "has another vocabulary than" in refused(HERE, "--ensemble", "run-3")


def test_weights_of_eight_bits(nmt: Command) -> None:
    found = nmt("translate", "run", "--precision", "int8", stdin=TEXT).output.splitlines()
    assert len(found) == len(translated())
    assert (found[0], found[1]) == (found[3], "")
    aligned = ("align", "run", "--source", "test.de", "--target", "test.en", "--precision", "int8")
    assert nmt(*aligned).output.count("\n") == 10
    assert "--precision int8: has no gradients" in nmt(*aligned, "--method", "gradient").error
    exact, near = (
        package.load("run", precision=precision).score("der hund", "the dog").log_prob
        for precision in ("float32", "int8")
    )
    assert near == pytest.approx(exact, abs=0.3)


# ---------------------------------------------------------------------------------------------------------- its options


def test_formats_tell_the_same() -> None:
    plain = translated()
    rows = [line.split("\t") for line in translated("--format", "tsv", "--n-best", "3")]
    objects = records(HERE, "--n-best", "3")
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
    tokenizer = package.load("run").trained.tokenizers.target
    best = objects[0]["translations"][0]
    assert tokenizer.detokenize([tokenizer._processor.piece_to_id(each) for each in best["tokens"]]) == best["text"]


def test_alignments_come_along(nmt: Command) -> None:
    """What was cut has none, and loses no line."""
    objects = records(HERE, "--n-best", "2", "--alignment")
    pairs = [(each["source"], found["text"]) for each in objects for found in each["translations"]]
    Path("pairs.tsv").write_text("".join(map("{}\t{}\n".format, *zip(*pairs, strict=True))))
    assert nmt("align", "run", "pairs.tsv", "--format", "jsonl", "--output", "expected", *EXACT).code == 0
    found = [one["alignment"] for each in objects for one in each["translations"]]
    for name in ("links", "target_words"):
        assert [each[name] for each in found] == [each[name] for each in json_lines("expected")]
    objects = records(HERE, "--alignment", "--set", "search.max_source_tokens=8")
    assert [each["line"] for each in objects] == [1, 2, 3, 4]
    assert objects[2]["translations"][0]["alignment"] is None


def test_draws_follow_the_seed_alone() -> None:
    draws = ("--n-best", "4", "--format", "tsv")
    first = translated("--sample", *draws)
    assert translated("--sample", *draws) == first != translated("--seed", "2", *draws)
    assert [line.split("\t")[0] for line in first] == ["1"] * 4 + ["2"] + ["3"] * 4 + ["4"] * 4
    assert [line.split("\t")[2:] for line in first[:4]] == [line.split("\t")[2:] for line in first[-4:]]  # one sentence
    assert translated("--top-k", "1") == translated("--beam", "1", "--set", "search.repetition_margin=null")


def test_consensus_is_of_the_draws() -> None:
    chosen = records(HERE, "--consensus", "--samples", "12")
    for each, agreed in zip(records(HERE, "--temperature", "0.5", "--n-best", "12"), chosen, strict=True):
        texts = [found["text"] for found in each["translations"]]
        (best,) = agreed["translations"]
        place, value = consensus(texts)[0]
        if each["source"]:
            assert (best["text"], best["score"]) == (texts[place], pytest.approx(value, abs=1e-6))


def test_translations_begin_with_the_prefix_and_have_the_words_that_must_appear() -> None:
    """Where words begin; what an untrained model makes of their end is its own."""
    Path("prefix").write_text("the cat\n\n\na\n", encoding="utf-8")
    Path("words").write_text("cat\n\ndog\ta house\t\n \n", encoding="utf-8")
    once = ("--set", "search.repetition_margin=null")
    free = translated(*once)
    found = translated("--prefix", "prefix", *once)
    assert found[0].startswith("the cat")
    assert found[3].startswith("a")
    assert found[1:3] == free[1:3]
    for beam in ("1", "4"):
        assert translated("--prefix", "prefix", "--beam", beam)[0].startswith("the cat")
    found = translated("--constraints", "words", *once)
    for row, words in ((0, " cat"), (2, " dog"), (2, " a house")):
        assert words in f" {found[row]}"
    assert (found[1], found[3]) == (free[1], free[3])
    Path("prefix").write_text("the\n" * 4)
    both = translated("--constraints", "words", "--prefix", "prefix")[0]
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
    option: str, text: str | None, arguments: list[str], message: str
) -> None:
    if text is not None:
        Path("file").write_text(text, encoding="utf-8")
    assert refused(HERE, option, "file", *arguments).startswith(message)


@pytest.mark.parametrize("name", ["file.jsonl", "file.ndjson.gz"])
def test_records_are_not_read_as_lines_of_text(nmt: Command, name: str) -> None:
    Path(name).write_text('{"text": "hund"}\n', encoding="utf-8")
    for command in (
        ("translate", "run", "-i", name), ("score", "run", "-s", name, "-t", name),
        ("align", "run", "-s", "test.de", "-t", name), ("evaluate", "--hypothesis", name, "--reference", "test.en"),
    ):  # fmt: skip
        assert f"{name}: holds JSON lines, not lines of text; name it" in nmt(*command).error


def test_python_names_the_prefix_that_cannot_be_spelt(trained: Path) -> None:
    translator = package.load(trained / "run", device="cpu")
    with pytest.raises(package.InputError, match="^line 2: '猫' cannot be spelt"):
        translator.translate(["hund", "katze"], prefixes=["the", "猫"])


def test_unknown_words_are_copied_from_where_the_model_looks() -> None:
    shutil.rmtree("run")
    train_here("data.subwords={kind: word, size: 9, joint: false}", "training.stopping.updates=20")
    text = Path("test.de").read_bytes()
    hot = ("--temperature", "50", "--set", "search.min_length=8")  # so that unknown words are drawn
    plain = records(HERE, *hot, text=text)
    replaced = translated("--replace-unknown", *hot, text=text)
    trained = package.load("run", device="cpu", precision="float32").trained
    source, target = trained.tokenizers.source, trained.tokenizers.target
    copies = 0
    for each, line in zip(plain, replaced, strict=True):
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
