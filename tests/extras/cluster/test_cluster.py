"""Calls on a Ray cluster of two workers: their results, their faults, and the cluster that a command starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.experiment import load
from nmt.extras.cluster import cluster
from nmt.extras.cluster.cluster import NodeFault, connected
from nmt.workflows.prepare import prepare
from tests.extras.cluster.conftest import ROOT, wait_for
from tests.workflows.runs import error, nmt, sentences


def die(argument: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return argument


def lose(argument: int) -> int:
    raise cluster.on_this_node(f"{argument}: is not there")


def test_a_call_that_always_dies_and_a_fault_of_a_node_are_told(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "RETRIES", 1)
    with connected("auto") as here:
        with pytest.raises(InputError, match="^--ray: the process that worked on it was ended 2"):
            here.call(die, 1)
        with pytest.raises(NodeFault, match="^node .*: 7: is not there$"):
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


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", "cannot be reached: Connection refused; see that it runs there"),
        ("ray://nowhere", "is none of auto, HOST:PORT, ray://HOST:PORT"),
    ],
)
def test_an_address_where_nothing_answers_is_told(address: str, message: str, trained: Path, tmp_path: Path) -> None:
    arguments = ("--input", "train.de", "--output", tmp_path / "out")
    done = nmt("translate", "run", "--ray", address, *arguments, folder=trained)
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


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"^--ray: Ray is not installed: pip install .*\[ray\]'$"):
        cluster.check_installed()
