"""Long runs of training, translation and the server, with checks of memory and of lines.

    python scripts/endurance.py train [--pairs 2000000] [--epochs 5]
    python scripts/endurance.py translate RUN [--lines 1000000]
    python scripts/endurance.py serve RUN [--minutes 30] [--clients 50]

``train``: a tiny recurrent model learns from so many pairs, which are those of a corpus again and again.
``translate``: the lines of a text go again and again, each time in an order drawn anew, through the pipe of one ``nmt
translate``; as many come out, and a line's translation is the same whatever shares its batch.
``serve``: clients without a pause between their requests, one in ten of them broken (see ``clients.py``); each answer
is compared with what ``nmt translate`` says.

Memory is what the process and those it has started have resident (VmRSS), looked at ten times a second; the bar is on
the most of each later epoch, or tenth of the work, over that of the first epoch, or of the second tenth. Prints a JSON
line for each figure, and a table on stderr; the exit code is 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from pathlib import Path
from types import TracebackType

from clients import BUSY, Tally, at_once
from measuring import family, print_table, report, size_of

from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.corpus import read_lines
from nmt.training import run_directory
from nmt.translator.find_run import validate_model

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "data" / "de-en"
PARTS = 10
"""Number of parts in which the work of ``translate`` and ``serve`` is reported."""

COMPUTING = ["--device", "cpu", "--precision", "float32"]
"""Options for a fixed precision: in bfloat16 another batch rounds differently, and a translation may differ."""

CONFIG = """\
run: {folder}/run
data:
  train: {{source: {folder}/source, target: {folder}/target}}
  subwords: {{kind: word, size: 500, joint: false}}
  filters: {{duplicates: false}}
model:
  embedding: {{size: 16, tie: output}}
  encoder: {{kind: rnn, cell: gru, size: 16, bidirectional: false}}
  decoder: {{kind: rnn, cell: gru, size: 16}}
  attention: {{score: dot}}
training:
  batching: {{batch_tokens: {batch_tokens}}}
  stopping: {{epochs: {epochs}}}
  save_every: 20
  keep: 1
"""


class Bars:
    """Figures with limits, and a list of those that exceed them."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._missed: list[str] = []

    def figure(self, name: str, value: float, unit: str) -> None:
        """Reports a figure without a limit."""
        report(name, value, unit, self._label)

    def at_most(self, limit: float, name: str, value: float, unit: str) -> None:
        """Reports a figure with a limit."""
        self.figure(name, value, unit)
        if not value <= limit:
            self._missed.append(f"{name}: {value:g} {unit} is more than {limit:g}")

    def end(self) -> None:
        """Prints the table, and exits with 1 if a limit is exceeded."""
        print_table()
        for each in self._missed:
            print(f"missed: {each}", file=sys.stderr)
        if self._missed:
            sys.exit(1)


class Watch:
    """The maximum resident memory of a process and those it has started, in each part of its work."""

    def __init__(self, pid: int, part: Callable[[], int]) -> None:
        self._pid, self._part = pid, part
        self.most: dict[int, float] = {}
        """Maximum in MiB, by part."""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def look(self) -> None:
        """Measures the memory now."""
        part, mib = self._part(), resident(self._pid) / 1024
        if mib > 0:
            self.most[part] = max(self.most.get(part, 0.0), mib)

    def _run(self) -> None:
        while not self._is_over.wait(0.1):
            self.look()

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()


def resident(pid: int) -> float:
    """Returns the memory of a process and all processes that it has started, in KiB; ended processes count nothing."""
    return sum(size_of(each, "VmRSS") for each in family(pid))


def check_memory(bars: Bars, most: dict[int, float], unit: str, *, first: int, limit: float) -> None:
    """Reports the maximum memory of each part, and the ratio of the largest after the part ``first`` to that of this
    part."""
    for part, mib in sorted(most.items()):
        bars.figure(f"memory, {unit} {part + 1}", mib, "MiB")
    kept = [mib for part, mib in sorted(most.items()) if part >= first]
    if len(kept) < 2:
        sys.exit("error: it was over too soon to tell what memory did; ask for more")
    bars.at_most(limit, f"memory, later over {unit} {first + 1}", max(kept[1:]) / kept[0], "times")


def nmt(*arguments: object) -> list[str]:
    """Returns the command line of nmt in another process."""
    return [sys.executable, "-m", "nmt", *map(str, arguments)]


