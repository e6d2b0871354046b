"""REINFORCE against exact gradients by enumeration, and its loss against plain loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.attention.mechanism import AttentionContext
from nmt.attention.reinforce import HardAttention, SampledPositions
from nmt.models.position_losses import reinforce_loss
from tests.attention.oracles import attention_config, reinforce, softmax

STEPS = 2


def rule(
    *,
    discount: float = 0.5,
    entropy: float = 0.0,
    kind: str = "hard",
    expected: float = 0.0,
    variance_normalization: bool = False,
) -> HardAttention:
    text = (
        f"{{kind: {kind}, discount: {discount}, entropy: {entropy}, expected: {expected}, "
        f"variance_normalization: {str(variance_normalization).lower()}}}"
    )
    made = attention_config(weights=text).weights
    assert isinstance(made, HardAttention)
    return made


def logits(heads: int = 1) -> Tensor:
    """Scores of two positions, (heads, T, S)."""
    draw = torch.Generator().manual_seed(8)
    return torch.randn(heads, STEPS, 2, dtype=torch.float64, generator=draw).requires_grad_()


def log_p(sentence: int, first: Sequence[int], second: Sequence[int]) -> tuple[float, float]:
    """Returns the log-probability of the gold tokens of the two steps after the draws of all heads; the second depends
    on both steps' draws."""
    now = -1.0 - 0.7 * sentence + sum(0.3 * each - 0.2 * each**2 for each in first)
    return now, -0.5 - sum(0.4 * abs(b - a) + 0.25 * b for a, b in zip(first, second, strict=True))


def choices_of(
    made_by: HardAttention, scores_CTS: Tensor, draws_CBT: Any, baseline_BT: Tensor | None = None
) -> tuple[SampledPositions, ...]:
    """Returns the draws as if they had come from softmax(scores), the same for all sentences."""
    log_p_CTS = scores_CTS.log_softmax(-1)
    made = []
    for log_p_TS, draws_BT in zip(log_p_CTS, draws_CBT, strict=True):
        log_prob_BT = torch.stack([torch.stack([log_p_TS[t, row[t]] for t in range(STEPS)]) for row in draws_BT])
        entropy_T = -(log_p_TS.exp() * log_p_TS).sum(-1)
        baseline = torch.zeros_like(log_prob_BT) if baseline_BT is None else baseline_BT
        is_drawn_BT = torch.ones_like(log_prob_BT, dtype=torch.bool)
        made.append(SampledPositions(made_by, log_prob_BT, entropy_T.expand_as(log_prob_BT), baseline, is_drawn_BT))
    return tuple(made)


@pytest.mark.parametrize(
    ("heads", "sentences", "discount", "size"), [(1, 1, 1.0, 5.0), (1, 2, 0.0, 1.0), (1, 2, 1.0, 5.0), (2, 2, 1.0, 1.0)]
)
def test_over_all_draws_the_gradient_is_that_of_the_expected_rewards(
    heads: int, sentences: int, discount: float, size: float
) -> None:
    """The exact gradient of the sum over sentences and steps t of E[R_t] by the scores of step t, for batches of one
    draw and more, rewards of any size, and a baseline that is off."""
    scores_CTS = logits(heads)
    baseline_BT = torch.tensor([[-0.7, 0.2], [0.4, -1.5]], dtype=torch.float64)[:sentences]
    p_CTS = scores_CTS.softmax(-1)
    mean_CTS = torch.zeros_like(scores_CTS)
    expected_T = [torch.zeros((), dtype=torch.float64) for _ in range(STEPS)]
    shape = (heads, sentences, STEPS)
    for flat in itertools.product(range(2), repeat=math.prod(shape)):
        draws_CBT = np.reshape(flat, shape)
        p_CTS = scores_CTS.softmax(-1)
        p = torch.stack([p_CTS[c, t, draws_CBT[c, b, t]] for c, b, t in np.ndindex(shape)]).prod()
        rewards = [[size * x for x in log_p(b, draws_CBT[:, b, 0], draws_CBT[:, b, 1])] for b in range(sentences)]
        for now, later in rewards:
            expected_T[0] = expected_T[0] + p * (now + discount * later)
            expected_T[1] = expected_T[1] + p * later
        choices = choices_of(rule(discount=discount), scores_CTS, draws_CBT, baseline_BT)
        is_pad_BT = torch.zeros(sentences, STEPS, dtype=torch.bool)
        loss = reinforce_loss(choices, torch.tensor(rewards, dtype=torch.float64), is_pad_BT)
        mean_CTS += p.item() * torch.autograd.grad(loss, scores_CTS)[0]
    for t, expected in enumerate(expected_T):
        (exact_CTS,) = torch.autograd.grad(expected, scores_CTS, retain_graph=True)
        assert exact_CTS[:, t].abs().max() > 0.01
        torch.testing.assert_close(mean_CTS[:, t], -exact_CTS[:, t], atol=1e-9, rtol=1e-7)


