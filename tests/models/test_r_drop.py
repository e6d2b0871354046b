"""R-Drop: two passes under two draws of dropout, against the paper's formula in plain loops."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.config.structure import parse_document, validate
from nmt.core.errors import InputError
from nmt.experiment import Experiment, load
from nmt.models.feed import TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.models.r_drop import RDrop
from nmt.training import metrics
from nmt.workflows.train import train
from tests.models.plain_decoder import SOURCES, TARGETS, padded
from tests.models.variants import TRANSFORMER, make, tree
from tests.workflows.runs import CONFIG, write_corpus

MODELS = {"rnn": tree(), "transformer": tree(score="scaled_dot", encoder=TRANSFORMER, decoder=TRANSFORMER)}


def loss_by_loops(model: Any, alpha: float, smoothing: float) -> tuple[float, list[float]]:
    """The mean of both passes' losses and half of alpha times the mean divergence; and each token's cross entropy."""
    twice = model.decode(padded(TARGETS * 2), model.encode(padded(SOURCES * 2)), TeacherForcing())
    p_BTV = model.output(twice.readout_BTR).double().log_softmax(-1).tolist()
    total, cross_entropies = 0.0, []
    for b, target in enumerate(TARGETS):
        for t, gold in enumerate(target):
            passes = p_BTV[b][t], p_BTV[b + len(TARGETS)][t]
            for log_p in passes:
                total -= 0.5 * ((1 - smoothing) * log_p[gold] + smoothing * sum(log_p) / len(log_p))
            one_way, other_way = (
                sum(math.exp(x) * (x - y) for x, y in zip(a, b, strict=True)) for a, b in (passes, passes[::-1])
            )
            total += 0.5 * alpha * 0.5 * (one_way + other_way)
            cross_entropies.append(-0.5 * (passes[0][gold] + passes[1][gold]))
    return total, cross_entropies


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("alpha", [0.7, 5.0])
@pytest.mark.parametrize("kind", MODELS)
def test_the_loss_equals_the_papers(kind: str, alpha: float, smoothing: float) -> None:
    model = make({**MODELS[kind], "dropout": {"embedding": 0.3, "layers": 0.3}}).train()
    torch.manual_seed(3)
    criterion = RDrop(CrossEntropy(smoothing), alpha)
    loss = token_loss(model, padded(SOURCES * 2), padded(TARGETS * 2), TeacherForcing(), criterion)
    torch.manual_seed(3)
    expected, cross_entropies = loss_by_loops(model, alpha, smoothing)
    assert loss.objective.item() == pytest.approx(expected, rel=1e-4)
    assert loss.cross_entropy_N.tolist() == pytest.approx(cross_entropies, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_without_dropout_both_passes_agree(kind: str) -> None:
    """Then it is the plain loss, gradients included."""
    model = make({**MODELS[kind], "dropout": {"embedding": 0.0, "layers": 0.0}}).double().train()
    found = []
    for passes, criterion in ((1, CrossEntropy(0.1)), (2, RDrop(CrossEntropy(0.1), 5.0))):
        loss = token_loss(model, padded(SOURCES * passes), padded(TARGETS * passes), TeacherForcing(), criterion)
        found.append((loss.objective, *torch.autograd.grad(loss.objective, list(model.parameters()))))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_the_trainer_goes_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The passes disagree from the start because of dropout, which the first loss in the log shows."""
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    first = []
    for alpha in (0.0, 200.0):
        overrides = [f"run=run-{alpha}", f"training.r_drop={alpha}", "training.validation.bleu=false"]
        run = train(load(tmp_path / "config.yaml", overrides), device="cpu", precision="float32")
        first.append(next(line["loss"] for line in metrics.read(run) if line["kind"] == "train"))
    assert first[1] > first[0] + 0.05


def test_the_exact_sum_has_no_two_readouts_to_compare() -> None:
    tree = "run: x\ndata: {train: {source: a, target: b}}\ntraining: {stopping: {updates: 1}, r_drop: 1.0}\n"
    tree += "model: {attention: {weights: {kind: hard, training: marginal}}, decoder: {input_feeding: false}}"
    with pytest.raises(InputError, match="training.r_drop compares two readouts"):
        validate(Experiment, parse_document(tree, "config.yaml"))


def test_disagreement_pulls_the_passes_together() -> None:
    """The divergence's gradient against differences."""
    torch.manual_seed(0)
    layer = make(MODELS["rnn"]).output.double()
    one, other = (torch.randn(5, layer.weight_VD.shape[1], dtype=torch.float64) for _ in range(2))
    one.requires_grad_()
    (gradient,) = torch.autograd.grad(layer.divergence(one, other, chunk=2), one)
    step = 1e-4
    for row, place in ((0, 0), (3, 2), (4, 6)):
        moved = torch.zeros_like(one)
        moved[row, place] = step
        up, down = (layer.divergence(one.detach() + sign * moved, other).item() for sign in (1, -1))
        assert gradient[row, place].item() == pytest.approx((up - down) / (2 * step), rel=1e-2, abs=1e-3)
