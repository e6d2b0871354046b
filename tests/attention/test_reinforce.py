"""REINFORCE against exact gradients by enumeration, and its loss against plain loops."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nmt.attention.mechanism import Asked
from nmt.attention.reinforce import Choice, Sampled
from tests.attention.oracles import attention_config, softmax

STEPS = 2
SHARES_TS = ((4, 2, 1, 1), (1, 1, 2, 4))
"""What each of four positions is drawn at the two steps, in eighths: a batch of 64 sentences can hold every pair of
draws as often as is expected of it, so that its mean is the expectation itself."""
NO_PADDING = torch.zeros(64, STEPS, dtype=torch.bool)


def rule(*, discount: float = 0.5, entropy: float = 0.0, kind: str = "hard", expected: float = 0.0) -> Sampled:
    text = f"{{kind: {kind}, discount: {discount}, entropy: {entropy}, expected: {expected}}}"
    made = attention_config(weights=text).weights
    assert isinstance(made, Sampled)
    return made


def logits() -> Tensor:
    """Scores (T, S) whose softmax are the shares."""
    return torch.tensor(SHARES_TS, dtype=torch.float64).log().requires_grad_()


def every_pair_of_draws() -> list[tuple[int, int]]:
    firsts, seconds = ([s for s, share in enumerate(shares) for _ in range(share)] for shares in SHARES_TS)
    return list(itertools.product(firsts, seconds))


def log_p(first: int, second: int) -> tuple[float, float]:
    """What the gold tokens of the two steps get after the draws; the second depends on both of them."""
    return -1.0 + 0.3 * first - 0.1 * first**2, -0.5 - 0.4 * abs(second - first) + 0.25 * second


def expected_rewards(scores_TS: Tensor, discount: float) -> tuple[Tensor, Tensor]:
    """E[R_1] and E[R_2], by summing over all draws."""
    p_TS = scores_TS.softmax(-1)
    first = second = torch.zeros((), dtype=torch.float64)
    for a, b in itertools.product(range(4), repeat=2):
        now, later = log_p(a, b)
        first = first + p_TS[0, a] * p_TS[1, b] * (now + discount * later)
        second = second + p_TS[0, a] * p_TS[1, b] * later
    return first, second


def choice_of(
    made_by: Sampled, scores_TS: Tensor, draws: list[tuple[int, int]], baseline_BT: Tensor | None = None
) -> Choice:
    """As if ``draws`` had come from softmax(scores)."""
    log_p_TS = scores_TS.log_softmax(-1)
    log_prob_BT = torch.stack([torch.stack([log_p_TS[t, pair[t]] for t in range(STEPS)]) for pair in draws])
    entropy_T = -(log_p_TS.exp() * log_p_TS).sum(-1)
    if baseline_BT is None:
        baseline_BT = torch.zeros(len(draws), STEPS, dtype=torch.float64)
    return Choice(made_by, log_prob_BT, entropy_T.expand(len(draws), STEPS), baseline_BT, ~NO_PADDING)


@pytest.mark.parametrize("baseline", [0.0, -0.7], ids=["no baseline", "baseline"])
@pytest.mark.parametrize("discount", [0.0, 0.5, 1.0])
def test_the_gradient_is_that_of_the_expected_reward(discount: float, baseline: float) -> None:
    """Of step t's scores the exact gradient of E[R_t], whatever the baseline says."""
    draws, scores_TS = every_pair_of_draws(), logits()
    baseline_BT = torch.full((64, STEPS), baseline, dtype=torch.float64)
    choice = choice_of(rule(discount=discount), scores_TS, draws, baseline_BT)
    log_p_BT = torch.tensor([log_p(*pair) for pair in draws], dtype=torch.float64)
    (ours,) = torch.autograd.grad(choice.loss(log_p_BT, NO_PADDING) / 64, scores_TS)
    for t, expected in enumerate(expected_rewards(scores_TS, discount)):
        (exact,) = torch.autograd.grad(expected, scores_TS, retain_graph=True)
        assert exact[t].abs().max() > 0.01
        torch.testing.assert_close(ours[t], -exact[t], atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("discount", [0.0, 0.5])
def test_seeded_draws_give_the_exact_gradient_on_average(discount: float) -> None:
    """From ``draw`` on: 60 batches of 1,000 sentences, against the gradient by enumeration within four times the
    standard error of their mean."""
    torch.manual_seed(21)
    made_by, sentences = rule(discount=discount), 1000
    parameters = {"baseline_Q": torch.zeros(3), "baseline_offset_1": torch.zeros(1)}
    asked = Asked(torch.zeros(sentences, STEPS, 3), torch.zeros(sentences, STEPS), True, 0)
    is_pad_BT = torch.zeros(sentences, STEPS, dtype=torch.bool)
    found = []
    for _ in range(60):
        scores_TS = logits()
        scores_B1TS = scores_TS.float().expand(sentences, 1, STEPS, 4)
        look_BTS, choice = made_by.look(scores_B1TS, asked, parameters)
        assert choice is not None
        log_p_BT = torch.tensor([log_p(*pair) for pair in look_BTS.argmax(-1).tolist()])
        found.append(torch.autograd.grad(choice.loss(log_p_BT, is_pad_BT) / sentences, scores_TS)[0])
    found_NTS = torch.stack(found)
    error_TS = found_NTS.std(0) / math.sqrt(60)
    # the batch's own mean, which is subtracted, holds each draw's reward once in 2,000: far below the error
    scores_TS = logits()
    rewards = expected_rewards(scores_TS, discount)
    exact_TS = torch.stack([torch.autograd.grad(each, scores_TS, retain_graph=True)[0][t]
                            for t, each in enumerate(rewards)])  # fmt: skip
    assert (error_TS < 0.1 * exact_TS.abs().max()).all()
    assert ((found_NTS.mean(0) + exact_TS).abs() < 4 * error_TS).all()


def loss_by_loops(
    choice: Choice, log_p: list[list[float]], is_pad: list[list[bool]], *, discount: float, entropy: float
) -> tuple[Tensor, list[list[float]]]:
    """The loss as the docstrings say it, and the advantages that it multiplies log-probabilities with."""
    rows = range(len(log_p))
    real = [(b, t) for b in rows for t in range(len(log_p[b])) if not is_pad[b][t]]
    drawn = [(b, t) for b, t in real if choice.is_drawn_BT[b, t]]
    rewards = {}
    for b, t in real:
        later = [each for row, each in real if row == b and each >= t]
        rewards[b, t] = sum(discount ** (each - t) * log_p[b][each] for each in later)
    baseline = choice.baseline_BT.tolist()
    left = {place: rewards[place] - baseline[place[0]][place[1]] for place in drawn}
    mean = sum(left.values()) / len(left)
    deviation = math.sqrt(sum((each - mean) ** 2 for each in left.values()) / len(left))
    advantage = {place: (each - mean) / max(deviation, 1.0) for place, each in left.items()}
    total = torch.zeros((), dtype=choice.log_prob_BT.dtype)
    for b, t in drawn:
        total = total - choice.log_prob_BT[b, t] * advantage[b, t]
        total = total + 0.5 * (choice.baseline_BT[b, t] - rewards[b, t]) ** 2
    for b, t in real:
        total = total - entropy * choice.entropy_BT[b, t]
    return total, [[advantage.get((b, t), 0.0) for t in range(len(log_p[b]))] for b in rows]


PADDED = torch.tensor([[False] * 5, [False, False, True, True, True], [False, True, True, True, True]])


SOME_DRAWN = torch.tensor([[True, False, True, True, False], [True, True, False, True, False], [True] * 5])


def random_choice(made_by: Sampled, is_drawn_BT: Tensor | None = None) -> tuple[Choice, Tensor]:
    """Leaves for all that a loss may reach, and log-probabilities of gold tokens."""
    draw = torch.Generator().manual_seed(13)

    def values(scale: float) -> Tensor:
        return (scale * torch.randn(3, 5, dtype=torch.float64, generator=draw)).requires_grad_()

    is_drawn_BT = torch.ones_like(PADDED) if is_drawn_BT is None else is_drawn_BT
    return Choice(made_by, values(1.0), values(1.0), values(0.3), is_drawn_BT), values(1.0)


def scaled(log_p_BT: Tensor, scale: float) -> Tensor:
    return (log_p_BT.detach() * scale).requires_grad_()


@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0], ids=["small", "middling", "large"])
@pytest.mark.parametrize("discount", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("is_drawn_BT", [torch.ones_like(PADDED), SOME_DRAWN], ids=["all drawn", "some drawn"])
@pytest.mark.parametrize("kind", ["hard", "glimpse"])
def test_the_loss_equals_plain_loops(kind: str, is_drawn_BT: Tensor, discount: float, scale: float) -> None:
    """Value and gradients, with targets of 5, 2 and 1 tokens and rewards of any size."""
    choice, log_p_BT = random_choice(rule(kind=kind, discount=discount, entropy=0.3), is_drawn_BT)
    log_p_BT = scaled(log_p_BT, scale)
    ours = choice.loss(log_p_BT, PADDED)
    theirs, advantages = loss_by_loops(choice, log_p_BT.tolist(), PADDED.tolist(), discount=discount, entropy=0.3)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-6)
    leaves = [choice.log_prob_BT, choice.entropy_BT, choice.baseline_BT]
    for one, other in zip(torch.autograd.grad(ours, leaves), torch.autograd.grad(theirs, leaves), strict=True):
        torch.testing.assert_close(one, other)
    squares = [each**2 for row in advantages for each in row if each != 0.0]
    if scale == 30.0:
        assert sum(squares) / len(squares) == pytest.approx(1.0), "large rewards are brought down to deviation 1"


