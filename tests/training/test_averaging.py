"""Averages of weights against numpy and plain loops, and the mean that an update's loss is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from nmt.core.errors import InputError
from nmt.core.seed import seed_everything
from nmt.data.batching import Batch, collate
from nmt.data.tokenizer import TokenizerPair
from nmt.experiment import load
from nmt.models.feed import TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.training.averaging import MovingAverage, average_weights, same_weights
from nmt.training.objective import Objective
from nmt.translator.loading import build_model
from nmt.workflows.prepare import prepare
from nmt.workflows.train import train
from tests.models.variants import make, tree
from tests.workflows.runs import measured


def write(folder: Path, **weights: Any) -> Path:
    folder.mkdir()
    arrays = {name: np.asarray(each, dtype=np.float32) for name, each in weights.items()}
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    return folder


# --------------------------------------------------------------------------------------------- averages of checkpoints


def test_the_average_is_numpys_mean(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    arrays = [{"a": draw.normal(size=(5, 3)), "b": draw.normal(size=7)} for _ in range(4)]
    folders = [write(tmp_path / str(number), **each) for number, each in enumerate(arrays)]
    averaged = average_weights(folders)
    assert averaged.keys() == {"a", "b"}
    for name, weight in averaged.items():
        files = [safetensors.numpy.load_file(folder / "model.safetensors")[name] for folder in folders]
        assert weight.dtype == torch.float32
        assert np.array_equal(weight.numpy(), np.mean(files, axis=0, dtype=np.float64).astype(np.float32))


def test_sums_are_float64(tmp_path: Path) -> None:
    """In float32 the 3 would be lost beside 10^9."""
    folders = [write(tmp_path / str(value), a=[value]) for value in (1e9, 3.0, -1e9)]
    assert average_weights(folders)["a"].tolist() == [1.0]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"a": [1.0]}, r"other/model.safetensors: misses b, unlike .*first/model.safetensors: average"),
        ({"a": [1.0], "b": [1.0], "c": [1.0]}, r"other/model.safetensors: has c, unlike"),
        ({"a": [1.0], "b": [1.0, 2.0]}, r"other/model.safetensors: b is \(2,\), but in .*first.* it is \(1,\)"),
    ],
)
def test_what_cannot_be_averaged_is_named(weights: dict[str, list[float]], message: str, tmp_path: Path) -> None:
    first = write(tmp_path / "first", a=[1.0], b=[2.0])
    with pytest.raises(InputError, match=message):
        average_weights([first, write(tmp_path / "other", **weights)])


def test_files_that_are_gone_or_damaged_are_named(tmp_path: Path) -> None:
    first = write(tmp_path / "first", a=[1.0])
    with pytest.raises(InputError, match=r"gone/model.safetensors: no such file; is it a checkpoint\?"):
        average_weights([first, tmp_path / "gone"])
    (first / "model.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00broken!!")
    with pytest.raises(InputError, match=r"first/model.safetensors: unreadable checkpoint; delete or restore"):
        average_weights([first])


def test_same_weights(tmp_path: Path) -> None:
    folder = write(tmp_path / "one", a=[1.0, 2.0])
    assert same_weights(folder, {"a": torch.tensor([1.0, 2.0])})
    assert not same_weights(folder, {"a": torch.tensor([1.0, 2.5])})
    assert not same_weights(folder, {"a": torch.tensor([1.0, 2.0]), "b": torch.zeros(1)})


# ------------------------------------------------------------------------------------------------------ moving average


@pytest.mark.parametrize("decay", [0.5, 0.9])
def test_the_moving_average_is_a_plain_loop(decay: float) -> None:
    model = make(tree(tie="output"))
    raw = dict(model.named_parameters())
    moving = MovingAverage(model, decay)
    expected = {name: weight.detach().double().clone() for name, weight in raw.items()}
    for update in range(1, 30):
        with torch.no_grad():
            for weight in raw.values():
                weight.add_(torch.randn_like(weight))
        before = {name: weight.detach().clone() for name, weight in raw.items()}
        moving.follow(update)
        assert all(torch.equal(weight, before[name]) for name, weight in raw.items()), "the raw weights were changed"
        kept = min(decay, (1 + update) / (10 + update))
        expected = {name: kept * each + (1 - kept) * raw[name].detach().double() for name, each in expected.items()}
    averaged = dict(moving.model.named_parameters())
    assert averaged.keys() == expected.keys()
    for name, weight in averaged.items():
        assert weight.dtype == torch.float32
        assert not weight.requires_grad
        torch.testing.assert_close(weight.double(), expected[name], atol=1e-5, rtol=1e-5)
    assert moving.model.output.weight_VD is moving.model.decoder.embedding.weight_VD, "tied weights came apart"


def test_the_decay_rises_to_what_is_asked_for() -> None:
    moving = MovingAverage(make(tree()), 0.99)
    assert [moving.decay_at(update) for update in (1, 8, 890, 891, 10**6)] == pytest.approx(
        [2 / 11, 0.5, 0.99, 0.99, 0.99]
    )
    assert moving.decay_at(889) < 0.99


# ------------------------------------------------------------------------------------------------------- normalisation


@pytest.mark.parametrize(("normalization", "accumulate"), [("tokens", 1), ("sentences", 3), ("tokens", 1000)])
def test_the_loss_of_an_update_is_the_mean_over(
    normalization: str, accumulate: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradient's norm of the first update against a loop over its sentences, one at a time, without padding."""
    experiment = load(
        Path("config.yaml"), [
            f"training.normalization={normalization}", f"training.accumulate={accumulate}",
            "training.stopping.updates=1", "training.validation.bleu=false", "training.label_smoothing=0.1",
            "model.dropout={embedding: 0.0, layers: 0.0}",
        ],
    )  # fmt: skip
    used: list[list[int]] = []
    backward = Objective.backward

    def spy(self: Objective, batch: Batch, *rest: Any, **options: Any) -> torch.Tensor:
        used.append(batch.pairs_B.tolist())
        return backward(self, batch, *rest, **options)

    monkeypatch.setattr(Objective, "backward", spy)
    train(experiment, device="cpu", precision="float32")
    (line,) = measured("run", "train")

    data = prepare(experiment.data, run=here / "run", seed=experiment.seed)
    seed_everything(experiment.seed)
    model = build_model(experiment.model, TokenizerPair.load(here / "run"))
    pairs = [pair for batch in used for pair in batch]
    if accumulate == 1000:
        assert sorted(pairs) == list(range(len(data.train)))  # an epoch is less than that
        assert len(used) > 3
    else:
        assert len(used) == accumulate
    total, tokens = torch.zeros(()), 0
    for pair in pairs:
        batch = collate(data.train, np.array([pair]))
        source_BS, target_BT = torch.from_numpy(batch.source_BS), torch.from_numpy(batch.target_BT)
        loss = token_loss(model, source_BS, target_BT, TeacherForcing(), CrossEntropy(0.1))
        total = total + loss.objective
        tokens += int(batch.target_length_B[0])
    assert line["loss"] == pytest.approx(total.item() / tokens, rel=1e-4)  # for people always one of a token
    (total / (tokens if normalization == "tokens" else len(pairs))).backward()
    norm = float(sum(weight.grad.square().sum() for weight in model.parameters())) ** 0.5
    assert line["gradient_norm"] == pytest.approx(norm, rel=1e-4)
