"""The tokens that the decoder reads: the rate and structure of the coins, and that the chosen token is the input."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from nmt.models.feed import DecoderInputPolicy, Feed, FreeRunning, TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.scheduled_sampling import ScheduledSampling
from nmt.models.seq2seq import Decoded, Seq2Seq
from tests.models.variants import make, tree

CPU = torch.device("cpu")
SOURCE_BS = torch.tensor([[4, 5, 1, 4, 3], [5, 3, 0, 0, 0], [5, 5, 4, 3, 0]])
TARGET_BT = torch.tensor([[4, 5, 4, 3], [5, 3, 0, 0], [1, 4, 5, 3]])

Unit = Literal["token", "sentence"]
Guess = Literal["argmax", "sample"]
UNITS: tuple[Unit, ...] = ("token", "sentence")
GUESSES: tuple[Guess, ...] = ("argmax", "sample")

every_cell = pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            tree(encoder={"cell": cell}, decoder={"cell": cell, "query": query, "input_feeding": feeding}),
            id=f"{cell}-{query}-{'feeding' * feeding}",
        )
        for cell in ("elman", "gru", "lstm")
        for query in ("previous", "current")
        for feeding in (True, False)
    ],
)
every_unit = pytest.mark.parametrize("unit", UNITS)


@dataclass(frozen=True)
class Recorded(Feed):
    """Another feed, and what it chose."""

    inner: Feed
    chosen: list[Tensor] = field(default_factory=list)

    def begin(self, rows: int, device: torch.device) -> DecoderInputPolicy:
        return _Recording(self.inner.begin(rows, device), self.chosen)


@dataclass(frozen=True)
class _Recording:
    inner: DecoderInputPolicy
    chosen: list[Tensor]

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        self.chosen.append(self.inner.next(gold_B, logits_BV))
        return self.chosen[-1]


@dataclass(frozen=True)
class Given(Feed):
    """Tokens that are known beforehand."""

    tokens_BT: Tensor

    def begin(self, rows: int, device: torch.device) -> DecoderInputPolicy:
        return _Giving(iter(self.tokens_BT.unbind(dim=1)))


@dataclass(frozen=True)
class _Giving:
    tokens: Iterator[Tensor]

    def next(self, gold_B: Tensor, logits_BV: Tensor) -> Tensor:
        return next(self.tokens)


def coins(feed: Feed, *, rows: int, steps: int) -> Tensor:
    """Draws B x T choices: 1 if the gold token was chosen, 0 if the guess."""
    logits_BV = torch.tensor([5.0, -200.0]).expand(rows, 2)
    gold_B = torch.ones(rows, dtype=torch.int64)
    chooser = feed.begin(rows, CPU)
    return torch.stack([chooser.next(gold_B, logits_BV) for _ in range(steps)], dim=1).double()


def gradients(model: Seq2Seq[Any, Any], decoded: Decoded) -> dict[str, Tensor | None]:
    """Computes the gradients of the sum of the readouts' squares by each parameter."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    squares = decoded.readout_BTR.square().sum()
    return dict(zip(names, torch.autograd.grad(squares, parameters, allow_unused=True), strict=True))


@pytest.mark.parametrize("guess", GUESSES)
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.85])
def test_each_token_has_a_coin_of_its_own(probability: float, guess: Guess) -> None:
    torch.manual_seed(1)
    rows, steps = 4000, 25
    is_gold_BT = coins(ScheduledSampling(probability, guess=guess), rows=rows, steps=steps)
    variance = probability * (1.0 - probability)
    assert abs(is_gold_BT.mean().item() - probability) < 5 * (variance / (rows * steps)) ** 0.5
    # sums of independent coins have the variances of binomials, along rows and along steps
    assert is_gold_BT.sum(dim=1).var().item() == pytest.approx(steps * variance, rel=0.15)
    assert is_gold_BT.sum(dim=0).var().item() < 4 * rows * variance
    centred = (is_gold_BT - probability) / variance**0.5
    assert abs((centred[:, 1:] * centred[:, :-1]).mean().item()) < 5 / (rows * (steps - 1)) ** 0.5
    assert abs((centred[1:] * centred[:-1]).mean().item()) < 5 / ((rows - 1) * steps) ** 0.5


