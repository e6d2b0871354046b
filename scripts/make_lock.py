"""Writes ``requirements.lock``: the dependencies of nmt at the versions of ``constraints.txt``, with the hashes of all
files.

    python scripts/make_lock.py

For every supported Python and platform; without extras. PyTorch is not in it, nor what its builds for CUDA bring along:
which build is right depends on the machine, and builds for a CPU alone have other files, so other hashes. Needs uv and
the network.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"

LEFT_OUT = re.compile(r"torch|triton|nvidia-.*|cuda-.*")
"""Names of packages that belong to one build of PyTorch."""

HEAD = """\
# What nmt needs but PyTorch, with the hashes of all files; written by `make lock` from constraints.txt:
#     pip install --require-hashes -r requirements.lock
#     pip install -c constraints.txt torch
#     pip install --no-deps .
"""


def without_torch(text: str) -> str:
    """Returns a list of requirements, each with its hashes in the lines that follow it, without those left out."""
    kept: list[str] = []
    keeps = True
    for line in text.splitlines(keepends=True):
        if not line.startswith((" ", "#")):
            keeps = LEFT_OUT.fullmatch(line.partition("==")[0]) is None
        if keeps:
            kept.append(line)
    return "".join(kept)


def main() -> int:
    """The command line; returns the exit code."""
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11",
        "--generate-hashes", "--no-header", "--no-annotate", "--constraint", "constraints.txt", "pyproject.toml",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return done.returncode
    LOCK.write_text(HEAD + without_torch(done.stdout), encoding="utf-8")
    print(f"wrote {LOCK.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
