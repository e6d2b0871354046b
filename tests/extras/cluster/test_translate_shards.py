"""Many files on a Ray cluster of two workers give what one process gives, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.extras.cluster.manifest import FILE
from nmt.extras.cluster.options import parse_part
from nmt.extras.cluster.translate_shards import ShardJob, place_of, translate_shards
from nmt.translator.windows import OutputFormat, OutputOptions
from tests.extras.cluster.conftest import ROOT, wait_for
from tests.workflows.runs import nmt, sentences

SHARDS, LINES = 8, 700
OPTIONS = ("translate", "run", "--precision", "float32", "--beam", "2", "--device", "cpu")


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files with so many lines each."""
    folder = tmp_path_factory.mktemp("shards")
    lines = [source for source, _ in sentences(SHARDS * LINES, seed=8)]
    for number in range(SHARDS):
        part = lines[number * LINES : (number + 1) * LINES]
        (folder / f"{number}.txt").write_text("".join(f"{line}\n" for line in part), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def expected(trained: Path, shards: Path) -> list[bytes]:
    """Translations of each shard by one process."""
    text = b"".join((shards / f"{number}.txt").read_bytes() for number in range(SHARDS))
    done = nmt(*OPTIONS, folder=trained, stdin=text)
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.splitlines(keepends=True)
    assert len(lines) == SHARDS * LINES
    return [b"".join(lines[first : first + LINES]) for first in range(0, len(lines), LINES)]


def translate(
    trained: Path, input: Path, output: Path, field: str | None = None, format: OutputFormat = "text"
) -> None:
    job = ShardJob(output, ("search.beam=2",), OutputOptions(format), field, device="cpu", precision="float32")
    translate_shards(job, [str(trained / "run")], input, "auto")


def driving(
    trained: Path, shards: Path, output: Path, address: str, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """The command in another process, and session."""
    command = [sys.executable, "-m", "nmt", *OPTIONS, "--ray", address, "--input", shards, "--output", output]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, cwd=trained, env=environment, start_new_session=True, **pipes)


def made(output: Path) -> list[bytes]:
    """All that is there, hidden files left out."""
    paths = sorted(path for path in output.iterdir() if not path.name.startswith("."))
    assert [path.name for path in paths] == [f"{number}.txt" for number in range(SHARDS)]
    return [path.read_bytes() for path in paths]


def begun(output: Path) -> list[Path]:
    return sorted(output.glob(".[0-9]*.partial-*"))


def finished(output: Path) -> list[Path]:
    return sorted(output.glob("[0-9]*.txt"))


def is_there(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_worker_that_is_killed_costs_no_line(
    trained: Path, shards: Path, expected: list[bytes], address: str, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    left: list[bool] = []

    def kill() -> None:
        wait_for(lambda: finished(output))
        (victim, *_) = wait_for(lambda: begun(output))
        pid = int(victim.name.split("-")[1])
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not is_there(pid))
        left.append(victim.exists())

    killer = threading.Thread(target=kill)
    killer.start()
    translate(trained, shards, output)
    killer.join()
    assert left == [True]  # it had begun a shard and not ended it
    assert made(output) == expected
    assert begun(output) == []
    times = [path.stat().st_mtime_ns for path in finished(output)]
    translate(trained, shards, output)  # again: all is done
    assert made(output) == expected
    assert [path.stat().st_mtime_ns for path in finished(output)] == times


@pytest.mark.slow
def test_what_is_done_is_not_done_again(
    trained: Path, shards: Path, expected: list[bytes], address: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    driver = driving(trained, shards, output, address, {**os.environ, "OMP_NUM_THREADS": "1"})
    wait_for(lambda: (finished(output) and begun(output)) or driver.poll() is not None)
    driver.kill()
    _, said = driver.communicate()
    assert said.decode().splitlines() == ["model: run/best", f"Ray cluster: {address}, cores: 2, GPUs: 0"]
    wait_for(lambda: all(not is_there(int(path.name.split("-")[1])) for path in begun(output)))
    before = {path.name: path.stat().st_mtime_ns for path in finished(output)}
    assert 0 < len(before) < SHARDS

    translate(trained, shards, output)
    assert f"{len(before)} of {SHARDS} shards are translated already" in capfd.readouterr().err
    assert made(output) == expected
    assert begun(output) == []
    after = {path.name: path.stat().st_mtime_ns for path in finished(output)}
    assert {name: after[name] for name in before} == before

    with pytest.raises(InputError, match='was begun with --format "text", not "jsonl"'):
        translate(trained, shards, output, format="jsonl")
    manifest = json.loads((output / FILE).read_text())
    manifest["made_with"]["model"] = ["0" * 64]
    (output / FILE).write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="was begun with another model; keep its settings"):
        translate(trained, shards, output)


def test_a_shard_that_cannot_be_translated_keeps_none_from_it(
    trained: Path, address: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    for name in "ac":
        (tmp_path / "in" / f"{name}.jsonl").write_text('{"body": "Hund"}\n{"body": "Katze"}\n')
    (tmp_path / "in" / "b.jsonl").write_text('{"body": "Hund"}\n{"text": "Katze"}\n')
    (tmp_path / "in" / "d.txt").write_bytes(b"Hund\n\xff\n")
    with pytest.raises(InputError, match=r"^1 of 4 shards could not be translated, .*b\.jsonl the first"):
        translate(trained, tmp_path / "in", tmp_path / "out", field="body")
    assert sorted(path.name for path in (tmp_path / "out").glob("[a-d]*")) == ["a.jsonl", "c.jsonl", "d.txt"]
    said = capfd.readouterr().err
    assert f"warning: {tmp_path}/in/b.jsonl: line 2: has no field 'body'; say with --field" in said
    assert f"warning: {tmp_path}/in/d.txt: line 2: not UTF-8 (byte 0xff" in said
    (tmp_path / "in" / "b.jsonl").write_text('{"body": "Hund"}\n')
    translate(trained, tmp_path / "in", tmp_path / "out", field="body")
    rows = [json.loads(line) for line in (tmp_path / "out" / "a.jsonl").read_text().splitlines()]
    (one,) = [json.loads(line) for line in (tmp_path / "out" / "b.jsonl").read_text().splitlines()]
    assert [row["body"] for row in rows] == ["Hund", "Katze"]
    assert one == rows[0]


def test_what_has_come_to_nothing_binds_nobody(trained: Path, address: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"body": "Hund"}\n')
    with pytest.raises(InputError, match=r"^1 of 1 shards could not be translated, .*a\.jsonl the first; mend"):
        translate(trained, tmp_path / "a.jsonl", tmp_path / "out")
    translate(trained, tmp_path / "a.jsonl", tmp_path / "out", field="body")
    assert (tmp_path / "out" / "a.jsonl").exists()


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(trained: Path, shards: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"PYTHONPATH": str(ROOT), "RAY_worker_niceness": "0"}  # 15 else, which starves on a busy machine
    driver = driving(trained, shards, output, "auto", environment)
    workers = [int(path.name.split("-")[1]) for path in wait_for(lambda: begun(output))]
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does
    stdout, said = driver.communicate(timeout=60)
    assert (driver.returncode, stdout) == (130, b"")
    assert re.fullmatch(
        r"model: run/best\n--ray auto: no cluster is running; started one on this machine, cores: \d+\n", said.decode()
    )
    wait_for(lambda: not any(map(is_there, workers)), seconds=10)


def test_the_gpu_that_is_given_is_one_of_those_in_sight() -> None:
    assert [place_of("1", None), place_of("5", "3,5"), place_of("GPU-b", "GPU-a,GPU-b")] == [1, 1, 1]


def test_parts_of_a_job_array_make_what_one_process_makes(trained: Path, tmp_path: Path) -> None:
    """Three parts at the same time, one of them twice; then again, after a file was lost."""
    (tmp_path / "in").mkdir()
    lines = [source for source, _ in sentences(35, seed=8)]
    for number in range(7):
        text = "".join(f"{line}\n" for line in lines[5 * number : 5 * number + 5])
        (tmp_path / "in" / f"{number}.txt").write_text(text, encoding="utf-8")
    whole = nmt(*OPTIONS, folder=trained, stdin="".join(f"{line}\n" for line in lines).encode())
    expected, output = whole.stdout.decode().splitlines(), tmp_path / "out"

    def run(part: str) -> subprocess.CompletedProcess[bytes]:
        return nmt(*OPTIONS, "--shard", part, "--input", tmp_path / "in", "--output", output, folder=trained)

    def found() -> list[str]:
        paths = sorted(output.glob("[0-9]*"))
        return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]

    with ThreadPoolExecutor(4) as executor:
        done = list(executor.map(run, ["1/3", "2/3", "2/3", "3/3"]))
    assert [each.returncode for each in done] == [0] * 4, [each.stderr.decode() for each in done]
    assert found() == expected
    (output / "4.txt").unlink()
    again = [run(f"{number}/3").stderr.decode() for number in (1, 2, 3)]
    assert [re.findall(r"out: .*(?:translated already|translated, 5 lines)", each) for each in again] == [
        ["out: 3 of 3 shards are translated already"],
        ["out: 1 of 2 shards are translated already", "out: 1 shards translated, 5 lines"],
        ["out: 2 of 2 shards are translated already"],
    ]
    assert found() == expected


@pytest.mark.parametrize("part", ["0/3", "4/3", "1", "a/b", "1/3/5", "-1/3"])
def test_a_part_that_is_none_is_refused(part: str) -> None:
    with pytest.raises(InputError, match=f"--shard {part}: expected I/N, such as 1/8"):
        parse_part(part)
