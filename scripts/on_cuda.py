"""Tests and measures nmt on a CUDA device: ``make test-cuda``.

    python scripts/on_cuda.py [CONFIG] [SOURCE] [--updates 400]

Runs every test that needs a GPU. Then it trains the configuration, by default configs/de-en.yaml, in a temporary run
directory, and prints one table: target tokens/s of training and their share of the device's matrix rate
(``benchmark_training.py``), sentences/s of translating SOURCE, by default data/de-en/test.de, greedily and with beam 5
(``benchmark_translation.py``). Without a CUDA device it says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

SCRIPTS = Path(__file__).parent


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path, nargs="?", default=Path("configs/de-en.yaml"))
    parser.add_argument("source", type=Path, nargs="?", default=Path("data/de-en/test.de"))
    parser.add_argument("--updates", type=int, default=400, help="of the model that translates")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("there is no CUDA device: nothing was tested or measured", file=sys.stderr)
        return
    if subprocess.run([sys.executable, "-m", "pytest", "-m", "cuda"], check=False).returncode:
        sys.exit(1)
    table(list(figures(arguments.config, arguments.source, arguments.updates, device="cuda")))


def figures(config: Path, source: Path, updates: int, *, device: str) -> Iterator[dict[str, Any]]:
    """Returns the figures of both benchmarks, as they print them."""
    yield from _printed("benchmark_training.py", str(config), "--device", device)
    with tempfile.TemporaryDirectory() as run:
        settings = [f"run={run}", "training.schedule=constant", f"training.stopping={{updates: {updates}}}"]
        command = [
            "train",
            str(config),
            "--device",
            device,
            "--quiet",
            *(x for each in settings for x in ("--set", each)),
        ]
        subprocess.run([sys.executable, "-m", "nmt", *command], check=True)
        ours = ("--device", device, "--system", "nmt:auto", "--threads", "1")
        yield from _printed("benchmark_translation.py", run, str(source), *ours)


def _printed(script: str, *arguments: str) -> Iterator[dict[str, Any]]:
    command = [sys.executable, str(SCRIPTS / script), *arguments]
    for line in subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines():
        yield json.loads(line)


def table(found: list[dict[str, Any]]) -> None:
    """Formats the figures that compare devices."""
    kept = {
        "training_tokens_per_second": "training",
        "share_of_matrix_product_rate": "training, share of the matrix rate",
        "nmt:auto beam 1: sentences": "translating, greedy",
        "nmt:auto beam 5: sentences": "translating, beam 5",
    }
    for figure in found:
        if figure["name"] in kept:
            print(f"{kept[figure['name']]:<36}{figure['value']:>12,g}  {figure['unit'] or 'of 1'}")
    print(found[0]["machine"])


if __name__ == "__main__":
    main()
