"""Translation speed of a trained model: sentences/s, greedy and with a beam, without start-up.

    python scripts/benchmark_translation.py MODEL SOURCE [--beam 1 --beam 5] [--precision float32]

Text goes in and text comes out; loading does not count. One run warms up, the figure is the median of five. Prints a
JSON line for each figure, and a table on stderr.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

from measuring import matrix_rate, print_table, report

import nmt
from nmt.core import log
from nmt.data.corpus import read_lines

RUNS = 5


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("--beam", type=int, action="append", help="repeatable; default 1 and 5")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    arguments = parser.parse_args()
    log.set_verbosity(log.Verbosity.QUIET)
    lines = list(read_lines(arguments.source))
    for beam in arguments.beam or [1, 5]:
        translator = nmt.load(
            arguments.model,
            device=arguments.device,
            precision=arguments.precision,
            overrides=[*arguments.overrides, f"search.beam={beam}"],
        )
        translator.translate(lines)
        speeds, rates = [], []
        for _ in range(RUNS):
            rates.append(matrix_rate(translator.trained.compute))
            started = time.perf_counter()
            translator.translate(lines)
            speeds.append(len(lines) / (time.perf_counter() - started))
        chosen = translator.trained.compute
        report(f"sentences_per_second_beam_{beam}", statistics.median(speeds), "sentences/s", chosen)
        report(f"sentences_per_second_beam_{beam}_best", max(speeds), "sentences/s", chosen)
        report("matrix_product_rate", statistics.median(rates) / 1e9, "GFLOP/s", chosen)
    print_table()


if __name__ == "__main__":
    main()
