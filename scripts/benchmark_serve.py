"""What sharing batches brings a server: sentences/s and latency with several clients that send single sentences.

    python scripts/benchmark_serve.py MODEL SOURCE [--clients 1 --clients 8 --clients 32] [--sentences 96]

Two servers on this machine, one with batches and one that takes a sentence at a time, are measured in turn, five times
each after a run that warms up; the ratio is the median of the five ratios. The clients run on the same cores. Prints a
JSON line for each figure, and a table on stderr.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from measuring import plainly, print_table, report

from nmt.core import log
from nmt.core.device import compute
from nmt.data.corpus import read_lines

ROUNDS = 5

MODES = {"batched": [], "alone": ["--batch-sentences", "1"]}


@dataclass(frozen=True)
class Measured:
    """What a number of clients saw."""

    speed: float
    """Sentences a second, of all together."""
    latencies_s: list[float]

    def percentile_ms(self, percent: int) -> float:
        """The latency that so many of a hundred requests do not exceed."""
        return 1000 * sorted(self.latencies_s)[min(len(self.latencies_s) * percent // 100, len(self.latencies_s) - 1)]


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("--clients", type=int, action="append", help="repeatable; default 1, 8 and 32")
    parser.add_argument("--sentences", type=int, default=96, help="of each run")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    arguments = parser.parse_args()
    log.set_verbosity(log.Verbosity.QUIET)
    chosen = compute(arguments.device, arguments.precision)
    lines = list(islice(cycle(read_lines(arguments.source)), arguments.sentences))
    options = ["--device", arguments.device, "--precision", arguments.precision]
    with ExitStack() as stack:
        ports = {mode: stack.enter_context(serving([arguments.model, *options, *more])) for mode, more in MODES.items()}
        for clients in arguments.clients or [1, 8, 32]:
            runs: dict[str, list[Measured]] = {mode: [] for mode in MODES}
            for number in range(1 + ROUNDS):
                for mode, port in ports.items():
                    found = measure(port, lines, clients)
                    if number > 0:
                        runs[mode].append(found)
            for mode, each in runs.items():
                name = f"{clients}_clients_{mode}"
                report(f"{name}_speed", statistics.median(one.speed for one in each), "sentences/s", chosen)
                for percent in (50, 95):
                    value = statistics.median(one.percentile_ms(percent) for one in each)
                    report(f"{name}_p{percent}", value, "ms", chosen)
            ratios = [one.speed / other.speed for one, other in zip(runs["batched"], runs["alone"], strict=True)]
            report(f"{clients}_clients_ratio", statistics.median(ratios), "x", chosen)
    print_table()


@contextmanager
def serving(arguments: Sequence[str]) -> Iterator[int]:
    """A server in another process, by its port."""
    command = [sys.executable, "-m", "nmt", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = ""
            for line in process.stderr:
                said += line
                if line.startswith("ready: "):
                    yield int(line.rpartition(":")[2])
                    return
            raise SystemExit(said)
        finally:
            process.terminate()


def measure(port: int, lines: Sequence[str], clients: int) -> Measured:
    """The lines, shared out among so many clients, each of which waits for an answer before it sends the next."""
    latencies_s: list[float] = []

    def talk(mine: Sequence[str]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for line in mine:
            began = time.perf_counter()
            body = json.dumps({"text": line})
            connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            if response.status != 200:
                raise RuntimeError(answer.decode())
            latencies_s.append(time.perf_counter() - began)
        connection.close()

    threads = [threading.Thread(target=talk, args=(lines[number::clients],)) for number in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    if len(latencies_s) < len(lines):
        raise SystemExit("error: a request has failed")
    return Measured(len(lines) / seconds, latencies_s)


if __name__ == "__main__":
    plainly(main)
