"""Greedy search with a model that ``nmt.extras.exchange.export.onnx`` has written, without our models and PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from nmt.core.installation import missing
from nmt.data.batching import TokenIds, pad
from nmt.data.vocabulary import BOS, EOS

ENCODER, STEP = "encoder.onnx", "step.onnx"


class OnnxSession:
    """The two graphs in ONNX Runtime, on a CPU."""

    def __init__(self, folder: Path, *, threads: int, begin: int = BOS, suppressed: Sequence[int] = ()) -> None:
        """``begin`` is the token before the first step; ``suppressed`` tokens are never chosen."""
        self._begin, self._suppressed = begin, list(suppressed)
        onnxruntime = required()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._encoder, self._step = (
            onnxruntime.InferenceSession(str(folder / file), options, providers=["CPUExecutionProvider"])
            for file in (ENCODER, STEP)
        )
        self._kept = [port.name for port in self._encoder.get_outputs()]
        self._state = [name for name in self._kept if name.startswith("state.")]

    def greedy(self, sources: TokenIds, limits: Sequence[int]) -> list[tuple[int, ...]]:
        """Translates a batch of sources (without end-of-sentence) with the most probable token at each step, each up to
        end-of-sentence or its limit of tokens."""
        source_BS, _ = pad(sources)
        feeds: dict[str, Any] = dict(zip(self._kept, self._encoder.run(None, {"source": source_BS}), strict=True))
        token_B = np.full(len(sources), self._begin)
        ended_B = np.zeros(len(sources), dtype=bool)
        tokens_TB: list[Any] = []
        while len(tokens_TB) < max(limits) and not ended_B.all():
            logits_BV, _, *state = self._step.run(None, {"token": token_B, **feeds})
            feeds |= zip(self._state, state, strict=True)
            logits_BV[:, self._suppressed] = -np.inf
            if not tokens_TB:
                logits_BV[:, EOS] = -np.inf  # no translation is empty
            token_B = logits_BV.argmax(axis=1)
            ended_B |= token_B == EOS
            tokens_TB.append(token_B)
        tokens_BT = np.stack(tokens_TB, axis=1).tolist()
        return [
            tuple(takewhile(lambda token: token != EOS, tokens[:limit]))
            for tokens, limit in zip(tokens_BT, limits, strict=True)
        ]


def required() -> Any:
    """Imports ONNX Runtime. Raises InputError if a package for exports is missing."""
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise missing(f"--to onnx: {error.name} is", "onnx") from None
    return onnxruntime
