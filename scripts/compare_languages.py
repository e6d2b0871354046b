"""One model of several directions, and a model for each of them: BLEU and chrF by direction.

    python scripts/compare_languages.py [--config configs/multi30k-four-directions.yaml] [--set KEY=VALUE]
        [--updates 1700] [--processes 2] [--split valid] [--output runs/compare-languages]

Each direction's own model has the configuration with that direction's corpora alone, a vocabulary of its own, and so
many updates; the one model of all has half of what they have together. Batches are of the same size, so it has half
their minutes. A second call trains what is missing. Prints a JSON line for each figure, and a table on stderr.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from measuring import plainly, print_table, report

import nmt
from nmt import experiment as experiments
from nmt.config.structure import dump
from nmt.core.device import compute
from nmt.data.config import CorpusConfig
from nmt.data.corpus import read_blocks
from nmt.evaluation.translation import scores
from nmt.experiment import Experiment


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=Path("configs/multi30k-four-directions.yaml"))
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--updates", type=int, default=1700, help="of a model of one direction")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--split", choices=("valid", "test"), default="valid", help="test is for the last word")
    parser.add_argument("--output", type=Path, default=Path("runs/compare-languages"))
    arguments = parser.parse_args()
    out, machine = arguments.output, compute("cpu", "auto")
    experiment = experiments.load(arguments.config, arguments.overrides, with_corpora=True)
    directions = list(dict.fromkeys(corpus.languages for corpus in experiment.data.train_corpora))
    shared = train(experiment, out / "all", len(directions) * arguments.updates // 2, arguments.processes)
    figures = {}
    for direction in directions:
        assert direction is not None
        name = "-".join(direction)
        single = train(only(experiment, direction), out / name, arguments.updates, arguments.processes)
        data = experiment.data
        corpora = data.test_corpora if arguments.split == "test" else data.valid_corpora
        held_out = [corpus for corpus in corpora if corpus.languages == direction]
        figures[name] = [bleu_chrf(run, held_out, direction[1]) for run in (shared, single)]
    for name, (of_all, of_one) in figures.items():
        for score, one, other in zip(("BLEU", "chrF"), of_all, of_one, strict=True):
            report(f"{name}: {score}, one model of all", one, "", machine)
            report(f"{name}: {score}, its own model", other, "", machine)
    gap = statistics.mean(of_all[0] - of_one[0] for of_all, of_one in figures.values())
    report(f"BLEU, one model of all less its own, mean ({arguments.split})", gap, "", machine)
    print_table()


def only(experiment: Experiment, direction: Sequence[str]) -> Experiment:
    """Returns the experiment with the corpora of one direction."""
    data = experiment.data
    parts = {"train": data.train_corpora, "valid": data.valid_corpora, "test": data.test_corpora}
    own = {
        name: tuple(corpus for corpus in corpora if corpus.languages == direction) for name, corpora in parts.items()
    }
    return experiment.model_copy(update={"data": data.model_copy(update=own)})


def train(experiment: Experiment, run: Path, updates: int, processes: int) -> Path:
    """Trains a model with nmt train, unless it is trained; returns the run."""
    config = run.with_suffix(".yaml")
    run.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(dump(experiment), encoding="utf-8")
    every = experiment.training.validation.every * updates // (experiment.training.stopping.updates or updates)
    settings = (f"run={run}", f"training.stopping.updates={updates}", f"training.validation.every={max(every, 1)}")
    command = [sys.executable, "-m", "nmt", "train", str(config), *(f"--set={each}" for each in settings)]
    subprocess.run([*command, f"--processes={processes}", "--device=cpu"], check=True)
    return run


def bleu_chrf(run: Path, corpora: Sequence[CorpusConfig], language: str) -> list[float]:
    """Computes BLEU and chrF of translations into a language."""
    blocks = [block for corpus in corpora for block in read_blocks(corpus)]
    translator = nmt.load(run, device="cpu").to(language)
    hypotheses = [each.text for each in translator.translate([line for block in blocks for line in block.sources])]
    references = [line for block in blocks for line in block.targets]
    return [score.value for score in scores(hypotheses, references, metrics=("bleu", "chrf"))]


if __name__ == "__main__":
    plainly(main)
