"""Each command through the command line, on a tiny run."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import yaml

import nmt as package
from nmt.alignment.formats import read_jsonl, read_npz
from nmt.core.device import compute
from nmt.evaluation.by_length import as_tree, by_length
from nmt.evaluation.translation import scores
from nmt.translator.find_run import record_last_run
from tests.workflows.runs import CONFIG, nmt, write_corpus

if TYPE_CHECKING:
    import torch

    from nmt.translator.translator import Translator


def error(done: subprocess.CompletedProcess[bytes]) -> str:
    """The one line of a fault of the input."""
    assert done.returncode == 2, done.stderr.decode()
    lines = [line for line in done.stderr.decode().splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    return lines[0].removeprefix("error: ")


# ------------------------------------------------------------------------------------------------------ training


def test_train_leaves_a_complete_run_directory(trained: Path) -> None:
    run = trained / "run"
    assert {"config.yaml", "subwords.model", "metrics.jsonl", "checkpoints", "best", "latest"} <= {
        path.name for path in run.iterdir()
    }
    resolved = yaml.safe_load((run / "config.yaml").read_text())
    assert resolved["training"]["optimizer"]["beta2"] == 0.98  # defaults are written out
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [(line["kind"], line["update"]) for line in lines] == [("train", 1), ("train", 2), ("valid", 2)]
    assert {"loss", "perplexity", "accuracy", "bleu"} <= lines[-1].keys()


def test_train_again_has_nothing_to_do(trained: Path) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in (trained / "run" / "checkpoints").rglob("*"))
    done = nmt("train", "config.yaml", "--precision", "float32", folder=trained)
    assert done.returncode == 0
    assert "nothing to do" in done.stderr.decode()
    assert before == sorted((path, path.stat().st_mtime_ns) for path in (trained / "run" / "checkpoints").rglob("*"))


def test_another_config_is_refused_with_the_keys_that_differ(trained: Path) -> None:
    done = nmt("train", "config.yaml", "--set", "model.decoder.size=24", "--set", "seed=9", folder=trained)
    keys = "model.decoder.size, seed"
    assert error(done).replace("seed, model.decoder.size", keys) == (
        f"run: was made by a configuration with other {keys}; go on with its own, nmt train run/config.yaml (more "
        "updates: --set training.stopping.updates=N --extend), or set another run"
    )


def test_more_updates_are_no_other_config(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True, symlinks=True)
    done = nmt(
        "train", "config.yaml", "--precision", "float32", "--set", "training.stopping.updates=3", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "going on from update 2" in done.stderr.decode()
    assert (tmp_path / "run" / "latest").readlink().name == "step-00000003"


def test_a_schedule_to_the_end_is_extended_or_cut_short_on_request(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True, symlinks=True)
    schedule = ["--precision", "float32", "--set", "run=other", "--set", "training.schedule={kind: linear, warmup: 1}"]

    def train(updates: int, *more: str) -> subprocess.CompletedProcess[bytes]:
        number = f"training.stopping.updates={updates}"
        return nmt("train", "config.yaml", *schedule, "--set", number, *more, folder=tmp_path)

    assert train(4).returncode == 0
    assert error(train(8)) == (
        "other: its learning rate follows a schedule of 4 updates, and training.stopping.updates is 8 now; add "
        "--extend to go on by the new schedule, or set another run"
    )
    assert train(8, "--extend").returncode == 0
    assert train(8).returncode == 0  # what was extended is the run's configuration by now
    lines = [json.loads(line) for line in (tmp_path / "other" / "metrics.jsonl").read_text().splitlines()]
    rates = {line["update"]: line["learning_rate"] for line in lines if line["kind"] == "train"}
    peak = rates[1]
    # linear from the first update to 0 at the last: by the schedule of 4 updates until 4, then by that of 8
    expected = {2: 2 / 3, 3: 1 / 3, 4: 0.0, 5: 3 / 7, 6: 2 / 7, 7: 1 / 7, 8: 0.0}
    assert {update: rates[update] / peak for update in expected} == pytest.approx(expected)
    cut = train(6, "--extend")
    assert (cut.returncode, b"nothing to do" in cut.stderr) == (0, True)


def test_a_changed_corpus_is_refused(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True, symlinks=True)
    with (tmp_path / "train.de").open("a") as source, (tmp_path / "train.en").open("a") as target:
        source.write("eins eins eins eins zwei.\n")
        target.write("one one one one two.\n")
    before = (tmp_path / "run" / "subwords.model").read_bytes()
    done = nmt("train", "config.yaml", "--set", "training.stopping.updates=3", folder=tmp_path)
    assert "was trained on another corpus" in error(done)
    assert (tmp_path / "run" / "subwords.model").read_bytes() == before
    assert nmt("translate", "run", folder=tmp_path, stdin=b"eins zwei.\n").returncode == 0


def test_a_config_is_mended_until_there_is_a_checkpoint(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    assert "nowhere.de" in error(nmt("train", "config.yaml", "--set", "data.train.source=nowhere.de", folder=tmp_path))
    assert "data.subwords.size" in error(
        nmt("train", "config.yaml", "--set", "data.subwords.size=999", folder=tmp_path)
    )
    assert nmt("train", "config.yaml", folder=tmp_path).returncode == 0


def test_without_a_valid_corpus_training_must_have_an_end(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG.replace("  valid: {source: valid.de, target: valid.en}\n", ""))
    endless = nmt("train", "config.yaml", "--set", "training.stopping={patience: 3}", folder=tmp_path)
    assert "without data.valid, training.stopping needs updates, epochs or minutes" in error(endless)
    assert nmt("train", "config.yaml", folder=tmp_path).returncode == 0
    assert nmt("translate", "run", folder=tmp_path, stdin=b"eins.\n").stdout.count(b"\n") == 1


def test_the_best_link_is_mended(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True, symlinks=True)
    (tmp_path / "run" / "best").unlink()  # as after a kill between saving and linking
    assert nmt("train", "config.yaml", "--precision", "float32", folder=tmp_path).returncode == 0
    assert (tmp_path / "run" / "best").readlink().name == "step-00000002"


def test_a_loss_that_is_not_finite_names_the_lines(trained: Path, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    done = nmt(
        "train", "config.yaml", "--set", "training.optimizer.learning_rate=1e38", "--set", "training.clip_norm=null",
        "--set", "training.stopping.updates=9", "--set", "training.validation.every=99", folder=tmp_path,
    )  # fmt: skip
    message = error(done)
    assert "is not finite at update" in message
    assert "train.de + train.en lines " in message


@pytest.mark.parametrize("run", ["train.de", "train.de/x"])
def test_a_run_directory_that_cannot_be_made_is_named(trained: Path, run: str) -> None:
    assert error(nmt("train", "config.yaml", "--set", f"run={run}", folder=trained)).startswith(
        f"run: {run}: cannot be"
    )


def test_sections_that_contradict_each_other_are_met_before_any_work(trained: Path, tmp_path: Path) -> None:
    settings = ("--set", "model.embedding.tie=all", "--set", "data.subwords.joint=false", "--set", "run=other")
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True, symlinks=True)
    message = error(nmt("train", "config.yaml", *settings, folder=tmp_path))
    assert "model.embedding.tie: all needs one vocabulary for both sides" in message
    assert not (tmp_path / "other").exists()


def test_a_trained_model_cannot_be_changed(trained: Path) -> None:
    message = error(nmt("translate", "run", "--set", "model.encoder.layers=2", folder=trained))
    assert message == "--set model.encoder.layers: a trained model cannot be changed; train another one"


def test_a_line_too_long_to_align_is_left_blank(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("Hund.\n" + "Hund " * 2000 + "\n")
    done = nmt("align", trained / "run", "--source", "s", "--target", "s", folder=tmp_path)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1] == b""
    assert done.stderr.count(b"warning: line 2: left blank: more subwords on a side than") == 1


def test_cuda_without_one_is_a_clear_error(trained: Path) -> None:
    done = nmt("train", "config.yaml", "--device", "cuda", folder=trained, environment={"CUDA_VISIBLE_DEVICES": ""})
    assert error(done) == "--device cuda: no CUDA device is there; use --device cpu or auto"


def test_an_unknown_device_is_a_clear_error(trained: Path) -> None:
    assert "is none of auto, cpu, cuda, cuda:N" in error(nmt("translate", "run", "--device", "tpu", folder=trained))


# --------------------------------------------------------------------------------------------------- translation


def test_one_line_out_for_each_line_in_whatever_comes(trained: Path) -> None:
    long = b"Hund " * 20_000
    lines = [
        b"eins zwei.", b"", b"   ", b"\t", b"Hund\r", b"bad \xff byte", b"nul \x00 here", "emoji 🙂 é".encode(),
        "line\u2028separator\u0085next".encode(), b"vertical\x0btab", long, b"\r", "\u00a0".encode(), b"no newline",
    ]  # fmt: skip
    done = nmt("translate", "run", "--beam", "2", folder=trained, stdin=b"\n".join(lines))
    assert done.returncode == 0, done.stderr.decode()
    out = done.stdout.decode().split("\n")
    assert out[-1] == ""
    assert len(out) - 1 == len(lines)
    assert [number for number, line in enumerate(out[:-1], 1) if not line.strip()] == [2, 3, 4, 12, 13]
    warnings = [line for line in done.stderr.decode().splitlines() if line.startswith("warning: ")]
    assert any("line 6" in line for line in warnings)
    assert any("line 11" in line for line in warnings)


def test_an_empty_input_gives_an_empty_output(trained: Path) -> None:
    done = nmt("translate", "run", folder=trained, stdin=b"")
    assert (done.returncode, done.stdout) == (0, b"")


def test_files_give_what_pipes_give(trained: Path, tmp_path: Path) -> None:
    source = (trained / "test.de").read_bytes()
    piped = nmt("translate", "run", "--beam", "3", folder=trained, stdin=source).stdout
    out = tmp_path / "out.txt"
    nmt("translate", "run", "--beam", "3", "--input", "test.de", "--output", out, folder=trained)
    assert out.read_bytes() == piped
    (tmp_path / "packed").write_bytes(packed := gzip.compress(source))
    assert nmt("translate", "run", "--beam", "3", "--input", tmp_path / "packed", folder=trained).stdout == piped
    (tmp_path / "cut.gz").write_bytes(packed[:-9])
    message = error(nmt("translate", trained / "run", "--input", "cut.gz", folder=tmp_path))
    assert message == "cut.gz: the compressed file is damaged or cut short; fetch it again"


@pytest.mark.parametrize("precision", ["float32", "auto"])
@pytest.mark.parametrize("beam", ["1", "4"])
def test_a_translation_does_not_depend_on_its_company(trained: Path, beam: str, precision: str) -> None:
    lines = (trained / "train.de").read_text().splitlines()[:12]
    together = package.load(trained / "run", overrides=[f"search.beam={beam}"], precision=precision).translate(lines)
    alone = package.load(
        trained / "run", overrides=[f"search.beam={beam}", "search.batch_tokens=1"], precision=precision
    ).translate(lines)
    assert [each.text for each in together] == [each.text for each in alone]
    # oneDNN's products in bfloat16 may round otherwise by how many rows they have
    tolerance = 0.02 if compute("cpu", precision).precision == "bfloat16" else 1e-4
    assert [each.score for each in together] == pytest.approx([each.score for each in alone], abs=tolerance)


def test_an_input_is_not_overwritten(trained: Path, tmp_path: Path) -> None:
    shutil.copy(trained / "test.de", tmp_path / "text")
    before = (tmp_path / "text").read_bytes()
    run = trained / "run"
    done = nmt("translate", run, "--input", "text", "--output", "./text", folder=tmp_path)
    assert error(done) == "--output text: is an input file of this command; write to another file"
    assert "is an input file" in error(nmt("align", run, "--source", "text", "--output", "text", folder=tmp_path))
    assert (tmp_path / "text").read_bytes() == before


def test_a_line_of_a_huge_file_is_cut_or_refused(trained: Path, tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:  # a hole, which takes no room on the disk
        file.write(b"eins.\n")
        file.truncate(300 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"\nzwei.\n")
    (tmp_path / "long").write_text(f"eins.\n{'eins ' * 20000}\nzwei.\n")
    (tmp_path / "short").write_text("one.\none\ntwo.\n")
    done = nmt("translate", trained / "run", "--input", "huge", folder=tmp_path)
    assert (done.returncode, done.stdout.count(b"\n")) == (0, 3)
    assert b"line 2: 314,572,794 bytes long; cut to the first 65,536" in done.stderr
    for name, message in (("huge", "huge: a line of more than 16 MiB"), ("long", "long:2: 100,000 characters are")):
        for command in (
            ("score", trained / "run", "--source", name, "--target", "short"),
            ("align", trained / "run", "--source", "short", "--target", name),
            ("align", trained / "run", "--source", name),
            ("evaluate", "--hypothesis", name, "--reference", "short"),
            ("evaluate", trained / "run", "--source", "short", "--reference", name),
        ):
            done = nmt(*command, folder=tmp_path)
            if name == "long" and command[0] != "evaluate":
                assert (done.returncode, done.stdout.count(b"\n")) == (0, 3), command
                assert done.stderr.count(b"warning: line 2: ") > 0, command
            else:
                assert message in error(done), command


def test_a_line_over_the_limit_is_cut_with_a_warning(trained: Path) -> None:
    done = nmt(
        "translate", "run", "--set", "search.max_source_tokens=5", folder=trained, stdin=b"Hund und Katze und Hund.\n"
    )
    assert done.stdout.count(b"\n") == 1
    assert b"line 1: its last " in done.stderr


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("nowhere", "nowhere: no such run directory, checkpoint or config"),
        ("train.de", "train.de: no such run directory, checkpoint or config; to translate a file: nmt translate"),
        (".", ".: holds no checkpoint yet"),
        ("damaged.zip", "damaged.zip: cannot be unpacked: File is not a zip file"),
        ("other.yaml", "other.yaml: its run untrained has not been trained yet; nmt train other.yaml"),
    ],
)
def test_a_model_that_is_none_is_named(trained: Path, model: str, message: str) -> None:
    (trained / "other.yaml").write_text(CONFIG.replace("run: run", "run: untrained"))
    (trained / "damaged.zip").write_bytes(b"PK")
    assert error(nmt("translate", model, folder=trained)).startswith(message)


def test_a_model_is_found_by_run_checkpoint_or_config(trained: Path) -> None:
    wanted = nmt("translate", "run", folder=trained, stdin=b"eins zwei.\n").stdout
    for model in ("run/best", "run/latest", "run/checkpoints/step-00000002", "config.yaml"):
        assert nmt("translate", model, folder=trained, stdin=b"eins zwei.\n").stdout == wanted


def test_without_a_name_the_last_run_is_taken_and_named(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    shutil.copytree(trained / "run", tmp_path / "runs" / "old", symlinks=True)
    shutil.copytree(trained / "run", tmp_path / "runs" / "new", symlinks=True)
    both = "runs/: cannot be told which of runs/new, runs/old was trained last; name one"
    assert both in error(nmt("translate", folder=tmp_path))
    record_last_run(tmp_path / "runs" / "new")
    done = nmt("translate", folder=tmp_path, stdin=b"eins zwei.\n")
    assert done.returncode == 0, done.stderr.decode()
    assert "runs/new" in done.stderr.decode()
    record_last_run(tmp_path / "runs" / "old")
    os.utime(tmp_path / "runs" / "old" / "latest", (0, 0), follow_symlinks=False)  # by a clock that was set back
    assert "runs/old" in nmt("translate", folder=tmp_path, stdin=b"eins zwei.\n").stderr.decode()
    (tmp_path / "empty").mkdir()
    assert "no trained model under runs/" in error(nmt("translate", folder=tmp_path / "empty"))


def test_damaged_and_foreign_checkpoints_are_named(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True, symlinks=True)
    weights = tmp_path / "run" / "best" / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    assert "model.safetensors: unreadable checkpoint" in error(nmt("translate", "run", folder=tmp_path))
    weights.write_bytes(whole)
    other = tmp_path / "other"
    other.mkdir()
    write_corpus(other)
    (other / "config.yaml").write_text(CONFIG.replace("size: 60", "size: 50"))
    assert nmt("prepare", "config.yaml", folder=other).returncode == 0
    shutil.copy(other / "run" / "prepared" / "subwords.model", tmp_path / "run" / "subwords.model")
    assert "was trained with another vocabulary" in error(nmt("translate", "run", folder=tmp_path))


# ----------------------------------------------------------------------------------------- evaluation, alignment


FEEDS = ("teacher_forcing", "free_running", "scheduled_sampling")


def test_evaluate_equals_sacrebleu_and_reports_both_modes(trained: Path) -> None:
    done = nmt("evaluate", "run", "--source", "test.de", "--reference", "test.en", "--json", folder=trained)
    assert done.returncode == 0, done.stderr.decode()
    tree = json.loads(done.stdout)
    assert tree["teacher_forcing"]["perplexity"] > 1
    assert list(tree) == ["BLEU", "chrF2", "TER", *FEEDS, "exposure_bias"]
    assert all(list(tree[feed]) == ["perplexity", "token_accuracy", "tokens"] for feed in FEEDS)
    ratio = tree["free_running"]["perplexity"] / tree["teacher_forcing"]["perplexity"]
    assert tree["exposure_bias"] == pytest.approx(ratio)
    hypothesis = trained / "hypothesis.en"
    hypothesis.write_bytes(nmt("translate", "run", "--input", "test.de", folder=trained).stdout)
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        "test.en",
        "-i",
        "hypothesis.en",
        "-m",
        "bleu",
        "chrf",
        "ter",
        "-w",
        "12",
    ]
    theirs = {
        each["name"]: each
        for each in json.loads(subprocess.run(command, cwd=trained, capture_output=True, check=True).stdout)
    }
    for name in ("BLEU", "chrF2", "TER"):
        assert tree[name]["value"] == pytest.approx(theirs[name]["score"], abs=1e-9)
    scored = nmt("evaluate", "--hypothesis", hypothesis, "--reference", "test.en", folder=trained)
    assert scored.stdout.decode().splitlines()[0].startswith("BLEU|nrefs:1|case:mixed")


def test_evaluate_prepares_text_as_sacrebleu_does(tmp_path: Path) -> None:
    """Case counts by default, and 13a does not cut at an apostrophe, where intl does."""
    (tmp_path / "h").write_text("The dog's ball\nA Man in a car .\nTwo dogs run\n", encoding="utf-8")
    (tmp_path / "r").write_text("the Dog’s ball\nA man in a CAR.\nTwo dogs run\n", encoding="utf-8")
    figures = set()
    for options, theirs in (
        ([], []),
        (["--lowercase"], ["--lowercase", "--chrf-lowercase"]),
        (["--tokenize", "intl"], ["--tokenize", "intl"]),
        (["--tokenize", "char", "--lowercase"], ["--tokenize", "char", "--lowercase", "--chrf-lowercase"]),
    ):
        done = nmt("evaluate", "--hypothesis", "h", "--reference", "r", *options, "--json", folder=tmp_path)
        tree = json.loads(done.stdout)
        command = [sys.executable, "-m", "sacrebleu", "r", "-i", "h", "-m", "bleu", "chrf", "-w", "12", *theirs]
        for each in json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout):
            assert tree[each["name"]]["value"] == pytest.approx(each["score"], abs=1e-9)
        figures.add(tree["BLEU"]["value"])
    assert len(figures) == 4


def test_evaluate_without_files_scores_the_test_corpora_of_the_config(trained: Path) -> None:
    assert error(nmt("evaluate", "run", folder=trained)) == (
        "--source and --reference are missing, and the config has no data.test; give one or the other"
    )
    test = "data.test=[{source: test.de, target: test.en}, {source: valid.de, target: valid.en}]"
    by_config = json.loads(nmt("evaluate", "run", "--set", test, "--json", folder=trained).stdout)
    given = nmt("evaluate", "run", "--source", "valid.de", "--reference", "valid.en", "--json", folder=trained)
    assert list(by_config) == ["test.de + test.en", "valid.de + valid.en"]
    assert by_config["valid.de + valid.en"] == json.loads(given.stdout)


def test_test_corpora_that_cannot_be_read_are_named_with_the_way_out(trained: Path) -> None:
    (trained / "messy.tsv").write_text("eins\tone\nzwei\n" + "drei\tthree\n" * 40)
    for pairs, faulty, why in (
        ("none.tsv", "drop", "none.tsv: no such file"),
        ("messy.tsv", "refuse", "messy.tsv: 1 of 42 rows are no pairs"),
    ):
        settings = ("--set", f"data.test={{pairs: {pairs}}}", "--set", f"data.faulty={faulty}")
        said = error(nmt("evaluate", "run", *settings, folder=trained))
        assert said.startswith(why), said
        assert said.endswith("(data.test of the model; --source and --reference name others)")


def test_evaluate_refuses_files_of_different_lengths(trained: Path) -> None:
    done = nmt("evaluate", "run", "--source", "test.de", "--reference", "train.en", folder=trained)
    assert error(done) == "test.de has 10 lines, but train.en has 60: they must go together line by line"


def test_perplexity_is_that_of_plain_loops(trained: Path) -> None:
    import torch

    translator = package.load(trained / "run", precision="float32")
    sources, targets = ((trained / f"test.{side}").read_text().splitlines() for side in ("de", "en"))
    model, tokenizers = translator.trained.model, translator.trained.tokenizers
    total, right, count = 0.0, 0, 0
    for source, target in zip(sources, targets, strict=True):
        memory = model.encode(torch.tensor([[*tokenizers.source.encode(source), 3]]))
        state, token = model.start(memory), torch.tensor([2])
        for gold in [*tokenizers.target.encode(target), 3]:
            step = model.step(token, memory, state)
            state, logits = step.state, step.logits_NV
            total -= float(logits[0].log_softmax(-1)[gold])
            right += int(logits[0].argmax()) == gold
            count += 1
            token = torch.tensor([gold])
    prediction = translator.predict(sources, targets)
    assert prediction.tokens == count
    assert prediction.loss == pytest.approx(total / count, rel=1e-4)
    assert prediction.accuracy == pytest.approx(100 * right / count)


def test_evaluate_by_length_scores_each_bucket_as_its_lines(trained: Path, tmp_path: Path) -> None:
    sides = {side: (trained / f"test.{side}").read_text().splitlines() for side in ("de", "en")}
    texts = {"s": ["", *sides["de"]], "h": ["x", *reversed(sides["en"])], "r": ["one", *sides["en"]]}
    for name, lines in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    arguments = ("evaluate", "--source", "s", "--hypothesis", "h", "--reference", "r", "--by-length")
    done = nmt(*arguments, "--length-edges", "3,5", "--json", "--plot", "a.png", folder=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    buckets = json.loads(done.stdout)["by_length"]
    assert [(each["first_words"], each["last_words"]) for each in buckets] == [(0, 0), (1, 3), (4, 5), (6, None)]
    for each in buckets:
        last = 99 if each["last_words"] is None else each["last_words"]
        inside = [row for row, line in enumerate(texts["s"]) if each["first_words"] <= len(line.split()) <= last]
        assert each["sentences"] == len(inside)
        hypotheses, references = ([texts[name][row] for row in inside] for name in ("h", "r"))
        for score in scores(hypotheses, references, metrics=("bleu", "chrf")):
            assert each[score.name]["value"] == score.value
            assert each[score.name]["low"] <= score.value <= each[score.name]["high"]
    lines = nmt(*arguments, folder=tmp_path).stdout.decode().splitlines()
    assert [line.split("|")[0] for line in lines[:3]] == ["BLEU", "chrF2", "TER"]
    assert lines[3] == ""
    assert [line.split()[0] for line in lines[4:]] == ["source", "0", "1-5", "6-10", "*"]
    assert sum(int(line.split()[1].rstrip("*")) for line in lines[5:8]) == 11


def test_evaluate_by_length_takes_the_models_translations_of_each_corpus(trained: Path, tmp_path: Path) -> None:
    test = "data.test=[{source: test.de, target: test.en}, {source: valid.de, target: valid.en}]"
    arguments = ("--by-length", "--length-edges", "3", "--json", "--set", "search.beam=1")
    picture = tmp_path / "a.svg"
    done = nmt("evaluate", "run", "--set", test, *arguments, "--plot", picture, folder=trained)
    assert done.returncode == 0, done.stderr.decode()
    assert b"<svg" in picture.read_bytes()
    tree = json.loads(done.stdout)
    sources, references = ((trained / f"valid.{side}").read_text().splitlines() for side in ("de", "en"))
    translator = package.load(trained / "run", overrides=["search.beam=1"])
    hypotheses = [each.text for each in translator.translate(sources)]
    expected = as_tree(by_length(sources, hypotheses, references, edges=(3,)))
    assert tree["valid.de + valid.en"]["by_length"] == expected
    assert sum(each["sentences"] for each in tree["test.de + test.en"]["by_length"]) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--length-edges", "5"], "--length-edges belongs to the scores by length; give --by-length as well"),
        (["--plot", "a.png"], "--plot belongs to the scores by length; give --by-length as well"),
        (
            ["--hypothesis", "test.en", "--reference", "test.en", "--by-length"],
            "--by-length needs the length of each source; give --source beside --hypothesis",
        ),
        (
            ["run", "--hypothesis", "test.en", "--reference", "test.en", "--source", "test.de", "--by-length"],
            "--hypothesis scores a file without a model; leave out MODEL, or --hypothesis",
        ),
        (
            ["--hypothesis", "test.en", "--reference", "test.en", "--source", "test.de"],
            "--hypothesis scores a file without a model; leave out MODEL and --source, or --hypothesis",
        ),
        (
            ["--hypothesis", "test.en", "--reference", "test.en", "--beam", "2"],
            "--hypothesis needs no model; leave out --set, --device, --precision and search options",
        ),
        (
            ["--by-length", "--length-edges", "9,3"],
            "--length-edges 9,3: give rising whole numbers of at least 1, such as 5,10,20",
        ),
        (["--by-length", "--plot", "a.jpg"], "a.jpg: a picture is a file that ends in .png or .svg; name it so"),
        (
            ["--by-length", "--plot", "nowhere/a.png"],
            "nowhere/a.png: the folder nowhere for this picture does not exist; make it first",
        ),
        (
            ["--hypothesis", "test.en", "--reference", "test.en", "--source", "train.de", "--by-length"],
            "train.de has 60 lines, but test.en has 10: they must go together line by line",
        ),
        (
            ["--hypothesis", "test.en", "--reference", "test.en", "--tokenize", "moses"],
            (
                "--tokenize moses: is not a tokenizer for BLEU; choose one of 13a, char, flores101, flores200, intl, "
                "ja-mecab, ko-mecab, none, spBLEU-1K, spm, zh"
            ),
        ),
    ],
    ids=[
        "edges",
        "plot",
        "no-source",
        "model",
        "source",
        "search",
        "falling",
        "suffix",
        "folder",
        "lines",
        "tokenizer",
    ],
)
def test_flags_of_evaluate_that_make_no_sense_together(trained: Path, arguments: list[str], message: str) -> None:
    model = [] if "--hypothesis" in arguments else ["run"]
    done = nmt("evaluate", *model, *arguments, folder=trained)
    assert error(done) == message
    assert done.stdout == b""


def test_perplexity_reading_its_own_guesses_is_that_of_plain_loops(trained: Path) -> None:
    from nmt.models.feed import FreeRunning

    translator = package.load(trained / "run", precision="float32")
    sources, targets = ((trained / f"test.{side}").read_text().splitlines() for side in ("de", "en"))
    total, right, count, other = 0.0, 0, 0, 0
    for source, target in zip(sources, targets, strict=True):
        for gold, logits_V in _steps(translator, source, target, itertools.repeat(False)):
            total -= float(logits_V.log_softmax(-1)[gold])
            right += int(logits_V.argmax()) == gold
            other += int(logits_V.argmax()) != gold
            count += 1
    assert other > 5  # else nothing is told apart from teacher forcing
    prediction = translator.predict(sources, targets, FreeRunning())
    assert prediction.tokens == count
    assert prediction.loss == pytest.approx(total / count, rel=1e-4)
    assert prediction.accuracy == pytest.approx(100 * right / count)
    assert prediction.loss != pytest.approx(translator.predict(sources, targets).loss, rel=1e-4)


def test_scheduled_sampling_reads_gold_or_guess_and_draws_the_same_each_time(trained: Path) -> None:
    import torch

    from nmt.workflows.evaluate import feeds

    feed = feeds()["scheduled_sampling"]
    translator = package.load(trained / "run", precision="float32")
    sources, targets = ((trained / f"test.{side}").read_text().splitlines() for side in ("de", "en"))
    read = set()
    for source, target in zip(sources, (line.split()[0] for line in targets), strict=True):
        steps = len(translator.trained.tokenizers.target.encode(target))
        losses = {
            coins: -sum(
                float(logits_V.log_softmax(-1)[gold]) for gold, logits_V in _steps(translator, source, target, coins)
            )
            for coins in itertools.product([False, True], repeat=steps)
        }
        found = translator.predict([source], [target], feed)
        best = min(losses, key=lambda coins: abs(losses[coins] - found.loss * found.tokens))
        assert losses[best] == pytest.approx(found.loss * found.tokens, abs=1e-4)
        read.update(best)
    assert read == {False, True}
    state = torch.get_rng_state()
    first = translator.predict(sources, targets, feed)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(7)
    assert translator.predict(sources, targets, feed) == first
    losses_of = {name: translator.predict(sources, targets, each).loss for name, each in feeds().items()}
    assert len(set(losses_of.values())) == 3


def _steps(
    translator: Translator, source: str, target: str, coins: Iterable[bool]
) -> Iterator[tuple[int, torch.Tensor]]:
    """Each gold token with the logits for it; after it the model reads it or its own guess, as the coin says."""
    import torch

    model, tokenizers = translator.trained.model, translator.trained.tokenizers
    memory = model.encode(torch.tensor([[*tokenizers.source.encode(source), 3]]))
    state, token = model.start(memory), torch.tensor([2])
    for gold, is_gold in zip([*tokenizers.target.encode(target), 3], itertools.chain(coins, [True]), strict=False):
        step = model.step(token, memory, state)
        state = step.state
        yield gold, step.logits_NV[0]
        token = torch.tensor([gold if is_gold else int(step.logits_NV[0].argmax())])


def test_align_formats_agree_and_keep_every_line(trained: Path, tmp_path: Path) -> None:
    sources = [*(trained / "test.de").read_text().splitlines()[:4], "", "Hund"]
    targets = [*(trained / "test.en").read_text().splitlines()[:4], "dog", "  "]
    (tmp_path / "s").write_text("".join(f"{line}\n" for line in sources))
    (tmp_path / "t").write_text("".join(f"{line}\n" for line in targets))
    arguments = ("align", trained / "run", "--source", "s", "--target", "t", "--set", "alignment=argmax")
    links = nmt(*arguments, folder=tmp_path).stdout.decode().split("\n")
    assert len(links) == 7
    assert links[4:] == ["", "", ""]
    records = [json.loads(line) for line in nmt(*arguments, "--format", "jsonl", folder=tmp_path).stdout.splitlines()]
    for record, line, source, target in zip(records, links, sources, targets, strict=False):
        assert " ".join(f"{s}-{t}" for s, t in record["links"]) == line
        assert record["source_words"] == source.split()
        assert record["target_words"] == target.split()
        weights = np.array(record["weights"])
        if source.strip() and target.strip():
            assert weights.shape == (len(target.split()), len(source.split()))
            np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
            assert all(0 <= s < len(source.split()) and 0 <= t < len(target.split()) for s, t in record["links"])
    assert nmt(*arguments, "--format", "npz", "--output", "a.npz", folder=tmp_path).returncode == 0
    with np.load(tmp_path / "a.npz") as file:
        assert file["shapes"].shape == (6, 2)
        np.testing.assert_allclose(
            file["weights"][: weights_of(records[0])], np.ravel(records[0]["weights"]), atol=1e-5
        )
    assert nmt(*arguments, "--format", "png", "--output", "pictures", folder=tmp_path).returncode == 0
    assert len(list((tmp_path / "pictures").iterdir())) == 6


def weights_of(record: dict[str, list[list[float]]]) -> int:
    return int(np.size(record["weights"]))


@pytest.mark.parametrize("format", ["jsonl", "npz"])
def test_a_blank_line_has_an_empty_alignment_at_the_level_of_subwords_too(
    trained: Path, tmp_path: Path, format: str
) -> None:
    (tmp_path / "s").write_text("Hund.\n\nKatze.\n")
    (tmp_path / "t").write_text("dog.\ndog.\n\n")
    arguments = ("--source", "s", "--target", "t", "--level", "subword", "--format", format, "--output", "out")
    done = nmt("align", trained / "run", *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    records = list((read_jsonl if format == "jsonl" else read_npz)(tmp_path / "out"))
    assert [each.level for each in records] == ["subword"] * 3
    assert [each.target_words for each in records] == [("dog.",), ("dog.",), ()]
    assert records[1].links == records[2].links == ()


def test_align_by_subwords_shows_the_pieces_and_their_end(trained: Path, tmp_path: Path) -> None:
    done = nmt(
        "align",
        "run",
        "--source",
        "test.de",
        "--target",
        "test.en",
        "--format",
        "jsonl",
        "--level",
        "subword",
        folder=trained,
    )
    record = json.loads(done.stdout.splitlines()[0])
    assert record["source_tokens"][-1] == record["target_tokens"][-1] == "</s>"
    np.testing.assert_allclose(np.sum(record["weights"], axis=1), 1, atol=1e-4)


def test_gold_prints_the_error_rate_and_names_bad_links(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "gold").write_text("0-0\n" * 10)
    arguments = ("align", "run", "--source", "test.de", "--target", "test.en", "--gold")
    done = nmt(*arguments, tmp_path / "gold", folder=trained)
    assert done.stderr.decode().splitlines()[-1].startswith("AER ")
    (tmp_path / "gold").write_text("0-0\n" * 9 + "0-99\n")
    assert "gold:10" in error(nmt(*arguments, tmp_path / "gold", folder=trained))


def test_free_running_aligns_the_models_own_words(trained: Path) -> None:
    done = nmt("align", "run", "--source", "test.de", "--free-running", "--format", "jsonl", folder=trained)
    own = nmt("translate", "run", "--input", "test.de", folder=trained).stdout.decode().splitlines()
    assert [json.loads(line)["target_words"] for line in done.stdout.splitlines()] == [line.split() for line in own]


def test_align_refuses_files_of_different_lengths(trained: Path) -> None:
    done = nmt("align", "run", "--source", "test.de", "--target", "train.en", folder=trained)
    assert error(done) == "test.de has 10 lines, but train.en has more: they must go together line by line"
