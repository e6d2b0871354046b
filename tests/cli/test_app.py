"""The command line as a process: answers without PyTorch, exit codes, one-line errors, closed pipes."""

from __future__ import annotations

import os
import pty
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

import nmt
import nmt.workflows
from nmt.cli import app as cli
from nmt.core.errors import InputError
from nmt.core.installation import install_command
from nmt.translator import find_run
from tests.cli.conftest import Light
from tests.workflows.runs import Command

ROOT = Path(__file__).resolve().parents[2]

# Runs the command line, where a workflow has been replaced by the code in NMT_TEST_WORKFLOW.
REPLACED = """
import os, sys, types, nmt.workflows, nmt.translator.find_run, nmt.cli.app
sys.modules["nmt.workflows.translate"] = nmt.workflows.translate = types.ModuleType("nmt.workflows.translate")
exec(os.environ["NMT_TEST_WORKFLOW"], nmt.workflows.translate.__dict__)
nmt.translator.find_run.validate_model = lambda *_, **__: None
nmt.cli.app.main()
"""


def python(*arguments: str, stdout: Any = subprocess.PIPE, **variables: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a new interpreter."""
    streams: dict[str, Any] = {"stdout": stdout, "stderr": subprocess.PIPE, "text": True, "timeout": 60}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    done = subprocess.run([sys.executable, *arguments], env=environment, check=False, **streams)
    return done.returncode, done.stdout, done.stderr


def replaced(workflow: str, stdout: Any = subprocess.PIPE, **variables: str) -> tuple[int, str]:
    """The exit code and stderr of `nmt translate` whose workflow has this code."""
    return python("-c", REPLACED, "translate", stdout=stdout, NMT_TEST_WORKFLOW=workflow, **variables)[::2]


@pytest.fixture
def translate(run: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], tuple[object, str]]:
    """The exit code and stderr of `nmt translate`, in this process, with another function as its workflow."""

    def end(workflow: Any) -> tuple[object, str]:
        module = SimpleNamespace(translate=workflow)
        monkeypatch.setitem(sys.modules, "nmt.workflows.translate", module)
        monkeypatch.setattr(nmt.workflows, "translate", module, raising=False)
        monkeypatch.setattr(find_run, "validate_model", lambda *_, **__: None)
        return run("translate")[::2]

    return end


def test_help_and_version_answer_without_torch(light: Light) -> None:
    for words in (["--help"], ["--version"], *([command, "--help"] for command in cli.COMMANDS)):
        assert light(*words) == ([], 0)


def test_only_the_command_that_is_asked_for_is_imported() -> None:
    program = "import sys, nmt.cli.app as it\ntry: it.main()\nfinally: print(*sorted(sys.modules), file=sys.stderr)"
    modules = set(python("-c", program, "info", "--help")[2].split())
    assert {name for name in cli.COMMANDS if {f"nmt.cli.{name}", f"nmt.cli.{name}_"} & modules} == {"info"}


def test_help_answers_at_once(run: Command) -> None:
    """The bar is 0.5 s; the factor is for a machine that does other things too."""
    times_s = []
    for _ in range(3):
        begin = time.perf_counter()
        assert python("-m", "nmt", "--help")[1].startswith("Usage: nmt ")
        times_s.append(time.perf_counter() - begin)
    assert statistics.median(times_s) < 4 * 0.5
    assert run("--version") == (0, f"nmt {nmt.__version__}\n", "")


def test_help_is_also_a_command_and_is_printed_on_stderr_without_one(run: Command) -> None:
    assert run("help", "info") == run("info", "--help")
    code, out, err = run()
    assert (code, out, err[:11]) == (2, "", "Usage: nmt ")


def test_serve_says_which_extra_it_needs(light: Light) -> None:
    packages = "Babel, FastAPI, prometheus-client, python-multipart or uvicorn"
    expected = f"error: nmt serve: {packages} is not installed: {install_command('serve')}"
    for name in ("fastapi", "uvicorn", "prometheus_client"):
        assert light("serve", "no/such", missing=(name,)) == ([expected], 2)


ENDS = [
    (None, (0, "")),
    (InputError("x.de:3: too\n odd"), (2, "error: x.de:3: too odd\n")),
    (OSError(28, "No space left on device", "out.en"), (2, "error: out.en: No space left on device\n")),
]


@pytest.mark.parametrize(("error", "expected"), ENDS)
def test_how_a_workflow_ends_is_the_exit_code(error: Any, expected: Any, translate: Any) -> None:
    assert translate(Mock(side_effect=error)) == expected


def test_a_fault_of_ours_is_a_plain_traceback_and_exit_1(translate: Any) -> None:
    code, err = replaced("def translate(*a, **k): raise ZeroDivisionError('x')")
    assert (code, err.splitlines()[0]) == (1, "Traceback (most recent call last):")
    with pytest.raises(RuntimeError, match="^a pipe within nmt broke$"):
        translate(Mock(side_effect=BrokenPipeError(32, "Broken pipe")))
    for error in (OSError(5, "Input/output error"), AssertionError("x")):
        with pytest.raises(type(error), match=str(error.args[-1])):
            translate(Mock(side_effect=error))


def test_what_has_been_imported_is_not_collected() -> None:
    assert replaced("import gc\ndef translate(*a, **k): assert gc.isenabled() and gc.get_freeze_count()") == (0, "")


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_ends_a_process_quietly_and_cleans_up(name: str, code: int, tmp_path: Path) -> None:
    clean = tmp_path / "clean"
    work = (
        f"    try:\n        os.kill(os.getpid(), signal.{name}), time.sleep(60)\n    finally: os.mkdir({str(clean)!r})"
    )
    assert replaced(f"import os, signal, time\ndef translate(*a, **k):\n{work}") == (code, "")
    assert clean.exists()


@pytest.mark.parametrize("lines", [1, 100_000], ids=["at the last flush", "on the way"])
def test_a_reader_that_goes_away_ends_the_command_quietly(lines: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    workflow = f"def translate(*a, **k):\n    for n in range({lines}): print('some line')"
    assert replaced(workflow, writer) == (cli.BROKEN_PIPE, "")
    os.close(writer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        expected = (2, "error: stdout: No space left on device\n")
        assert replaced("def translate(*a, **k): print('some line')", full) == expected


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_disk_that_takes_a_part_of_the_output_is_an_error(tmp_path: Path, unbuffered: str) -> None:
    """This includes ``python -u``, whose stdout writes once: the limit makes that write short, without an error."""
    workflow = (
        "import resource, signal, sys\n"
        "def translate(*a, **k):\n"
        "    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))\n"
        "    sys.stdout.buffer.write(b'x' * 50_000)"
    )
    with (tmp_path / "out").open("wb") as out:
        assert replaced(workflow, out, PYTHONUNBUFFERED=unbuffered) == (2, "error: stdout: File too large\n")


def test_stdout_is_utf_8_in_a_file_and_never_fails_on_a_terminal(tmp_path: Path) -> None:
    workflow = "def translate(*a, **k): print('ein Pfeil → ü')"
    with (tmp_path / "out").open("wb") as out:
        assert replaced(workflow, out, PYTHONIOENCODING="cp1252") == (0, "")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "ein Pfeil → ü\n"
    ours, theirs = pty.openpty()
    assert replaced(workflow, theirs, PYTHONIOENCODING="cp1252") == (0, "")
    assert os.read(ours, 99) == "ein Pfeil ? ü\r\n".encode("cp1252")
    os.close(ours)
    os.close(theirs)
