"""Frozen weights and low-rank adapters: what they compute, what they leave as it is, and that they go on exactly."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from nmt.core.errors import InputError
from nmt.data.vocabulary import BOS, PAD
from nmt.experiment import load
from nmt.extras.finetuning.adapters import add_adapters, merged
from nmt.models.build import build
from nmt.training.config import LowRankConfig
from nmt.workflows.train import train
from tests.workflows.runs import CONFIG, assert_same_bits, measured, place

Arrays = dict[str, np.ndarray[Any, Any]]

LAYER = "{kind: transformer, layers: 1, size: 16, heads: 2}"
TRANSFORMER = CONFIG.replace("{kind: rnn, size: 12}", LAYER).replace("{kind: rnn, size: 20}", LAYER)
MATRICES = {
    f"{layer}.{name}"
    for layer in ("encoder.layers.0.attention", "decoder.layers.0.self_attention", "decoder.layers.0.attention")
    for name in ("query_weight_QQ", "key_weight_QK", "value_weight_QK", "out_weight_QQ")
}


def weights(run: str) -> Arrays:
    return safetensors.numpy.load_file(Path(run) / "latest" / "model.safetensors")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with a model that was trained on it."""
    folder = tmp_path_factory.mktemp("adapters")
    place(folder, TRANSFORMER)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train(load(Path("config.yaml")), precision="float32")
    return folder


def tune(*settings: str) -> None:
    train(load(Path("config.yaml"), ["training.start_from=run", *settings]), precision="float32")


def test_adapted_checkpoints_are_averaged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    every = ("training.validation.every=1", "training.stopping.updates=3", "training.average=2")
    tune("run=averaged", "training.lora={rank: 2}", *every)
    average = safetensors.numpy.load_file(folder / "averaged" / "averaged" / "model.safetensors")
    members = [folder / f"averaged/checkpoints/step-0000000{n}/model.safetensors" for n in (2, 3)]
    one, other = map(safetensors.numpy.load_file, members)
    for name, weight in average.items():
        np.testing.assert_allclose(weight, (one[name] + other[name]) / 2, atol=1e-6)


