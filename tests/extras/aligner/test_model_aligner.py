"""`nmt aligner`, and what a run then aligns by: `nmt align --method trained`. The command line runs in this process."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import nmt as package
from nmt.core.errors import InputError
from nmt.core.files import content_hash
from nmt.extras.aligner import align as text_workflow
from nmt.extras.aligner import model_aligner as workflow
from nmt.extras.aligner.aligner import RULE, IndexedSentences, between_words, learn_aligner, load_aligner, save_aligner
from nmt.extras.aligner.layer import load_layer, weights
from nmt.training.run_directory import MODEL, STATE, TRAINING, write_checksums
from nmt.translator.find_run import ALIGNER, LAYER
from tests.workflows.runs import Command, in_process, sentences

WRONG = "many links will be wrong; give it some thousand pairs"


@pytest.fixture
def nmt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Runs a command in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)

    return in_process(capsys)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    for name, side in (("x.de", 0), ("x.en", 1)):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in sentences(80, seed=1)), encoding="utf-8")
    (folder / "blank").write_text("\n" * 80)
    (folder / "short").write_text("eins\n")
    (folder / "empty").write_text("")
    (folder / "bytes").write_bytes(b"\xff\xfe\n" * 80)
    return folder


@pytest.fixture(scope="module")
def taught(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a run that has learnt to align from its training pairs."""
    folder = tmp_path_factory.mktemp("taught")
    shutil.copytree(trained, folder / "x", symlinks=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workflow, "UPDATES", 20)
        patch.chdir(folder / "x")
        workflow.learn_for_model("run", [], source=None, target=None, seed=1, device="cpu", precision="float32")
    return folder / "x"


# ---------------------------------------------------------------------------------------------------------- from text


def test_a_file_is_what_python_learns(nmt: Command, text: Path, tmp_path: Path) -> None:
    done = nmt("aligner", "-s", text / "x.de", "-t", text / "x.en", "-o", "x.aligner")
    assert (done.code, done.stdout) == (0, "")
    assert done.stderr.splitlines() == [
        "aligner  learning from 80 pairs",
        f"warning: the aligner has learnt from only 80 different pairs, so {WRONG}",
        "wrote x.aligner; use it with nmt align --aligner x.aligner",
    ]
    lines = [
        IndexedSentences(line.split() for line in (text / name).read_text().splitlines()) for name in ("x.de", "x.en")
    ]
    save_aligner(learn_aligner(*lines), tmp_path / "y")
    assert (tmp_path / "x.aligner").read_bytes() == (tmp_path / "y").read_bytes()
    assert (
        nmt("aligner", "-s", text / "x.de", "-t", text / "x.en", "-o", "x.aligner", "--quiet").stderr
        == done.stderr.splitlines(True)[1]
    )