def test_where_nothing_was_drawn_the_entropy_is_left() -> None:
    choice, log_p_BT = random_choice(rule(entropy=0.3), torch.zeros_like(PADDED))
    expected = -0.3 * choice.entropy_BT[~PADDED].sum().item()
    assert choice.loss(log_p_BT, PADDED).item() == pytest.approx(expected)


def test_no_reward_passes_a_gradient_on() -> None:
    choice, log_p_BT = random_choice(rule())
    loss = choice.loss(log_p_BT, PADDED)
    assert torch.autograd.grad(loss, log_p_BT, allow_unused=True) == (None,)


def test_the_baseline_learns_from_its_own_error_alone() -> None:
    """Its gradient is baseline - reward, whatever was drawn."""
    made_by = rule(discount=0.5)
    choice, log_p_BT = random_choice(made_by)
    (ours,) = torch.autograd.grad(choice.loss(log_p_BT, PADDED), choice.baseline_BT)
    for b in range(3):
        for t in range(5):
            reward = sum(0.5 ** (n - t) * log_p_BT[b, n].item() for n in range(t, 5) if not PADDED[b, n])
            expected = 0.0 if PADDED[b, t] else choice.baseline_BT[b, t].item() - reward
            assert ours[b, t].item() == pytest.approx(expected, abs=1e-6)


