"""Models, searches and training on a pretended CUDA device: no operation mixes devices, no kernel of the CPU reads the
device's memory, and the results are those of the CPU."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

import nmt
from nmt.core.device import SYNC_INTERVAL, Compute, compute
from nmt.core.errors import InputError
from nmt.data.vocabulary import EOS
from nmt.extras.finetuning.risk import MinimumRisk
from nmt.extras.speed.cuda_graphs import Graphs
from nmt.models.feed import TeacherForcing
from nmt.models.loss import CrossEntropy, token_loss
from nmt.nn.dropout import Dropout
from nmt.nn.output import OutputLayer, rows_together
from nmt.nn.recurrent import RecurrentStack
from nmt.search import sequential
from nmt.training import metrics
from nmt.training.config import RiskConfig, TrainingConfig
from nmt.training.objective import Objective
from nmt.training.optimizer import NamedOptimizer
from tests.cuda import on_device
from tests.cuda.on_device import BOTH, CPU, PRETENDED, PREVIOUS, SIDES, SOURCE_BS, TARGET_BT
from tests.cuda.pretended import CUDA, CudaTensor, on_cuda, pretended
from tests.models.variants import make, tree
from tests.training.test_objective import TOTALS, batch_of

GLIMPSES = {"kind": "glimpses", "size": 8}

graphs_of = Graphs.of
"""The original function: on the pretended device no graph is recorded."""


def test_the_device_tells_what_a_gpu_would_refuse() -> None:
    numbers = torch.arange(6.0).view(2, 3)
    with pretended() as device:
        there = numbers.to(CUDA)
        assert there.device == CUDA
        assert (there + 1).sum(dim=1).tolist() == [6.0, 15.0]
        with pytest.raises(AssertionError, match="mixes cuda:0 with the CPU"):
            there + numbers
        with pytest.raises(TypeError, match="numpy"):
            there.numpy()
        with pytest.raises(AssertionError, match="a kernel of the CPU"):
            there.data_ptr()
        there * torch.tensor(2.0)  # a single number is allowed
        assert len(device.waits) == 1


WAITS: dict[str, Callable[[Tensor], object]] = {
    "item": lambda x: x.sum().item(),
    "truth": lambda x: bool((x > 0).all()),
    "list": lambda x: x.tolist(),
    "copy": lambda x: torch.empty(3).copy_(x),
    "positions": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 1],
    "filled by a mask": lambda x: x.__setitem__(x > 1, x[:1].repeat(1)),
    "distinct": lambda x: x.unique(),
    "times": lambda x: x.repeat_interleave(torch.ones_like(x, dtype=torch.int64)),
    "draw": lambda x: x.multinomial(1),
}


@pytest.mark.parametrize("kind", list(WAITS))
@pytest.mark.parametrize("inference", [False, True])
def test_the_device_counts_what_a_host_waits_for(kind: str, inference: bool) -> None:
    with pretended() as device, torch.inference_mode(inference):
        x = torch.arange(3.0).to(CUDA)
        before, uploads = len(device.waits), len(device.uploads)
        WAITS[kind](x)
        assert (len(device.waits) > before) == (kind != "filled by a mask")
        device.waits.clear()
        torch.where(x > 1, x, 0.0).masked_fill(x > 1, 2.0).index_select(0, x.long())[:2].repeat_interleave(2)
        assert device.waits == []
        assert uploads == len(device.uploads) == 1
        torch.tensor([1, 2], device=CUDA)
        assert len(device.uploads) == 2


@torch.no_grad()
def test_a_wait_names_our_line() -> None:
    model = on_cuda(make(PREVIOUS))
    with pretended() as device:
        token_loss(model, SOURCE_BS.to(CUDA), TARGET_BT.to(CUDA), TeacherForcing(), CrossEntropy())
    assert any("nmt/models/loss.py:" in wait for wait in device.waits)


@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_cudnn_finds_the_weights_of_a_layer_in_one_piece(cell: Any, precision: Any) -> None:
    """Elsewhere it would copy them at each call; so it would after a copy of the model, for a validation."""
    stack = RecurrentStack(cell, input_size=3, size=4, layers=2)
    there, gaps = on_cuda(copy.deepcopy(stack)), list[int]()
    input_BTE = torch.randn(2, 5, 3)
    run = stack.cell.run

    def looked_at(input_BTE: Tensor, start: Any, given: list[Tensor], *options: Any) -> Any:
        weights = [weight.values if isinstance(weight, CudaTensor) else weight for weight in given]
        ends = [weight.data_ptr() + weight.nbytes for weight in weights]
        gaps.extend(weight.data_ptr() - end for weight, end in zip(weights[1:], ends[:-1], strict=True))
        return run(input_BTE, start, given, *options)

    with Compute(CPU.device, precision).autocast():
        expected_BTD = stack(input_BTE, None, Dropout(0.0))
    expected_BTD.sum().backward()
    with pretended():
        for each in (there, copy.deepcopy(there)):
            each.cell = each.cell._replace(run=looked_at)
            with Compute(CUDA, precision).autocast():
                output_BTD = each(input_BTE.to(CUDA), None, Dropout(0.0))
            output_BTD.sum().backward()
            assert output_BTD.dtype == expected_BTD.dtype
            torch.testing.assert_close(output_BTD.values, expected_BTD.detach(), atol=0.02, rtol=0.02)
            for one, other in zip(each.parameters(), stack.parameters(), strict=True):
                torch.testing.assert_close(one.grad.values, other.grad, atol=0.1, rtol=0.05)
    assert len(gaps) == 2 * 2 * 3
    assert not any(gaps)


@pytest.mark.parametrize(("precision", "expected"), [("float32", False), ("bfloat16", False), ("tf32", True)])
def test_products_of_float32_are_exact_unless_tf32_is_named(precision: str, expected: bool) -> None:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    try:
        matmul.allow_tf32 = cudnn.allow_tf32 = not expected
        with cudnn.flags(enabled=False):  # as for gradients of recurrent layers, before and after
            pass
        with pretended():
            chosen = compute("cuda:0", precision)
        assert chosen.dtype == (torch.bfloat16 if precision == "bfloat16" else torch.float32)
        with cudnn.flags(enabled=False):
            pass
        assert (matmul.allow_tf32, cudnn.allow_tf32) == (expected, expected)
        assert (cudnn.rnn.fp32_precision == "tf32") == expected
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before
    with pytest.raises(InputError, match="tf32: is for CUDA devices"):
        compute("cpu", "tf32")


@pytest.mark.parametrize("rows", [1, 7, 100])
def test_the_rows_of_a_loss_follow_the_memory_of_the_device(rows: int) -> None:
    layer = OutputLayer(4, 10)
    there, counts = on_cuda(copy.deepcopy(layer)), list[int]()
    readout_ND, gold_N = torch.randn(20, 4), torch.arange(20) % 10
    expected = layer.loss(readout_ND, gold_N).objective, layer.divergence(readout_ND, readout_ND.flip(0))
    of_layer = there._wide_logits
    there._wide_logits = lambda readout_ND, dtype: (counts.append(len(readout_ND)), of_layer(readout_ND, dtype))[1]
    with pretended(memory=64 * 4 * 10 * rows):
        assert rows_together(512, there.weight_VD) == rows
        found = there.loss(readout_ND.to(CUDA), gold_N.to(CUDA)).objective
        torch.testing.assert_close(found.values, expected[0], atol=1e-4, rtol=1e-4)
        one_ND, other_ND = readout_ND.to(CUDA), readout_ND.flip(0).to(CUDA)
        torch.testing.assert_close(there.divergence(one_ND, other_ND).values, expected[1], atol=1e-4, rtol=1e-4)
        assert counts[:2] == [min(rows, 20)] * 2
        there.likelihood(one_ND, gold_N.to(CUDA))
    assert max(counts) == min(rows, 20)
    assert rows_together(512, layer.weight_VD) == 512


def test_graphs_are_recorded_the_second_time_and_the_oldest_go_where_memory_is_short() -> None:
    """Graphs may use an eighth of 80 bytes: two graphs of 4 bytes fit, and of three the least recently used one is
    deleted."""
    recorded: list[str] = []
    with pretended(memory=80):
        graphs: Graphs[str] = Graphs(CUDA)

        def of(shape: str, size: int = 4) -> str | None:
            def record() -> str:
                recorded.append(shape)
                return f"graph of {shape}"

            return graphs_of(graphs, shape, size, CUDA, record)

        for shape in ("a", "b"):
            assert [of(shape), of(shape), of(shape)] == [None, f"graph of {shape}", f"graph of {shape}"]
        of("a")
        assert [of("c"), of("c")] == [None, "graph of c"]
        assert recorded == ["a", "b", "c"]
        assert [of("a"), of("c")] == ["graph of a", "graph of c"]
        assert [of("b"), recorded.count("b")] == [None, 1], "it is a new shape again"
        assert [of("large", 10), of("large", 10)] == [None, None]


OBJECTIVES: dict[str, dict[str, Any]] = {
    "guided": {"guided_attention": {"weight": 0.5}},
    "two passes": {"r_drop": 1.0},
    "risk": {"risk": {"samples": 3, "cross_entropy": 0.1}},
    "recomputed": {"recompute": True},
}


@pytest.mark.parametrize("config", [PREVIOUS, BOTH], ids=["rnn", "transformer"])
@pytest.mark.parametrize("kind", list(OBJECTIVES))
def test_an_objective_is_that_of_the_cpu(config: dict[str, Any], kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYNC_INTERVAL, "cpu", 8)  # draws depend on the rows that are still there
    monkeypatch.setattr(sequential, "COMPACT_BELOW", 0.5)
    model, there = PRETENDED.pair_of(make(config).train())

    def gradients(model: Any, compute: Compute) -> list[Tensor]:
        torch.manual_seed(1)
        settings = TrainingConfig.model_validate(OBJECTIVES[kind])
        optimizer = NamedOptimizer(model, settings.optimizer, compute)
        detokenize = lambda tokens: " ".join(map(str, tokens))  # noqa: E731
        tokenizers: Any = SimpleNamespace(target=SimpleNamespace(detokenize=detokenize))
        objective = Objective(model, settings, optimizer, compute, tokenizers)
        objective.backward(batch_of(), TOTALS, update=1)
        return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]

    expected = gradients(model, CPU)
    with pretended():
        for one, other in zip(gradients(there, PRETENDED.compute), expected, strict=True):
            torch.testing.assert_close(one.values, other, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize(("config", "graphs"), [(tree(score="none", decoder=GLIMPSES), 0), (BOTH, 1)])
def test_passes_that_draw_have_no_graph(config: dict[str, Any], graphs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    nmt.accelerate()
    there, asked = on_cuda(make(config).train()), list[object]()
    with pretended():
        monkeypatch.setattr(Graphs, "of", lambda _, *shape: asked.append(shape))
        settings = TrainingConfig.model_validate({})
        optimizer = NamedOptimizer(there, settings.optimizer, PRETENDED.compute)
        objective = Objective(there, settings, optimizer, PRETENDED.compute, cast(Any, SimpleNamespace(target=None)))
        objective.backward(batch_of(), TOTALS, update=1)
    assert len(asked) == graphs


def test_the_commands_do_on_the_device_what_they_do_on_the_cpu(tmp_path: Path) -> None:
    on_device.write_config(tmp_path)
    figures, texts = [], []
    for device in ("cpu", "cuda:0"):
        with pretended() if device == "cuda:0" else nullcontext():
            run = on_device.train_in(tmp_path, f"run={tmp_path}/{device[:4]}", updates=2, device=device)
            translator = nmt.load(run, device=device, precision="float32", overrides=["search.beam=2"])
            texts.append([each.text for each in translator.translate(["eins zwei.", "Hund und Katze."])])
        kept = ("loss", "perplexity", "gradient_norm")
        figures.append([line[name] for line in metrics.read(run) for name in kept if name in line])
    assert texts[0] == texts[1]
    assert figures[1] == pytest.approx(figures[0], rel=1e-4)


@pytest.mark.parametrize("sentence", [[4, 5, 1, 4, 3], [5, 3]])
def test_minimum_risk_waits_for_the_device_once_in_eight_steps(sentence: list[int]) -> None:
    model = make(PREVIOUS)
    with torch.no_grad():
        model.output.bias_V[EOS] = -30.0
    there = on_cuda(model.train())
    settings = RiskConfig(samples=3, max_length_ratio=5.0)
    with pretended() as device:
        loss = MinimumRisk(there, settings, PRETENDED.compute, lambda tokens: " ".join(map(str, tokens)), 0.1)
        source_BS = torch.tensor([sentence]).to(CUDA)
        loss(source_BS, source_BS)
    steps = 5 * len(sentence) + 10
    # the most tokens, then the hypotheses with their references
    assert len(device.waits) <= math.ceil(steps / 8) + 2, "\n".join(device.waits)


SMALL = ["model.attention.score=none", "training.batching.batch_tokens=20"]
TRAININGS: dict[str, list[str]] = {
    "teacher forcing": [],
    "scheduled sampling": ["training.feed={kind: scheduled_sampling, schedule: {kind: linear, updates: 5}}"],
    "draws": ["model.attention.weights=hard"],
    "all positions": [
        "model.attention={score: general, weights: {kind: hard, training: marginal}}",
        "model.decoder={kind: rnn, size: 20, query: current, input_feeding: false}",
    ],
    **{kind: [*SMALL, f"model.decoder={{kind: {kind}, size: 20}}"] for kind in ("reencoding", "glimpses")},
    "two passes of a transformer": [*SIDES["transformer"], "training.r_drop=1.0"],
}


@pytest.mark.parametrize("kind", list(TRAININGS))
def test_training_waits_for_the_device_once_in_eight_updates(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_device.write_config(tmp_path)
    with pretended() as device:
        on_device.train_without_files(monkeypatch, tmp_path, *TRAININGS[kind], updates=8, device="cuda:0")
    assert len(device.waits) <= 1, "\n".join(device.waits)
    assert all(upload.endswith((" _trainer", " _apply")) for upload in device.uploads), (
        f"but for the weights all is sent in pinned memory: {device.uploads}"
    )