PADDED = torch.tensor([[False] * 5, [False, False, True, True, True], [False, True, True, True, True]])


SOME_DRAWN = torch.tensor([[True, False, True, True, False], [True, True, False, True, False], [True] * 5])


def random_choice(made_by: HardAttention, is_drawn_BT: Tensor | None = None) -> tuple[SampledPositions, Tensor]:
    """Leaves for all that a loss may reach, and log-probabilities of gold tokens."""
    draw = torch.Generator().manual_seed(13)

    def values(scale: float) -> Tensor:
        return (scale * torch.randn(3, 5, dtype=torch.float64, generator=draw)).requires_grad_()

    is_drawn_BT = torch.ones_like(PADDED) if is_drawn_BT is None else is_drawn_BT
    return SampledPositions(made_by, values(1.0), values(1.0), values(0.3), is_drawn_BT), values(1.0)


def scaled(log_p_BT: Tensor, scale: float) -> Tensor:
    return (log_p_BT.detach() * scale).requires_grad_()


@pytest.mark.parametrize("scale", [0.05, 30.0], ids=["small", "large"])
@pytest.mark.parametrize("discount", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("is_drawn_BT", [torch.ones_like(PADDED), SOME_DRAWN], ids=["all drawn", "some drawn"])
@pytest.mark.parametrize("normalized", [False, True], ids=["as they are", "normalized"])
def test_the_loss_equals_plain_loops(normalized: bool, is_drawn_BT: Tensor, discount: float, scale: float) -> None:
    """Value and gradients, with targets of 5, 2 and 1 tokens and rewards of any size, of one head and of two."""
    made_by = rule(discount=discount, entropy=0.3, variance_normalization=normalized)
    choices = (random_choice(made_by, is_drawn_BT)[0], random_choice(made_by, SOME_DRAWN.flip(0))[0])
    log_p_BT = scaled(random_choice(made_by)[1], scale)
    for heads in (1, 2):
        ours = reinforce_loss(choices[:heads], log_p_BT, PADDED)
        theirs, advantages = reinforce(choices[:heads], log_p_BT.tolist(), PADDED.tolist())
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-6)
        leaves = [leaf for each in choices[:heads] for leaf in (each.log_prob_BT, each.entropy_BT, each.baseline_BT)]
        for one, other in zip(torch.autograd.grad(ours, leaves), torch.autograd.grad(theirs, leaves), strict=True):
            torch.testing.assert_close(one, other)
        largest = max(map(abs, advantages.values()))
        assert (largest > 10.0) == (scale == 30.0 and not normalized), "normalization brings large rewards down"


@pytest.mark.parametrize("normalized", [False, True])
def test_parts_that_know_each_others_sums_are_one_batch(normalized: bool) -> None:
    """The parts are like several processes, each of which has its share of the sentences."""
    made_by = rule(variance_normalization=normalized)
    choice, log_p_BT = random_choice(made_by, SOME_DRAWN)
    whole = torch.autograd.grad(reinforce_loss([choice], log_p_BT, PADDED), choice.log_prob_BT)[0]

    def part(rows: slice, all_reduce: Callable[[Tensor], Tensor]) -> Tensor:
        fields = (choice.log_prob_BT, choice.entropy_BT, choice.baseline_BT, choice.is_drawn_BT)
        own = SampledPositions(made_by, *(field[rows] for field in fields))
        return reinforce_loss([own], log_p_BT[rows], PADDED[rows], all_reduce=all_reduce)

    shares, own_sums = (slice(0, 1), slice(1, 3)), []
    for rows in shares:
        part(rows, lambda own_3: own_sums.append(own_3) or own_3)
    loss = sum((part(rows, lambda _: own_sums[0] + own_sums[1]) for rows in shares), start=torch.zeros(()))
    torch.testing.assert_close(torch.autograd.grad(loss, choice.log_prob_BT)[0], whole)


def test_where_nothing_was_drawn_the_entropy_is_left() -> None:
    choice, log_p_BT = random_choice(rule(entropy=0.3), torch.zeros_like(PADDED))
    expected = -0.3 * choice.entropy_BT[~PADDED].sum().item()
    assert reinforce_loss([choice], log_p_BT, PADDED).item() == pytest.approx(expected)


def test_no_reward_passes_a_gradient_on() -> None:
    choice, log_p_BT = random_choice(rule())
    loss = reinforce_loss([choice], log_p_BT, PADDED)
    assert torch.autograd.grad(loss, log_p_BT, allow_unused=True) == (None,)


def test_the_baseline_learns_from_its_own_error_alone() -> None:
    """Its gradient is baseline - reward, whatever was drawn."""
    made_by = rule(discount=0.5)
    choice, log_p_BT = random_choice(made_by)
    (ours,) = torch.autograd.grad(reinforce_loss([choice], log_p_BT, PADDED), choice.baseline_BT)
    for b in range(3):
        for t in range(5):
            reward = sum(0.5 ** (n - t) * log_p_BT[b, n].item() for n in range(t, 5) if not PADDED[b, n])
            expected = 0.0 if PADDED[b, t] else choice.baseline_BT[b, t].item() - reward
            assert ours[b, t].item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("change", ["log_p", "log_prob", "entropy", "baseline"])
