"""Scripts, which are imported by their names, as they import one another."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.workflows.runs import Command, Done

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))


def figures(lines: str) -> dict[str, Any]:
    """The values that a script prints, by their names."""
    return {figure["name"]: figure["value"] for figure in map(json.loads, lines.splitlines())}


@pytest.fixture
def run_script(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a script in this process."""

    def run(script: ModuleType, *arguments: object) -> Done:
        capfd.readouterr()
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        monkeypatch.setenv("PYTHONPATH", str(ROOT))
        monkeypatch.setattr(sys, "argv", [f"{script.__name__}.py", *map(str, arguments)])
        try:
            code = script.main() or 0
        except SystemExit as exit:
            code = exit.code
        return Done(code, *capfd.readouterr())

    return run


@contextmanager
def serving(handler: Any) -> Iterator[ThreadingHTTPServer]:
    """A web server of this machine whose requests are answered without a word on stderr."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "*")
        patch.setattr(BaseHTTPRequestHandler, "log_message", lambda *_: None)
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield server
            server.shutdown()
