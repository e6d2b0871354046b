"""Decoders that read the source again or take glimpses of it, against plain loops; draws against an exact gradient."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.models.feed import TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.position_losses import reinforce_loss
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.recompute import recomputing
from nmt.nn.recurrent import RecurrentStack
from tests.models.plain_decoder import CELLS, SOURCES, TARGETS, padded
from tests.models.variants import make, tree


class PlainStack:
    """Layers of torch's own cells with the weights of a stack, for one sentence."""

    def __init__(self, stack: RecurrentStack, start_D: Tensor) -> None:
        self.stack, self.cells = stack, []
        for rnn in stack.rnns:
            cell = CELLS[stack.kind](rnn.input_size, rnn.hidden_size, dtype=torch.float64)
            cell.load_state_dict({name.removesuffix("_l0"): value for name, value in rnn.state_dict().items()})
            self.cells.append(cell)
        self.hidden, self.memory = [start_D] * stack.layers, [torch.zeros_like(start_D)] * stack.layers
        self.top_D = start_D

    def step(self, below_D: Tensor) -> Tensor:
        for layer, cell in enumerate(self.cells):
            if self.stack.kind == "lstm":
                self.hidden[layer], self.memory[layer] = cell(below_D, (self.hidden[layer], self.memory[layer]))
            else:
                self.hidden[layer] = cell(below_D, self.hidden[layer])
            below_D = self.hidden[layer] + below_D if self.stack.residual and layer > 0 else self.hidden[layer]
        self.top_D = below_D
        return below_D


def read_again(reader: Any, states_SD: Tensor, query_D: Tensor) -> Tensor:
    """The state of a recurrence that starts from the query, after the last word."""
    stack = PlainStack(reader.stack, query_D)
    for state_D in states_SD:
        stack.step(state_D)
    return stack.top_D


def glimpse(sensor: Any, states_SD: Tensor, query_D: Tensor) -> tuple[Tensor, list[float]]:
    """Computes the glimpse from the mean place, and the mean weights of its windows, by the windows of the neighbouring
    words."""
    words, scales = len(states_SD), sensor.config.scales
    logit = float(sensor.policy_2Q[0] @ query_D + sensor.policy_offset_2[0])
    place = min(words / (1.0 + math.exp(-logit)), words - 1.0)
    left, mean_weights, windows = math.floor(place), [0.0] * words, []
    for k in range(scales):
        weights = [0.0] * words
        for centre, share in ((left, left + 1 - place), (left + 1, place - left)):
            for word in range(words):
                weights[word] += share * (abs(word - centre) <= 2**k - 1)
        weights = [weight / sum(weights) for weight in weights]
        windows.append(sum(weight * state_D for weight, state_D in zip(weights, states_SD, strict=True)))
        mean_weights = [old + weight / scales for old, weight in zip(mean_weights, weights, strict=True)]

    def linear(layer: Any, x_D: Tensor) -> Tensor:
        return torch.relu(layer.weight @ x_D + layer.bias)

    seen = linear(sensor.windows, torch.cat(windows))  # type: ignore[arg-type]
    where = linear(sensor.place, torch.tensor([2 * place / words - 1], dtype=seen.dtype))
    return linear(sensor.glimpse, torch.cat([seen, where])), mean_weights


@torch.no_grad()
def decode(model: Seq2Seq[Any, Any], source: list[int], target: list[int]) -> tuple[Tensor, Tensor]:
    """Readouts (T, R) and weights (H, T, S) of one sentence without padding."""
    decoder: Any = model.decoder
    source_1S = torch.tensor([source])
    encoded = model.encoder(model.encoder.embed(source_1S), source_1S == model.pad)
    (projection, *_) = decoder.handover.layers
    core = PlainStack(decoder.stack, torch.tanh(projection(encoded.final_BD[0])))
    core.hidden = [torch.tanh(layer(encoded.final_BD[0])) for layer in decoder.handover.layers]
    core.top_D = core.hidden[-1]
    readout_R, readouts, weights = torch.zeros(decoder.readout_size, dtype=torch.float64), [], []
    for token in [model.bos, *target[:-1]]:
        word_E, weights_of_step = decoder.embedding.weight_VD[token], []
        fed = [readout_R] if decoder.input_feeding else []
        for _ in range(max(1, len(decoder.head_names))):
            if decoder.head_names:
                context_D, weights_S = glimpse(decoder.attention, encoded.states_BSD[0], core.top_D)
                weights_of_step.append(weights_S)
            else:
                context_D = read_again(decoder.attention, encoded.states_BSD[0], core.top_D)
            core.step(torch.cat([word_E, context_D, *fed]))
        readout_R = torch.tanh(decoder.readout(torch.cat([core.top_D, context_D])))
        readouts.append(readout_R)
        weights.append(weights_of_step)
    return torch.stack(readouts), torch.tensor(weights).transpose(0, 1)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "reencoding", "cell": "lstm", "layers": 2},
        {"kind": "reencoding", "cell": "gru", "layers": 3, "residual": True, "input_feeding": True},
        {"kind": "glimpses", "cell": "lstm"},
        {"kind": "glimpses", "cell": "elman", "layers": 2, "count": 3, "scales": 2, "input_feeding": True},
    ],
    ids=str,
)
def test_decoding_equals_plain_loops(options: dict[str, Any]) -> None:
    model = make(tree(score="none", decoder=options), scale=1.5).double()
    decoded = model.teacher_forced(padded(TARGETS), model.encode(padded(SOURCES)))
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        readout_TR, weights_HTS = decode(model, source, target)
        # places pass through float32
        torch.testing.assert_close(decoded.readout_BTR[row, : len(target)], readout_TR, atol=2e-5, rtol=1e-4)
        ours = decoded.weights_BHTS[row, :, : len(target)]
        assert len(ours) == len(weights_HTS)
        if len(weights_HTS):
            torch.testing.assert_close(ours[..., : len(source)], weights_HTS, atol=2e-5, rtol=1e-4)


