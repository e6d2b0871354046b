"""Trains systems that differ in one part with the same budget, measures each and writes a table.

    python scripts/compare_attention.py --list
    python scripts/compare_attention.py --config configs/comparison-multi30k.yaml --minutes 8 --seeds 1,2,3 --jobs 2

Each system is the base configuration with a few keys changed, trained by ``nmt train`` on one CPU thread for the same
CPU time. Results are kept in OUTPUT: after Ctrl-C the same command goes on from there, and with more systems or seeds
it does what is missing. OUTPUT/comparison.md has the tables, comparison.json their figures. For curves, models and
attention of the runs: ``nmt report OUTPUT/*/*/seed-1/run``.

Other systems are read from a YAML file, ``--file FILE``, with a list of KEY=VALUE for each name:

    dropout/high: [model.dropout.embedding=0.4, model.dropout.layers=0.4]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measuring import plainly

from nmt import experiment as experiments
from nmt.attention.registry import SCORES, WEIGHTS
from nmt.config.structure import differences, load_document
from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.data.corpus import read_blocks, read_lines
from nmt.evaluation.bootstrap import Estimate, PairedComparison, SentenceCounts, compare, interval, sentence_counts
from nmt.experiment import Experiment

BEAM = 5
SHORT, LONG, ROUNDS = 5, 35, 3
"""Updates of the two trainings whose difference is the time of an update; both have the first, slow ones. All systems
are timed in turn, in rounds, and the least of each training is its time: what else runs only adds to it."""


@dataclass(frozen=True)
class System:
    """A row of the comparison: the base configuration with other values of some keys."""

    name: str
    overrides: tuple[str, ...] = ()
    horizons: tuple[str, ...] = ()
    """Further keys whose value is the number of updates."""

    def differs(self, config: Path, overrides: Sequence[str]) -> bool:
        """Returns False if the base configuration already has these values. Raises InputError if it excludes them."""
        base, own = (experiments.load(config, [*overrides, *more]) for more in ((), self.overrides))
        return bool(differences(base, own))


def read_systems(path: Path) -> tuple[System, ...]:
    """Reads systems from a YAML file. Raises InputError."""
    tree = load_document(path).tree
    for name, overrides in tree.items():
        if not isinstance(overrides, list) or not all(isinstance(each, str) and "=" in each for each in overrides):
            raise InputError(f"{path}: {name}: expected a list of KEY=VALUE")
    return (System("baseline"), *(System(name, tuple(overrides)) for name, overrides in tree.items()))


REWARDS: Mapping[str, str] = {
    "hard_drawn": "kind: hard, expected: 0",
    "hard_discount_1": "kind: hard, discount: 1",
    "hard_undivided": "kind: hard, variance_normalization: false",
    "hard_reinforce": "kind: hard, expected: 0, discount: 1, variance_normalization: false",
    "glimpse_undivided": "kind: glimpse, variance_normalization: false",
}
"""Ways to learn from a reward, besides the default; that of ``hard_reinforce`` is unbiased."""


def systems() -> tuple[System, ...]:
    """Returns the systems of attention, the baseline first; a new score or normalizer takes part automatically."""
    starts = {
        "every_step": ("zeros", "every_step"),
        "first_step": ("zeros", "first_step"),
        "initial_state": ("raw", "nothing"),
        "projected_initial_state": ("projected", "nothing"),
        "raw_every_step": ("raw", "every_step"),
    }
    without = "model.attention.score=none"
    reader = (without, "model.decoder.query=previous")
    words = ("model.encoder={kind: embeddings, positions: sinusoidal}",)
    return (
        System("baseline"),
        *(
            System(f"context/{name}", (without, f"model.decoder.start={start}", f"model.decoder.context={enters}"))
            for name, (start, enters) in starts.items()
        ),
        System("attention/raw_every_step", ("model.decoder.start=raw", "model.decoder.context=every_step")),
        System("attention/query_embedding", ("model.decoder.query_embedding=true",)),
        System("attention/key_size", ("model.attention.key_size=256",)),
        System("models/reencoding", (*reader, *words, "model.decoder.kind=reencoding")),
        System("models/glimpses", (*reader, "model.decoder.kind=glimpses")),
        System("models/words", words),
        System("models/words_argmax", (*words, "model.attention={score: dot, key_size: 256, weights: argmax}")),
        System("scores/additive_layers", ("model.attention.score={kind: additive, layers: 2}",)),
        *(System(f"scores/{kind}", (f"model.attention.score={kind}",)) for kind in SCORES),
        *(
            System(
                f"weights/{kind}",
                (f"model.attention.weights={kind}",),
                # annealing ends when training does
                ("model.attention.weights.updates",) if "updates" in mechanism.model_fields else (),
            )
            for kind, mechanism in WEIGHTS.items()
        ),
        *(System(f"weights/{name}", (f"model.attention.weights={{{rule}}}",)) for name, rule in REWARDS.items()),
        System("weights/hard_marginal", ("model.attention.weights={kind: hard, training: marginal}",)),
        System(
            "feeding/scheduled_sampling",
            ("training.feed={kind: scheduled_sampling, schedule: {kind: linear, end: 0.5}}",),
            ("training.feed.schedule.updates",),
        ),
        System("feeding/free_running", ("training.feed=free_running",)),
        *(
            System(f"cells/{cell}", (f"model.encoder.cell={cell}", f"model.decoder.cell={cell}"))
            for cell in ("elman", "gru", "lstm")
        ),
    )


@dataclass(frozen=True)
class Budget:
    """CPU minutes of a training or, where they are None, its number of updates."""

    minutes: float | None
    updates: int | None

    def __str__(self) -> str:
        return f"{self.updates:,} updates" if self.minutes is None else f"{self.minutes:g} CPU minutes"


@dataclass(frozen=True)
class Base:
    """The parts that all systems share."""

    config: Path
    overrides: tuple[str, ...]
    budget: Budget
    output: Path
    validations: int = 1
    """Number of validations of a training. The checkpoint that was best in one of them is measured."""


@dataclass(frozen=True)
class Case:
    """A system with a seed, in a folder of its own:

    run/            the run directory of nmt train
    training.json   the budget, the updates that it pays for, and the CPU seconds of each start
    ../speed.json   of the system: CPU seconds of trainings of SHORT and of LONG updates, for each round
    valid/, test/   translations.txt and figures.json of a split
    log.txt         output of all commands
    """

    base: Base
    system: System
    seed: int

    @property
    def folder(self) -> Path:
        """Folder of all files of the case."""
        return self.base.output / self.system.name / f"seed-{self.seed}"

    @property
    def record(self) -> dict[str, Any]:
        """Contents of training.json."""
        path = self.folder / "training.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def work(self, split: str, gold: Sequence[Path]) -> None:
        """Trains and measures the case, unless that is done already. Raises InputError if a command fails."""
        self.folder.mkdir(parents=True, exist_ok=True)
        record = self.record
        if not record:
            updates, seconds = self._updates()
            record = {"budget": str(self.base.budget), "updates": updates, "update_seconds": seconds, "starts": []}
            _write_json(self.folder / "training.json", record)
        if record["budget"] != str(self.base.budget):
            raise InputError(f"{self.folder}: was trained for {record['budget']}; delete it or give another --output")
        if not (self.folder / "run" / "checkpoints" / f"step-{record['updates']:08d}").exists():
            record["starts"].append(self._train(record["updates"], self.folder / "run", self.base.validations))
            _write_json(self.folder / "training.json", record)
            log.info(f"{self.folder}: trained for {record['updates']:,} updates")
        if not (self.folder / split / "figures.json").exists():
            self._run(__file__, "--measure", self.folder / "run", self.folder / split, split, *gold)
            log.info(f"{self.folder}: measured on {split}")

    def time(self, rounds: int) -> None:
        """Times the system until it has been timed this often. Raises InputError if a command fails."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder.parent / "speed.json"
        measured = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        if len(measured) < rounds:
            seconds = []
            for updates in (SHORT, LONG):
                with tempfile.TemporaryDirectory(dir=self.folder) as run:
                    seconds.append(self._train(updates, Path(run) / "run", 1))
            _write_json(path, [*measured, seconds])

    def _updates(self) -> tuple[int, float | None]:
        """Returns the number of updates that the budget pays for, and the CPU seconds of an update as far as they are
        known."""
        if self.base.budget.updates is not None:
            return self.base.budget.updates, None
        assert self.base.budget.minutes is not None
        self.time(1)
        rounds = json.loads((self.folder.parent / "speed.json").read_text(encoding="utf-8"))
        short, long = (min(of_rounds) for of_rounds in zip(*rounds, strict=True))
        update = max((long - short) / (LONG - SHORT), 1e-4)
        updates = math.floor((60 * self.base.budget.minutes - short) / update) + SHORT
        if updates < LONG:
            raise InputError(f"{self.folder}: {self.base.budget} pay for {max(updates, 0)} updates; give more")
        return updates, update

    def _train(self, updates: int, run: Path, validations: int) -> float:
        """Returns the CPU seconds of a training with its validations, the last one at its end."""
        own_data = any(each.startswith("data.") for each in self.system.overrides)
        prepared = self.folder / "prepared" if own_data else self.base.output / f"prepared-{self.seed}"
        changes = [*self.base.overrides, *self.system.overrides, f"run={run}", f"seed={self.seed}"]
        changes += [
            f"data.prepared={prepared}",
            f"training.validation.every={math.ceil(updates / validations)}",
            *(f"{key}={updates}" for key in ("training.stopping.updates", *self.system.horizons)),
        ]
        return self._run(
            "-m", "nmt", "train", self.base.config, "--device", "cpu", *(f"--set={each}" for each in changes)
        )

    def _run(self, *arguments: str | Path) -> float:
        """Runs a Python program on one thread, and returns its CPU seconds. If it fails, raises InputError with its
        last line."""
        path = self.folder / "log.txt"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with path.open("a", encoding="utf-8") as output:
            child = subprocess.Popen(
                [sys.executable, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
            )
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise InputError(f"{path.read_text(encoding='utf-8').strip().rpartition(chr(10))[2]} (see {path})")
        return usage.ru_utime + usage.ru_stime


def measure(run: Path, output: Path, split: str, gold: Sequence[Path]) -> None:
    """Writes translations and figures of a trained system; in a process of its own, on one thread."""
    import sacrebleu

    import nmt
    from nmt.alignment.error_rate import score
    from nmt.alignment.extract import Grow
    from nmt.alignment.formats import read_gold
    from nmt.alignment.request import AlignmentRequest
    from nmt.models.feed import FreeRunning, TeacherForcing

    translator = nmt.load(run / "best", device="cpu", overrides=[f"search.beam={BEAM}"])
    trained = translator.trained
    sources, references = corpus(trained.experiment, split)
    state = json.loads((trained.checkpoint / "state.json").read_text(encoding="utf-8"))
    translations = [each.text for each in translator.translate(sources)]
    figures: dict[str, Any] = {
        "tokens": state["position"]["tokens"],
        "parameters": sum(each.numel() for each in trained.model.parameters()),
        "precision": trained.compute.precision,
        "chrF": sacrebleu.corpus_chrf(translations, [references]).score,
        "perplexity": {
            name: translator.predict(sources, references, feed).perplexity
            for name, feed in (("teacher_forcing", TeacherForcing()), ("free_running", FreeRunning()))
        },
    }
    if gold:
        links = read_gold(gold[2])
        requests = [
            AlignmentRequest(method) for method in ("attention", "gradient") if method in translator.aligner.methods
        ]
        aligned = translator.aligner.align(requests, list(read_lines(gold[0])), list(read_lines(gold[1])))
        figures["aer"] = {
            request.method: 100 * score([Grow().links(each.weights_TS) for each in alignments], links).aer
            for request, alignments in aligned.items()
        }
    output.mkdir(exist_ok=True)
    with whole_file(output / "translations.txt") as file:
        file.write_text("".join(f"{line}\n" for line in translations), encoding="utf-8")
    _write_json(output / "figures.json", figures)


def corpus(experiment: Experiment, split: str) -> tuple[list[str], list[str]]:
    """Reads sources and references; several test corpora are concatenated. Raises InputError if there are none."""
    data = experiment.data
    corpora = data.test_corpora if split == "test" else data.valid_corpora
    if not corpora:
        raise InputError(f"--split {split}: the configuration has no data.{split}")
    blocks = [block for each in corpora for block in read_blocks(each)]
    return [line for block in blocks for line in block.sources], [line for block in blocks for line in block.targets]


@dataclass(frozen=True)
class Result:
    """A system with the figures of its seeds.

    Of each sentence, BLEU's counts are summed over the seeds, so the score is that of all translations as one corpus,
    and intervals are those of the choice of sentences. ``seeds`` shows how much training varies.
    """

    system: System
    bleu: SentenceCounts
    seeds: tuple[float, ...]
    """BLEU of each seed."""
    figures: tuple[dict[str, Any], ...]
    """Figures of each seed."""

    @staticmethod
    def read(cases: Sequence[Case], split: str, references: Sequence[str]) -> Result:
        """Reads the result of a system's seeds."""
        folders = [case.folder / split for case in cases]
        counts = [sentence_counts(list(read_lines(each / "translations.txt")), references) for each in folders]
        figures = [json.loads((each / "figures.json").read_text(encoding="utf-8")) for each in folders]
        figures = [{**each, **case.record} for case, each in zip(cases, figures, strict=True)]
        pooled = SentenceCounts(counts[0].metric, np.sum([each.counts_NK for each in counts], axis=0))
        return Result(cases[0].system, pooled, tuple(each.score() for each in counts), tuple(figures))

    def mean(self, *keys: str) -> float | None:
        """Computes the mean over the seeds of a figure that all of them have."""
        values: list[Any] = list(self.figures)
        for key in keys:
            values = [value.get(key) for value in values if value is not None]
        return None if None in values or not values else float(np.mean(values))

    @property
    def tokens_per_second(self) -> float | None:
        """Target tokens for each CPU second of updates."""
        speeds = [
            each["tokens"] / (each["updates"] * each["update_seconds"])
            for each in self.figures
            if each["update_seconds"]
        ]
        return float(np.mean(speeds)) if speeds else None


def tables(results: Sequence[Result], sources: Sequence[str], edges: Sequence[int]) -> tuple[str, list[dict[str, Any]]]:
    """Formats two tables in Markdown, of all sentences and by the number of source words; also returns their
    figures."""
    baseline = next((each for each in results if each.system.name == "baseline"), None)
    length_N = np.array([len(source.split()) for source in sources])
    first = (0, *(edge + 1 for edge in edges))
    buckets = [
        np.flatnonzero((length_N >= low) & (length_N < high))
        for low, high in zip(first, (*first[1:], np.inf), strict=True)
    ]
    names = [*(f"{low}-{edge}" for low, edge in zip(first, edges, strict=False)), f"{first[-1]}+"]
    shown = [(name, rows_N) for name, rows_N in zip(names, buckets, strict=True) if len(rows_N)]
    rows, by_length, trees = [], [], []
    for each in results:
        paired = None if baseline in (None, each) else compare(each.bleu, baseline.bleu)
        bleu, lengths = interval(each.bleu), [interval(each.bleu.select(rows_N)) for _, rows_N in shown]
        figures = {
            "chrF": each.mean("chrF"),
            "perplexity": each.mean("perplexity", "teacher_forcing"),
            "own words": each.mean("perplexity", "free_running"),
            "AER attention": each.mean("aer", "attention"),
            "AER gradient": each.mean("aer", "gradient"),
            "tokens/s": each.tokens_per_second,
            "updates": each.mean("updates"),
        }
        rows.append(
            [
                f"`{each.system.name}`",
                _estimate(bleu),
                ", ".join(f"{score:.1f}" for score in each.seeds),
                "" if paired is None else f"{'' if paired.significant else '≈ '}{_estimate(paired, signed=True)}",
                *(
                    "–" if value is None else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
                    for value in figures.values()
                ),
            ]
        )
        by_length.append([f"`{each.system.name}`", *map(_estimate, lengths)])
        trees.append(
            {
                "system": each.system.name,
                "overrides": each.system.overrides,
                "BLEU": vars(bleu),
                "BLEU of seeds": each.seeds,
                "chrF of seeds": [of_seed.get("chrF") for of_seed in each.figures],
                "to baseline": None if paired is None else vars(paired),
                **figures,
                "by length": {name: vars(score) for (name, _), score in zip(shown, lengths, strict=True)},
            }
        )
    head = ["system", "BLEU", "of the seeds", "to the baseline", *figures]
    lengths_head = ["system", *(f"{name} words ({len(rows_N):,})" for name, rows_N in shown)]
    return f"{_markdown(head, rows)}\n\n{_markdown(lengths_head, by_length)}\n", trees


def _estimate(estimate: Estimate | PairedComparison, *, signed: bool = False) -> str:
    value = estimate.difference if isinstance(estimate, PairedComparison) else estimate.value
    return f"{value:{'+' if signed else ''}.1f} ({estimate.low:.1f} to {estimate.high:.1f})"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows))