@pytest.mark.parametrize("guess", GUESSES)
@pytest.mark.parametrize("probability", [0.1, 0.5, 0.85])
def test_a_sentence_has_one_coin(probability: float, guess: Guess) -> None:
    torch.manual_seed(1)
    rows, steps = 10000, 7
    is_gold_BT = coins(ScheduledSampling(probability, unit="sentence", guess=guess), rows=rows, steps=steps)
    assert (is_gold_BT == is_gold_BT[:, :1]).all()
    variance = probability * (1.0 - probability)
    assert abs(is_gold_BT[:, 0].mean().item() - probability) < 5 * (variance / rows) ** 0.5
    centred = (is_gold_BT[:, 0] - probability) / variance**0.5
    assert abs((centred[1:] * centred[:-1]).mean().item()) < 5 / (rows - 1) ** 0.5


@every_unit
def test_each_batch_is_tossed_anew(unit: Unit) -> None:
    feed = ScheduledSampling(0.5, unit=unit)
    torch.manual_seed(1)
    first, second = coins(feed, rows=64, steps=3), coins(feed, rows=64, steps=3)
    torch.manual_seed(1)
    again = coins(feed, rows=64, steps=3)
    assert not torch.equal(first, second)
    assert torch.equal(first, again)


def test_sampled_guesses_follow_the_models_distribution() -> None:
    torch.manual_seed(1)
    probabilities = torch.tensor([0.5, 0.05, 0.25, 0.001, 0.199])
    rows = 200_000
    logits_BV = (probabilities.log() + 3.0).expand(rows, 5)
    chooser = ScheduledSampling(0.0, guess="sample").begin(rows, CPU)
    drawn = chooser.next(torch.zeros(rows, dtype=torch.int64), logits_BV)
    counts = torch.bincount(drawn, minlength=5)
    chi_square = ((counts - rows * probabilities) ** 2 / (rows * probabilities)).sum().item()
    assert chi_square < 23.5  # 1 in 10,000 at 4 degrees of freedom


def test_what_has_no_probability_is_never_drawn() -> None:
    torch.manual_seed(1)
    logits_BV = torch.tensor([-torch.inf, 2.0, -torch.inf, 2.0, -torch.inf]).expand(100_000, 5)
    chooser = ScheduledSampling(0.0, guess="sample").begin(100_000, CPU)
    drawn = chooser.next(torch.zeros(100_000, dtype=torch.int64), logits_BV)
    assert set(drawn.tolist()) == {1, 3}


def test_logits_that_are_not_finite_do_not_stop_it() -> None:
    """It is the loss that is found not finite, and told of."""
    for guess in GUESSES:
        chooser = ScheduledSampling(0.0, guess=guess).begin(2, CPU)
        chosen_B = chooser.next(torch.tensor([1, 2]), torch.tensor([[float("nan")] * 4, [float("inf")] * 4]))
        assert ((chosen_B >= 0) & (chosen_B < 4)).all()


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(probability: float) -> None:
    with pytest.raises(ValueError, match="is not from 0 to 1"):
        ScheduledSampling(probability)


