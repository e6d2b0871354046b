from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"


def test_what_a_benchmark_refuses_is_one_line() -> None:
    command = [sys.executable, str(SCRIPTS / "benchmark_translation.py"), "nowhere", "no-such-file"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (done.stdout, done.stderr) == ("", "error: no-such-file: no such file\n")
