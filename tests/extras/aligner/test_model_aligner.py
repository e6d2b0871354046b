"""`nmt aligner` for a model, and `nmt align --method trained`. The command line runs in this process."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import nmt as package
from nmt.core.errors import InputError
from nmt.core.files import content_hash
from nmt.extras.aligner import model_aligner as workflow
from nmt.extras.aligner.align import learn_word_aligner
from nmt.extras.aligner.aligner import RULE, between_words, load_aligner, save_aligner
from nmt.extras.aligner.layer import load_layer, weights
from nmt.training.run_directory import MODEL, STATE, TRAINING, write_checksums
from nmt.translator.find_run import ALIGNER, LAYER
from tests.workflows.runs import Command, Done


def test_a_run_learns_from_its_training_pairs(trained: Path, taught: Path, tmp_path: Path) -> None:
    sides = ((trained / f"train.{side}").read_text().splitlines() for side in ("de", "en"))
    save_aligner(learn_word_aligner(*sides), tmp_path / "by hand")
    assert (tmp_path / "by hand").read_bytes() == (taught / "run" / ALIGNER).read_bytes()
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
    trained, run = translator.trained, taught / "run"
    layer = load_layer(run / LAYER, model=content_hash(run / "best" / MODEL).hex(), remedy="")
    aligner = load_aligner(run / ALIGNER)
    for row in (0, 3, 4):
        one = trained.tokenizers.source.encode_words(sources[row])
        other = trained.tokenizers.target.encode_words(targets[row])
        (pieces,) = weights(layer, trained.model, [one.ids], [other.ids], trained.compute, batch_tokens=100)
        speaks = [np.array([row == 4 or piece != "." for piece in each.written]) for each in (other, one)]
        assert [(~says).sum() for says in speaks] == ([1, 1] if row == 0 else [0, 0])
        spoken = ((np.array(each.word_of_piece)[says], each) for each, says in zip((other, one), speaks, strict=True))
        counts = [[np.bincount(words, minlength=len(each.words))] for words, each in spoken]
        by_layer = between_words(*(matrix[np.ix_(*speaks)][None] for matrix in pieces), *counts)[:, 0]
        (by_aligner,) = aligner.matrices([one.words], [other.words])
        look = looks[row].weights_TS  # the aligner's share, and half of the rest each of the others
        both = zip(by_layer, by_aligner, strict=True)
        forward, backward = ((mine + look) / 2 * (1 - share) + its * share for mine, its in both)
        np.testing.assert_allclose(found[row].weights_TS, np.sqrt(forward * backward), atol=1e-5)
        assert found[row].links == RULE.links(found[row].weights_TS)
    # Other pairs beside it change nothing.
    (alone,) = translator.align(sources[:1], targets[:1], method="trained")
    np.testing.assert_allclose(alone.weights_TS, found[0].weights_TS, atol=1e-5)


def test_a_word_without_subwords_is_the_aligners_alone(taught: Path) -> None:
    """U+2581 is white space to SentencePiece, and a word to `str.split`."""
    translator = package.load(taught / "run", precision="float32")
    (found,) = translator.align(["Hund \u2581"], ["dog \u2581"], method="trained")
    aligner = load_aligner(taught / "run" / ALIGNER)
    ((forward_IJ, backward_IJ),) = aligner.matrices([found.source_words], [found.target_words])
    assert found.source_words == ("Hund", "\u2581")
    encode = translator.trained.tokenizers.source.encode_words
    assert all(1 not in encode(side).word_of_piece for side in ("Hund \u2581", "dog \u2581"))
    assert found.weights_TS[1, 1] == pytest.approx(np.sqrt(forward_IJ[1, 1] * backward_IJ[1, 1]), abs=1e-6)


def test_the_command_line_aligns_as_python(taught: Path, nmt: Command) -> None:
    def align(*options: str | Path) -> Done:
        pair = ("-s", taught / "test.de", "-t", taught / "test.en", "--precision", "float32")
        return nmt("align", taught / "run", *pair, *options)

    translator = package.load(taught / "run", precision="float32")
    sources, targets = ((taught / f"test.{side}").read_text().splitlines() for side in ("de", "en"))
    for method in ("trained", "shifted-attention"):
        expected = translator.align(sources, targets, method=method)
        lines = [" ".join(f"{s}-{t}" for s, t in each.links) for each in expected]
        done = align("--method", method)
        assert (done.code, done.stdout.splitlines()) == (0, lines)
    assert "trained" in translator.aligner.methods
    assert "shifted-attention - trained" in align("--compare").stdout
    views = "--format html -o page.html --view trained --view shifted-attention:head1"
    for options in (views, "--method shifted-attention --heads head1", "--text --method trained"):
        assert align(*options.split()).code == 0
    for options, error in (
        ("--method trained --level subword", "--level subword: --method trained aligns words; leave it out"),
        ("--method trained --heads head1", "which --method trained does not look at"),
        ("--format html -o p --view trained:head1", "which trained does not look at"),
    ):
        assert error in align(*options.split()).error


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
        files = f"{run / ALIGNER} and {run / LAYER}"
        assert done.stderr.splitlines()[-1] == f"wrote {files}; use them with nmt align {run} --method trained"
        found.append(((run / ALIGNER).read_bytes(), (run / LAYER).read_bytes()))
    assert found[0] == found[1]
    assert found[1][0] == found[2][0]
    assert found[1][1] != found[2][1]


def test_mistakes_with_a_model(taught: Path, text: Path, tmp_path: Path, nmt: Command) -> None:
    run, nothing = copy(taught, tmp_path), "no pair has words on both sides that fit the model"
    (tmp_path / "one").write_text("eins\n")
    done = nmt("aligner", run, "-s", text / "x.de", "-t", text / "x.en", "--set", "search.max_source_tokens=1")
    assert done.error == f"there is nothing to learn from: {nothing}"
    os.mkfifo(tmp_path / "pipe")  # safetensors would put a file in its place
    for device in (tmp_path / "pipe", Path("/dev/stdout")):
        refused = nmt("aligner", "-s", text / "x.de", "-t", text / "x.en", "-o", device).error
        assert refused == f"--output {device}: cannot be written: name a regular file, in a folder with write access"
    (tmp_path / "long").write_text("eins " * 1001)
    done = nmt("aligner", run, "-s", tmp_path / "long", "-t", tmp_path / "one")
    assert f"warning: left out: 1 pairs of {tmp_path}/long and {tmp_path}/one with more than 1000 words" in done.stderr
    assert done.stderr.splitlines()[-1].endswith(nothing)
    blank = text / "blank"
    assert nmt("aligner", run, "-s", text / "x.de", "-t", blank).error == f"{blank}: holds no word to learn from"
    for name in (ALIGNER, LAYER):
        assert (run / name).read_bytes() == (taught / "run" / name).read_bytes()
    shutil.rmtree(run / "prepared")
    assert "prepare" in nmt("aligner", run).error