class Saved:
    """The progress of a training that is still running, by its newest checkpoint."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._position = {"epoch": 0, "update": 0}

    def _newest(self) -> dict[str, int]:
        latest = run_directory.latest_checkpoint(self._run)
        # a checkpoint that no longer exists has been replaced by a newer one
        with suppress(InputError, OSError):
            if latest is not None:
                self._position = run_directory.read_state(latest)["position"]
        return self._position

    @property
    def epochs(self) -> int:
        """Number of complete epochs."""
        return self._newest()["epoch"]

    @property
    def updates(self) -> int:
        """Number of updates in all epochs."""
        return self._newest()["update"]


def train(arguments: argparse.Namespace) -> None:
    """See the module's docstring."""
    bars = Bars("cpu, float32")
    if arguments.folder is not None and not arguments.folder.is_dir():
        raise InputError(f"--folder {arguments.folder}: no such folder")
    with tempfile.TemporaryDirectory(prefix="endurance-", dir=arguments.folder) as name:
        folder = Path(name)
        for side, language in (("source", "de"), ("target", "en")):
            lines = list(read_lines(arguments.corpus / f"train.{language}"))
            with (folder / side).open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in islice(cycle(lines), arguments.pairs))
        config = folder / "config.yaml"
        config.write_text(
            CONFIG.format(folder=folder, epochs=arguments.epochs, batch_tokens=arguments.batch_tokens), encoding="utf-8"
        )
        subprocess.run(nmt("prepare", config, "--quiet"), check=True)
        kept = json.loads((folder / "run" / "prepared" / "report.json").read_text(encoding="utf-8"))["corpora"][0]

        state = Saved(folder / "run")
        began = time.monotonic()
        with (
            subprocess.Popen(nmt("train", config, "--quiet", *COMPUTING)) as process,
            Watch(process.pid, lambda: min(state.epochs, arguments.epochs - 1)) as watch,
        ):
            process.wait()
        bars.at_most(0, "exit code", process.returncode, "")
        bars.figure("pairs", kept["kept"], "pairs")
        bars.at_most(0, "pairs lost by nmt prepare", arguments.pairs - kept["kept"], "pairs")
        bars.at_most(0, "epochs that are missing", arguments.epochs - state.epochs, "epochs")
        bars.figure("updates", state.updates, "updates")
        bars.figure("time", (time.monotonic() - began) / 60, "min")
        check_memory(bars, watch.most, "epoch", first=0, limit=arguments.memory)
    bars.end()


