"""The alignment layer: its probabilities and its loss against plain loops, what it learns, and its file."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import safetensors.torch
import torch

from nmt.core.device import Compute
from nmt.core.errors import InputError
from nmt.extras.aligner import layer as module
from nmt.extras.aligner.layer import AlignmentLayer, LinkedPair, load_layer, save_layer
from nmt.models.seq2seq import Seq2Seq
from tests.models.variants import TRANSFORMER, make, tree

COMPUTE = Compute(torch.device("cpu"), "float32")
MODELS = {"rnn": tree(), "transformer": tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)}
SOURCES = [[4, 5, 1, 4], [5], [5, 5, 4, 1, 1, 4, 5], [1, 4]]
TARGETS = [[5, 4], [4, 4, 1, 5, 5], [1, 5, 4], [4]]
EOS = 3


def layer_for(model: Seq2Seq[Any, Any], seed: int = 1) -> AlignmentLayer:
    torch.manual_seed(seed)
    layer = AlignmentLayer(model.encoder.size, model.decoder.readout_size, width=8)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return layer.eval()


def by_hand(
    layer: AlignmentLayer, model: Seq2Seq[Any, Any], source: list[int], target: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Computes the matrices (T, S) of one pair from the decoder's readouts, one step after another."""
    source_1S = torch.tensor([[*source, EOS]])
    with torch.no_grad():
        encoded = model.encoder(model.encoder.embed(source_1S), source_1S == model.pad)
        memory = model.encode(source_1S)
        state, readouts = model.start(memory), []
        for token in [model.bos, *target]:
            step = model.decoder.step(torch.tensor([token]), memory, state)
            state = step.state
            readouts.append(step.readout_NR[0])
    sides = []
    for side, rows in ((layer.source, encoded.states_BSD[0, :-1]), (layer.target, torch.stack(readouts[1:]))):
        weight, bias = (each.detach().double().numpy() for each in (side.narrow.weight, side.narrow.bias))
        narrow = rows.double().numpy() @ weight.T + bias
        context, _ = side.context(torch.from_numpy(narrow).float()[None])
        sides.append(narrow + context[0].detach().numpy())
    key_SW, query_TW = sides
    score_TS = query_TW @ key_SW.T / math.sqrt(layer.width)
    source_empty, target_empty = layer.empty.tolist()
    likely_TS = np.exp(score_TS)
    forward = likely_TS / (math.exp(source_empty) + likely_TS.sum(axis=1, keepdims=True))
    return forward, likely_TS / (math.exp(target_empty) + likely_TS.sum(axis=0))


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("batch_tokens", [1000, 1], ids=["together", "alone"])
def test_probabilities_of_a_pair_whatever_stands_beside_it(kind: str, batch_tokens: int) -> None:
    model = make(MODELS[kind])
    layer = layer_for(model)
    found = module.weights(layer, model, SOURCES, TARGETS, COMPUTE, batch_tokens=batch_tokens)
    for *pair, both in zip(SOURCES, TARGETS, found, strict=True):
        for weights_TS, expected_TS in zip(both, by_hand(layer, model, *pair), strict=True):
            np.testing.assert_allclose(weights_TS, expected_TS, atol=1e-5)


def test_the_loss_is_the_mean_over_pieces_of_either_side() -> None:
    random = torch.Generator().manual_seed(1)
    forward_BTS1 = torch.randn((2, 3, 5), generator=random).log_softmax(dim=2)
    backward_BST1 = torch.randn((2, 4, 4), generator=random).log_softmax(dim=2)
    source_length_B, target_length_B = torch.tensor([4, 2]), torch.tensor([2, 3])
    links = [(0, 0, 0), (0, 0, 3), (0, 1, 0), (1, 2, 1)]
    link_BTS = torch.zeros(2, 3, 4)
    for b, t, s in links:
        link_BTS[b, t, s] = 1
    seen = module.States(torch.zeros(2, 4, 1), torch.zeros(2, 3, 1), source_length_B, target_length_B)
    expected = 0.0
    for lengths, log_p, here, there in ((target_length_B, forward_BTS1, 1, 2), (source_length_B, backward_BST1, 2, 1)):
        losses = []
        for b, piece in [(b, piece) for b, length in enumerate(lengths.tolist()) for piece in range(length)]:
            linked = [link[there] for link in links if link[0] == b and link[here] == piece] or [-1]
            losses.append(-sum(log_p[b, piece, other].item() for other in linked) / len(linked))
        expected += sum(losses) / len(losses)
    found = module.guided_loss(module.Piecewise(forward_BTS1, backward_BST1), link_BTS, seen)
    assert found.item() == pytest.approx(expected, abs=1e-5)


