"""Training speed: target tokens/s of a configuration's model on its own data, beside the machine's limit.

    python scripts/benchmark_training.py configs/multi30k-de-en.yaml [--set key=value] [--precision float32]

Prints a JSON line for each figure, and a table on stderr. The first updates warm up and do not count; the figure is the
median of five runs of ``--updates`` updates on real batches, on CUDA of shapes that came before. The limit is the rate
of a product of square matrices in the same precision, 2048 x 2048 or on CUDA 8192 x 8192, measured between the runs,
because a machine's speed drifts; the model's work counts its products with weight matrices only, forward once and
backward twice. Seconds of all threads' CPU time are given too: they do not grow while other programs run.

``--compile`` measures the same with a Transformer's encoder layers and feed-forward blocks made into kernels of their
own by ``torch.compile``, before and after, and what making them takes. ``--textbook`` measures updates with the bodies
of ``nmt.ops`` and with the implementations of ``nmt.extras.speed``, in turn, and their ratio. ``--profile`` prints what
one update spends its time on. ``--until-bleu 39.5`` trains the configuration in a temporary run directory until a
validation reaches that BLEU, and reports after how many minutes of wall time it did.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from measuring import matrix_rate, plainly, print_table, report
from torch import nn

import nmt
from nmt import experiment as experiments
from nmt import ops
from nmt.attention.scores.additive import additive_energy
from nmt.core import log
from nmt.core.device import Compute, compute
from nmt.core.operation import Operation
from nmt.core.seed import seed_everything
from nmt.experiment import Experiment
from nmt.models.seq2seq import Seq2Seq
from nmt.models.transformer.encoder import EncoderLayer
from nmt.nn.dropout import Dropout
from nmt.nn.feed_forward import FeedForward
from nmt.training import meter, metrics
from nmt.training.objective import BatchTotals, Objective
from nmt.training.optimizer import NamedOptimizer
from nmt.training.processes import Processes
from nmt.training.stream import Position, PreparedUpdate, Stream, TrainingData
from nmt.translator.loading import build_model
from nmt.workflows.prepare import prepare

RUNS = 5
WARM_UP = 3


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--updates", type=int, default=5, help="updates in each of the five runs")
    parser.add_argument("--compile", action="store_true", help="with torch.compile as well")
    parser.add_argument("--textbook", action="store_true", help="the bodies of operations, too, and the ratio")
    parser.add_argument("--profile", action="store_true", help="where one update spends its time")
    parser.add_argument("--until-bleu", type=float, metavar="BLEU", help="minutes of training to a validation BLEU")
    arguments = parser.parse_args()
    log.set_verbosity(log.Verbosity.QUIET)
    nmt.accelerate()
    experiment = experiments.load(arguments.config, arguments.overrides)
    chosen = compute(arguments.device, arguments.precision)
    if arguments.until_bleu is not None:
        time_to_bleu(arguments.config, arguments.overrides, arguments.until_bleu, chosen)
        return
    with tempfile.TemporaryDirectory() as folder:
        training = Training.of(experiment, chosen, Path(folder), updates=WARM_UP + RUNS * arguments.updates)
    model, update = training.model, training.update
    # on CUDA also until each shape of a batch has its graph
    for index in range(WARM_UP if chosen.device.type == "cpu" else 3 * len(training.updates)):
        update(index)
    if arguments.profile:
        with torch.profiler.profile() as profile:
            update(WARM_UP)
        print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=30, max_name_column_width=60))
        return
    if arguments.compile:
        compare_compiled(model, update, arguments.updates, chosen)
        return
    if arguments.textbook:
        compare_textbook(update, arguments.updates, chosen)
        return
    speeds, rates, shares, cpu_speeds = [], [], [], []
    source_work, target_work = work_per_token(model)
    for run in range(RUNS):
        rates.append(matrix_rate(chosen))
        started, cpu_started = time.perf_counter(), time.process_time()
        counts = [update(WARM_UP + run * arguments.updates + each) for each in range(arguments.updates)]
        training.finish()
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
        source, target = (sum(column) for column in zip(*counts, strict=True))
        speeds.append(target / seconds)
        cpu_speeds.append(target / cpu_seconds)
        shares.append((source * source_work + target * target_work) / seconds / rates[-1])
    report("training_tokens_per_second", statistics.median(speeds), "target tokens/s", chosen)
    report("training_tokens_per_second_best", max(speeds), "target tokens/s", chosen)
    report("training_tokens_per_cpu_second", statistics.median(cpu_speeds), "target tokens/CPU s", chosen)
    report("matrix_product_rate", statistics.median(rates) / 1e9, "GFLOP/s", chosen)
    report("share_of_matrix_product_rate", statistics.median(shares), "", chosen)
    report("peak_memory", meter.peak(torch.device("cpu")), "GiB", chosen)
    print_table()


@dataclass
class Training:
    """Updates of a new model, as ``nmt train`` makes them."""

    model: Seq2Seq[Any, Any]
    data: TrainingData
    objective: Objective
    optimizer: NamedOptimizer
    updates: list[PreparedUpdate]
    chosen: Compute

    @staticmethod
    def of(experiment: Experiment, chosen: Compute, folder: Path, *, updates: int) -> Training:
        """Prepares a configuration's own data in ``folder``, and takes the first batches of its first epoch."""
        config = experiment.training
        prepared = prepare(experiment.data, run=folder, seed=experiment.seed)
        data = TrainingData(prepared.train, prepared.tokenizers, experiment.data.subwords.sampling, "")
        seed_everything(experiment.seed)
        model = build_model(experiment.model, data.tokenizers).to(chosen.device).train()
        optimizer = NamedOptimizer(model, config.optimizer, chosen)
        objective = Objective(model, config, optimizer, chosen, data.tokenizers)
        stream = Stream(data, config.batching, config.accumulate, experiment.seed, Processes(), chosen)
        first = list(itertools.islice(stream.after(Position()), updates))
        return Training(model, data, objective, optimizer, first, chosen)

    def update(self, index: int) -> tuple[int, int]:
        """Makes an update; returns its numbers of source and target tokens."""
        prepared = self.updates[index % len(self.updates)]
        totals = BatchTotals(prepared.tokens, sum(map(len, prepared.pairs)))
        batches = [batch for batch in prepared.shares if batch is not None]
        for batch in batches:
            self.objective.backward(batch, totals, update=index + 1)
        self.optimizer.unscale()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.optimizer.step(0.01)
        if self.chosen.device.type == "cpu" or index % 8 == 7:
            self.finish()
        return sum(int(batch.source_length_B.sum()) for batch in batches), prepared.tokens

    def finish(self) -> None:
        """Waits until the device has computed everything."""
        if self.chosen.device.type == "cuda":
            torch.cuda.synchronize()