def translate(arguments: argparse.Namespace) -> None:
    """See the module's docstring."""
    bars = Bars("cpu, float32")
    validate_model(arguments.model, [])
    lines, total = different_lines(arguments.source), arguments.lines
    command = nmt("translate", arguments.model, "--quiet", *COMPUTING, "--set", "search.beam=1")
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    sink, result = process.stdin, process.stdout

    def write() -> None:
        with sink:
            sink.writelines(line.encode() + b"\n" for line in islice(repeated(lines), total))

    came, others = 0, dict[str, set[bytes]]()
    first: dict[str, bytes] = {}
    different = 0
    threading.Thread(target=write, daemon=True).start()
    with process, Watch(process.pid, lambda: min(came * PARTS // total, PARTS - 1)) as watch:
        for line, answer in zip(repeated(lines), result, strict=False):
            came += 1
            if answer != first.setdefault(line, answer):
                different += 1
                others.setdefault(line, set()).add(answer)
            if came * PARTS % total < PARTS:
                watch.look()
        came += sum(1 for _ in result)
    for line, answers in islice(others.items(), 20):
        print(f"{line!r}: {first[line]!r}, then {sorted(answers)}", file=sys.stderr)
    bars.at_most(0, "exit code", process.returncode, "")
    bars.figure("lines", came, "lines")
    bars.at_most(0, "lines lost or too many", abs(total - came), "lines")
    bars.at_most(0, "lines translated otherwise than the first time", different, "lines")
    bars.figure("with start", came / (time.monotonic() - began), "lines/s")
    check_memory(bars, watch.most, "tenth", first=1, limit=arguments.memory)
    bars.end()


def different_lines(path: Path) -> list[str]:
    """Returns each distinct line of a file once. Raises InputError if there is none."""
    lines = list(dict.fromkeys(read_lines(path)))
    if not lines:
        raise InputError(f"{path}: holds no line")
    return lines


def repeated(lines: Sequence[str]) -> Iterator[str]:
    """Yields the lines again and again, each time in a different order, which is reproducible."""
    draw, order = random.Random(1), list(lines)
    while True:
        yield from order
        draw.shuffle(order)


def serve(arguments: argparse.Namespace) -> None:
    """See the module's docstring."""
    bars = Bars("cpu, float32")
    validate_model(arguments.model, [])
    lines = different_lines(arguments.source)[: arguments.sentences]
    expected = expectations(arguments.model, lines)
    seconds = arguments.minutes * 60
    began = time.monotonic()

    def part() -> int:
        return min(int((time.monotonic() - began) / seconds * PARTS), PARTS - 1)

    with serving(arguments.model, arguments.timeout) as (process, port, said):
        before = counts(port)
        began = time.monotonic()
        with Watch(process.pid, part) as watch:
            tally = at_once(port, expected, clients=arguments.clients, until=began + seconds)
        after = settled(port, before)
        code = ended(process)
        tracebacks = said.read_text(encoding="utf-8").count("Traceback")
    check_answers(bars, tally, seconds)
    for status in sorted(key for key in after if key.startswith("status ")):
        limit = 0.0 if status == "status 500" else math.inf
        bars.at_most(limit, f"by the server's count: {status}", after[status], "requests")
    bars.at_most(0, "left in the queue", after["nmt_queue_sentences"], "sentences")
    bars.at_most(0, "more open files than before", after["process_open_fds"] - before["process_open_fds"], "files")
    bars.at_most(0, "exit code after SIGTERM", abs(code), "")
    bars.at_most(0, "tracebacks", tracebacks, "")
    check_memory(bars, watch.most, "tenth", first=1, limit=arguments.memory)
    bars.end()


@contextmanager
def serving(model: str, timeout_s: float) -> Iterator[tuple[subprocess.Popen[bytes], int, Path]]:
    """Runs a server in another process; yields it when it is ready, with its port and the file of its messages."""
    command = nmt("serve", model, "--port", "0", "--timeout", timeout_s, *COMPUTING)
    with (
        tempfile.NamedTemporaryFile(prefix="endurance-", suffix=".log") as said,
        subprocess.Popen(command, stderr=said) as process,
    ):
        try:
            path = Path(said.name)
            while "ready: " not in (text := path.read_text(encoding="utf-8")):
                if process.poll() is not None:
                    sys.exit(text)
                time.sleep(0.1)
            yield process, int(text.partition("ready: ")[2].partition("\n")[0].rpartition(":")[2]), path
        finally:
            process.terminate()


def expectations(model: str, lines: Sequence[str]) -> dict[str, str]:
    """Returns the translation of each line by ``nmt translate``."""
    text = "".join(f"{line}\n" for line in lines).encode()
    done = subprocess.run(
        nmt("translate", model, "--quiet", *COMPUTING), input=text, stdout=subprocess.PIPE, check=True
    )
    return dict(zip(lines, done.stdout.decode().split("\n")[:-1], strict=True))


def counts(port: int) -> dict[str, float]:
    """Reads the server's own counts: open files, sentences in the queue, requests by status."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    found: dict[str, float] = {}
    for line in lines:
        name, _, value = line.rpartition(" ")
        if name in ("process_open_fds", "nmt_queue_sentences"):
            found[name] = float(value)
        if status := re.fullmatch(r'nmt_requests_total\{path="/translate",status="(\d+)"\}', name):
            found[f"status {status[1]}"] = float(value)
    return found


def settled(port: int, before: dict[str, float]) -> dict[str, float]:
    """Returns the counts after the server has noticed that all clients are gone, or after half a minute."""
    until = time.monotonic() + 30
    while True:
        after = counts(port)
        is_quiet = after["nmt_queue_sentences"] == 0 and after["process_open_fds"] <= before["process_open_fds"]
        if is_quiet or time.monotonic() > until:
            return after
        time.sleep(0.2)


def ended(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit code after SIGTERM; -9 if the process has not ended within a minute."""
    process.terminate()
    try:
        return process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def check_answers(bars: Bars, tally: Tally, seconds: float) -> None:
    """Reports the results of the clients."""
    for (kind, status), number in sorted(tally.statuses.items()):
        bars.figure(f"{kind}: {status or 'closed'}", number, "requests")
    for each in tally.wrong[:20]:
        print(each, file=sys.stderr)
    bars.at_most(0, "answers that should not be", len(tally.wrong), "answers")
    busy = sum(number for (_, status), number in tally.statuses.items() if status in BUSY)
    bars.figure("busy", busy, "answers")
    bars.figure("translations compared", tally.sentences, "sentences")
    bars.figure("speed", tally.sentences / seconds, "sentences/s")
    for percent in (50, 95, 99):
        bars.figure(f"good clients p{percent}", tally.percentile_ms(percent), "ms")


def at_least_one(text: str) -> int:
    """Parses a whole number of at least 1."""
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be a whole number of at least 1")
    return int(text)


def positive(text: str) -> float:
    """Parses a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError("must be a number above 0")
    return value


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument("--pairs", type=at_least_one, default=2_000_000)
    training.add_argument("--epochs", type=at_least_one, default=5)
    training.add_argument("--batch-tokens", type=at_least_one, default=32768)
    training.add_argument("--corpus", type=Path, default=CORPUS, help="a folder with train.de and train.en")
    training.add_argument(
        "--folder", type=Path, help="where there is room for it (2 GB); default: that for temporary files"
    )
    training.set_defaults(work=train)
    translating = commands.add_parser("translate")
    translating.add_argument("--lines", type=at_least_one, default=1_000_000)
    translating.set_defaults(work=translate)
    server = commands.add_parser("serve")
    server.add_argument("--minutes", type=positive, default=30)
    server.add_argument("--clients", type=at_least_one, default=50)
    server.add_argument("--sentences", type=at_least_one, default=2000, help="different ones that are sent")
    server.add_argument("--timeout", type=positive, default=10, help="nmt serve --timeout")
    server.set_defaults(work=serve)
    for each in (translating, server):
        each.add_argument("model", metavar="RUN")
        each.add_argument("--source", type=Path, default=CORPUS / "train.de")
    for each in (training, translating, server):
        each.add_argument("--memory", type=positive, default=1.03, help="times as much as at first, at most")
    arguments = parser.parse_args()
    log.set_verbosity(log.Verbosity.QUIET)
    try:
        arguments.work(arguments)
    except (InputError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
