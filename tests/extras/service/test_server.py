"""The socket and the signals, with a model that takes for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[3]

SERVER = """
import sys, time
from nmt.extras.service.batcher import Batching
from nmt.extras.service.messages import Limits
from nmt.extras.service.listening import bind
from nmt.extras.service.server import run

class Slow:
    name, aligns = "slow", False
    def check(self, options): pass
    def subwords(self, texts): return [1] * len(texts)
    def answer(self, texts, options, on_step):
        print("begun", file=sys.stderr, flush=True)
        time.sleep(60)

run(bind("127.0.0.1", 0), Slow, Batching(), Limits(), grace_s=float(sys.argv[1]))
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    ("grace", "signals", "code"),
    [("0.2", [signal.SIGTERM], 0), ("60", [signal.SIGTERM, signal.SIGTERM], 0), ("60", [signal.SIGINT] * 2, 130)],
    ids=["its time is over", "terminated twice", "interrupted twice"],
)
def test_a_batch_that_does_not_end_is_given_up(grace: str, signals: list[signal.Signals], code: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found: list[httpx.Response] = []
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, grace], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            address = process.stderr.readline().removeprefix("ready: ").strip()
            ask = threading.Thread(
                target=lambda: found.append(
                    httpx.post(f"{address}/translate", json={"text": "a"}, timeout=30, trust_env=False)
                )
            )
            ask.start()
            assert process.stderr.readline() == "begun\n"
            for each in signals:
                process.send_signal(each)
                time.sleep(0.2)  # one that is pending already is not sent again
            assert process.wait(20) == code
            assert process.stderr.read() == "warning: the last batch was not done in time and is given up\n"
            ask.join(20)
        finally:
            process.kill()
    assert found[0].status_code == 503
    assert found[0].json() == {"error": "the server is shutting down; try again"}
