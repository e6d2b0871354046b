"""The same on a CUDA device, where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.models.variants import make, tree
from tests.workflows.runs import CONFIG, nmt, write_corpus

pytestmark = pytest.mark.cuda


@pytest.mark.parametrize("query", ["previous", "current"])
@pytest.mark.parametrize("feeding", [True, False])
def test_a_model_computes_what_it_computes_on_the_cpu(query: str, feeding: bool) -> None:
    model = make(tree(decoder={"query": query, "input_feeding": feeding}))
    source_BS, target_BT = torch.tensor([[4, 5, 1, 3], [5, 3, 0, 0]]), torch.tensor([[4, 5, 3], [5, 3, 0]])
    on_cpu = model.output(model.teacher_forced(target_BT, model.encode(source_BS)).readout_BTR)
    model = model.cuda()
    on_cuda = model.output(model.teacher_forced(target_BT.cuda(), model.encode(source_BS.cuda())).readout_BTR)
    torch.testing.assert_close(on_cuda.cpu(), on_cpu, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_training_and_resuming_on_cuda(tmp_path: Path, precision: str) -> None:
    write_corpus(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    command = ("train", "config.yaml", "--device", "cuda", "--precision", precision)
    done = nmt(*command, folder=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    again = nmt(*command, "--set", "training.stopping.updates=4", folder=tmp_path)
    assert again.returncode == 0, again.stderr.decode()
    assert "going on from update 2" in again.stderr.decode()
    translated = nmt("translate", "run", "--device", "cuda", folder=tmp_path, stdin=b"eins zwei.\n")
    assert translated.stdout.count(b"\n") == 1