def test_a_draws_gradient_is_its_advantage_and_nothing_of_the_baseline_s_error() -> None:
    choice, log_p_BT = random_choice(rule())
    (ours,) = torch.autograd.grad(choice.loss(log_p_BT, PADDED), choice.log_prob_BT)
    _, advantages = loss_by_loops(choice, log_p_BT.tolist(), PADDED.tolist(), discount=0.5, entropy=0.0)
    torch.testing.assert_close(-ours, torch.tensor(advantages, dtype=torch.float64))


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
    loss = choice.loss(log_p_BT, PADDED)
    changed = {name: each.masked_fill(PADDED, 77.0) if name == change else each for name, each in fields.items()}
    is_drawn_BT = choice.is_drawn_BT
    other = Choice(made_by, changed["log_prob"], changed["entropy"], changed["baseline"], is_drawn_BT)
    assert other.loss(changed["log_p"], PADDED).item() == pytest.approx(loss.item())
    gradient = torch.autograd.grad(loss, choice.log_prob_BT)[0]
    assert (gradient[PADDED] == 0).all()
    more = {name: torch.nn.functional.pad(each, (0, 2), value=5.0) for name, each in fields.items()}
    is_pad_BT, is_drawn_BT = (torch.nn.functional.pad(each, (0, 2), value=True) for each in (PADDED, is_drawn_BT))
    padded = Choice(made_by, more["log_prob"], more["entropy"], more["baseline"], is_drawn_BT)
    assert padded.loss(more["log_p"], is_pad_BT).item() == pytest.approx(loss.item())


@pytest.mark.parametrize("kind", ["hard", "glimpse"])
def test_the_entropy_bonus_pulls_towards_even_weights(kind: str) -> None:
    """Its gradient, rewards being all alike, against the derivative of the entropy by differences."""
    torch.manual_seed(0)
    weight = 0.25
    made_by = rule(entropy=weight, kind=kind)
    start = torch.tensor([[0.3, -1.0, 2.0, 0.1], [1.0, 1.5, -0.5, -math.inf]])
    scores_11TS = start[None, None].clone().requires_grad_()
    asked = Asked(torch.zeros(1, 2, 3), torch.zeros(1, 2), True, 0)
    parameters = {"baseline_Q": torch.zeros(3), "baseline_offset_1": torch.zeros(1)}
    _, choice = made_by.look(scores_11TS, asked, parameters)
    assert choice is not None
    # centred, rewards without discount that are all alike leave nothing for the draws
    alike = dataclasses.replace(choice, rule=rule(discount=0.0, entropy=weight, kind=kind))
    loss = alike.loss(torch.full((1, 2), -1.0), torch.zeros(1, 2, dtype=torch.bool))
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
    fields: list[Callable[[Choice], Tensor]] = [
        lambda each: each.log_prob_BT,
        lambda each: each.entropy_BT,
        lambda each: each.baseline_BT,
        lambda each: each.is_drawn_BT,
    ]
    parts = [Choice(choice.rule, *(field(choice)[:, part] for field in fields)) for part in (slice(0, 2), slice(2, 5))]
    joined = Choice.joined(parts)
    assert joined is not None
    assert joined.rule == choice.rule
    for field in fields:
        assert torch.equal(field(joined), field(choice))
    assert Choice.joined([None, None]) is None