def test_an_adapted_matrix_is_that_of_the_paper(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(TRANSFORMER, encoding="utf-8")
    torch.manual_seed(1)
    config = load(tmp_path / "config.yaml", ["model.embedding.tie=all"])
    model = build(config.model, source_tokens=9, target_tokens=9, pad=PAD, bos=BOS)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    add_adapters(model, LowRankConfig(rank=3, alpha=6.0, on=("encoder.*.feed_forward.*", "*.table.*")))
    changed = {f"encoder.{name}.weight" for name in ("layers.0.feed_forward.rise", "layers.0.feed_forward.fall")}
    changed.add("encoder.embedding.table.weight")
    trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    assert {f"{name.rpartition('.parametrizations.')[0]}.weight" for name in trained} == changed
    assert all(bool((weight == 0).all()) for name, weight in trained.items() if name.endswith("b_OR"))
    for weight in trained.values():
        torch.nn.init.normal_(weight)
    made = merged(model)
    assert made.output.weight_VD is made.encoder.embedding.weight_VD is made.decoder.embedding.weight_VD
    after = dict(made.named_parameters())
    assert after.keys() == before.keys()
    for name, weight_OI in before.items():
        expected_OI = weight_OI.clone()
        if name in changed:
            adapter = f"{name.removesuffix('.weight')}.parametrizations.weight.0"
            a_RI, b_OR = (trained[f"{adapter}.{side}"].detach() for side in ("a_RI", "b_OR"))
            assert (a_RI.shape[0], b_OR.shape[1]) == (3, 3)
            for o, i in np.ndindex(*weight_OI.shape):
                expected_OI[o, i] += 6.0 / 3 * sum(float(b_OR[o, r] * a_RI[r, i]) for r in range(3))
        torch.testing.assert_close(after[name].detach(), expected_OI)
    embedded_BSE = torch.randn(1, 3, 16)
    no_padding_BS = torch.zeros(1, 3, dtype=torch.bool)
    states, expected = (each.eval().encoder(embedded_BSE, no_padding_BS) for each in (model, made))
    torch.testing.assert_close(states.states_BSD, expected.states_BSD)
    torch.testing.assert_close(model.output(states.states_BSD), made.output(states.states_BSD))


def test_adapters_are_trained_alone_and_exactly_resumed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    lora = ("training.lora={rank: 2, on: ['*attention*']}", "training.validation={every: 2, first: 0, metric: loss}")
    tune("run=all", "training.stopping.updates=4", *lora)
    assert f"trained {len(MATRICES) * 2 * (16 + 16):,}" in capsys.readouterr().err
    assert {line["learning_rate"] for line in measured("all", "train")} == {4 * 1e-3}
    origin, tuned = weights("run"), weights("all")
    assert origin.keys() == tuned.keys()
    for name, weight in origin.items():
        difference = tuned[name] - weight
        assert difference.any() == (name in MATRICES)
        assert name not in MATRICES or np.linalg.matrix_rank(difference, tol=1e-6) <= 2
    # that of the model it starts from
    assert measured("all", "valid")[0] == measured("run", "valid")[-1] | {"update": 0}
    tune("run=parts", "training.stopping.updates=2", *lora)
    tune("run=parts", "training.stopping.updates=4", *lora)
    assert_same_bits(Path("parts/latest"), Path("all/latest"), "model.safetensors")


def test_the_first_validation_is_not_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The training was killed after the validation, or before its checkpoint was written."""
    monkeypatch.chdir(folder)
    settings = ("training.stopping.updates=4", "training.validation={every: 2, first: 0, metric: loss, bleu: false}")
    tune("run=whole", *settings)
    expected = measured("whole", "valid")
    assert [each["update"] for each in expected] == [0, 2, 4]
    for name, keeps in (("killed", True), ("killed-before", False)):
        shutil.copytree("whole", name, symlinks=True)
        for step in sorted(Path(name, "checkpoints").iterdir())[keeps:]:
            shutil.rmtree(step)
        for link in ("latest", "best"):
            Path(name, link).unlink()
            if keeps:
                Path(name, link).symlink_to("checkpoints/step-00000000")
        tune(f"run={name}", *settings)
        assert measured(name, "valid") == expected
        states = [json.loads((Path(run) / "latest" / "state.json").read_text()) for run in ("whole", name)]
        assert states[0]["standing"] == states[1]["standing"]


def test_frozen_weights_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    tune("run=frozen", "training.freeze=[encoder.*, output.bias_V]")
    origin, tuned = weights("run"), weights("frozen")
    for name, weight in origin.items():
        assert (tuned[name] != weight).any() != (name.startswith("encoder.") or name == "output.bias_V"), name


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.freeze=[encode.*]", "freeze: encode.*: matches no weight; their names begin with encoder.emb"),
        ("training.freeze=['*']", "training.freeze: matches all weights; leave some to train"),
        ("training.lora.on=['*.bias*']", "training.lora.on: *.bias*: matches vectors only"),
        ("training.lora.on=[nothing]", "training.lora.on: nothing: matches no weight; their names begin with"),
        ("training={start_from: null, lora: {}}", "lora adapts a model that is trained: name it with start_from"),
        ("training={start_from: run, freeze: [a], lora: {}}", "does not go with freeze"),
    ],
)
def test_what_is_refused(setting: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(InputError) as error:
        tune("run=refused", setting)
    assert message in str(error.value)


def test_recurrent_matrices_have_no_adapters(folder: Path) -> None:
    config = load(folder / "config.yaml", ["model.encoder={kind: rnn, size: 8}", "model.decoder={kind: rnn, size: 8}"])
    model = build(config.model, source_tokens=9, target_tokens=9, pad=PAD, bos=BOS)
    with pytest.raises(InputError, match=r"matches encoder\.forwards\.0\.rnns\.0\.weight_ih_l0, which is recurrent"):
        add_adapters(model, LowRankConfig(on=("encoder.*",)))
    add_adapters(model, LowRankConfig())  # tables and attention: no feed-forward layers are there
    trained = [name for name, weight in model.named_parameters() if weight.requires_grad]
    assert all(".embedding.table." in name or "attention." in name for name in trained)