def linked_pairs(count: int, seed: int) -> list[LinkedPair]:
    """The target is the source turned round, in other pieces."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        source = random.integers(4, 12, size=random.integers(1, 7))
        links = np.eye(len(source), dtype=np.float32)[::-1].copy()
        found.append(LinkedPair(source.tolist(), (15 - source[::-1]).tolist(), links))
    return found


def wrong(layer: AlignmentLayer, model: Seq2Seq[Any, Any], given: list[LinkedPair]) -> float:
    """The share of pieces whose best partner is not theirs."""
    sources, targets, links = zip(*given, strict=True)
    found = module.weights(layer, model, sources, targets, COMPUTE, batch_tokens=500)
    both = zip(links, found, strict=True)
    best = [link_TS[np.arange(len(link_TS)), forward.argmax(axis=1)] for link_TS, (forward, _) in both]
    return 1 - float(np.mean(np.concatenate(best)))


def taught(model: Seq2Seq[Any, Any], updates: int = 120) -> AlignmentLayer:
    torch.manual_seed(3)
    layer = AlignmentLayer(model.encoder.size, model.decoder.readout_size, width=16, dropout=0.1)
    options = {"updates": updates, "batch_tokens": 200, "seed": 5, "rate": 1e-2}
    after = Mock()
    losses = module.train_layer(layer, model, linked_pairs(150, seed=1), COMPUTE, **options, after_update=after)
    assert len(losses) == after.call_count == updates
    assert np.mean(losses[-10:]) < np.mean(losses[:10])
    return layer


@pytest.mark.parametrize("kind", ["rnn", pytest.param("transformer", marks=pytest.mark.slow)])
def test_it_learns_and_the_model_does_not(kind: str) -> None:
    model = make(MODELS[kind], tokens=12, scale=1.0)
    before = {name: each.clone() for name, each in model.state_dict().items()}
    layer = taught(model)
    assert not layer.training
    assert not model.training
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert all(each.grad is None for each in model.parameters())
    held_out = linked_pairs(40, seed=2)
    torch.manual_seed(4)
    untaught = AlignmentLayer(model.encoder.size, model.decoder.readout_size, width=16).eval()
    assert wrong(layer, model, held_out) < 0.7 * wrong(untaught, model, held_out)


def test_the_same_seed_gives_the_same_layer(tmp_path: Path) -> None:
    model = make(MODELS["transformer"], tokens=12, scale=1.0)
    for name in ("one", "other"):
        save_layer(taught(model, 20), tmp_path / name, model="m")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


# -------------------------------------------------------------------------------------------------------------- files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_layer(layer_for(make(MODELS["rnn"])), tmp_path / "layer", model="abc")
    return tmp_path / "layer"


def test_a_file_holds_the_layer_bit_for_bit(file: Path, tmp_path: Path) -> None:
    layer = load_layer(file, model="abc", remedy="make it anew")
    before = layer_for(make(MODELS["rnn"])).state_dict()
    assert all(torch.equal(each, before[name]) for name, each in layer.state_dict().items())
    assert not layer.training
    assert not any(each.requires_grad for each in layer.parameters())
    save_layer(layer, tmp_path / "again", model="abc")
    assert (tmp_path / "again").read_bytes() == file.read_bytes()


def refused(path: Path, model: str = "abc") -> str:
    with pytest.raises(InputError) as refusal:
        load_layer(path, model=model, remedy="make it anew")
    match = re.fullmatch(f"{re.escape(str(path))}: (.*); make it anew", str(refusal.value))
    assert match is not None
    return match[1]


def test_files_that_are_no_layer_of_this_model(file: Path, tmp_path: Path) -> None:
    assert refused(file, "abd") == "was taught on other weights than the model has now"
    assert refused(tmp_path / "no") == "cannot be read: No such file or directory"
    data, path = file.read_bytes(), tmp_path / "x"
    for other in (b"", data[:50], data[:-1], b"0-0\n", data.replace(b"alignment layer 1", b"alignment layer 2")):
        path.write_bytes(other)
        assert refused(path) == "is not an alignment layer, or damaged"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("source.narrow.bias", lambda each: each[:0]),
        ("source.narrow.bias", lambda each: each[0]),
        ("source.narrow.bias", lambda each: torch.zeros(1_000_000)),  # a layer of terabytes
        ("source.narrow.weight", lambda each: each.flatten()),
        ("target.narrow.weight", lambda each: each * math.nan),
        ("target.context.weight_hh_l0", lambda each: each.double()),
        ("empty", lambda each: each + math.inf),
        ("empty", lambda each: each[:1]),
        ("empty", lambda each: None),
    ],
)
def test_tensors_that_do_not_fit(file: Path, tmp_path: Path, name: str, change: Any) -> None:
    tensors = safetensors.torch.load_file(file)
    if (changed := change(tensors.pop(name))) is not None:
        tensors[name] = changed.contiguous()
    safetensors.torch.save_file(tensors, tmp_path / "x", {module._FORMAT: "abc"})
    assert refused(tmp_path / "x") == "is not an alignment layer, or damaged"


def test_the_learning_rate_rises_for_100_updates_and_falls_to_0(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = []
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self, *_: rates.append(self.param_groups[0]["lr"]))
    model = make(MODELS["rnn"])
    linked_pairs = [LinkedPair([4], [5], np.ones((1, 1)))]
    module.train_layer(layer_for(model), model, linked_pairs, COMPUTE, updates=120, batch_tokens=50, seed=1, rate=0.5)
    assert rates == pytest.approx([0.5 * min(1, (done + 1) / 100) * (120 - done) / 120 for done in range(120)])
