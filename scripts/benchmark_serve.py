"""Gain of shared batches in a server: sentences/s and latency with several clients that send single sentences.

    python scripts/benchmark_serve.py MODEL SOURCE [--clients 1 --clients 8 --clients 32] [--sentences 96]

Two servers on this machine, one with batches and one that takes a sentence at a time, are measured in turn, five times
each after a run that warms up; the ratio is the median of the five ratios. The clients run on the same cores. Prints a
JSON line for each figure, and a table on stderr.

    python scripts/benchmark_serve.py MODEL SOURCE --heavy 60 [--heavy-request FILE]

What heavy requests cost others: for so many seconds one client sends one every second, whether or not those before are
answered (by default a text of 2,000 digits, or the JSON in FILE), and another sends the lines one after the other. Then
all clients leave, and the processor time of the server is read 2 s later and 5 s after that.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
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
    """The results of a number of clients."""

    speed: float
    """Sentences per second of all clients together."""
    latencies_s: list[float]

    def percentile_ms(self, percent: int) -> float:
        """Returns the latency that this percentage of requests does not exceed."""
        return 1000 * sorted(self.latencies_s)[min(len(self.latencies_s) * percent // 100, len(self.latencies_s) - 1)]


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source", type=Path)
    parser.add_argument("--clients", type=int, action="append", help="repeatable; default 1, 8 and 32")
    parser.add_argument("--sentences", type=int, default=96, help="of each run")
    parser.add_argument("--heavy", type=float, metavar="S", help="seconds with heavy requests")
    parser.add_argument("--heavy-request", type=Path, metavar="FILE", help="JSON of a heavy request")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    arguments = parser.parse_args()
    log.set_verbosity(log.Verbosity.QUIET)
    chosen = compute(arguments.device, arguments.precision)
    lines = list(islice(cycle(read_lines(arguments.source)), arguments.sentences))
    options = ["--device", arguments.device, "--precision", arguments.precision]
    if arguments.heavy is not None:
        heavy = arguments.heavy_request.read_text() if arguments.heavy_request else json.dumps({"text": "1" * 2000})
        with serving([arguments.model, *options]) as (port, pid):
            without = under_load(port, lines, arguments.heavy / 4, None)
            found = under_load(port, lines, arguments.heavy, heavy)
            time.sleep(2)
            before_s = processor_s(pid)
            time.sleep(5)
            idle = (processor_s(pid) - before_s) / 5
        for name, measured in (("without", without), ("with", found)):
            for percent in (50, 99):
                report(f"{name}_heavy_p{percent}", measured.percentile_ms(percent), "ms", chosen)
            report(f"{name}_heavy_requests", len(measured.latencies_s), "requests", chosen)
        report("processor_after_all_have_left", 100 * idle, "%", chosen)
        report("load_of_machine", os.getloadavg()[0], "processes", chosen)
        print_table()
        return
    with ExitStack() as stack:
        ports = {
            mode: stack.enter_context(serving([arguments.model, *options, *more]))[0] for mode, more in MODES.items()
        }
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
def serving(arguments: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Runs a server in another process; yields its port and the process's number."""
    command = [sys.executable, "-m", "nmt", "serve", "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = ""
            for line in process.stderr:
                said += line
                if line.startswith("ready: "):
                    yield int(line.rpartition(":")[2]), process.pid
                    return
            raise SystemExit(said)
        finally:
            process.terminate()


def measure(port: int, lines: Sequence[str], clients: int) -> Measured:
    """Sends the lines, shared out among this many clients, each of which waits for an answer before it sends the
    next."""
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


def under_load(port: int, lines: Sequence[str], seconds: float, heavy: str | None) -> Measured:
    """Measures the latencies of a client that sends line after line, beside one that sends a heavy request every second
    and leaves at the end, even if requests are unanswered."""
    end = time.monotonic() + seconds
    connections: list[http.client.HTTPConnection] = []

    def flood() -> None:
        while heavy is not None and time.monotonic() < end:
            connections.append(http.client.HTTPConnection("127.0.0.1", port))
            connections[-1].request("POST", "/translate", heavy, {"Content-Type": "application/json"})
            time.sleep(1)

    flooding = threading.Thread(target=flood)
    flooding.start()
    latencies_s: list[float] = []
    for line in cycle(lines):
        if time.monotonic() >= end:
            break
        latencies_s += measure(port, [line], 1).latencies_s
    flooding.join()
    for connection in connections:
        connection.close()
    return Measured(len(latencies_s) / seconds, latencies_s)


def processor_s(pid: int) -> float:
    """Reads the processor time of a process so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    plainly(main)
