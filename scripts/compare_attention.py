"""Trains every attention mechanism with the same budget on one corpus, measures each and writes a report.

    python scripts/compare_attention.py --list
    python scripts/compare_attention.py --config configs/comparison-multi30k.yaml --minutes 8 --jobs 2 --split test

Every system is the base configuration with one part exchanged (see scripts/comparison/systems.py), trained by
``nmt train`` on one CPU thread for the same CPU time. What is done already is kept: Ctrl-C stops in good order, and the
same command goes on from there; with more systems, seeds or another split it does what is missing. The report is
OUTPUT/comparison.md with its figures in comparison.json and pictures beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from comparison.budget import Budget
from comparison.measure import corpus as read_corpus
from comparison.pictures import draw
from comparison.report import MARKER, Conditions, check_page, markdown, paste, write
from comparison.results import Corpus, gather
from comparison.systems import BASELINE, Base, Resolved, Selection, all_systems, baseline_names, resolve
from comparison.work import Comparison, work

from nmt.alignment.formats import read_gold
from nmt.core.errors import InputError


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    try:
        return run(_parser().parse_args(arguments))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def run(options: argparse.Namespace) -> int:
    """Does what the command line asks for. Raises InputError, KeyboardInterrupt."""
    base = Base(options.config, tuple(options.overrides))
    if options.minutes is not None and options.updates is not None:
        raise InputError("--minutes and --updates: give one of them")
    if options.updates is not None:
        budget = Budget(None, options.updates)
    else:
        budget = Budget(8.0 if options.minutes is None else options.minutes)
    comparison = Comparison(
        folder=options.output or base.experiment().folder,
        base=base,
        budget=budget,
        split=options.split,
        gold=tuple(options.gold) if options.gold else None,
    )
    if options.docs is not None:
        check_page(options.docs)
    everything = resolve(base, all_systems())
    chosen = Selection(tuple(options.systems or ())).choose([each.system for each in everything])
    resolved = [each for each in everything if each.system in chosen]
    if options.list:
        print("\n".join(_listed(comparison, each, options.seeds) for each in resolved))
        return 0
    failures: dict[str, str] = {}
    if not options.report_only:
        cases = [comparison.case(each.system, seed) for seed in options.seeds for each in resolved if each.trainable]
        failures = work(cases, jobs=options.jobs)
    _report(comparison, resolved, options.seeds, baseline_names(everything), options.docs)
    return 1 if failures else 0


def _report(
    comparison: Comparison,
    resolved: Sequence[Resolved],
    seeds: Sequence[int],
    names: Mapping[str, str],
    docs: Path | None,
) -> None:
    """Writes the report of all that is measured."""
    corpus = Corpus(*read_corpus(comparison.base.experiment(), comparison.split))
    results, missing = gather(comparison, resolved, seeds, names, corpus)
    if not results:
        raise InputError(f"{comparison.folder}: no system is measured on {comparison.split} with these seeds")
    pictures = draw(comparison, results)
    gold = None if comparison.gold is None else len(read_gold(Path(comparison.gold[2])))
    conditions = Conditions(
        str(comparison.base.config), str(comparison.budget), tuple(seeds), comparison.split, len(corpus.sources), gold
    )
    path = write(comparison.folder, conditions, results, missing, corpus, pictures)
    if docs is not None:
        text = markdown(conditions, results, missing, corpus, pictures, "pictures/")
        paste(docs, text, [comparison.folder / each.file for each in pictures])
    print(path)


def _listed(comparison: Comparison, resolved: Resolved, seeds: Sequence[int]) -> str:
    system = resolved.system
    if resolved.fault is not None:
        state = f"not available: {resolved.fault}"
    elif not resolved.trainable:
        state = f"is the {BASELINE}"
    else:
        state = "; ".join(f"seed {seed} {comparison.case(system, seed).state}" for seed in seeds)
    return f"{system.key:<30} {state:<40} {' '.join(system.overrides)}".rstrip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--config", type=Path, default=Path("configs/comparison-multi30k.yaml"), help="the base configuration")
    add("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="change the base; repeatable")
    add("--output", type=Path, metavar="FOLDER", help="where all is kept; default: the base configuration's run")
    add("--systems", type=_names, metavar="A,B", help="systems or groups; default: all that are available")
    add("--list", action="store_true", help="show the systems and how far each is, and do nothing")
    add("--minutes", type=_positive(float), help="CPU minutes for training one system; default: 8")
    add("--updates", type=_positive(int), help="instead of minutes: updates of one system, whatever they cost")
    add("--seeds", "--seed", type=_seeds, default=(1,), metavar="1,2", help="each system is trained with each of them")
    add("--jobs", type=_positive(int), default=1, help="systems at a time, each on one thread")
    add("--split", choices=("valid", "test"), default="valid", help="what is translated; test is for the last word")
    add("--gold", nargs=3, metavar=("SOURCE", "TARGET", "LINKS"), help="pairs with gold links, for the error rate")
    add("--docs", type=Path, metavar="PAGE", help=f"put the report between the two lines {MARKER} of this page as well")
    add("--report-only", action="store_true", help="train and measure nothing; report what is there")
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _seeds(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(seed) for seed in text.split(",")))


def _positive(kind: type[int] | type[float]):  # type: ignore[no-untyped-def]
    def number(text: str) -> float:
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value

    number.__name__ = "number above 0"
    return number


if __name__ == "__main__":
    sys.exit(main())
