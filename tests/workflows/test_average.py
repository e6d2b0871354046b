"""Averages of checkpoints, by command and at the end of training; the moving average; runs that start from others."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

import nmt as package
from nmt.core.errors import InputError
from nmt.core.seed import seed_everything
from nmt.data.batching import collate, epoch_batches
from nmt.data.tokenizer import TokenizerPair
from nmt.experiment import load
from nmt.models.feed import TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.training import run_directory
from nmt.training.interruption import Interruption
from nmt.training.run_directory import checkpoint_path, checkpoint_paths, read_state
from nmt.translator.loading import build_model, load_trained
from nmt.workflows.average import Selection, average
from nmt.workflows.prepare import prepare
from tests.workflows.runs import (
    CONFIG,
    Command,
    assert_same_bits,
    json_lines,
    lines_of,
    place,
    settings_of,
    train_here,
    write_lines,
)

RUN = Path("run")
FAST = ("training.validation.bleu=false", "training.validation.every=2", "training.optimizer.learning_rate=0.02")

Weights = Mapping[str, np.ndarray[Any, Any]]


def start(*settings: str) -> None:
    """Trains in the current folder, which holds a corpus and config.yaml, from where its run stands."""
    train_here(*FAST, *settings)


def weights(checkpoint: Path, file: str = "model.safetensors") -> Weights:
    return safetensors.numpy.load_file(checkpoint / file)


def same(one: Weights, other: Weights) -> bool:
    return one.keys() == other.keys() and all(each.tobytes() == other[name].tobytes() for name, each in one.items())


def is_mean(average: Path, checkpoints: Sequence[Path]) -> bool:
    files = [weights(checkpoint) for checkpoint in checkpoints]
    means = (np.mean([file[name] for file in files], axis=0, dtype=np.float64) for name in files[0])
    return same(weights(average), {name: mean.astype(np.float32) for name, mean in zip(files[0], means, strict=True)})


def at(*updates: int, run: str = "run") -> list[Path]:
    return [checkpoint_path(Path(run), update) for update in updates]


def lines(kind: str, run: str = "run") -> list[dict[str, Any]]:
    return [line for line in json_lines(Path(run) / "metrics.jsonl") if line["kind"] == kind]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 8 updates with a checkpoint at 2, 4, 6 and 8. Copy it."""
    with chdir(folder := place(tmp_path_factory.mktemp("several"))):
        start("training.stopping.updates=8", "training.keep=4")
    return folder


