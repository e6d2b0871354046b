"""Minimum risk training against plain loops, one hypothesis and one step at a time, and against sacreBLEU."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import sacrebleu
import torch
from torch import Tensor

from nmt.config.structure import parse_document, validate
from nmt.core.device import Compute, compute
from nmt.core.errors import InputError
from nmt.data.batching import halves
from nmt.data.vocabulary import BOS, EOS, PAD, UNK
from nmt.experiment import Experiment, load
from nmt.extras.finetuning import risk
from nmt.extras.finetuning.risk import MinimumRisk, reward, sample
from nmt.models.feed import TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.output import TokenLoss
from nmt.training.config import OptimizerConfig, RiskConfig, TrainingConfig
from nmt.training.objective import BatchTotals, Objective
from nmt.training.optimizer import NamedOptimizer
from nmt.workflows.train import train
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.variants import TRANSFORMER, make, tree
from tests.training.test_objective import batch_of
from tests.workflows.runs import assert_same_bits, measured

NO_DROPOUT = {"embedding": 0.0, "layers": 0.0}
MODELS = {
    "rnn": {**tree(), "dropout": NO_DROPOUT},
    "transformer": tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)
    | {"dropout": {**NO_DROPOUT, "feed_forward": 0.0}},
}
FLOAT32 = Compute(torch.device("cpu"), "float32")

DRAWN = [
    [[4, 4, 3], [4, 5, 3], [4, 5, 3], [5, 3]],
    [[5, 3], [5, 3], [3], [4, 1, 4, 4, 3]],  # the reference is among them
    [[4, 4, 3], [1, 4, 5, 3], [4, 3], [1, 3]],
]
"""Hypotheses of each of ``SOURCES``, some of them twice."""


WORDS = ["padding", "unknown", "begin", "end", "dog", "cat"]


def text(tokens: Sequence[int]) -> str:
    return " ".join(WORDS[token] for token in tokens)


def log_p(model: Seq2Seq[Any, Any], source: list[int], hypothesis: Sequence[int]) -> Tensor:
    """One sentence, one step at a time, in float64; with a gradient."""
    memory = model.encode(torch.tensor([source]))
    state, token = model.start(memory), BOS
    total = torch.zeros((), dtype=torch.float64)
    for following in hypothesis:
        step = model.step(torch.tensor([token]), memory, state)
        total = total + step.logits_NV[0].double().log_softmax(dim=0)[following]
        state, token = step.state, following
    return total


def risk_by_loops(
    model: Seq2Seq[Any, Any], hypotheses: list[list[list[int]]], alpha: float, *, include_reference: bool = True
) -> Tensor:
    """Equations 7 to 9, summed over the sentences."""
    total = torch.zeros((), dtype=torch.float64)
    for source, target, drawn in zip(SOURCES, TARGETS, hypotheses, strict=True):
        distinct: list[list[int]] = [target] if include_reference else []
        for each in drawn:
            if each not in distinct:
                distinct.append(each)
        sharpened = [(alpha * log_p(model, source, each)).exp() for each in distinct]
        for each, weight in zip(distinct, sharpened, strict=True):
            cost = 1.0 - sacrebleu.sentence_bleu(text(each[:-1]), [text(target[:-1])]).score / 100.0
            total = total + weight / sum(sharpened) * cost
    return total


def minimum_risk(model: Seq2Seq[Any, Any], compute: Compute = FLOAT32, **settings: Any) -> MinimumRisk:
    return MinimumRisk(model, RiskConfig.model_validate(settings), compute, text, 0.1)


def found_with(monkeypatch: pytest.MonkeyPatch, drawn: list[list[list[int]]], found: MinimumRisk) -> TokenLoss:
    """The loss of SOURCES and TARGETS with given hypotheses."""
    monkeypatch.setattr(risk, "sample", lambda *_, **__: [[tuple(each[:-1]) for each in of_one] for of_one in drawn])
    return found(padded(SOURCES), padded(TARGETS))


@pytest.mark.parametrize("include_reference", [True, False], ids=["with reference", "without"])
@pytest.mark.parametrize("alpha", [0.005, 0.7])
@pytest.mark.parametrize("kind", MODELS)
def test_risk_and_gradient_equal_plain_loops(
    kind: str, alpha: float, include_reference: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make(MODELS[kind]).double().train()
    own = minimum_risk(model, alpha=alpha, include_reference=include_reference)
    found = found_with(monkeypatch, DRAWN, own).risk
    expected = risk_by_loops(model, DRAWN, alpha, include_reference=include_reference)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    parameters = list(model.parameters())
    expected_gradients = torch.autograd.grad(expected, parameters, allow_unused=True)
    size = sum(each.abs().sum().item() for each in expected_gradients if each is not None)
    assert size > alpha  # or it shows nothing
    for one, other in zip(torch.autograd.grad(found, parameters, allow_unused=True), expected_gradients, strict=True):
        one, other = (torch.zeros(1) if each is None else each / alpha for each in (one, other))
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4, check_dtype=False)


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_with_all_hypotheses_and_alpha_1_it_is_the_expected_cost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given that the model says one of them: all of up to three tokens before the end."""
    model = make(MODELS["rnn"]).train()
    every = [[*words, EOS] for count in range(4) for words in itertools.product([UNK, 4, 5], repeat=count)]
    found = found_with(monkeypatch, [every] * 3, minimum_risk(model, alpha=1.0, reward=name)).risk
    score = {"bleu": sacrebleu.sentence_bleu, "chrf": sacrebleu.sentence_chrf}[name]
    expected = 0.0
    for source, target in zip(SOURCES, TARGETS, strict=True):
        p = {tuple(each): log_p(model, source, each).exp().item() for each in every}
        costs = {each: 1.0 - score(text(each[:-1]), [text(target[:-1])]).score / 100.0 for each in p}
        expected += sum(p[each] * costs[each] for each in p) / sum(p.values())
    assert found.item() == pytest.approx(expected, rel=1e-4)


