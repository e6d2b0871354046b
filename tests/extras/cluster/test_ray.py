"""Many files on a Ray cluster of two workers give what one process gives, whatever dies meanwhile."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from nmt.core.errors import InputError
from nmt.experiment import load
from nmt.extras.cluster import cluster
from nmt.extras.cluster.cluster import NodeFault, connected
from nmt.extras.cluster.manifest import FILE
from nmt.extras.cluster.translate_shards import ShardJob, translate_shards
from nmt.translator.windows import OutputFormat, OutputOptions
from nmt.workflows.prepare import prepare
from tests.workflows.runs import nmt, sentences
from tests.workflows.test_commands import error

pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")

ROOT = Path(__file__).parents[3]
SHARDS, LINES = 8, 700


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster of two workers, to which this process is connected."""
    environment = {
        "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "PYTHONPATH": str(ROOT), "RAY_worker_niceness": "0",  # 15 else: beside other tests no time is left for it
    }  # fmt: skip
    with (
        pytest.MonkeyPatch.context() as patch,
        # not pytest's own: names of sockets inside must be short
        TemporaryDirectory(prefix="nmt-ray-", dir="/tmp", ignore_cleanup_errors=True) as folder,
    ):
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setenv("RAY_AUTH_MODE", "token")  # to be as it was in the end: Ray sets it
        patch.delenv("RAY_AUTH_MODE")
        import ray

        ray.init(
            address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False,
            _temp_dir=folder,
        )  # fmt: skip
        yield ray.get_runtime_context().gcs_address
        ray.shutdown()


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


OPTIONS = ("translate", "run", "--precision", "float32", "--beam", "2", "--device", "cpu")


def translate(
    trained: Path, input: Path, output: Path, field: str | None = None, format: OutputFormat = "text"
) -> None:
    job = ShardJob(output, ("search.beam=2",), OutputOptions(format), field, device="cpu", precision="float32")
    translate_shards(job, [str(trained / "run")], input, "auto")


def made(output: Path) -> list[bytes]:
    """All that is there, hidden files left out."""
    paths = sorted(path for path in output.iterdir() if not path.name.startswith("."))
    assert [path.name for path in paths] == [f"{number}.txt" for number in range(SHARDS)]
    return [path.read_bytes() for path in paths]


def wait_for(what: Callable[[], Any], *, seconds: float = 60) -> Any:
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.002)
    return found


def begun(output: Path) -> list[Path]:
    return sorted(output.glob(".[0-9]*.partial-*")) if output.exists() else []


