"""Losses of attention to one source position, against exact gradients by enumeration and plain loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.attention.reinforce import HardAttention, SampledPositions
from nmt.models.feed import FreeRunning, TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.position_losses import MarginalLikelihood, Reinforce, reinforce_loss
from nmt.models.rnn.decoder import RNNDecoder
from nmt.models.seq2seq import Seq2Seq
from tests.attention.oracles import SCORE_ORACLES, attention_config, reinforce
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.variants import WIRINGS, make, tree

# ---- REINFORCE, given the draws

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


def test_neighbouring_draws_of_a_step_are_choices_of_their_own() -> None:
    made_by = rule(discount=0.5, entropy=0.3)
    (one, log_p_BT), (other, _) = random_choice(made_by), random_choice(made_by, SOME_DRAWN)
    other = SampledPositions(made_by, one.entropy_BT, one.log_prob_BT, other.baseline_BT * 2.0, SOME_DRAWN)
    names = ("log_prob_BT", "entropy_BT", "baseline_BT", "is_drawn_BT")
    fields = [torch.stack([getattr(one, name), getattr(other, name)], dim=2).flatten(1) for name in names]
    together = reinforce_loss([SampledPositions(made_by, *fields)], log_p_BT, PADDED)
    torch.testing.assert_close(together, reinforce_loss([one, other], log_p_BT, PADDED))


# ---- REINFORCE in the loss of a model

DISCOUNT, ENTROPY = 0.5, 0.2
KINDS = ("hard", "glimpse")


def model_of(
    kind: str,
    wiring: dict[str, Any],
    *,
    expected: float = 0.5,
    discount: float = DISCOUNT,
    entropy: float = ENTROPY,
    variance_normalization: bool = True,
) -> Seq2Seq[Any, Any]:
    weights = {"kind": kind, "discount": discount, "entropy": entropy, "expected": expected}
    weights["variance_normalization"] = variance_normalization
    config = tree(score="general", weights=weights, decoder=wiring)
    config["dropout"] = {"embedding": 0.0, "layers": 0.0}
    return make(config, scale=1.5).double().train()


@pytest.mark.parametrize("feed", [TeacherForcing(), FreeRunning()], ids=["teacher forcing", "free running"])
@pytest.mark.parametrize("wiring", WIRINGS.values(), ids=WIRINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_equals_plain_loops(kind: str, wiring: dict[str, Any], feed: Any) -> None:
    """Each token's log-probability is the reward of the draw at its own step; the same seed gives the same draws."""
    model = model_of(kind, wiring)
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    torch.manual_seed(4)
    loss = token_loss(model, source_BS, target_BT, feed, Reinforce(CrossEntropy(0.1)))
    torch.manual_seed(4)
    decoded = model.decode(target_BT, model.encode(source_BS), feed)
    assert len(decoded.sampled) == 1
    log_p_BTV = model.output(decoded.readout_BTR).log_softmax(-1)

    cross_entropy = 0.0
    for b, target in enumerate(TARGETS):
        for t, gold in enumerate(target):
            cross_entropy -= 0.9 * log_p_BTV[b, t, gold].item() + 0.1 * log_p_BTV[b, t].mean().item()
    log_p_BT = log_p_BTV.gather(2, target_BT[:, :, None])[:, :, 0].masked_fill(target_BT == 0, 0.0)
    rewarded, advantages = reinforce(decoded.sampled, log_p_BT.tolist(), (target_BT == 0).tolist())
    assert 0 < len(advantages) < sum(map(len, TARGETS))
    assert loss.objective.item() == pytest.approx(cross_entropy + rewarded.item(), rel=1e-4)
    gold_log_p = [log_p_BTV[b, t, gold].item() for b, target in enumerate(TARGETS) for t, gold in enumerate(target)]
    assert loss.cross_entropy_N.tolist() == pytest.approx([-each for each in gold_log_p], rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_without_training_it_is_cross_entropy_alone(kind: str) -> None:
    model = model_of(kind, WIRINGS["feeding"]).eval()
    loss = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), CrossEntropy())
    assert loss.objective.item() == pytest.approx(loss.cross_entropy.item())
    assert model.teacher_forced(padded(TARGETS), model.encode(padded(SOURCES))).sampled == ()