def compare_compiled(
    model: Seq2Seq[Any, Any], update: Callable[[int], tuple[int, int]], updates: int, chosen: Compute
) -> None:
    """Returns the target tokens per CPU second without and with compilation, and the CPU seconds of compiling; both
    without dropout, whose random bytes in the place of words torch.compile takes for as many words."""
    if chosen.device.type == "cpu" and not (shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")):
        sys.exit(
            "error: torch.compile needs a C++ compiler, and neither g++ nor clang++ is there; install one or set CXX"
        )
    parts = [part for part in model.modules() if isinstance(part, (EncoderLayer, FeedForward))]
    if not parts:
        sys.exit("error: --compile is for models with a Transformer as encoder or decoder")

    for module in model.modules():
        if isinstance(module, Dropout):
            module.threshold = 0

    def speed() -> float:
        return statistics.median(cpu_speed(update, run, updates) for run in range(RUNS))

    plain = speed()
    for part in parts:
        part.compile(dynamic=True)
    started = time.process_time()
    for index in range(WARM_UP):
        update(index)
    making, compiled = time.process_time() - started, speed()
    report("training_tokens_per_cpu_second", plain, "target tokens/CPU s", chosen)
    report("training_tokens_per_cpu_second_compiled", compiled, "target tokens/CPU s", chosen)
    report("compiled_over_plain", compiled / plain, "", chosen)
    report("first_compiled_updates", making, "CPU s", chosen)
    print_table()


def compare_textbook(update: Callable[[int], tuple[int, int]], updates: int, chosen: Compute) -> None:
    """Target tokens per CPU second with the bodies of the operations and with the registered implementations."""
    operations = [each for each in (*vars(ops).values(), additive_energy) if isinstance(each, Operation)]
    choices = {
        "textbook": [operation.body for operation in operations],
        "registered": [operation.implementation for operation in operations],
    }
    speeds: dict[str, list[float]] = {name: [] for name in choices}
    for run in range(RUNS):
        for name, implementations in choices.items():
            for operation, implementation in zip(operations, implementations, strict=True):
                operation.register(implementation)
            speeds[name].append(cpu_speed(update, run, updates))
    for name, figures in speeds.items():
        report(f"training_tokens_per_cpu_second_{name}", statistics.median(figures), "target tokens/CPU s", chosen)
    ratios = [fast / plain for plain, fast in zip(*speeds.values(), strict=True)]
    report("registered_over_textbook", statistics.median(ratios), "", chosen)
    print_table()


def cpu_speed(update: Callable[[int], tuple[int, int]], run: int, updates: int) -> float:
    """Returns the target tokens per CPU second in the updates of a run."""
    started = time.process_time()
    tokens = sum(update(WARM_UP + run * updates + each)[1] for each in range(updates))
    return tokens / (time.process_time() - started)


def work_per_token(model: Seq2Seq[Any, Any]) -> tuple[float, float]:
    """Computes the floating-point operations of forward and backward matrix products, for each source and each target
    token."""
    source, target = 0, 0
    for name, parameter in model.named_parameters():
        # tables that are looked up, and what runs once for each sentence
        if parameter.dim() != 2 or "embedding" in name or "table" in name or "handover" in name:
            continue
        of_source = re.search(r"^encoder\.|(?<!self_)attention\.(key|value)_weight", name)
        if of_source:
            source += parameter.numel()
        else:
            target += parameter.numel()
    if "output.weight_VD" not in dict(model.named_parameters()):  # tied: it counts where it is multiplied
        target += model.output.weight_VD.numel()
    return 6.0 * source, 6.0 * target


def time_to_bleu(config: Path, overrides: Sequence[str], bleu: float, chosen: Compute) -> None:
    """Runs ``nmt train`` in a temporary run directory until a validation reaches ``bleu``. Returns the wall time from
    the start of the process, preparation and validations included."""
    with tempfile.TemporaryDirectory() as folder:
        settings = [part for each in [*overrides, f"run={folder}"] for part in ("--set", each)]
        device = ["--device", str(chosen.device), "--precision", chosen.precision]
        started, best = time.perf_counter(), 0.0
        process = subprocess.Popen([sys.executable, "-m", "nmt", "train", str(config), *settings, *device, "--quiet"])
        while best < bleu and process.poll() is None:
            time.sleep(1.0)
            best = max([best, *(line["bleu"] for line in metrics.read(Path(folder)) if line["kind"] == "valid")])
        minutes = (time.perf_counter() - started) / 60
        process.terminate()
        process.wait()
    report(f"minutes_{'to' if best >= bleu else 'without'}_bleu_{bleu:g}", minutes, "min", chosen)
    report("best_validation_bleu", best, "", chosen)
    print_table()


if __name__ == "__main__":
    plainly(main)