def glimpses(**options: Any) -> Seq2Seq[Any, Any]:
    config = tree(score="none", decoder={"kind": "glimpses", "cell": "gru", "expected": 0.0, **options})
    config["dropout"] = {"embedding": 0.0, "layers": 0.0}
    return make(config, scale=1.5).double()


@pytest.mark.parametrize(("offset", "word"), [(-60.0, 0), (60.0, 3)])
def test_a_place_outside_the_sentence_is_its_first_or_last_word(offset: float, word: int) -> None:
    model = glimpses(scales=1)
    model.decoder.attention.policy_offset_2.data.fill_(offset)  # type: ignore[union-attr]
    source_BS = padded([[4, 5, 1, 3], [4, 5, 1, 4, 5, 3]])
    weights_BHTS = model.teacher_forced(padded([[4, 3], [5, 3]]), model.encode(source_BS)).weights_BHTS
    assert (weights_BHTS[0, :, :, word] == 1.0).all()


@pytest.mark.parametrize(("count", "target"), [(2, [3]), (1, [4, 3])], ids=["two glimpses", "two steps"])
def test_over_all_places_the_gradient_is_unbiased(
    count: int, target: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The objective's gradient with rewards of all words that follow, integrated over two draws, is that of the
    expected log-likelihood for each parameter but the baseline's. A sum of a density over points not much further apart
    than its deviation is its integral to six digits."""
    model = glimpses(count=count, deviation=0.8, discount=1.0).train()
    source_BS, target_BT = torch.tensor([[5, 3]]), torch.tensor([target])
    names, parameters = zip(*model.named_parameters(), strict=True)
    spacing, drawn = 0.9, list[float]()
    monkeypatch.setattr(torch, "randn_like", lambda mean_BT: (drawn.pop(0) - mean_BT.detach()) / 0.8)
    found: list[Tensor | float] = [0.0] * len(parameters)
    expected, likelihoods = torch.zeros((), dtype=torch.float64), set[float]()
    for places in itertools.product([-4.0 + spacing * n for n in range(12)], repeat=2):
        drawn[:] = places
        decoded = model.decode(target_BT, model.encode(source_BS), TeacherForcing())
        log_p_BT = model.output(decoded.readout_BTR).log_softmax(-1).gather(2, target_BT[:, :, None])[:, :, 0]
        likelihoods.add(log_p_BT.sum().item())
        (sampled,) = decoded.sampled
        p = sampled.log_prob_BT.sum().double().exp() * spacing**2
        expected = expected + p * log_p_BT.sum()
        objective = reinforce_loss([sampled], log_p_BT, torch.zeros_like(target_BT, dtype=torch.bool)) - log_p_BT.sum()
        gradients = torch.autograd.grad(objective, parameters, retain_graph=True)
        found = [sum_ + p.item() * each for sum_, each in zip(found, gradients, strict=True)]
    assert len(likelihoods) > 3
    exact = torch.autograd.grad(expected, parameters)
    for name, ours, theirs in zip(names, found, exact, strict=True):
        if "policy" in name:  # the second row is the baseline's
            assert theirs[0].abs().max() > 1e-3
        ours, theirs = (ours[0], theirs[0]) if "policy" in name else (ours, theirs)  # type: ignore[index]
        torch.testing.assert_close(ours, -theirs, atol=2e-5, rtol=1e-3, msg=name)


def test_a_step_through_the_mean_is_differentiable_and_not_rewarded() -> None:
    model = glimpses(expected=0.9).train()
    torch.manual_seed(1)
    decoded = model.decode(padded(TARGETS), model.encode(padded(SOURCES)), TeacherForcing())
    (sampled,) = decoded.sampled
    assert sampled.is_drawn_BT.shape == (3, 4 * 2)
    assert 0.0 < sampled.is_drawn_BT.double().mean() < 0.4
    policy = model.decoder.attention.policy_2Q  # type: ignore[union-attr]
    (gradient,) = torch.autograd.grad(decoded.readout_BTR.sum(), policy)
    assert gradient[0].abs().max() > 1e-3
    assert (gradient[1] == 0).all()


def test_reading_again_in_little_memory_gives_the_same_gradients() -> None:
    model = make(tree(score="none", decoder={"kind": "reencoding"}))
    gradients = []
    for on in (False, True):
        with recomputing(on):
            loss = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), CrossEntropy())
            gradients.append(torch.autograd.grad(loss.objective, list(model.parameters())))
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))