def test_continue_learns_on_from_a_file(nmt: Command, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning from two halves of a text in turn equals learning from both as two blocks; words that only the second
    half has are known."""
    for name in ("x.de", "x.en"):
        lines = (text / name).read_text().splitlines(keepends=True)
        Path(f"1{name}").write_text("".join(lines[:40]))
        Path(f"2{name}").write_text("".join([*lines[40:79], f"neu{name[2:]}\n"]))
        Path(name).write_text(Path(f"1{name}").read_text() + Path(f"2{name}").read_text())
    assert nmt("aligner", "-s", "1x.de", "-t", "1x.en", "-o", "half").code == 0
    assert nmt("aligner", "--continue", "half", "-s", "2x.de", "-t", "2x.en", "-o", "both").code == 0
    monkeypatch.setattr(text_workflow, "BLOCK_PAIRS", 40)
    assert nmt("aligner", "-s", "x.de", "-t", "x.en", "-o", "blocks").code == 0
    assert Path("both").read_bytes() == Path("blocks").read_bytes()
    Path("de").write_text("neude\n")
    Path("en").write_text("neuen\n")
    done = nmt("align", "--aligner", "both", "-s", "de", "-t", "en", "--format", "jsonl")
    assert json.loads(done.stdout)["weights"][0][0] > 0.5


OUT = ["-o", "out"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["-s", "x.de"], "--source and --target go together; give both"),
        (["-t", "x.de", *OUT], "--source and --target go together; give both"),
        (OUT, "--output needs text to learn from; give --source and --target as well"),
        (["run", "-s", "x.de", "-t", "x.en", *OUT], "leave out MODEL, or --output"),
        (["-s", "x.de", "-t", "x.en", "--seed", "0", *OUT], "leave out --seed, or --output"),
        (["-s", "x.de", "-t", "x.en", "--set", "a=b", *OUT], "leave out --set, or --output"),
        (["-s", "x.de", "-t", "x.en", "--device", "cpu", *OUT], "leave out --device, or --output"),
        (["-s", "x.de", "-t", "x.en", "--precision", "float32", *OUT], "leave out --precision, or --output"),
        (["--continue", "x.de"], "--continue goes on from an aligner that needs no model; give --output as well"),
        (["--continue", "x.de", "-s", "x.de", "-t", "x.en", *OUT], "x.de: is not an aligner, or damaged"),
        (["-s", "no", "-t", "x.en", *OUT], "no: no such file"),
        (["-s", "x.de", "-t", "no", *OUT], "no: no such file"),
        (["-s", ".", "-t", "x.en", *OUT], ".: is a folder; name a file"),
        (["-s", "x.de", "-t", "short", *OUT], "short has 1 lines, but x.de has more: they must go together"),
        (["-s", "x.de", "-t", "blank", *OUT], "blank: holds no word to learn from"),
        (["-s", "empty", "-t", "empty", *OUT], "empty: holds no word to learn from"),
        (["-s", "bytes", "-t", "x.en", *OUT], "bytes has 1 lines"),
        (["-s", "x.de", "-t", "x.en", "-o", "x.de"], "--output x.de: is an input file of this command"),
        (["-s", "x.de", "-t", "x.en", "-o", "."], "--output .: cannot be written: is a folder"),
        (["-s", "x.de", "-t", "x.en", "-o", "no/x"], "--output no/x: cannot be written: folder no does not exist"),
        (
            ["-s", "x.de", "-t", "x.en", "-o", "x.en/x"],
            "--output x.en/x: cannot be written: folder x.en does not exist",
        ),
        (["no-run", "-s", "x.de", "-t", "x.en"], "no-run: no such run directory, checkpoint or config"),
        (["-s", "x.de", "-t", "x.en", "--seed", "-1"], "--seed: expected at least 0, found -1"),
        (["--sed", "1"], "--sed: no such option"),
        (["--learn"], "--learn: no such option"),
    ],
)
def test_mistakes(nmt: Command, text: Path, tmp_path: Path, arguments: list[str], error: str) -> None:
    for each in text.iterdir():
        shutil.copy(each, tmp_path)
    before = {each.name for each in tmp_path.iterdir()}
    assert error in nmt("aligner", *arguments).error
    assert {each.name for each in tmp_path.iterdir()} == before


# -------------------------------------------------------------------------------------------------------- for a model


def test_a_run_learns_from_its_training_pairs(trained: Path, taught: Path) -> None:
    lines = [
        IndexedSentences(line.split() for line in (trained / f"train.{side}").read_text().splitlines())
        for side in ("de", "en")
    ]
    save_aligner(learn_aligner(*lines), taught / "by hand")
    assert (taught / "by hand").read_bytes() == (taught / "run" / ALIGNER).read_bytes()
    for name in ("best", "latest"):  # the translation model is what it was
        one, other = (folder / "run" / name / "model.safetensors" for folder in (trained, taught))
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("share", [None, 0.0, 0.2])
def test_trained_is_the_mean_of_aligner_layer_and_attention(taught: Path, share: float | None) -> None:
    overrides = [] if share is None else [f"alignment.aligner_share={share}"]
    share = 0.5 if share is None else share
    translator = package.load(taught / "run", precision="float32", overrides=overrides)
    sources, targets = ["Hund und Katze.", "", "zwei Hund", "Xaver", "..."], ["dog and cat.", "x", " ", "Xaver", "!"]
    found = translator.align(sources, targets, method="trained")
    looks = translator.align(sources, targets, method="attention")
    assert [each.links for each in found[1:3]] == [(), ()]
    assert [each.weights_TS.shape for each in found[1:3]] == [(1, 0), (0, 2)]
    layer = load_layer(
        taught / "run" / LAYER, model=content_hash(taught / "run/best/model.safetensors").hex(), remedy=""
    )
    aligner, tokenizers = load_aligner(taught / "run" / ALIGNER), translator.trained.tokenizers
    for row in (0, 3, 4):
        one, other = tokenizers.source.encode_words(sources[row]), tokenizers.target.encode_words(targets[row])
        compute = translator.trained.compute
        (pieces,) = weights(layer, translator.trained.model, [one.ids], [other.ids], compute, batch_tokens=100)
        speaks = [[row == 4 or piece != "." for piece in each.written] for each in (other, one)]
        assert [each.count(False) for each in speaks] == ([1, 1] if row == 0 else [0, 0])
        counts = [
            [np.array([np.sum(np.array(each.word_of_piece)[says] == word) for word in range(len(each.words))])]
            for each, says in zip((other, one), speaks, strict=True)
        ]
        by_layer = between_words(*(matrix[np.ix_(*speaks)][None] for matrix in pieces), *counts)[:, 0]
        (by_aligner,) = aligner.matrices([one.words], [other.words])
        look = looks[row].weights_TS  # the aligner's share, and half of the rest each of the others
        forward, backward = (
            (mine + look) / 2 * (1 - share) + its * share for mine, its in zip(by_layer, by_aligner, strict=True)
        )
        np.testing.assert_allclose(found[row].weights_TS, np.sqrt(forward * backward), atol=1e-5)
        assert found[row].links == RULE.links(found[row].weights_TS)
    # Other pairs beside it change nothing.
    (alone,) = translator.align(sources[:1], targets[:1], method="trained")
    np.testing.assert_allclose(alone.weights_TS, found[0].weights_TS, atol=1e-5)


def test_a_word_without_subwords_is_the_aligners_alone(taught: Path) -> None:
    """U+2581 is white space to SentencePiece, and a word to `str.split`."""
    translator = package.load(taught / "run", precision="float32")
    (found,) = translator.align(["Hund \u2581"], ["dog \u2581"], method="trained")
    ((forward_IJ, backward_IJ),) = load_aligner(taught / "run" / ALIGNER).matrices(
        [found.source_words], [found.target_words]
    )
    assert found.source_words == ("Hund", "\u2581")
    empty = [not any(word == 1 for word in translator.trained.tokenizers.source.encode_words(side).word_of_piece)
             for side in ("Hund \u2581", "dog \u2581")]  # fmt: skip
    assert empty == [True, True]
    assert found.weights_TS[1, 1] == pytest.approx(np.sqrt(forward_IJ[1, 1] * backward_IJ[1, 1]), abs=1e-6)


def test_the_command_line_aligns_as_python(taught: Path, nmt: Command) -> None:
    pair = ("-s", taught / "test.de", "-t", taught / "test.en", "--precision", "float32")
    translator = package.load(taught / "run", precision="float32")
    sources, targets = ((taught / f"test.{side}").read_text().splitlines() for side in ("de", "en"))
    for method in ("trained", "shifted-attention"):
        done = nmt("align", taught / "run", *pair, "--method", method)
        expected = translator.align(sources, targets, method=method)
        assert (done.code, done.stdout.splitlines()) == (
            0,
            [" ".join(f"{s}-{t}" for s, t in each.links) for each in expected],
        )
    assert "trained" in translator.aligner.methods
    compared = nmt("align", taught / "run", *pair, "--compare")
    assert compared.code == 0
    assert "shifted-attention - trained" in compared.stdout
    page = ("--format", "html", "-o", "page.html", "--view", "trained", "--view", "shifted-attention:head1")
    assert nmt("align", taught / "run", *pair, *page).code == 0
    for option in (["--method", "shifted-attention", "--heads", "head1"], ["--text", "--method", "trained"]):
        assert nmt("align", taught / "run", *pair, *option).code == 0
    assert nmt("align", taught / "run", *pair, "--method", "trained", "--level", "subword").error == (
        "--level subword: --method trained aligns words; leave it out"
    )
    assert "which --method trained does not look at" in (
        nmt("align", taught / "run", *pair, "--method", "trained", "--heads", "head1").error
    )
    assert "which trained does not look at" in (
        nmt("align", taught / "run", *pair, "--format", "html", "-o", "p", "--view", "trained:head1").error
    )


def copy(taught: Path, tmp_path: Path) -> Path:
    shutil.copytree(taught / "run", tmp_path / "run", symlinks=True)
    return tmp_path / "run"


def test_what_is_missing_damaged_or_anothers_names_the_remedy(trained: Path, taught: Path, tmp_path: Path) -> None:
    run = copy(taught, tmp_path)

    def refused() -> str:
        with pytest.raises(InputError) as refusal:
            package.load(run).align(["eins"], ["one"], method="trained")
        return str(refusal.value)

    (run / LAYER).write_bytes((run / LAYER).read_bytes()[:-9])
    remedy = f"; make it with: nmt aligner {run}/best"
    assert refused() == f"{run / LAYER}: is not an alignment layer, or damaged{remedy}"
    shutil.copy(taught / "run" / LAYER, run)
    (run / ALIGNER).write_bytes(b"")
    assert refused() == f"{run / ALIGNER}: is not an aligner, or damaged; make one with nmt aligner"
    shutil.copy(taught / "run" / ALIGNER, run)
    weights_file = (run / "best" / "model.safetensors").resolve()
    data = bytearray(weights_file.read_bytes())
    data[-1] ^= 1
    weights_file.unlink()
    weights_file.write_bytes(data)
    write_checksums(weights_file.parent, (MODEL, TRAINING, STATE))
    assert refused() == f"{run / LAYER}: was taught on other weights than the model has now{remedy}"
    (run / LAYER).unlink()
    assert refused() == f"method='trained': {run / LAYER} is not there{remedy}"
    assert "trained" not in package.load(run).aligner.methods
    with pytest.raises(InputError, match="is not there; make it with: nmt aligner "):
        package.load(trained / "run").align(["eins"], ["one"], method="trained")


def test_seeds(taught: Path, text: Path, tmp_path: Path, nmt: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The learner also accepts other pairs than those of the run."""
    monkeypatch.setattr(workflow, "UPDATES", 5)
    run = copy(taught, tmp_path)
    found = []
    for seed in (1, 1, 2):
        done = nmt("aligner", run, "-s", text / "x.de", "-t", text / "x.en", "--seed", str(seed))
        assert done.code == 0, done.stderr
        assert done.stderr.splitlines()[-1] == (
            f"wrote {run / ALIGNER} and {run / LAYER}; use them with nmt align {run} --method trained"
        )
        found.append(((run / ALIGNER).read_bytes(), (run / LAYER).read_bytes()))
    assert found[0] == found[1]
    assert found[1][0] == found[2][0]
    assert found[1][1] != found[2][1]


def test_mistakes_with_a_model(taught: Path, text: Path, tmp_path: Path, nmt: Command, trained: Path) -> None:
    run = copy(taught, tmp_path)
    (tmp_path / "one").write_text("eins\n")
    limit = ("--set", "search.max_source_tokens=1")
    assert nmt("aligner", run, "-s", text / "x.de", "-t", text / "x.en", *limit).error == (
        "there is nothing to learn from: no pair has words on both sides that fit the model"
    )
    os.mkfifo(tmp_path / "pipe")  # safetensors would put a file in its place
    for device in (tmp_path / "pipe", Path("/dev/stdout")):
        refused = nmt("aligner", "-s", text / "x.de", "-t", text / "x.en", "-o", device).error
        assert refused == f"--output {device}: cannot be written: name a regular file, in a folder with write access"
    (tmp_path / "long").write_text("eins " * 1001)
    done = nmt("aligner", run, "-s", tmp_path / "long", "-t", tmp_path / "one")
    assert f"warning: left out: 1 pairs of {tmp_path}/long and {tmp_path}/one with more than 1000 words" in done.stderr
    assert done.stderr.splitlines()[-1].endswith("no pair has words on both sides that fit the model")
    refused = nmt("aligner", run, "-s", text / "x.de", "-t", text / "blank").error
    assert refused == f"{text / 'blank'}: holds no word to learn from"
    for name in (ALIGNER, LAYER):
        assert (run / name).read_bytes() == (taught / "run" / name).read_bytes()
    shutil.rmtree(run / "prepared")
    assert "prepare" in nmt("aligner", run).error
