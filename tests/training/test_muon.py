"""Muon against torch's own and against singular value decompositions."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from nmt.core.device import Compute
from nmt.training.config import OptimizerConfig
from nmt.training.muon import QUINTICS, Muon, matrices, orthogonalized
from nmt.training.optimizer import NamedOptimizer
from tests.models.variants import TRANSFORMER, make, tree

BFLOAT16 = Compute(torch.device("cpu"), "bfloat16")


@pytest.mark.parametrize("shape", [(3, 5, 5), (2, 4, 9), (2, 9, 4)])
def test_directions_stay_and_lengths_become_about_1(shape: tuple[int, ...]) -> None:
    """U V^T comes from torch's singular value decomposition; in its basis the result is diagonal."""
    matrices_NRC = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    u, s, v = torch.linalg.svd(matrices_NRC, full_matrices=False)
    core = u.mT @ orthogonalized(matrices_NRC) @ v.mT
    lengths = core.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(core, torch.diag_embed(lengths), atol=1e-9, rtol=0)
    is_tiny = s / s.norm(dim=1, keepdim=True) < 0.01  # three iterations do not bring the smallest up to 1
    assert ((lengths > 0.7) & (lengths < 1.28) | is_tiny).all()
    assert lengths.std() < s.std() / 2


@pytest.mark.parametrize("rank", [1, 2, 64])
def test_no_direction_grows_by_rounding(rank: int) -> None:
    """In bfloat16 the length of a direction may be rounded to more than 1."""
    generator = torch.Generator().manual_seed(1)
    left_NRK, right_NKC = (torch.randn(20, *shape, generator=generator) for shape in ((64, rank), (rank, 64)))
    made_NRC = orthogonalized((left_NRK @ right_NKC).bfloat16())
    assert torch.linalg.svdvals(made_NRC.float()).max() < 1.35


def test_values_from_a_hundredth_on_become_about_1() -> None:
    values_N = torch.logspace(-2, 0, 1000, dtype=torch.float64)
    for a, b, c in QUINTICS:
        values_N = a * values_N + b * values_N**3 + c * values_N**5
    assert 0.7 < values_N.min() < values_N.max() < 1.28


def test_a_model_learns_as_with_the_optimizers_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrices by ``torch.optim.Muon``, which computes in bfloat16, one for each gate; everything else by AdamW. Torch
    has five equal iterations, so it is given ours."""
    iterations = "_zeropower_via_newtonschulz"
    monkeypatch.setattr(torch.optim._muon, iterations, lambda update, *_: orthogonalized(update[None].bfloat16())[0])
    model, other = (make(tree(encoder={"cell": "lstm"}, decoder={"cell": "gru"})) for _ in range(2))
    other.load_state_dict(model.state_dict())
    config = OptimizerConfig(kind="muon", learning_rate=0.01, weight_decay=0.1, momentum=0.9)
    ours = NamedOptimizer(model, config, BFLOAT16)
    split: list[tuple[nn.Parameter, list[nn.Parameter]]] = []
    muon, decaying, others = list[nn.Parameter](), list[nn.Parameter](), list[nn.Parameter]()
    for name, parameter in other.named_parameters():
        is_matrix = parameter.dim() == 2 and not name.startswith(("encoder.embedding", "decoder.embedding", "output"))
        gates = 4 if "forwards" in name or "backwards" in name else 3 if "stack.rnns" in name else 1
        parts = [nn.Parameter(part) for part in parameter.data.chunk(gates if is_matrix else 1)]
        split.append((parameter, parts))
        (muon if is_matrix else decaying if parameter.dim() == 2 else others).extend(parts)
    theirs: tuple[Any, ...] = (
        torch.optim.Muon(muon, lr=0.01, momentum=0.9, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(decaying, lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.1),
        torch.optim.AdamW(others, lr=0.01, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0),
    )
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        for parameter, (_, of_parameter) in zip(model.parameters(), split, strict=True):
            parameter.grad = torch.randn(parameter.shape, generator=generator)
            for part, gradient in zip(of_parameter, parameter.grad.chunk(len(of_parameter)), strict=True):
                part.grad = gradient.clone()
        ours.step(1.0)
        for optimizer in theirs:
            optimizer.step()
    for (name, parameter), (_, of_parameter) in zip(model.named_parameters(), split, strict=True):
        torch.testing.assert_close(parameter.data, torch.cat([part.data for part in of_parameter]), msg=name)


def test_it_goes_on_from_its_state() -> None:
    config = OptimizerConfig(kind="muon", learning_rate=0.01)
    straight, resumed = make(tree()), make(tree())
    resumed.load_state_dict(straight.state_dict())

    def steps(model: nn.Module, optimizer: NamedOptimizer, seeds: range) -> None:
        for seed in seeds:
            for parameter in model.parameters():
                parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed))
            optimizer.step(1.0)

    steps(straight, NamedOptimizer(straight, config, BFLOAT16), range(4))
    first = NamedOptimizer(resumed, config, BFLOAT16)
    steps(resumed, first, range(2))
    second = NamedOptimizer(resumed, config, BFLOAT16)
    second.restore({name: value.clone() for name, value in first.tensors().items()}, {})
    steps(resumed, second, range(2, 4))
    for ours, expected in zip(resumed.parameters(), straight.parameters(), strict=True):
        assert torch.equal(ours, expected)


def test_an_overflow_changes_nothing() -> None:
    """With scaled losses, as in float16, an update with an infinite gradient is left out: of matrices and vectors."""
    matrix, vector = nn.Parameter(torch.ones(2, 3)), nn.Parameter(torch.ones(3))
    groups = [
        {"params": [parameter], "weight_decay": 0.1, "matrices": count}
        for parameter, count in ((matrix, 1), (vector, 0))
    ]
    optimizer = Muon(groups, momentum=0.9, dtype=torch.float32, lr=0.1, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale((matrix * vector * torch.tensor([1.0, 1.0, torch.inf])).sum()).backward()  # type: ignore[no-untyped-call]
    scaler.step(optimizer)
    scaler.update()
    assert (matrix == 1).all()
    assert (vector == 1).all()
    assert scaler.get_scale() == 2.0
    assert not optimizer.state


def test_tables_and_vectors_are_left_to_adamw() -> None:
    model = make(tree(tie="all", encoder=TRANSFORMER, decoder={**TRANSFORMER, "positions": "learned"}))
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    left = {name for name, shape in shapes.items() if len(shape) > 1} - matrices(model).keys()
    assert left == {"encoder.embedding.table.weight", "decoder.entrance.positions.table_PD"}
