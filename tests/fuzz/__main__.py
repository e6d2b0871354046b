"""Many cases for every reader: ``python -m tests.fuzz --cases 100000 [--jobs 2] [NAME …]``. Prints one JSON line for
each and writes the cases that break the law to ``build/fuzz/``. Exit code 1 where there are any."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.fuzz.judging import Verdict, attempt, described
from tests.fuzz.readers import READERS

FOUND = Path("build/fuzz")


def _tried(cases: int, seed: int, name: str) -> Verdict:
    reader = next(each for each in READERS if each.name == name)
    return attempt(reader, cases, seed)


def main() -> int:
    """Tries the readers."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", help="readers; default: all")
    parser.add_argument("--cases", type=int, default=100_000, help="of each reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="readers at once")
    arguments = parser.parse_args()
    known = [each.name for each in READERS]
    names = arguments.names or known
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no reader {unknown[0]!r}; there are {', '.join(known)}")
    faults = 0
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for verdict in pool.map(partial(_tried, arguments.cases, arguments.seed), names):
            print(json.dumps(described(verdict)), flush=True)
            for number, fault in enumerate(verdict.faults):
                FOUND.mkdir(parents=True, exist_ok=True)
                case = FOUND / f"{re.sub('[^a-z]+', '-', verdict.reader.lower())}-{number}"
                case.write_bytes(bytes.fromhex(fault["data"]))
                print(f"  {case}: {fault['what']}", file=sys.stderr, flush=True)
            faults += len(verdict.faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
