"""The law for whatever reads what others wrote: something usable, or one plain line, soon, in bounded memory."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.core.errors import InputError
from tests.fuzz.mutations import mutated

CASE_S = 10.0
"""The most that a case may take; on a quiet machine it takes a thousandth of that."""

CASE_BYTES = 512 << 20
"""The memory, of addresses, that the cases of a reader may take beyond what its process has before them. The files are
of some kilobytes."""

FREE_CASES = 25


class Slow(BaseException):
    """A case took too long; no reader may catch it."""


@dataclass(frozen=True)
class Opened:
    """A reader, ready to read."""

    seeds: Sequence[bytes]
    read: Callable[[bytes], object]
    """Uses what it reads as the program does. InputError is an answer, all else a fault."""
    make: Callable[[random.Random], bytes] | None = None
    """Further cases, such as files whose outer shape is right."""


@dataclass(frozen=True)
class Reader:
    """A reader under test, and its preparation in an empty folder."""

    name: str
    open: Callable[[Path], Opened]
    cost: int = 1
    """Factor by which it gets fewer cases in a quick run."""


@dataclass
class Verdict:
    """The results of the cases of a reader."""

    reader: str
    cases: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest_s: float = 0.0
    grown_mib: int = 0
    faults: list[dict[str, str]] = field(default_factory=list)


def judge(read: Callable[[bytes], object], data: bytes) -> tuple[bool, str | None]:
    """Returns True if the data were refused, and a description of the broken rule; None if no rule was broken."""
    signal.signal(signal.SIGALRM, _too_slow)
    signal.setitimer(signal.ITIMER_REAL, CASE_S)
    try:
        read(data)
    except InputError as error:
        message = str(error)
        return True, None if is_plain(message) else f"not one plain line: {message[:300]!r}"
    except Slow:
        return False, f"more than {CASE_S:g} s"
    except BaseException as error:
        places = [
            f"{Path(frame.filename).name}:{frame.lineno}"
            for frame in traceback.extract_tb(error.__traceback__)[-12:]
            if "tests/fuzz/judging" not in frame.filename
        ]
        return False, f"{type(error).__name__}: {str(error)[:200]} ({' '.join(places[-6:])})"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False, None


def is_plain(message: str) -> bool:
    """True for one line that is not empty, of a length that one reads."""
    return len(message.splitlines()) == 1 and len(message) < 4000 and message.isprintable()


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise Slow


@cache
def load_hypothesis() -> None:
    """Draws here, so that what hypothesis loads for its first case is loaded once for all processes that are forked."""
    settings(max_examples=9, database=None, derandomize=True)(given(data=st.binary() | st.text())(lambda data: None))()


def attempt(reader: Reader, cases: int, seed: int, *, most_faults: int = 20) -> Verdict:
    """The verdict on a reader, in a process of its own: one that dies is a fault, too, and the case that killed it is
    known."""
    load_hypothesis()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        folder = Path(name)
        child = get_context("fork").Process(target=_in_child, args=(reader, folder, cases, seed, most_faults))
        child.start()
        child.join(60 + cases * 0.5)
        child.kill()
        child.join()
        if (folder / "verdict").exists():
            return Verdict(**json.loads((folder / "verdict").read_text(encoding="utf-8")))
        case = folder / "case"
        data = case.read_bytes() if case.exists() else b""
        return Verdict(reader.name, faults=[{"what": "the process died or hung", "data": data.hex()}])


def _in_child(reader: Reader, folder: Path, cases: int, seed: int, most_faults: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2) if os.environ.get("FUZZ_LOUD") is None else (0, 1):
        os.dup2(null, descriptor)
    warnings.simplefilter("ignore")
    try:
        verdict = try_cases(reader, folder, cases, seed, most_faults)
    except BaseException:
        verdict = Verdict(reader.name, faults=[{"what": traceback.format_exc()[-1500:], "data": ""}])
    (folder / "verdict").write_text(json.dumps(asdict(verdict)), encoding="utf-8")
    os._exit(0)


def try_cases(reader: Reader, folder: Path, cases: int, seed: int, most_faults: int) -> Verdict:
    """In this process, whose memory is limited from here on."""
    work = folder / "work"
    work.mkdir()
    opened = reader.open(work)
    verdict = Verdict(reader.name)
    for valid in opened.seeds:
        refused, fault = judge(opened.read, valid)
        if fault or refused:
            verdict.faults.append({"what": f"a valid example is refused: {fault}", "data": valid.hex()})
    _limit_memory()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    case = os.open(folder / "case", os.O_RDWR | os.O_CREAT)
    known: set[str] = set()

    def one(data: bytes) -> None:
        os.ftruncate(case, 0)
        os.pwrite(case, data, 0)
        started = time.monotonic()
        refused, fault = judge(opened.read, data)
        verdict.slowest_s = max(verdict.slowest_s, time.monotonic() - started)
        verdict.cases += 1
        verdict.refused += refused
        if fault and len(verdict.faults) < most_faults and (kind := fault[-60:]) not in known:
            known.add(kind)
            verdict.faults.append({"what": fault, "data": data[:100_000].hex()})

    @settings(max_examples=min(cases, FREE_CASES), database=None, derandomize=True, deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(data=st.one_of(st.binary(max_size=400), st.text(max_size=200).map(lambda text: text.encode("utf-8"))))
    def free(data: bytes) -> None:
        one(data)

    free()
    draw = random.Random(f"{reader.name} {seed}")
    for _ in range(cases - verdict.cases):
        if opened.make is not None and draw.random() < 0.5:
            one(opened.make(draw))
        else:
            one(mutated(opened.seeds, draw))
    verdict.seconds = time.monotonic() - began
    verdict.grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    return verdict


def _limit_memory() -> None:
    if sys.platform != "linux":
        return
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + CASE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def described(verdict: Verdict) -> dict[str, Any]:
    """Formats a verdict for a report."""
    return {key: value for key, value in asdict(verdict).items() if key != "faults"} | {"faults": len(verdict.faults)}
