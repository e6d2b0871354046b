"""metrics.jsonl, with one line for each log step, each validation and the average of checkpoints; if configured, also
TensorBoard events."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from nmt.core.files import naming, replace_file

FILE = "metrics.jsonl"


class MetricsWriter:
    """Writes a run's measurements. Lines after the update that training resumes from are dropped first, because those
    updates will be repeated."""

    def __init__(self, run: Path, *, after: int, tensorboard: bool, again: bool = False) -> None:
        """``again`` says that update ``after`` will be validated once more, so the line of its validation is dropped
        too."""
        self._path = run / FILE
        kept = [
            json.dumps(line) + "\n"
            for line in read(run)
            if line["update"] < after or (line["update"] == after and not (again and line["kind"] == "valid"))
        ]
        replace_file(self._path, "".join(kept))
        self._file = self._path.open("a", encoding="utf-8")
        self._events = _events(run / "tensorboard", after) if tensorboard else None

    def write(self, kind: str, update: int, values: Mapping[str, float]) -> None:
        """Writes one line: ``{"kind": "train", "valid" or "average", "update": …, …}``."""
        rounded = {name: float(f"{value:.6g}") if math.isfinite(value) else None for name, value in values.items()}
        line = {"kind": kind, "update": update, **rounded}  # JSON has no infinity
        with naming(self._path):
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        if self._events is not None:
            for name, value in values.items():
                self._events.add_scalar(f"{kind}/{name}", value, update)

    def sync(self) -> None:
        """Makes sure that all lines are on disk."""
        with naming(self._path):
            os.fsync(self._file.fileno())

    def __enter__(self) -> MetricsWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        with naming(self._path):
            self._file.close()
        if self._events is not None:
            self._events.close()


def read(run: Path) -> list[dict[str, Any]]:
    """Reads the lines of a run's metrics.jsonl; an incomplete last line is left out."""
    path = run / FILE
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return [json.loads(line) for line in lines[:-1]]


def _events(folder: Path, after: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        from nmt.core.installation import missing

        raise missing("training.tensorboard: TensorBoard is", "tensorboard") from None
    return SummaryWriter(str(folder), purge_step=after + 1)
