"""What tests of imports and exports share: a model of random weights, and commands that must succeed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import torch

from nmt.data.vocabulary import BOS, EOS, PAD
from nmt.models.build import build
from nmt.models.config import ModelConfig
from nmt.models.seq2seq import Seq2Seq
from tests.models.variants import scaled
from tests.workflows.runs import nmt


def made(config: ModelConfig, tokens: int, *, end: float) -> Seq2Seq[Any, Any]:
    """A model of random weights; ``end`` is added to the bias of end-of-sentence, so that translations end."""
    torch.manual_seed(7)
    model = build(config, source_tokens=tokens, target_tokens=tokens, pad=PAD, bos=BOS)
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # tiny random models agree on everything
            parameter.mul_(scaled(name, 2.0)).add_(0.1 * torch.randn_like(parameter))
        model.output.bias_V[EOS] += end
    return model.requires_grad_(False).eval()


def succeeding(*arguments: str | Path, folder: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Runs a command in another process."""
    done = nmt(*arguments, folder=folder, stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    return done
