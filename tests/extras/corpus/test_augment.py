"""nmt augment through the command line: what it leaves, going on after an interruption, and what it refuses."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.core.errors import InputError
from nmt.experiment import load
from nmt.extras.corpus.augment import augment, steps, text, word_exchange
from nmt.workflows import train
from nmt.workflows import translate as workflow
from tests.workflows.runs import Command, in_process, nmt, sentences

PAIRS = sentences(90, seed=7)
TARGETS = [target for _, target in PAIRS]


@pytest.fixture(autouse=True)
def folder(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trained configuration with text of both languages, where commands run."""
    folder = tmp_path / "here"
    shutil.copytree(trained, folder, symlinks=True)
    with gzip.open(folder / "mono.en.gz", "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in [*TARGETS, "", TARGETS[0]]))
    (folder / "mono.de").write_text("".join(f"{source}\n" for source, _ in PAIRS), encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    return in_process(capsys, "augment")


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def contents(folder: Path) -> dict[str, bytes]:
    """Returns the files that the same text, settings and seed must reproduce, by path: all but times and logs."""
    kept = ("text", "translated", "pairs", "augmented.yaml", "augment.json", "model.safetensors")
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(part in kept for part in path.relative_to(folder).parts) and path.name[0] != "."
    }


def test_all_kinds_of_pairs_make_a_configuration_that_trains(folder: Path) -> None:
    arguments = ("augment", "config.yaml", "--precision", "float32", "--target-text", "mono.en.gz", "--copies")
    more = ("--source-text", "mono.de", "--diversify", "--keep", "0.5", "--train")
    done = nmt(*arguments, *more, folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    said, made = done.stderr.decode(), folder / "run-augmented"
    rows = done.stdout.decode().splitlines()
    assert [row.rsplit(maxsplit=2)[0] for row in rows] == ["valid", "config.yaml", "+ all 5"]

    held_out = {*lines(folder / "valid.en")}
    known = [line for line in TARGETS if line not in held_out]
    assert f"target text         {len(known)} lines; left out: 1 blank, " in said
    sources, targets = lines(made / "pairs" / "copies.de"), lines(made / "pairs" / "copies.en")
    assert sources == targets == known
    sources, targets = (lines(made / "pairs" / f"back-translation.{side}") for side in ("de", "en"))
    assert len(sources) == len(targets)
    assert targets == [line for line in known if line in set(targets)]

    # another process translates a line so, and its score is that of the half that is kept
    (folder / "first").write_text(f"{known[0]}\n", encoding="utf-8")
    options = ("--precision", "float32", "--format", "jsonl", "--input", "first")
    single = nmt("translate", made / "reverse", *options, folder=folder)
    first = json.loads((made / "translated" / "back-translation" / "00000.txt").read_text().splitlines()[0])
    assert json.loads(single.stdout)["translations"][0]["text"] == first["translations"][0]["text"]
    assert all(line.startswith("<BT> ") for line in sources)
    reverse = load(made / "reverse" / "config.yaml").data
    assert [file.name for file in reverse.train_corpora[0].files] == ["train.en", "train.de"]

    written = load(made / "augmented.yaml")
    names = [corpus.files[0].name for corpus in written.data.train_corpora]
    kinds = ("back-translation", "self-training", "copies", "diversified-target", "diversified-source")
    assert names == ["train.de", *(f"{kind}.de" for kind in kinds)]
    report = json.loads((made / "prepared" / "report.json").read_text())
    dropped = [reason for corpus in report["corpora"] for reason, drop in corpus["dropped"].items() if drop["pairs"]]
    assert "identical" not in dropped
    assert nmt("translate", "run-augmented", folder=folder, stdin=b"eins\n").stdout.count(b"\n") == 1


def test_interrupted_it_goes_on_to_the_same_files(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted where a step is recorded as begun, and between files of translations."""
    monkeypatch.setattr(text, "SHARD_LINES", 40)
    arguments = ("config.yaml", "--precision", "float32", "--target-text", "mono.en.gz", "--back-translation", "noised",
                 "--keep", "0.7", "--keep-by", "round-trip", "--output")  # fmt: skip
    assert command(*arguments, "whole").code == 0
    save, translate, interrupted = steps.save, workflow.translate, [0, 0]

    def stop_after_save(*parts: Any) -> None:
        save(*parts)
        interrupted[0] += 1
        raise KeyboardInterrupt

    def stop_between(*parts: Any, **options: Any) -> None:
        translate(*parts, **options)
        interrupted[1] += 1
        raise KeyboardInterrupt

    monkeypatch.setattr(steps, "save", stop_after_save)
    for turn in range(5):
        assert command(*arguments, "parts").code == 130, turn
        if turn == 1:
            monkeypatch.setattr(steps, "save", save)
            monkeypatch.setattr(workflow, "translate", stop_between)
    monkeypatch.setattr(workflow, "translate", translate)
    assert command(*arguments, "parts").code == 0
    assert interrupted == [2, 3]
    whole, parts = contents(folder / "whole"), contents(folder / "parts")
    assert list(whole) == list(parts)
    for path, content in whole.items():
        assert parts[path].replace(b"parts", b"whole") == content, path

    # what is there is not made again
    monkeypatch.setattr(augment.Augmentation, "_translate", None)
    monkeypatch.setattr(train, "train", None)
    done = command(*arguments, "parts")
    assert (done.code, contents(folder / "parts")) == (0, parts)

    for changed, message in (
        (("--keep", "0.6"), "pairs of back-translation was begun with --keep 0.7, not 0.6; keep its settings"),
        (("--beam", "2"), "translations of back-translation was begun with search "),
        (("--set", "seed=2"), "training of parts/reverse was begun with seed 1, not 2; "),
        (("--target-text", "mono.de"), "target text was begun with another --target-text; "),
    ):
        # an option is given once, but for --set
        at = arguments.index(changed[0]) if changed[0] in arguments else len(arguments)
        others = (*arguments[:at], *arguments[at + 2 :])
        end = others.index("--output") + 1
        assert message in command(*others[:end], "parts", *others[end:], *changed).error
    assert contents(folder / "parts") == parts
    (folder / "parts" / "augment.json").write_text("{")
    damaged = "parts/augment.json: is damaged; delete parts, or name another"
    assert command(*arguments, "parts").error.startswith(damaged)


def test_pairs_in_one_file_are_exchanged(folder: Path, command: Command) -> None:
    rows = zip(lines(folder / "train.de"), lines(folder / "train.en"), strict=True)
    (folder / "train.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    tsv = ("--set", "data.train={pairs: train.tsv}", "--set", "run=other")
    assert command("config.yaml", *tsv, "--diversify", "--reverse", "run", "--set", "data.valid=null").code == 0
    made = folder / "other-augmented"
    assert lines(made / "pairs" / "diversified-source.target") == lines(folder / "train.en")
    assert command("config.yaml", *tsv, "--target-text", "mono.en.gz", "-o", "two").code == 0
    (turned,) = load(folder / "two" / "reverse" / "config.yaml").data.train_corpora[0].files
    assert lines(turned) == [f"{b}\t{a}" for a, b in (row.split("\t") for row in lines(folder / "train.tsv"))]


def test_after_a_fault_another_text_may_be_given(folder: Path, command: Command) -> None:
    (folder / "empty.en").write_text("\n")
    (folder / "one.en").write_text("three cats\n")
    arguments = ("config.yaml", "--reverse", "run", "--output", "made", "--target-text")
    assert command(*arguments, "empty.en").error.startswith("--target-text empty.en: no line is left")
    assert command(*arguments, "one.en", "--keep", "0.01").code == 0
    assert lines(folder / "made" / "pairs" / "back-translation.en") == ["three cats"]
    says = "made: target text was begun with another --target-text; keep its settings, or name another --output"
    assert command(*arguments, "mono.en.gz").error == says


def test_translations_of_two_searches_are_not_mixed(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: object, text: Path, folder: Path, *others: Any) -> None:
        (folder / "00000.txt").write_text("{}\n")  # the first of several files is translated
        raise InputError("a file is damaged")

    monkeypatch.setattr(augment.Augmentation, "_translate", fails)
    arguments = ("config.yaml", "--target-text", "mono.en.gz", "--reverse", "run", "--output", "made")
    assert command(*arguments).error == "a file is damaged"
    assert "translations of back-translation was begun with search" in command(*arguments, "--beam", "2").error


def test_a_pair_has_no_pair_before_it_as_context(folder: Path, command: Command) -> None:
    context = ("--set", "data.context=1", "--target-text", "mono.en.gz", "--reverse", "run", "--output", "made")
    done = command("config.yaml", *context)
    assert done.code == 0, done.stderr
    written = lines(folder / "made" / "pairs" / "back-translation.en")
    assert not any(written[1::2])
    assert all(written[::2])
    assert f", {len(written) // 2:,} pairs" in (folder / "made" / "augmented.yaml").read_text()


def test_a_dictionary_makes_pairs_and_exchanges_words(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_exchange, "FREQUENT", 1)
    held_out = min(lines(folder / "valid.en"), key=len)
    words = ["dog :: Hund {m}", *(f"hound{n} :: Rüde{n} {{m}}" for n in range(3)), f"{held_out} :: x"]
    (folder / "en-de").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    arguments = ("--dictionary", "en-de", "--set", "data.context=1", "--output", "made")
    done = command("config.yaml", *arguments)
    assert done.code == 0, done.stderr
    assert "en-de: its second language is taken as the source" in done.stderr
    made = {side: lines(folder / "made" / "pairs" / f"dictionary.{side}") for side in ("de", "en")}
    assert {word for word in made["de"] if word} == {"Hund", "Rüde0", "Rüde1", "Rüde2"}
    assert [word.replace("Rüde", "hound").replace("Hund", "dog") for word in made["de"]] == made["en"]
    assert not any(made["en"][1::2])
    exchanged = [lines(folder / "made" / "pairs" / f"exchanged-words.{side}")[::2] for side in ("de", "en")]
    assert len(exchanged[0]) == 6
    real = set(zip(lines(folder / "train.de"), lines(folder / "train.en"), strict=True))
    assert {
        (re.sub(r"Rüde\d", "Hund", one), re.sub(r"hound\d", "dog", other))
        for one, other in zip(*exchanged, strict=True)
    } <= real
    assert [corpus.files[0].name for corpus in load(folder / "made" / "augmented.yaml").data.train_corpora] == [
        "train.de", "dictionary.de", "exchanged-words.de",
    ]  # fmt: skip
    before = contents(folder / "made")
    assert command("config.yaml", *arguments).code == 0
    assert contents(folder / "made") == before
    assert (
        "pairs of a dictionary was begun with seed 1, not 2"
        in command("config.yaml", *arguments, "--set", "seed=2").error
    )


def test_translations_that_are_all_blank_are_no_corpus(
    folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank = [text.ScoredTranslation("three cats", "", -1.0)]
    monkeypatch.setattr(augment, "read_translations", lambda folder: iter(blank))
    done = command("config.yaml", "--target-text", "mono.en.gz", "--reverse", "run", "--output", "made")
    assert done.error.startswith("back-translation: no pair is left: all are blank or doubtful; ")


def test_models_without_a_calibration_have_no_confidence(command: Command) -> None:
    done = command("config.yaml", "--target-text", "mono.en.gz", "--reverse", "run", "--min-confidence", "0.5")
    assert "run: is not calibrated; make it with: nmt calibrate" in done.error


MISTAKES = {
    "": "there is nothing to make pairs of; give --target-text, --source-text, --dictionary or --diversify",
    "--copies --diversify": "--copies: needs --target-text",
    "--back-translation beam --diversify": "--back-translation: needs --target-text",
    "--target-text mono.en.gz --back-translation none": "--back-translation none: leaves nothing to make; add --copies",
    "--diversify --keep-by score": "--keep-by: needs --keep, the share to keep",
    "--target-text no.en": "no.en: no such file",
    "--dictionary no.tsv": "no.tsv: no such file",
    "--dictionary no.tsv --keep 0.5": "--keep: is for translations; add --target-text, --source-text or --diversify",
    "--dictionary no.tsv --reverse run": "--reverse: is for translations; add --target-text, --source-text or --dive",
    "--dictionary mono.de": "mono.de: 90 of 90 rows are no pairs: ",
    "--dictionary no.tsv --min-confidence 0.5": "--min-confidence: is for translations; add --target-text, --sou",
    "--diversify --ray x --min-confidence 0.5": "--min-confidence: is estimated in this process; leave out --ray",
    "--source-text .": ".: is a folder; name a file",
    "--target-text mono.en.gz --back-translation sampling --beam 3": "--beam: --back-translation sampling draws",
    "--diversify --reverse nowhere": "nowhere: no such run directory, checkpoint or config",
    "--diversify --output run": "--output run: is the run of config.yaml; name another folder",
    "--diversify --output train.de/x": "--output train.de/x: cannot be made: Not a directory; name another folder",
    "--diversify --train --set data.valid=null --set training.stopping.updates=2": "--train: needs data.valid",
    "--target-text empty.en": "--target-text empty.en: no line is left; give other text",
    "--diversify --keep 0": "--keep: expected at least 0.01, found 0",
}


@pytest.mark.parametrize("arguments", MISTAKES)
def test_a_mistake_is_one_line(folder: Path, command: Command, arguments: str) -> None:
    (folder / "empty.en").write_text("\n\n")
    assert command("config.yaml", *arguments.split()).error.startswith(MISTAKES[arguments])