@pytest.fixture
def run(several: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in the current folder."""
    shutil.copytree(several, tmp_path, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(tmp_path)
    return RUN


# ------------------------------------------------------------------------------------------------------- nmt average


def test_the_average_is_a_model_like_any_other(run: Path, nmt: Command) -> None:
    """By the command line: made, translated with, and not taken for a checkpoint to go on from."""
    done = nmt("average", "run", "--last", "3")
    assert (done.output, done.stderr.splitlines()) == (
        "",
        [
            "averaged 3 checkpoints: step-00000004, step-00000006, step-00000008",
            "model: run/averaged; use it with nmt translate run/averaged",
        ],
    )
    assert is_mean(run / "averaged", at(4, 6, 8))
    assert not (run / "averaged" / "training.safetensors").exists()
    translated = nmt("translate", "run/averaged", "--precision", "float32", stdin=b"eins zwei.\n")
    assert translated.output.count("\n") == 1
    loaded = dict(load_trained("run/averaged", device="cpu", precision="float32").model.named_parameters())
    loaded["output.bias_V"].nan_to_num_(neginf=0.0)  # of padding and the like, which an average keeps as trained
    kept = weights(run / "averaged")
    kept["output.bias_V"] = np.where(loaded["output.bias_V"].numpy() == 0.0, 0.0, kept["output.bias_V"])
    assert all(np.array_equal(loaded[name].numpy(), each) for name, each in kept.items())
    averaged = (run / "averaged").resolve()
    assert run_directory.latest_checkpoint(run) == run / "checkpoints" / "step-00000008"
    changes = settings_of(*FAST, "training.stopping.updates=10", "training.keep=1")
    more = nmt("train", "config.yaml", "--precision", "float32", *changes)
    assert "going on from update 8" in more.stderr
    assert averaged.exists(), "training deleted the average"
    assert (run / "averaged").resolve() == averaged


def test_all_that_are_kept_are_averaged_where_nothing_else_is_said(run: Path) -> None:
    assert average([run]) == run / "averaged"
    assert read_state(run / "averaged")["averaged"] == [f"step-{update:08d}" for update in (2, 4, 6, 8)]
    assert is_mean(run / "averaged", checkpoint_paths(run))
    shutil.copytree(run, "runs/other", symlinks=True)
    assert average() == Path("runs/other/averaged")  # that which trained last under runs/
    assert average(["config.yaml"]) == run / "averaged"


@pytest.mark.parametrize(
    ("metric", "chosen"), [(None, [4, 6]), ("loss", [4, 6]), ("accuracy", [2, 8])], ids=["default", "loss", "accuracy"]
)
def test_the_best_go_by_a_metric(metric: Any, chosen: list[int], run: Path) -> None:
    measured = {2: (3.0, 90.0), 4: (1.0, 10.0), 6: (2.0, 20.0), 8: (2.5, 80.0)}
    text = "".join(
        json.dumps({"kind": "valid", "update": update, "loss": loss, "accuracy": accuracy}) + "\n"
        for update, (loss, accuracy) in measured.items()
    )
    (run / "metrics.jsonl").write_text(text)
    average([run], selection=Selection(best=2, metric=metric))
    assert read_state(run / "averaged")["averaged"] == [f"step-{update:08d}" for update in chosen]


def test_checkpoints_by_name_in_any_order(run: Path) -> None:
    average([run / "latest", run / "checkpoints" / "step-00000002"])
    first = (run / "averaged").resolve()
    assert is_mean(first, at(2, 8))
    before = (first / "model.safetensors").stat().st_mtime_ns
    average([run / "checkpoints" / "step-00000002", run / "latest"])
    assert (run / "averaged").resolve() == first
    assert (first / "model.safetensors").stat().st_mtime_ns == before  # it was there
    average([run / "checkpoints" / "step-00000004", run / "latest"])
    assert (run / "averaged").resolve() != first
    assert first.exists()


def test_checkpoints_of_two_runs(run: Path) -> None:
    """The runs are, for example, a run and one fine-tuned from it; the average is written to the run of the first."""
    start("run=tuned", "training.start_from=run", "model.dropout.layers=0.0")
    average([*at(2, run="tuned"), *at(8)])
    assert not (run / "averaged").exists()
    assert is_mean(Path("tuned/averaged"), [*at(2, run="tuned"), *at(8)])


def test_an_average_that_no_longer_holds_is_made_again(run: Path) -> None:
    average([run], selection=Selection(last=2))
    made = weights(run / "averaged")
    two, eight = at(2, 8)
    shutil.copy(two / run_directory.MODEL, eight / run_directory.MODEL)
    run_directory.write_checksums(eight, (run_directory.MODEL, run_directory.TRAINING, run_directory.STATE))
    average([run], selection=Selection(last=2))
    assert not same(made, weights(run / "averaged"))
    assert is_mean(run / "averaged", at(6, 2))


def test_what_cannot_be_averaged(run: Path) -> None:
    def refused(message: str, models: Sequence[str | Path], **selection: Any) -> None:
        before = sorted(path.name for path in (run / "checkpoints").iterdir())
        with pytest.raises(InputError) as error:
            average(models, selection=Selection(**selection))
        assert str(error.value) == message
        assert sorted(path.name for path in (run / "checkpoints").iterdir()) == before

    two, eight = at(2, 8)
    refused("nowhere: no such run directory, checkpoint or config", ["nowhere"])
    refused("run: checkpoints: 4, fewer than --last 5; training.keep says how many stay", ["run"], last=5)
    fewer = "fewer than --best 5; training.keep says how many stay"
    refused(f"run: checkpoints with a validation's loss: 4, {fewer}", ["run"], best=5)
    refused(f"run: checkpoints with a validation's bleu: 0, {fewer}", ["run"], best=5, metric="bleu")
    refused(f"{two}: is one checkpoint, and an average needs two or more; or name its run directory", [two])
    refused("run: is not a checkpoint folder; name checkpoint folders alone, or one run directory", [two, "run"])
    refused("--last and --best choose among the checkpoints of a run; name one run directory", [two, eight], last=2)
    refused("run/latest: is named twice", ["run/latest", two, eight])
    average([two, eight])
    averaged = (run / "averaged").resolve()
    refused(f"{averaged}: is an average itself; name the checkpoints that it was made of", [two, averaged])
    state = json.loads((eight / "state.json").read_text())
    (eight / "state.json").write_text(json.dumps({**state, "vocabulary": "other"}))
    refused(f"{eight.resolve()}: was trained with another vocabulary than {two.resolve()}", [two, eight])
    (eight / "state.json").write_text("{}")
    unreadable = "unreadable checkpoint; delete or restore its folder: no position"
    refused(f"{eight.resolve()}/state.json: {unreadable}", [two, eight])
    for checkpoint in at(4, 6, 8):
        shutil.rmtree(checkpoint)
    refused("run: an average needs two or more checkpoints, and there are 1", ["run"])


def test_checkpoints_of_other_models_are_refused(run: Path) -> None:
    start("run=other", "model.encoder.size=14", "training.stopping.updates=1")
    one, other = (checkpoint_path(run, 2).resolve(), checkpoint_path(Path("other"), 1).resolve())
    with pytest.raises(InputError, match=f"^{one}: is of another model.encoder.size than {other}$"):
        average([one, other])


# ---------------------------------------------------------------------------------------------------- at the end

AVERAGED = ("training.average=3", "training.validation.every=4", "training.stopping.updates=14")
"""Settings for an average of the checkpoints at 8, 12 and 14."""


def test_training_ends_with_the_average_of_its_last_validations(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    start(*AVERAGED, "training.save_every=3")  # 9 is newer than 8, but no validation's
    assert is_mean(RUN / "averaged", at(8, 12, 14))
    (line,) = lines("average")
    state = read_state(Path("run/averaged"))
    assert (line["update"], line["checkpoints"]) == (14, 3)
    assert line["loss"] == pytest.approx(state["measured"]["loss"], rel=1e-5)
    translator = package.load("run/averaged", device="cpu", precision="float32")
    source, target = map(lines_of, ("valid.de", "valid.en"))
    assert line["loss"] == pytest.approx(translator.predict(source, target).loss, rel=1e-5)
    best = min(each["loss"] for each in lines("valid"))
    leads_to_it = Path("run/best").resolve() == Path("run/averaged").resolve()
    assert leads_to_it == (line["loss"] < best)
    (said,) = [text for text in capfd.readouterr().err.splitlines() if text.startswith("average of")]
    assert said.startswith("average of updates 8, 12, 14: valid loss ")
    assert f"; loss {line['loss'] - best:+.2f} against update " in said
    kept = {path.name for path in Path("run/checkpoints").iterdir()}
    assert {"step-00000008", "step-00000012", "step-00000014"} <= kept
    start(*AVERAGED)
    assert "training is complete at update 14: nothing to do" in capfd.readouterr().err
    assert len(lines("average")) == 1


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has come to its end. Copy it."""
    with chdir(folder := place(tmp_path_factory.mktemp("ended"))):
        start(*AVERAGED)
    return folder


@pytest.fixture
def at_end(ended: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in the current folder."""
    shutil.copytree(ended, tmp_path, dirs_exist_ok=True, symlinks=True)
    monkeypatch.chdir(tmp_path)
    return RUN


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The losses that validations are to find, in turn."""
    left: list[float] = []
    monkeypatch.setattr("nmt.workflows.train.Validation", lambda *_: lambda _model, _snapshot: {"loss": left.pop(0)})
    return left


def test_best_leads_to_what_was_measured_best(
    here: Path, values: list[float], capfd: pytest.CaptureFixture[str]
) -> None:
    def best() -> str:
        return Path("run/best").readlink().name

    values += [3.0, 2.0, 2.5, 1.5]
    start("training.average=3", "training.stopping.updates=6")
    assert Path("run/best").resolve() == Path("run/averaged").resolve()
    assert "valid loss 1.50; loss -0.50 against update 4 (best)" in capfd.readouterr().err
    values += [1.8, 1.9]
    start("training.average=3", "training.stopping.updates=8")  # better than any checkpoint, worse than the average
    assert best().startswith("average-00000006-of-3-")
    assert "valid loss 1.90; loss +0.10 against update 8\n" in capfd.readouterr().err
    assert Path("run/averaged").readlink().name.startswith("average-00000008-of-3-")
    values += [1.2, 1.4]
    start("training.average=3", "training.stopping.updates=10")
    assert best() == "step-00000010"
    Path("run/best").unlink()
    start("training.average=3", "training.stopping.updates=10")
    assert best() == "step-00000010"
    assert values == []


@pytest.mark.parametrize("lost", ["folder", "links", "line", "all"])
def test_an_end_that_was_cut_off_is_made_up_for(at_end: Path, lost: str, capfd: pytest.CaptureFixture[str]) -> None:
    run = at_end
    made, ends = (run / "averaged").resolve(), {name: (run / name).readlink() for name in ("best", "averaged")}
    before, text = weights(made), (run / "metrics.jsonl").read_text()
    if lost in ("links", "all"):
        (run / "averaged").unlink()
        four, eight = at(4, 8)
        run_directory.set_link(run, "best", four if four.exists() else eight)
    if lost in ("line", "links", "all"):
        (run / "metrics.jsonl").write_text("".join(f"{line}\n" for line in text.splitlines() if "average" not in line))
    if lost in ("folder", "all"):
        shutil.rmtree(made)
    start(*AVERAGED)
    assert same(weights(made), before)
    assert {name: (run / name).readlink() for name in ends} == ends
    assert lines("average") == [json.loads(line) for line in text.splitlines() if "average" in line]
    assert "training is complete at update 14\n" in capfd.readouterr().err


def interrupted_after(updates: int) -> Callable[[], Any]:
    """In place of the signal handlers: asks to stop once so many updates are done in this start."""

    class Counting(Interruption):
        seen = 0

        def signal(self) -> int:
            self.seen += 1
            return signal.SIGINT if self.seen >= updates else 0

    @contextmanager
    def interruptible() -> Iterator[Counting]:
        yield Counting()

    return interruptible


def test_an_interruption_changes_no_bit(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its checkpoints, at updates where there are none else, neither enter into the average nor push out another."""
    settings = (*AVERAGED, "training.ema=0.7", "training.save_every=100")
    start(*settings)
    Path("run").rename("whole")
    for _ in range(20):
        with monkeypatch.context() as patched:
            patched.setattr("nmt.training.trainer.interruptible", interrupted_after(3))
            try:
                start(*settings)
                break
            except KeyboardInterrupt:
                pass
    else:
        pytest.fail("it never came to the end")
    whole = Path("whole")
    for link in ("averaged", "best"):
        assert (RUN / link).readlink() == (whole / link).readlink()
    assert_same_bits(RUN / "averaged", whole / "averaged", "model.safetensors")
    assert_same_bits(RUN / "latest", whole / "latest")
    for kind in ("average", "valid"):
        assert lines(kind, "run") == lines(kind, "whole")


def test_an_average_of_updates_that_are_made_again_is_dropped(at_end: Path) -> None:
    average([at_end], selection=Selection(last=2))  # by hand: it stays
    by_hand, made = (at_end / "averaged").resolve(), run_directory.average_paths(at_end)
    (automatic,) = (folder for folder in made if folder.resolve() != by_hand)
    shutil.rmtree(checkpoint_path(at_end, 14))
    start(*AVERAGED, "training.stopping.updates=12", "training.average=2")
    assert not automatic.exists()
    assert by_hand.exists()


def test_too_few_checkpoints_are_told(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    start("training.average=3", "training.stopping.updates=2")
    few = "training.average: 3: of so many last validations only {} have a checkpoint"
    assert f"warning: {few.format(1)}; nothing is averaged" in capfd.readouterr().err
    assert not Path("run/averaged").exists()
    start("training.average=3", "training.stopping.updates=4")
    assert f"{few.format(2)}\n" in capfd.readouterr().err
    assert is_mean(Path("run/averaged"), at(2, 4))


def test_without_a_valid_corpus_the_average_is_there_but_not_the_best(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("config.yaml").write_text(CONFIG.replace("  valid: {source: valid.de, target: valid.en}\n", ""))
    for _ in range(2):
        start("training.average=2", "training.stopping.updates=4")
        assert is_mean(Path("run/averaged"), at(2, 4))
        assert not Path("run/best").exists()
    assert "average of updates 2, 4: not measured: data.valid is not set" in (said := capfd.readouterr().err)
    assert said.count("average of") == 1


def test_a_finished_run_can_be_averaged_later(run: Path) -> None:
    start("training.stopping.updates=8", "training.average=4", "training.keep=4")
    assert is_mean(run / "averaged", checkpoint_paths(run))
    assert len(lines("average")) == 1


# ------------------------------------------------------------------------------------------------- moving average


def test_the_moving_average_is_what_a_checkpoint_holds_for_use(here: Path) -> None:
    settings = ("training.stopping.updates=12", "training.save_every=1", "training.keep=100")
    start(*settings, "training.ema=0.6")
    start(*settings, "run=raw")
    run, raw = Path("run"), Path("raw")
    experiment = load(run / "config.yaml")
    seed_everything(experiment.seed)
    model = build_model(experiment.model, TokenizerPair.load(run))
    expected = {name: weight.detach().numpy().astype(np.float64) for name, weight in model.named_parameters()}
    for update in range(1, 13):
        kept = min(0.6, (1 + update) / (10 + update))
        in_training = {
            name.removeprefix("weights/"): each
            for name, each in weights(checkpoint_path(run, update), "training.safetensors").items()
            if name.startswith("weights/")
        }
        assert same(in_training, weights(checkpoint_path(raw, update))), "the average has changed the training"
        expected = {name: kept * each + (1 - kept) * in_training[name] for name, each in expected.items()}
        for name, each in weights(checkpoint_path(run, update)).items():
            np.testing.assert_allclose(each, expected[name], atol=1e-6, rtol=1e-5)
    translator = package.load(checkpoint_path(run, 12), device="cpu", precision="float32")
    source, target = map(lines_of, ("valid.de", "valid.en"))
    assert lines("valid")[-1]["loss"] == pytest.approx(translator.predict(source, target).loss, rel=1e-5)
    assert lines("valid")[-1]["loss"] != lines("valid", "raw")[-1]["loss"]


# -------------------------------------------------------------------------------------- runs that start from others


def loss_of_first_batch(model: str, run: Path) -> float:
    """Computes the loss per token of a trained model on the batch of a run's first update."""
    experiment = load(run / "config.yaml")
    store = prepare(experiment.data, run=run, seed=experiment.seed).train
    batch = collate(store, epoch_batches(store, experiment.training.batching, seed=experiment.seed, epoch=0)[0])
    trained = load_trained(model, device="cpu", precision="float32", prepare=lambda built, _: built.eval())
    source_BS, target_BT = torch.from_numpy(batch.source_BS), torch.from_numpy(batch.target_BT)
    smoothing = experiment.training.label_smoothing
    loss = token_loss(trained.model, source_BS, target_BT, TeacherForcing(), CrossEntropy(smoothing))
    return loss.objective.item() / int(batch.target_length_B.sum())


NO_DROPOUT = "model.dropout={embedding: 0.0, layers: 0.0}"


def test_a_run_begins_where_another_one_stands(run: Path, nmt: Command) -> None:
    """On another corpus, with the vocabulary of the old run; which may then be gone."""
    for side in ("de", "en"):
        write_lines(f"new.{side}", lines_of(f"train.{side}")[:30])
    average([run])
    settings = [
        "run=tuned", "training.start_from=run/averaged", "data.subwords={model: run}", NO_DROPOUT, *FAST, "seed=5",
        "data.train={source: new.de, target: new.en}", "training.ema=0.9",
    ]  # fmt: skip
    command = ["train", "config.yaml", "--precision", "float32", *settings_of(*settings)]
    said = nmt(*command, "--set", "training.stopping.updates=3").stderr
    assert "taking the subwords of run\n" in said
    assert "starting from run/averaged\n" in said
    assert (run / "subwords.model").read_bytes() == Path("tuned/subwords.model").read_bytes()
    first = loss_of_first_batch("run/averaged", Path("tuned"))
    assert lines("train", "tuned")[0]["loss"] == pytest.approx(first, rel=2e-6)  # as many digits as are written
    shutil.rmtree(run)
    again = nmt(*command, "--set", "training.stopping.updates=5")
    assert (again.code, "going on from update 3" in again.stderr, "starting from" in again.stderr) == (0, True, False)


def test_going_on_is_as_if_it_had_never_stopped(run: Path) -> None:
    settings = ("training.start_from=run/best", "training.keep=9")
    start(*settings, "run=whole", "training.stopping.updates=6")
    start(*settings, "run=parts", "training.stopping.updates=4")
    run.rename("moved")
    start(*settings, "run=parts", "training.stopping.updates=6")
    assert_same_bits(Path("whole/latest"), Path("parts/latest"))


def test_the_moving_average_begins_with_the_weights_that_training_begins_with(run: Path) -> None:
    start("run=tuned", "training.start_from=run", "training.ema=0.999", "training.optimizer.learning_rate=1e-12",
          "training.stopping.updates=2")  # fmt: skip
    for name, each in weights(Path("tuned/latest")).items():
        np.testing.assert_allclose(each, weights(run / "best")[name], atol=1e-7)


OTHER_MODEL = "is of another model.encoder.size than this config; give the model section the values that"
ORIGINS = {
    "nowhere": "training.start_from: nowhere: no such run directory, checkpoint or config",
    "run; model.encoder.size=14": f"training.start_from: run/best: {OTHER_MODEL} HERE/run/config.yaml has (dropout and "
    "embedding.pretrained may differ)",
    "run; data.subwords={model: run, joint: false}": "data.subwords.model: run: has one vocabulary; set data.subwords."
    "joint: true",
}


@pytest.mark.parametrize("settings", ORIGINS)
def test_what_a_run_cannot_start_from(settings: str, run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        start("run=tuned", *f"training.start_from={settings}".split("; "))
    assert str(error.value) == ORIGINS[settings].replace("HERE", str(tmp_path.resolve()))
    assert not Path("tuned/checkpoints").exists()


def test_a_checkpoint_that_is_damaged_is_named(run: Path) -> None:
    (run / "best" / "model.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00broken!!")
    with pytest.raises(InputError, match=r"run/best/model.safetensors: unreadable checkpoint"):
        start("run=tuned", "training.start_from=run")
