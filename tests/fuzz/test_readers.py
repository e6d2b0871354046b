"""Each reader keeps the law, on two hundred damaged files; ``make fuzz`` tries 100,000."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from tests.fuzz.judging import Opened, Reader, attempt, judge
from tests.fuzz.readers import READERS

CASES = 200

forks = pytest.mark.skipif(sys.platform != "linux", reason="counts on fork and RLIMIT_AS")


@forks
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_what_is_damaged_is_refused_in_one_line(reader: Reader) -> None:
    verdict = attempt(reader, CASES // reader.cost, seed=1)
    assert not verdict.faults, [fault["what"] for fault in verdict.faults]
    assert verdict.cases >= CASES // reader.cost


def _raising(error: BaseException) -> Reader:
    def read(data: bytes) -> None:
        if len(data) > 3:
            raise error

    return Reader("faulty", lambda folder: Opened([b"abc"], read))


@forks
@pytest.mark.parametrize("error", [KeyError("x"), MemoryError(), AssertionError(), RecursionError(), InputError("")])
def test_the_judge_sees_other_errors(error: BaseException) -> None:
    assert attempt(_raising(error), 20, seed=1).faults


@forks
def test_the_judge_sees_a_process_that_dies() -> None:
    def read(data: bytes) -> None:
        if len(data) > 3:
            os._exit(3)

    (fault,) = attempt(Reader("dying", lambda folder: Opened([b"abc"], read)), 20, seed=1).faults
    assert fault["what"] == "the process died or hung"
    assert len(bytes.fromhex(fault["data"])) > 3


@forks
def test_the_judge_sees_what_takes_memory() -> None:
    reader = Reader("greedy", lambda folder: Opened([b""], lambda data: bytearray((len(data) > 0) << 30)))
    assert [fault["what"][:11] for fault in attempt(reader, 20, seed=1).faults] == ["MemoryError"]


def test_the_judge_sees_what_takes_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.judging.CASE_S", 0.05)

    def read(data: bytes) -> None:
        while True:
            pass

    assert judge(read, b"") == (False, "more than 0.05 s")


def test_no_reader_of_a_kind_of_file_is_left_out() -> None:
    """Whoever adds a call that reads a file finds the place where it is tried."""
    root = Path(__file__).parents[2] / "nmt"
    found = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if any(
            word in path.read_text(encoding="utf-8")
            for word in ("safe_open(", "read_safetensors(", "load_file(", "read_json(", "json.loads(", "from_json(")
        )
    }
    assert found == {
        "extras/aligner/aligner.py", "extras/corpus/pair_filter/pair_filter.py", "core/installation.py",
        "alignment/formats.py", "extras/aligner/layer.py", "core/files.py", "data/store.py",
        "extras/service/messages.py", "training/averaging.py", "training/checkpoint.py",
        "training/distributed.py", "training/run_directory.py", "training/metrics.py",
        "extras/exchange/export/engine.py", "extras/service/protocols/libretranslate.py",
        "workflows/info.py", "extras/cluster/manifest.py",
        "data/prepared.py", "extras/cluster/records.py",
        "extras/corpus/augment/steps.py", "extras/corpus/augment/text.py", "data/imported.py",
        "extras/documents/number_formats.py", "extras/decoding/nearest_neighbors.py",
        "extras/exchange/convert/from_marian.py", "extras/exchange/convert/marian_folder.py", "data/formats.py",
        "extras/trust/calibration.py", "data/number_words.py",
            "translator/source_language.py",
    }  # fmt: skip