def test_the_gold_loss_is_the_usual_one_and_has_a_gradient_where_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(MODELS["rnn"]).train()
    usual = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), CrossEntropy(0.1))
    usual_gradients = torch.autograd.grad(usual.objective, list(model.parameters()))
    for weight in (0.0, 0.5):
        for include_reference in (True, False):
            own = minimum_risk(model, cross_entropy=weight, include_reference=include_reference)
            gold = found_with(monkeypatch, DRAWN, own)
            assert gold.objective.item() == pytest.approx(usual.objective.item(), rel=1e-5)
            assert gold.cross_entropy.item() == pytest.approx(usual.cross_entropy.item(), rel=1e-5)
            assert gold.objective.requires_grad == (weight > 0.0)
    for one, other in zip(torch.autograd.grad(gold.objective, list(model.parameters())), usual_gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


# ----------------------------------------------------------------------------------------------------------- sampling


def probabilities(
    model: Seq2Seq[Any, Any], source: list[int], longest: int, temperature: float
) -> dict[tuple[int, ...], float]:
    """Computes the probability of every hypothesis of up to ``longest`` tokens, step by step; at the last step a
    hypothesis can only end."""
    memory = model.encode(torch.tensor([source]))
    found: dict[tuple[int, ...], float] = {}

    def go(before: tuple[int, ...], p: float, state: Any) -> None:
        if len(before) == longest - 1:
            found[(*before, EOS)] = p
            return
        step = model.step(torch.tensor([before[-1] if before else BOS]), memory, state)
        logits = (step.logits_NV[0].double() / temperature).tolist()
        shares = {token: np.exp(logits[token]) for token in (UNK, EOS, 4, 5)}
        for token, share in shares.items():
            following = p * share / sum(shares.values())
            if token == EOS:
                found[(*before, EOS)] = following
            else:
                go((*before, token), following, step.state)

    go((), 1.0, model.start(memory))
    return found


@pytest.mark.parametrize(("kind", "temperature"), list(zip(MODELS, (0.5, 3.0), strict=False)))
@torch.no_grad()
def test_hypotheses_are_drawn_from_the_model(kind: str, temperature: float) -> None:
    """The first sentence ends at once and leaves the batch."""
    model, limits, samples = make(MODELS[kind], scale=1.2), [1, 4, 3], 20_000
    torch.manual_seed(7)
    found = sample(model, padded(SOURCES), torch.tensor(limits), samples=samples, temperature=temperature)
    for source, limit, drawn in zip(SOURCES, limits, found, strict=True):
        counts = Counter((*each, EOS) for each in drawn)
        assert counts.total() == samples
        assert all(len(each) <= limit for each in counts)
        expected = probabilities(model, source, limit, temperature)
        assert sum(expected.values()) == pytest.approx(1.0)
        assert counts.keys() <= expected.keys()  # neither padding nor begin-of-sentence
        rare = [each for each, p in expected.items() if p * samples < 10]
        bins = [(counts[each], p) for each, p in expected.items() if each not in rare]
        if rare:
            bins.append((sum(counts[each] for each in rare), sum(expected[each] for each in rare)))
        chi_square = sum((count - samples * p) ** 2 / (samples * p) for count, p in bins)
        freedom = len(bins) - 1
        assert chi_square <= freedom + 5 * (2 * freedom) ** 0.5


def test_what_is_never_drawn_may_be_the_most_probable() -> None:
    model = make(MODELS["rnn"])
    with torch.no_grad():
        model.output.bias_V[[PAD, BOS]] += 50.0
    torch.manual_seed(1)
    found = sample(model, padded(SOURCES), torch.tensor([9, 9, 9]), samples=50, temperature=1.0)
    assert not {PAD, BOS} & {token for of_one in found for each in of_one for token in each}


def test_draws_are_without_dropout_and_the_pass_is_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make({**MODELS["rnn"], "dropout": {"embedding": 0.5, "layers": 0.5}}).train()
    seen = []

    def spy(*arguments: Any, **settings: Any) -> Any:
        seen.append((model.training, sample(*arguments, **settings)))
        return seen[-1][1]

    monkeypatch.setattr(risk, "sample", spy)
    torch.manual_seed(3)
    first = minimum_risk(model)(padded(SOURCES), padded(TARGETS))
    assert not seen[0][0]
    assert all(module.training for module in model.modules())
    torch.manual_seed(3)
    limits = torch.tensor([2 * len(source) + 10 for source in SOURCES])
    without_dropout = sample(model.eval(), padded(SOURCES), limits, samples=8, temperature=1.0)
    assert seen[0][1] == without_dropout
    again = minimum_risk(model.train())(padded(SOURCES), padded(TARGETS))
    assert first.objective.item() != pytest.approx(again.objective.item(), rel=1e-4)
    # the draws may fail because of memory; then the batch is halved and tried again
    monkeypatch.setattr(risk, "sample", Mock(side_effect=torch.OutOfMemoryError))
    with pytest.raises(torch.OutOfMemoryError):
        minimum_risk(model)(padded(SOURCES), padded(TARGETS))
    assert all(module.training for module in model.modules())


def test_hypotheses_are_scored_in_parts_of_two_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(MODELS["rnn"]).train()
    forced = Mock(wraps=model.teacher_forced)
    monkeypatch.setattr(model, "teacher_forced", forced)
    minimum_risk(model, samples=20)(padded(SOURCES), padded(TARGETS))
    sizes = [call.args[0].numel() for call in forced.call_args_list]
    most = 2 * padded(TARGETS).numel()
    assert len(sizes) > 2
    assert 0.7 * most < max(sizes) <= most


def test_in_bfloat16_every_weight_has_its_gradient() -> None:
    """This includes weights that have been cast for the draws, which do not have gradients."""
    if compute("cpu", "auto").precision != "bfloat16":
        pytest.skip("needs a CPU that multiplies bfloat16")
    model = make(MODELS["rnn"]).train()
    gradients = []
    for precision in ("float32", "bfloat16"):
        torch.manual_seed(2)
        own = minimum_risk(model, Compute(torch.device("cpu"), precision), alpha=0.5, cross_entropy=1.0)
        found = own(padded(SOURCES), padded(TARGETS))
        total = found.risk + found.objective
        gradients.append(torch.autograd.grad(total, list(model.parameters()), allow_unused=True))
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        assert one is None or torch.nn.functional.cosine_similarity(one.flatten(), other.flatten(), dim=0) > 0.9


# ------------------------------------------------------------------------------------------------------------- rewards


@pytest.mark.parametrize(
    ("hypothesis", "reference", "tokenize"),
    [
        ("The dog sleeps in the sun.", "The dog sleeps in the sun.", "13a"),
        ("The dog sleeps in the shade, I think.", "The dog sleeps in the sun.", "13a"),
        ("a cat", "A dog sleeps.", "13a"),
        ("", "A dog sleeps.", "13a"),
        ("dog", "dog", "13a"),
        ("the the the the the the the", "The dog sleeps in the sun, and the cat beside it.", "13a"),
        ("我有一条狗。", "我有一只狗。", "zh"),  # as one word, no sentence would be similar to another
    ],
)
def test_rewards_are_sacrebleus(hypothesis: str, reference: str, tokenize: str) -> None:
    bleu = sacrebleu.sentence_bleu(hypothesis, [reference], tokenize=tokenize).score / 100.0
    chrf = sacrebleu.sentence_chrf(hypothesis, [reference]).score / 100.0
    found = reward("bleu")(hypothesis, reference), reward("chrf")(hypothesis, reference)
    assert found == (pytest.approx(bleu), pytest.approx(chrf))
    assert max(found) <= 1.0
    assert bleu > 0.0 or tokenize == "13a"


# ------------------------------------------------------------------------------------------------------ whole and parts


@pytest.mark.parametrize("normalization", ["tokens", "sentences"])
def test_batches_of_an_update_are_one_batch(normalization: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean risk over all sentences, whatever the usual loss is the mean over; with the same draws."""
    drawn_of = {tuple(source): [tuple(each[:-1]) for each in DRAWN[row]] for row, source in enumerate(SOURCES)}

    def known(model: Any, source_BS: Tensor, *_: Any, **__: Any) -> Any:
        return [drawn_of[tuple(token for token in row if token != PAD)] for row in source_BS.tolist()]

    monkeypatch.setattr(risk, "sample", known)
    model = make(MODELS["rnn"]).train()
    settings = {"normalization": normalization, "risk": {"alpha": 0.5, "cross_entropy": 0.2}}
    config = TrainingConfig.model_validate(settings)
    tokenizers: Any = SimpleNamespace(target=SimpleNamespace(detokenize=text))
    objective = Objective(model, config, NamedOptimizer(model, OptimizerConfig(), FLOAT32), FLOAT32, tokenizers)
    batch = replace(batch_of(), links=None)
    tokens = sum(map(len, TARGETS))
    gradients, losses = [], []
    for parts in ([batch], list(halves(batch))):
        model.zero_grad(set_to_none=True)
        each = [objective.backward(part, BatchTotals(tokens, len(SOURCES)), update=1) for part in parts]
        losses.append(reduce(add, each))
        gradients.append([parameter.grad for parameter in model.parameters()])
    risk_by_hand = risk_by_loops(model, DRAWN, 0.5)
    assert losses[0].risk.item() == pytest.approx(risk_by_hand.item(), rel=1e-4)
    assert losses[1].risk.item() == pytest.approx(losses[0].risk.item(), rel=1e-5)
    assert losses[1].objective.item() == pytest.approx(losses[0].objective.item(), rel=1e-5)
    usual = token_loss(model, padded(SOURCES), padded(TARGETS), TeacherForcing(), CrossEntropy(0.1)).objective
    total = risk_by_hand / len(SOURCES) + 0.2 * usual / (tokens if normalization == "tokens" else len(SOURCES))
    expected = torch.autograd.grad(total, list(model.parameters()))
    for whole, in_parts, by_loops in zip(*gradients, expected, strict=True):
        torch.testing.assert_close(in_parts, whole, atol=1e-6, rtol=1e-4)
        torch.testing.assert_close(whole, by_loops, atol=1e-5, rtol=1e-3)


# ------------------------------------------------------------------------------------------------------------- training


def trained(run: str, *settings: str) -> Path:
    overrides = [f"run={run}", "training.validation.bleu=false", *settings]
    return train(load(Path("config.yaml"), overrides), device="cpu", precision="float32")


RISK = "training.risk={samples: 3, cross_entropy: 0.001}"


def test_resumed_training_is_bit_identical(here: Path) -> None:
    common = (RISK, "training.accumulate=2", "training.validation.every=3")
    whole = trained("whole", *common, "training.stopping.updates=6")
    in_two = trained("in-two", *common, "training.stopping.updates=3")
    assert len(measured(in_two, "train")) == 3
    trained("in-two", *common, "training.stopping.updates=6")
    assert_same_bits(whole / "latest", in_two / "latest")
    assert measured(whole, "train") == measured(in_two, "train")
    assert all(0.0 < line["risk"] < 1.0 for line in measured(whole, "train"))


def test_loss_and_perplexity_are_those_of_the_gold_words(here: Path) -> None:
    """The first update's, before anything is learnt and without dropout."""
    settings = ("model.dropout={embedding: 0.0, layers: 0.0}", "training.stopping.updates=1")
    (plain,) = measured(trained("plain", *settings), "train")
    (with_risk,) = measured(trained("risk", "training.risk={include_reference: false}", *settings), "train")
    assert "risk" not in plain
    assert with_risk["loss"] == pytest.approx(plain["loss"], rel=1e-4)
    assert with_risk["perplexity"] == pytest.approx(plain["perplexity"], rel=1e-4)


@pytest.mark.slow
def test_risk_falls(here: Path) -> None:
    """Training starts from a model that has learnt a little, and does not learn from the words of the references."""

    def learnt(run: str, updates: int, rate: str, batch_tokens: int, *settings: str) -> Path:
        batching = f"training.batching.batch_tokens={batch_tokens}"
        own = (f"training.stopping.updates={updates}", f"training.optimizer.learning_rate={rate}", batching)
        return trained(run, "training.validation.every=1000", *own, *settings)

    own_risk = "training.risk={samples: 12, include_reference: false}"
    learnt("old", 250, "1e-2", 200)
    run = learnt("new", 60, "2e-3", 400, "training.start_from=old", own_risk)
    risks = [line["risk"] for line in measured(run, "train")]
    assert np.mean(risks[-10:]) < np.mean(risks[:10]) - 0.1


# ------------------------------------------------------------------------------------------------------------- refusals

OTHER = r"training.risk reads .*"
DATA = "run: x, data: {train: {source: a, target: b}, valid: {source: a, target: b}}"


@pytest.mark.parametrize(
    ("training", "model", "message"),
    [
        ("feed: free_running, risk: {}", "", r"feed: free_running says what is read .* where risk reads whole"),
        ("r_drop: 1.0, risk: {}", "", r"r_drop compares readouts .* and risk hypotheses; leave one"),
        ("risk: {}", "attention: {weights: hard}", OTHER + r"\.weights: hard gold words"),
        ("risk: {}", "attention: {weights: glimpse}", OTHER + r"\.weights: glimpse gold words"),
        (
            "risk: {}",
            "attention: {weights: {kind: hard, training: marginal}}, decoder: {input_feeding: false}",
            OTHER + r"\.weights: hard gold words",
        ),
        ("risk: {}", "decoder: glimpses", OTHER + r"\.decoder.kind: glimpses gold words"),
        ("risk: {samples: 1}", "", r"training.risk.samples: expected at least 2"),
        ("risk: {temperature: 0.0}", "", r"training.risk.temperature: expected more than 0"),
        ("risk: {alpha: 0.0}", "", r"training.risk.alpha: expected more than 0"),
        ("risk: {reward: ter}", "", r"training.risk.reward: text 'ter' is not a choice; the choices are bleu, chrf"),
        ("risk: {cross_entropy: -1.0}", "", r"training.risk.cross_entropy: expected at least 0"),
        ("risk: {max_length_ratio: 0.0}", "", r"training.risk.max_length_ratio: expected more than 0"),
    ],
)
def test_refusals(training: str, model: str, message: str) -> None:
    tree = f"{{{DATA}, training: {{{training}}}, model: {{{model}}}}}"
    with pytest.raises(InputError, match=message) as refused:
        validate(Experiment, parse_document(tree, "config.yaml"))
    assert "\n" not in str(refused.value)


def test_it_is_off_by_default_and_on_by_an_empty_section() -> None:
    assert TrainingConfig().risk is None
    tree = parse_document(f"{{{DATA}, training: {{risk: {{}}}}}}", "config.yaml")
    assert validate(Experiment, tree).training.risk == RiskConfig()
