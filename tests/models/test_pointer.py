"""Copies of source tokens, in plain loops."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from nmt.models.config import ModelConfig
from nmt.models.feed import FreeRunning, TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.variants import TRANSFORMER, VOCABULARY, WIRINGS, make, tree

NO_DROPOUT = {"dropout": {"embedding": 0.0, "layers": 0.0, "attention": 0.0, "feed_forward": 0.0}}
MODELS: dict[str, tuple[dict[str, Any], list[int]]] = {
    "feeding": (tree(copying="pointer"), [0]),
    "parallel, two heads": (tree(decoder=WIRINGS["parallel"], heads=2, copying="pointer"), [0, 1]),
    "one of two heads": (tree(heads=2, copying={"heads": "head2"}), [1]),
    "transformer": (tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER, copying="pointer"), [2, 3]),
}
"""Models, and the heads that they copy by."""
NEVER = 5
"""A token that no target contains."""


@torch.no_grad()
def distributions(model: Any, heads: list[int], source: list[int], target: list[int]) -> list[list[float]]:
    """Computes p(y) at each position of the target from the readouts and weights of a sentence alone."""
    decoded = model.teacher_forced(torch.tensor([target]), model.encode(torch.tensor([source])))
    weights_HTS = decoded.weights_BHTS[0].tolist()
    found = []
    for t, readout_R in enumerate(decoded.readout_BTR[0]):
        gate = 1 / (1 + math.exp(-float(model.gate.weight[0] @ readout_R + model.gate.bias)))
        exponentials = [math.exp(x) for x in model.output(readout_R[None])[0].tolist()]
        copied = [0.0] * VOCABULARY
        for s, token in enumerate(source):
            if token != NEVER:
                copied[token] += gate * sum(weights_HTS[head][t][s] for head in heads) / len(heads)
        generated = [(1 - sum(copied)) * x / sum(exponentials) for x in exponentials]
        found.append([one + other for one, other in zip(generated, copied, strict=True)])
    return found


@pytest.fixture(params=MODELS.values(), ids=MODELS)
def model_and_heads(request: pytest.FixtureRequest) -> tuple[Any, list[int]]:
    config, heads = request.param
    model = make({**config, **NO_DROPOUT})
    model.output.suppressed = [NEVER]
    return model, heads


SOURCES_WITH_UNKNOWN = [[*SOURCES[0][:-1], NEVER, SOURCES[0][-1]], *SOURCES[1:]]


@torch.no_grad()
def test_the_distribution_is_the_mixture_of_the_paper(model_and_heads: tuple[Any, list[int]]) -> None:
    model, heads = model_and_heads
    memory, target_BT = model.encode(padded(SOURCES_WITH_UNKNOWN)), padded(TARGETS)
    state, token_B = model.start(memory), model.first_token(len(SOURCES), torch.device("cpu"))
    steps = []
    for gold_B in target_BT.unbind(dim=1):
        step = model.step(token_B, memory, state)
        steps.append(step.logits_NV.exp())
        top = step.top_tokens(2, True)
        assert torch.equal(top.token_NK, step.logits_NV.topk(2).indices)
        state, token_B = step.state, gold_B
    for row, (source, target) in enumerate(zip(SOURCES_WITH_UNKNOWN, TARGETS, strict=True)):
        expected = torch.tensor(distributions(model, heads, source, target))
        assert torch.stack(steps, dim=1)[row, : len(target)] == pytest.approx(expected, abs=1e-5)
        assert expected.sum(dim=1) == pytest.approx(torch.ones(len(target)), abs=1e-5)


def test_the_loss_is_that_of_the_mixture(model_and_heads: tuple[Any, list[int]]) -> None:
    model, heads = model_and_heads
    expected, gold = 0.0, list[float]()
    for source, target in zip(SOURCES_WITH_UNKNOWN, TARGETS, strict=True):
        for p, token in zip(distributions(model, heads, source, target), target, strict=True):
            gold.append(-math.log(p[token]))
            expected += 0.9 * gold[-1] - 0.1 * sum(map(math.log, p)) / len(p)
    batch = padded(SOURCES_WITH_UNKNOWN), padded(TARGETS)
    losses = [token_loss(each, *batch, TeacherForcing(), CrossEntropy(0.1)) for each in (model.eval(), model.train())]
    for loss in losses:
        assert loss.objective.item() == pytest.approx(expected, rel=1e-4)
        assert loss.cross_entropy_N.tolist() == pytest.approx(gold, rel=1e-4)
    losses[1].objective.backward()
    assert model.gate.weight.grad.abs().sum() > 0


@torch.no_grad()
def test_it_reads_its_own_copies(model_and_heads: tuple[Any, list[int]]) -> None:
    model, heads = model_and_heads
    model.gate.bias += 4.0
    (source,), steps = SOURCES[:1], 5
    memory = model.encode(torch.tensor([source]))
    guesses = [1] * steps
    for t in range(steps):
        guesses[t] = max(range(NEVER), key=distributions(model, heads, source, guesses)[t].__getitem__)
    free = model.decode(torch.ones(1, steps, dtype=torch.int64), memory, FreeRunning())
    forced = model.teacher_forced(torch.tensor([guesses]), memory)
    assert free.readout_BTR == pytest.approx(forced.readout_BTR, abs=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score": "none", "context": "every_step"}, "copying needs attention to the source"),
        ({"weights": {"kind": "hard", "training": "marginal"}, "decoder": WIRINGS["parallel"]}, "use training: reinf"),
        ({"copying": {"heads": "head3"}}, "copying.heads: head3: fits no head"),
    ],
)
def test_what_cannot_copy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelConfig.model_validate(tree(**{"copying": "pointer", **options}))