@pytest.mark.parametrize("kind", KINDS)
def test_the_scores_learn_from_the_reward_alone_where_a_draw_has_no_derivative(kind: str) -> None:
    """Without input feeding and with the current query, cross entropy has no gradient for the score's weight."""
    model = model_of(kind, WIRINGS["parallel"], expected=0.0)
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    weight = dict(model.named_parameters())["decoder.attention.key_weight_AK"]
    decoded = model.decode(target_BT, model.encode(source_BS), TeacherForcing())
    readout_NR = decoded.readout_BTR[target_BT != 0]
    cross_entropy = model.output.loss(readout_NR, target_BT[target_BT != 0]).objective
    assert (torch.autograd.grad(cross_entropy, weight)[0] == 0).all()
    objective = token_loss(model, source_BS, target_BT, TeacherForcing(), Reinforce(CrossEntropy())).objective
    assert torch.autograd.grad(objective, weight)[0].abs().max() > 1e-3


@pytest.mark.parametrize(
    ("wiring", "discount", "is_unbiased"),
    [(wiring, discount, wiring == "parallel" or discount == 1.0) for wiring in WIRINGS for discount in (0.0, 1.0)],
)
@pytest.mark.parametrize("sources", [[[5, 3]], [[5, 3], [4, 3]]], ids=["one sentence", "two"])
def test_over_all_draws_the_gradient_is_unbiased_where_the_reward_holds_all_that_a_draw_changes(
    sources: list[list[int]], wiring: str, discount: float, is_unbiased: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The objective's gradient, in expectation over every draw, is that of the expected log-likelihood for each
    parameter but the baseline's: with rewards of all words that follow, or where no draw reaches a later step."""
    model = model_of(
        "hard", WIRINGS[wiring], expected=0.0, discount=discount, entropy=0.0, variance_normalization=False
    )
    source_BS, target_BT = torch.tensor(sources), torch.tensor([[4, 3], [1, 3]])[: len(sources)]
    names, parameters = zip(
        *((name, each) for name, each in model.named_parameters() if "baseline" not in name), strict=True
    )
    drawn: list[Tensor] = []
    monkeypatch.setattr("nmt.attention.reinforce._draw", lambda p_BTS: drawn.pop(0).view(p_BTS.shape[:2]))
    found: list[Tensor | float] = [0.0] * len(parameters)
    expected = torch.zeros((), dtype=torch.float64)
    for flat in itertools.product(range(2), repeat=target_BT.numel()):
        draws_BT = torch.tensor(flat).view_as(target_BT)
        at_once = wiring == "parallel"
        drawn[:] = [draws_BT.flatten()] if at_once else [*draws_BT.T]
        decoded = model.decode(target_BT, model.encode(source_BS), TeacherForcing())
        log_p_BTV = model.output(decoded.readout_BTR).log_softmax(-1)
        p = decoded.sampled[0].log_prob_BT.sum().exp()
        expected = expected + p * log_p_BTV.gather(2, target_BT[:, :, None]).sum()
        drawn[:] = [draws_BT.flatten()] if at_once else [*draws_BT.T]
        objective = token_loss(model, source_BS, target_BT, TeacherForcing(), Reinforce(CrossEntropy())).objective
        gradients = torch.autograd.grad(objective, parameters, allow_unused=True)
        found = [sum_ + p.item() * (0.0 if each is None else each) for sum_, each in zip(found, gradients, strict=True)]
    exact = torch.autograd.grad(expected, parameters, allow_unused=True)
    assert exact[names.index("decoder.attention.key_weight_AK")].abs().max() > 1e-3
    pairs = [(ours, -theirs) for ours, theirs in zip(found, exact, strict=True) if theirs is not None]
    assert is_unbiased == all(torch.allclose(ours, theirs, atol=1e-6, rtol=1e-5) for ours, theirs in pairs)


# ---- the likelihood summed over every source position

MARGINAL = {"kind": "hard", "training": "marginal"}


def marginal_model(score: Any = "general", **decoder: Any) -> Seq2Seq[Any, Any]:
    """In training, but that nothing is dropped."""
    config = tree(
        score=score, weights=MARGINAL, decoder={"query": "current", "input_feeding": False, "cell": "gru", **decoder}
    )
    config["dropout"] = {"embedding": 0.0, "layers": 0.0}
    return make(config, scale=1.5).double().train()


def tops(model: Seq2Seq[Any, Any], target: list[int], summary_D: Tensor) -> tuple[Tensor, Tensor]:
    """The words read and the states of torch's own recurrence over them."""
    decoder = model.decoder
    assert isinstance(decoder, RNNDecoder)
    words_TE = decoder.embedding.weight_VD[torch.tensor([model.bos, *target[:-1]])]
    hidden = decoder.handover.start(summary_D[None])
    (layer,) = decoder.stack.rnns
    states_TD, _ = layer(words_TE, hidden[0])
    return words_TE, states_TD


def enumerated(
    model: Seq2Seq[Any, Any], source: list[int], target: list[int], *, smoothing: float = 0.0
) -> tuple[list[Tensor], list[Tensor], int]:
    """Computes for each target token -log of the sum over s of a_s p~(token | s), with p~ smoothed and not, and the
    number of tokens that are the best guess at the heaviest position; for one sentence without padding, one source
    position after the other."""
    decoder = model.decoder
    assert isinstance(decoder, RNNDecoder)
    assert decoder.attention is not None
    source_1S = torch.tensor([source])
    encoded = model.encoder(model.encoder.embed(source_1S), source_1S == model.pad)
    words_TE, states_TD = tops(model, target, encoded.final_BD[0])
    smoothed: list[Tensor] = []
    plain: list[Tensor] = []
    correct = 0
    for step, gold in enumerate(target):
        scores, likelihoods, log_likelihoods, is_best = [], [], [], []
        for place, state_D in enumerate(encoded.states_BSD[0]):
            oracle = SCORE_ORACLES[decoder.attention.score.kind]
            query = [states_TD[step], *([words_TE[step]] if decoder.query_embedding else [])]
            scores.append(oracle(decoder.attention, torch.cat(query), state_D, place))
            # the context with all weight on this one position is its state
            seen = [states_TD[step], state_D, *([words_TE[step]] if decoder.readout_embedding else [])]
            readout_R = torch.tanh(decoder.readout.weight @ torch.cat(seen) + decoder.readout.bias)
            log_p_V = (model.output.weight_VD @ readout_R + model.output.bias_V).log_softmax(-1)
            log_likelihoods.append(log_p_V[gold])
            likelihoods.append((1 - smoothing) * log_p_V[gold] + smoothing * log_p_V.mean())
            is_best.append(bool(log_p_V.argmax() == gold))
        exponentials = [each.exp() for each in scores]
        weights = [each / sum(exponentials) for each in exponentials]
        smoothed.append(-torch.log(sum(a * each.exp() for a, each in zip(weights, likelihoods, strict=True))))  # type: ignore[arg-type]
        plain.append(-torch.log(sum(a * each.exp() for a, each in zip(weights, log_likelihoods, strict=True))))  # type: ignore[arg-type]
        correct += is_best[max(range(len(weights)), key=lambda place: weights[place].item())]
    return smoothed, plain, correct


CASES = {
    "general": marginal_model,
    "additive": lambda: marginal_model("additive"),
    "location": lambda: marginal_model({"kind": "location", "positions": 3}),
    "word in readout and query": lambda: marginal_model(readout_embedding=True, readout_size=4, query_embedding=True),
}


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("case", CASES)
def test_the_loss_and_its_gradients_are_those_of_the_enumeration(case: str, smoothing: float) -> None:
    """In a batch of sentences of different lengths; autograd through the enumeration gives the gradients."""
    model = CASES[case]()
    named = dict(model.named_parameters())
    loss = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), MarginalLikelihood(smoothing))
    smoothed: list[Tensor] = []
    plain: list[Tensor] = []
    correct = 0
    for source, target in zip(SOURCES, TARGETS, strict=True):
        one, other, right = enumerated(model, source, target, smoothing=smoothing)
        smoothed, plain, correct = smoothed + one, plain + other, correct + right
    objective = torch.stack(smoothed).sum()
    assert loss.objective.item() == pytest.approx(objective.item(), rel=1e-5)
    assert loss.cross_entropy_N.tolist() == pytest.approx([each.item() for each in plain], rel=1e-4, abs=1e-5)
    assert not loss.cross_entropy_N.requires_grad
    assert loss.correct is not None
    assert loss.correct.item() == correct
    ours = torch.autograd.grad(loss.objective, list(named.values()))
    theirs = torch.autograd.grad(objective, list(named.values()), allow_unused=True)
    for name, one_gradient, other_gradient in zip(named, ours, theirs, strict=True):
        expected = torch.zeros_like(one_gradient) if other_gradient is None else other_gradient
        # weights and likelihoods pass through float32
        torch.testing.assert_close(
            one_gradient, expected, atol=2e-5, rtol=2e-4, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_the_sum_differs_from_the_likelihood_of_the_mean_context() -> None:
    """The loss is a mixture of likelihoods, not the likelihood of a mixture."""
    model = marginal_model()
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    marginal = token_loss(model, source_BS, target_BT, TeacherForcing(), MarginalLikelihood())
    decoded = model.teacher_forced(target_BT, model.encode(source_BS))
    gold_N = target_BT[target_BT != 0]
    mixed = model.output.loss(decoded.readout_BTR[target_BT != 0], gold_N)
    assert abs(marginal.objective.item() - mixed.objective.item()) > 0.05


def test_more_padding_changes_nothing() -> None:
    model = marginal_model()
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    wide_BS, long_BT = (torch.nn.functional.pad(each, (0, 3)) for each in (source_BS, target_BT))
    losses = [
        token_loss(model, source, target, TeacherForcing(), MarginalLikelihood(0.1))
        for source, target in ((source_BS, target_BT), (wide_BS, long_BT))
    ]
    one, other = (torch.autograd.grad(each.objective, list(model.parameters())) for each in losses)
    assert losses[0].objective.item() == pytest.approx(losses[1].objective.item(), rel=1e-6)
    assert len(losses[1].cross_entropy_N) == sum(map(len, TARGETS))
    for first, second in zip(one, other, strict=True):
        torch.testing.assert_close(first, second, atol=1e-6, rtol=1e-5)


def test_without_training_the_best_position_alone_counts() -> None:
    """Decoding does the same: the loss of a validation is that of the model that translates."""
    model = marginal_model().eval()
    loss = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), CrossEntropy())
    found: list[float] = []
    for source, target in zip(SOURCES, TARGETS, strict=True):
        decoded = model.teacher_forced(torch.tensor([target]), model.encode(torch.tensor([source])))
        assert decoded.marginal is None
        assert set(decoded.weights_BHTS.unique().tolist()) <= {0.0, 1.0}
        log_p_TV = model.output(decoded.readout_BTR[0]).log_softmax(-1)
        found += [-log_p_TV[step, gold].item() for step, gold in enumerate(target)]
    assert loss.cross_entropy_N.tolist() == pytest.approx(found, rel=1e-4, abs=1e-5)


def test_training_towards_the_sum_raises_it() -> None:
    torch.manual_seed(0)
    model = marginal_model().float()
    source_BS, target_BT = padded(SOURCES), padded(TARGETS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(30):
        loss = token_loss(model, source_BS, target_BT, TeacherForcing(), MarginalLikelihood())
        optimizer.zero_grad()
        loss.objective.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.cross_entropy.item())
    assert losses[-1] < 0.2 * losses[0]