def test_padding_of_targets_does_not_count(change: str) -> None:
    """Neither what is in it nor how much of it there is."""
    made_by = rule(entropy=0.3)
    choice, log_p_BT = random_choice(made_by)
    fields = {
        "log_p": log_p_BT,
        "log_prob": choice.log_prob_BT,
        "entropy": choice.entropy_BT,
        "baseline": choice.baseline_BT,
    }
    loss = reinforce_loss([choice], log_p_BT, PADDED)
    changed = {name: each.masked_fill(PADDED, 77.0) if name == change else each for name, each in fields.items()}
    is_drawn_BT = choice.is_drawn_BT
    other = SampledPositions(made_by, changed["log_prob"], changed["entropy"], changed["baseline"], is_drawn_BT)
    assert reinforce_loss([other], changed["log_p"], PADDED).item() == pytest.approx(loss.item())
    gradient = torch.autograd.grad(loss, choice.log_prob_BT)[0]
    assert (gradient[PADDED] == 0).all()
    more = {name: torch.nn.functional.pad(each, (0, 2), value=5.0) for name, each in fields.items()}
    is_pad_BT, is_drawn_BT = (torch.nn.functional.pad(each, (0, 2), value=True) for each in (PADDED, is_drawn_BT))
    padded = SampledPositions(made_by, more["log_prob"], more["entropy"], more["baseline"], is_drawn_BT)
    assert reinforce_loss([padded], more["log_p"], is_pad_BT).item() == pytest.approx(loss.item())


@pytest.mark.parametrize("kind", ["hard", "glimpse"])
def test_the_entropy_bonus_pulls_towards_even_weights(kind: str) -> None:
    """Its gradient, rewards being all alike, against the derivative of the entropy by differences."""
    torch.manual_seed(0)
    weight = 0.25
    made_by = rule(entropy=weight, kind=kind)
    start = torch.tensor([[0.3, -1.0, 2.0, 0.1], [1.0, 1.5, -0.5, -math.inf]])
    scores_11TS = start[None, None].clone().requires_grad_()
    context = AttentionContext(torch.zeros(1, 2, 3), torch.zeros(1, 2), True, 0)
    parameters = {"baseline_Q": torch.zeros(3), "baseline_offset_1": torch.zeros(1)}
    _, choice = made_by.sample(scores_11TS, context, parameters)
    assert choice is not None
    # rewards of 0 leave nothing for the draws
    loss = reinforce_loss([choice], torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.bool))
    (ours,) = torch.autograd.grad(loss, scores_11TS)

    def entropy(scores: list[float]) -> float:
        return -sum(p * math.log(p) for p in softmax(scores) if p > 0.0)

    step = 1e-5
    for t in range(2):
        scores = start[t].double().tolist()
        for s in range(4):
            up, down = ([x + sign * step if n == s else x for n, x in enumerate(scores)] for sign in (1, -1))
            expected = -weight * (entropy(up) - entropy(down)) / (2 * step)
            assert ours[0, 0, t, s].item() == pytest.approx(expected, abs=1e-5)


def test_choices_of_steps_join_in_order() -> None:
    choice, _ = random_choice(rule(), SOME_DRAWN)
    fields: list[Callable[[SampledPositions], Tensor]] = [
        lambda each: each.log_prob_BT,
        lambda each: each.entropy_BT,
        lambda each: each.baseline_BT,
        lambda each: each.is_drawn_BT,
    ]
    parts = [
        SampledPositions(choice.rule, *(field(choice)[:, part] for field in fields))
        for part in (slice(0, 2), slice(2, 5))
    ]
    joined = SampledPositions.joined(parts)
    assert joined is not None
    assert joined.rule == choice.rule
    for field in fields:
        assert torch.equal(field(joined), field(choice))
    assert SampledPositions.joined([None, None]) is None


def test_neighbouring_draws_of_a_step_are_choices_of_their_own() -> None:
    made_by = rule(discount=0.5, entropy=0.3)
    (one, log_p_BT), (other, _) = random_choice(made_by), random_choice(made_by, SOME_DRAWN)
    other = SampledPositions(made_by, one.entropy_BT, one.log_prob_BT, other.baseline_BT * 2.0, SOME_DRAWN)
    names = ("log_prob_BT", "entropy_BT", "baseline_BT", "is_drawn_BT")
    fields = [torch.stack([getattr(one, name), getattr(other, name)], dim=2).flatten(1) for name in names]
    together = reinforce_loss([SampledPositions(made_by, *fields)], log_p_BT, PADDED)
    torch.testing.assert_close(together, reinforce_loss([one, other], log_p_BT, PADDED))