def finished(output: Path) -> list[Path]:
    return sorted(output.glob("[0-9]*.txt")) if output.exists() else []


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
    driver = subprocess.Popen(
        [sys.executable, "-m", "nmt", *OPTIONS, "--ray", address, "--input", shards, "--output", output],
        cwd=trained, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
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
    for name in ("a", "c"):
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


def die(argument: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return argument


def lose(argument: int) -> int:
    raise cluster.on_this_node(f"{argument}: is not there")


def test_a_call_that_always_dies_is_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "RETRIES", 1)
    with (
        connected("auto") as here,
        pytest.raises(InputError, match="^--ray: the process that worked on it was ended 2"),
    ):
        here.call(die, 1)


def test_a_fault_of_a_node_stays_one(address: str) -> None:
    with connected("auto") as here, pytest.raises(NodeFault, match="^node .*: 7: is not there$"):
        here.call(lose, 7)


def linger(argument: tuple[Path, int]) -> int:
    folder, seconds = argument
    (folder / str(seconds)).touch()
    for _ in range(10 * seconds):
        time.sleep(0.1)
    return seconds


def test_who_takes_no_more_cancels_the_rest(address: str, tmp_path: Path) -> None:
    with connected("auto") as here:
        results = here.unordered(linger, [(tmp_path, seconds) for seconds in (0, 100, 200, 300)])
        assert next(results) == ((tmp_path, 0), 0)
        # what a process is about to begin just then, Ray may fail to cancel
        wait_for(lambda: len(list(tmp_path.iterdir())) == 3)
        results.close()
        begun = time.monotonic()
        assert here.call(linger, (tmp_path, 0)) == 0
        assert time.monotonic() - begun < 60  # nothing waits for what was cancelled


def square(factor: int, argument: int) -> int:
    time.sleep(0.05 * (argument % 3 == 0))
    return factor * argument**2


def test_results_come_in_order_a_bounded_number_ahead(address: str) -> None:
    taken = 0

    def numbers() -> Iterator[int]:
        nonlocal taken
        for number in range(12):
            taken += 1
            yield number

    with connected("auto") as here:
        for number, found in enumerate(here.ordered(square, 3, numbers(), ahead=4)):
            assert found == 3 * number**2
            assert taken <= number + 5


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("joint", ["true", "false"])
def test_a_corpus_is_prepared_to_the_same_bytes(
    trained: Path, address: str, joint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained)
    (tmp_path / "train.de").write_text("".join(f"{source}\n" for source, _ in sentences(20_000, seed=9)))
    (tmp_path / "train.en").write_text("".join(f"{target}\n" for _, target in sentences(20_000, seed=9)))
    (tmp_path / "train.align").write_text("0-1 1-0\n\n" * 10_000)
    links = f", links: {tmp_path}/train.align" if joint == "false" else ""
    train = f"data.train={{source: {tmp_path}/train.de, target: {tmp_path}/train.en{links}}}"
    data = load(Path("config.yaml"), [train, f"data.subwords.joint={joint}"]).data
    prepare(data, run=tmp_path / "one", seed=1)
    prepare(data, run=tmp_path / "two", seed=1, cluster=partial(connected, "auto"))
    found = content(tmp_path / "two" / "prepared")
    assert found == content(tmp_path / "one" / "prepared")
    assert len(found["train/line.bin"]) > 8 * 8192


@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(trained: Path, shards: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    driver = subprocess.Popen(
        [sys.executable, "-m", "nmt", *OPTIONS, "--ray", "auto", "--input", shards, "--output", output],
        cwd=trained, env={**environment, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    workers = [int(path.name.split("-")[1]) for path in wait_for(lambda: begun(output))]
    os.killpg(driver.pid, signal.SIGINT)  # as a terminal does
    stdout, said = driver.communicate(timeout=60)
    assert (driver.returncode, stdout) == (130, b"")
    assert re.fullmatch(
        r"model: run/best\n--ray auto: no cluster is running; started one on this machine, cores: \d+\n", said.decode()
    )
    wait_for(lambda: not any(map(is_there, workers)), seconds=10)


def test_an_address_where_nothing_answers_is_told(trained: Path, shards: Path, tmp_path: Path) -> None:
    for address, message in (
        ("127.0.0.1:1", "cannot be reached: Connection refused; see that it runs there"),
        ("ray://nowhere", "is none of auto, HOST:PORT, ray://HOST:PORT"),
    ):
        done = nmt(*OPTIONS, "--ray", address, "--input", shards, "--output", tmp_path / "out", folder=trained)
        assert error(done).startswith(f"--ray {address}: {message}")


STRANGER = """
import grpc, ray
from nmt.extras.cluster.cluster import connected
with connected("auto"), grpc.insecure_channel(ray.get_runtime_context().gcs_address) as channel:
    try:
        answer = channel.unary_unary("/ray.rpc.NodeInfoGcsService/GetClusterId")(b"", timeout=60)
    except grpc.RpcError as error:
        answer = error.code()
print(answer)
"""


def test_a_cluster_that_is_started_here_asks_others_for_a_token(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment |= {"PYTHONPATH": str(ROOT), "RAY_TMPDIR": str(tmp_path)}  # where none is noted
    done = subprocess.run(
        [sys.executable, "-c", STRANGER], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "StatusCode.UNAUTHENTICATED\n"), done.stderr
