"""The socket and the signals, with a model that takes for ever."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tests.extras.service.process import answer, serving, translation


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(
    ("grace_s", "signals", "code"),
    [(0.2, [signal.SIGTERM], 0), (60, [signal.SIGTERM, signal.SIGTERM], 0), (60, [signal.SIGINT] * 2, 130)],
    ids=["its time is over", "terminated twice", "interrupted twice"],
)
def test_a_batch_that_does_not_end_is_given_up(
    grace_s: float, signals: list[signal.Signals], code: int, tmp_path: Path
) -> None:
    with serving(tmp_path, engine="Slow", grace_s=grace_s, code=code) as server, server.connect() as connection:
        connection.sendall(translation("a"))
        for _ in range(400):
            if "begun" in server.stderr.read_text():
                break
            time.sleep(0.05)
        for each in signals:
            server.process.send_signal(each)
            time.sleep(0.2)  # one that is pending already is not sent again
        status, body = answer(connection)
        assert (status, json.loads(body)) == (503, {"error": "the server is shutting down; try again"})
        server.process.wait(20)
        _, *said = server.stderr.read_text().splitlines()
        assert said == ["begun", "warning: the last batch was not done in time and is given up"]