@every_cell
@every_unit
@pytest.mark.parametrize("guess", GUESSES)
@torch.no_grad()
def test_at_probability_1_it_is_teacher_forcing(config: dict[str, Any], unit: Unit, guess: Guess) -> None:
    model = make(config)
    memory = model.encode(SOURCE_BS)
    sampled = model.decode(TARGET_BT, memory, ScheduledSampling(1.0, unit=unit, guess=guess))
    forced = model.decode(TARGET_BT, memory, TeacherForcing())
    torch.testing.assert_close(sampled.readout_BTR, forced.readout_BTR, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(sampled.weights_BHTS, forced.weights_BHTS, atol=1e-6, rtol=1e-4)


@every_cell
@every_unit
@torch.no_grad()
def test_at_probability_0_it_runs_free(config: dict[str, Any], unit: Unit) -> None:
    model = make(config)
    memory = model.encode(SOURCE_BS)
    sampled = model.decode(TARGET_BT, memory, ScheduledSampling(0.0, unit=unit))
    free = model.decode(TARGET_BT, memory, FreeRunning())
    assert torch.equal(sampled.readout_BTR, free.readout_BTR)
    assert torch.equal(sampled.weights_BHTS, free.weights_BHTS)
    forced = model.decode(TARGET_BT, memory, TeacherForcing())
    assert not torch.allclose(sampled.readout_BTR, forced.readout_BTR, atol=1e-3)


@every_cell
@every_unit
@pytest.mark.parametrize("guess", GUESSES)
def test_what_was_chosen_is_what_enters(config: dict[str, Any], unit: Unit, guess: Guess) -> None:
    """Forcing the recorded choices gives the same readouts, attention and gradients."""
    model = make(config)
    source_BS, target_BT = SOURCE_BS.repeat(4, 1), TARGET_BT.repeat(4, 1)
    torch.manual_seed(8)
    feed = Recorded(ScheduledSampling(0.5, unit=unit, guess=guess))
    sampled = model.decode(target_BT, model.encode(source_BS), feed)
    chosen_BT = torch.stack(feed.chosen[: target_BT.shape[1] - 1], dim=1)
    is_gold_BT = chosen_BT == target_BT[:, :-1]
    assert is_gold_BT.any()
    assert not is_gold_BT.all()
    read_BT = torch.cat([chosen_BT, target_BT[:, -1:]], dim=1)  # the last token is read by no step
    forced = model.teacher_forced(read_BT, model.encode(source_BS))
    torch.testing.assert_close(sampled.readout_BTR, forced.readout_BTR, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(sampled.weights_BHTS, forced.weights_BHTS, atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(gradients(model, sampled), gradients(model, forced), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("tie", ["none", "output", "all"])
def test_gradients_in_bfloat16_are_those_of_forcing(tie: str) -> None:
    """Weights that guesses were made from, without gradient, are cast anew for the loss: autocast keeps casts."""
    model = make(tree(tie=tie), scale=1.0)
    parameters = list(model.parameters())
    source_BS, target_BT = SOURCE_BS.repeat(4, 1), TARGET_BT.repeat(4, 1)
    feed = Recorded(ScheduledSampling(0.5))
    with torch.autocast("cpu", torch.bfloat16):
        sampled = token_loss(model, source_BS, target_BT, feed, CrossEntropy()).objective
    mine = torch.autograd.grad(sampled, parameters, allow_unused=True)
    played_back = Given(torch.stack(feed.chosen, dim=1))
    exact = torch.autograd.grad(
        token_loss(model, source_BS, target_BT, played_back, CrossEntropy()).objective, parameters, allow_unused=True
    )
    for (name, _), one, other in zip(model.named_parameters(), mine, exact, strict=True):
        if one is None or other is None:
            assert one is other, name
        else:
            assert (one - other).norm() <= 0.05 * other.norm() + 0.05, name


@pytest.mark.cuda
@every_unit
@pytest.mark.parametrize("guess", GUESSES)
def test_it_draws_on_the_device(unit: Unit, guess: Guess) -> None:
    device = torch.device("cuda")
    model = make(tree()).to(device)
    target_BT = TARGET_BT.repeat(200, 1).to(device)
    memory = model.encode(SOURCE_BS.repeat(200, 1).to(device))

    def choices() -> Tensor:
        feed = Recorded(ScheduledSampling(0.5, unit=unit, guess=guess))
        model.decode(target_BT, memory, feed)
        return torch.stack(feed.chosen, dim=1)

    on_cpu, on_cuda = torch.get_rng_state(), torch.cuda.get_rng_state(device)
    first = choices()
    assert first.device.type == "cuda"
    assert torch.equal(torch.get_rng_state(), on_cpu)
    torch.cuda.set_rng_state(on_cuda, device)
    assert torch.equal(choices(), first)
