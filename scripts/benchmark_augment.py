"""Gain of `nmt augment` with few pairs: BLEU and chrF on Multi30k's val, before and after.

    python scripts/benchmark_augment.py [--corpus data/multi30k] [--pairs 5000] [--out runs/benchmark-augment]
        [--config configs/multi30k-de-en-teacher.yaml] [--updates 1200] [-- OPTIONS OF NMT AUGMENT]

The first pairs of train are the corpus, and the English side of the others is text without translations. Baseline and
augmented model have the same configuration, but for the updates that nmt augment adds, and both are searched as it
says, each with its best checkpoint. The minutes are those of the whole: reverse model, baseline, translations,
augmented model. The same command goes on after an
interruption; its minutes are then those of the last part. Prints a JSON line for each figure, and a table on stderr.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from measuring import plainly, print_table, report

from nmt.core.device import compute
from nmt.data.config import CorpusConfig
from nmt.data.corpus import read_blocks
from nmt.extras.corpus.augment.text import write_lines


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    corpus = os.environ.get("MULTI30K") or "data/multi30k"
    parser.add_argument("--corpus", type=Path, default=Path(corpus), help="folder of train.de.gz, val.de.gz and so on")
    parser.add_argument("--config", default="configs/multi30k-de-en-teacher.yaml")
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--updates", type=int, default=1200)
    parser.add_argument("--subwords", type=int, default=4000)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark-augment"))
    parser.add_argument("options", nargs="*", help="more options of nmt augment, after --")
    arguments = parser.parse_args()
    out, folder = arguments.out, arguments.corpus
    split(folder, arguments.pairs, out)
    settings = {
        "run": out / "baseline",
        "data.train": f"{{source: '{out}/train.de', target: '{out}/train.en'}}",
        "data.valid": f"{{source: '{folder}/val.de.gz', target: '{folder}/val.en.gz'}}",
        "data.test": "[]",
        "data.subwords.size": arguments.subwords,
        "training.stopping.updates": arguments.updates,
        "training.validation.every": max(1, arguments.updates // 4),
    }
    command = [
        sys.executable,
        "-m",
        "nmt",
        "augment",
        arguments.config,
        "--target-text",
        str(out / "mono.en"),
        "--train",
    ]
    command += [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    started = time.monotonic()
    done = subprocess.run([*command, *arguments.options], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    machine = compute("cpu", "auto")
    minutes = (time.monotonic() - started) / 60
    scores = [[float(value) for value in line.split()[-2:]] for line in done.stdout.splitlines()[1:]]
    for name, before, after in zip(("BLEU", "chrF"), scores[0], scores[-1], strict=True):
        for which, value in (("baseline", before), ("augmented", after), ("gain", after - before)):
            report(f"augment: {name}, {which}", value, "", machine)
    report("augment: all of it", minutes, "min", machine)
    print_table()


def split(folder: Path, pairs: int, out: Path) -> None:
    """Writes the first pairs of train, and the target side of the others."""
    blocks = list(read_blocks(CorpusConfig(source=folder / "train.de.gz", target=folder / "train.en.gz")))
    sources = [line for block in blocks for line in block.sources]
    targets = [line for block in blocks for line in block.targets]
    out.mkdir(parents=True, exist_ok=True)
    for name, lines in (("train.de", sources[:pairs]), ("train.en", targets[:pairs]), ("mono.en", targets[pairs:])):
        write_lines(lines, out / name)


if __name__ == "__main__":
    plainly(main)
