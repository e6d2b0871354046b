"""Completion in a real shell: what --show-completion prints is sourced, and asked as the shell would ask."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ASK = """
source <(nmt --show-completion bash)
complete -p nmt
ask() { COMP_WORDS=(nmt "$@"); COMP_CWORD=$#; COMPREPLY=(); _nmt_completion nmt; echo "${COMPREPLY[*]}"; }
ask tra
ask train --proc
ask train --precision ""
ask align --format he
ask config --explain training.optimizer.beta
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_commands_options_choices_and_keys(tmp_path: Path) -> None:
    program = tmp_path / "nmt"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m nmt "$@"\n')
    program.chmod(0o755)
    # Typer asks the parent process which shell it is, and is told instead.
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    environment["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    done = subprocess.run(["bash", "-c", ASK], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "complete -o default -F _nmt_completion nmt",
        "train translate",
        "--processes",
        "auto float32 tf32 bfloat16 float16",
        "heatmap",
        "training.optimizer.beta1 training.optimizer.beta2",
    ]