def _write_json(path: Path, tree: Any) -> None:
    with whole_file(path) as file:
        file.write_text(json.dumps(tree, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line. Raises InputError."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["--measure"]:
        run, output, split, *gold = arguments[1:]
        measure(Path(run), Path(output), split, [Path(file) for file in gold])
        return
    options = _parser().parse_args(arguments)
    names = options.systems.split(",") if options.systems else None
    offered = systems() if options.file is None else read_systems(options.file)
    chosen = [each for each in offered if names is None or {each.name, each.name.partition("/")[0]} & {*names}]
    known = {name for each in offered for name in (each.name, each.name.partition("/")[0])}
    if unknown := [name for name in names or () if name not in known]:
        raise InputError(f"--systems {unknown[0]}: is neither a system nor a group of them; --list shows all")
    if options.list:
        print("\n".join(f"{each.name:<32} {' '.join(each.overrides)}" for each in chosen))
        return
    experiment = experiments.load(options.config, options.overrides)
    chosen = [each for each in chosen if each.name == "baseline" or each.differs(options.config, options.overrides)]
    budget = Budget(None if options.updates else options.minutes, options.updates)
    base = Base(
        options.config, tuple(options.overrides), budget, options.output or experiment.folder, options.validations
    )
    sources, references = corpus(experiment, options.split)
    cases = [Case(base, system, seed) for seed in options.seeds for system in chosen]
    failures: dict[Case, str] = {}

    def attempt(step: Callable[[Case], None], case: Case) -> None:
        try:
            if case not in failures:
                step(case)
        except InputError as error:
            failures[case] = str(error)
            log.warning(f"{case.system.name}, seed {case.seed}: {error}")

    steps: list[tuple[Callable[[Case], None], list[Case]]] = []
    if budget.updates is None:
        firsts = [case for case in cases if case.seed == options.seeds[0]]
        steps += [(partial(Case.time, rounds=rounds), firsts) for rounds in range(1, ROUNDS + 1)]
    steps.append((lambda case: case.work(options.split, options.gold or ()), cases))
    with ThreadPoolExecutor(options.jobs) as executor:
        try:
            for step, of_step in steps:
                list(executor.map(partial(attempt, step), of_step))
        except KeyboardInterrupt:
            executor.shutdown(cancel_futures=True)  # trainings, which the terminal has interrupted too, save and end
            raise
    of_system = {
        system: [case for case in cases if case.system == system and case not in failures] for system in chosen
    }
    results = [Result.read(done, options.split, references) for done in of_system.values() if done]
    if not results:
        sys.exit(1)
    text, trees = tables(results, sources, options.edges)
    seeds = ", ".join(map(str, options.seeds))
    text = f"{base.budget} of one thread for each training, seeds {seeds}, {options.split}, beam {BEAM}.\n\n{text}"
    _write_json(base.output / "comparison.json", {"failures": [*failures.values()], "systems": trees})
    with whole_file(base.output / "comparison.md") as file:
        file.write_text(text, encoding="utf-8")
    print(text)
    if failures:
        sys.exit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--config", type=Path, default=Path("configs/comparison-multi30k.yaml"), help="the base configuration")
    add("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="change the base; repeatable")
    add("--output", type=Path, metavar="FOLDER", help="folder of all results; default: the base configuration's run")
    add("--systems", metavar="A,B", help="systems or groups; default: all")
    add("--file", type=Path, help="YAML file of other systems")
    add("--list", action="store_true", help="show the systems and their keys, and do nothing")
    add("--minutes", type=float, default=8.0, help="CPU minutes of a training")
    add("--updates", type=int, help="updates of a training, instead of minutes")
    add("--seeds", type=_numbers, default=(1,), metavar="1,2", help="each system is trained with each of them")
    add("--validations", type=int, default=1, help="validations of a training, whose best checkpoint is measured")
    add("--jobs", type=int, default=1, help="trainings at a time, each on one thread")
    add("--split", choices=("valid", "test"), default="valid", help="choose on valid; test is for the last word")
    add("--gold", nargs=3, type=Path, metavar=("SOURCE", "TARGET", "LINKS"), help="pairs with gold links")
    add("--edges", type=_numbers, default=(10, 15, 20), metavar="10,20", help="last source length of each bucket")
    return parser


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


if __name__ == "__main__":
    plainly(main)
