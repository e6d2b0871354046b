"""The command line as a process: answers without PyTorch, exit codes, one-line errors, closed pipes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import statistics
import subprocess
import sys
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import typer
from typer.testing import CliRunner

import nmt
import nmt.workflows
from nmt.cli import app as cli
from nmt.core.errors import InputError
from nmt.core.installation import install_command
from nmt.translator import find_run

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = tuple(cli.COMMANDS)

# Runs the command line with its arguments, then says on stderr whether PyTorch was imported on the way.
WATCHED = """
import sys
from nmt.cli.app import main
try:
    main()
finally:
    print("torch" if "torch" in sys.modules else "no torch", file=sys.stderr)
"""

# The same, where a workflow has been replaced by the code in NMT_TEST_WORKFLOW.
REPLACED = """
import os, sys, types
workflow = types.ModuleType("nmt.workflows.translate")
exec(os.environ["NMT_TEST_WORKFLOW"], workflow.__dict__)
import nmt.workflows
sys.modules["nmt.workflows.translate"] = nmt.workflows.translate = workflow
import nmt.translator.find_run
nmt.translator.find_run.validate_model = lambda *_, **__: None
from nmt.cli.app import main
main()
"""


def run(program: str, *arguments: str, workflow: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment(workflow),
        capture_output=True,
        text=True,
        timeout=60,
    )


def environment(workflow: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "NMT_TEST_WORKFLOW": workflow}


def run_into(stdout: Any, workflow: str, **variables: str) -> tuple[int, bytes]:
    """The exit code and stderr of a workflow with a file as its standard output."""
    command = [sys.executable, "-c", REPLACED, "translate"]
    variables |= environment(workflow)
    done = subprocess.run(command, env=variables, stdout=stdout, stderr=subprocess.PIPE, timeout=60)
    return done.returncode, done.stderr


# Runs the command line for each line of the standard input, and says on stderr how it ended. A module may be missing.
EACH = """
import json, sys
from nmt.cli.app import main
for line in sys.stdin:
    words, *missing = json.loads(line)
    before = {name: sys.modules.pop(name, None) for name in missing}
    sys.modules.update(dict.fromkeys(missing))
    try:
        main(words)
    except SystemExit as end:
        print(json.dumps([end.code, "torch" in sys.modules]), file=sys.stderr)
    for name in missing:
        del sys.modules[name]
    sys.modules.update({name: module for name, module in before.items() if module is not None})
"""


def run_each(commands: Sequence[Sequence[str]], *, missing: Sequence[str] = ()) -> list[tuple[list[str], int, bool]]:
    """The lines on stderr and the exit code of each command, and whether PyTorch was imported by then; all in one
    process. If modules are ``missing``, one for each command, it cannot import it."""
    lines = [json.dumps([words, *missing[number : number + 1]]) for number, words in enumerate(commands)]
    process = subprocess.run(
        [sys.executable, "-c", EACH],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        input="\n".join(lines),
    )
    ends: list[tuple[list[str], int, bool]] = []
    said: list[str] = []
    for line in process.stderr.splitlines():
        if line.startswith("["):
            ends.append((said, *json.loads(line)))
            said = []
        else:
            said.append(line)
    assert len(ends) == len(commands), process.stderr
    return ends


Ended = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ended:
    """Runs `nmt` in this process and returns its exit code, stdout and stderr; ``workflow`` is the code that replaces
    that of `nmt translate`."""

    def run(*arguments: str, workflow: str = "") -> tuple[int, str, str]:
        if workflow:
            module = types.ModuleType("nmt.workflows.translate")
            exec(workflow, vars(module))
            monkeypatch.setitem(sys.modules, module.__name__, module)
            monkeypatch.setattr(nmt.workflows, "translate", module, raising=False)
            monkeypatch.setattr(find_run, "validate_model", lambda *_, **__: None)
        with pytest.raises(SystemExit) as end:
            cli.main(arguments)
        assert isinstance(end.value.code, int)
        return (end.value.code, *capsys.readouterr())

    return run


def test_help_answers_without_torch() -> None:
    commands = [["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)]
    assert run_each(commands) == [([], 0, False)] * len(commands)


def test_only_the_command_that_is_asked_for_is_imported() -> None:
    program = "import sys, nmt.cli.app as it\ntry: it.main()\nfinally: print(*sorted(sys.modules), file=sys.stderr)"
    modules = set(run(program, "info", "--help").stderr.split())
    assert {name for name in COMMANDS if f"nmt.cli.{name}" in modules or f"nmt.cli.{name}_" in modules} == {"info"}


def test_help_answers_at_once() -> None:
    """The bar is 0.5 s; the factor is for a machine that does other things too."""
    times_s = []
    for _ in range(3):
        begin = time.perf_counter()
        run(WATCHED, "--help")
        times_s.append(time.perf_counter() - begin)
    assert statistics.median(times_s) < 4 * 0.5


def test_help_lists_the_commands_and_their_options() -> None:
    result = CliRunner().invoke(cli.app, ["--help"])
    groups = result.stdout.partition("Your own data:\n")[2]
    assert re.findall(r"^  (\w+)  ", groups, flags=re.MULTILINE) == list(COMMANDS)
    assert re.findall(r"^(\w+):$", groups, flags=re.MULTILINE) == ["Train", "Use", "Look", "More"]
    assert "..." not in groups
    assert "in other languages than the" in groups
    for command in COMMANDS:
        page = CliRunner().invoke(cli.app, [command, "--help"], env={"COLUMNS": "80"}).stdout
        assert max(map(len, page.splitlines())) <= 80, command
        for option in ("--set", "--quiet", "--verbose"):
            has_no_set = command in ("init", "import", "filter", "languages", "links", "doctor")
            assert (option in page) == (option != "--set" or not has_no_set), (command, option)
        without = (
            "import",
            "prepare",
            "average",
            "states",
            "filter",
            "languages",
            "export",
            "info",
            "config",
            "links",
            "doctor",
        )
        on_a_device = command not in without
        assert ("--device" in page) == on_a_device
        assert ("--precision" in page) == (on_a_device and command != "init")


def test_the_options_of_align_stand_in_groups_each_once() -> None:
    page = CliRunner().invoke(cli.app, ["align", "--help"]).stdout
    titles = [line for line in page.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles[:2] == ["Arguments:", "Input:"]
    assert titles[-1] == "Other options:"
    options = page.partition("Input:")[2]
    begins = [line.split()[0] for line in options.splitlines() if line.startswith("  -")]
    assert len(begins) == len(set(begins)) > 35
    assert titles.index("Output:") < titles.index("Evaluation:")
    assert page.index("Output:") < page.index("--output PATH") < page.index("Evaluation:")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("translate", ["Input and output", "Search", "Random translations", "Text", "Machine"]),
        ("train", ["Resuming", "Machine"]),
        ("evaluate", ["Input and output", "Word alignments, without a model", "Scores", "Search", "Machine"]),
        ("serve", ["Network", "Batches", "Limits", "Search", "Machine"]),
    ],
)
def test_long_help_pages_have_groups(command: str, expected: list[str]) -> None:
    page = CliRunner().invoke(cli.app, [command, "--help"]).stdout
    titles = re.findall(r"^(\w.*):$", page, flags=re.MULTILINE)
    assert titles == ["Arguments", *expected, "Other options"]
    others = page.partition("Other options:\n")[2]
    assert len(re.findall("^  -", others, flags=re.MULTILINE)) <= 5


def test_help_is_also_a_command(ended: Ended) -> None:
    assert ended("help", "info") == ended("info", "--help")


def test_version() -> None:
    assert CliRunner().invoke(cli.app, ["--version"]).stdout == f"nmt {nmt.__version__}\n"


FAULTS = [
    (
        ["translate", "-i", "a", "--input", "b"],
        "error: --input is given 2 times; give it once (see nmt translate --help)",
    ),
    (["train"], "error: CONFIG is missing: nmt train CONFIG (see nmt train --help)"),
    (["trian"], "error: trian: no such command; did you mean train? (see nmt --help)"),
    (["--versoin"], "error: --versoin: no such option; did you mean --version? (see nmt --help)"),
    (["translate", "--baem", "3"], "error: --baem: no such option; did you mean --beam? (see nmt translate --help)"),
    (["translate", "--beam"], "error: --beam needs a value: --beam N (see nmt translate --help)"),
    (["translate", "--beam", "0"], "error: --beam: expected at least 1, found 0 (see nmt translate --help)"),
    (["translate", "--beam", "many"], "error: --beam: expected a whole number, found many"),
    (["translate", "--top-p", "x"], "error: --top-p: expected a number, found x"),
    (
        ["translate", "README.md"],
        "error: README.md: no such run directory, checkpoint or config; to translate a file: nmt translate --input RE",
    ),
    (["translate", "runs/z", "README.md"], "error: to translate a file: nmt translate runs/z --input README.md"),
    (
        ["translate", "Der Hund."],
        "error: Der Hund.: no such run directory, checkpoint or config; to translate a text: echo 'Der Hund.' | nmt t",
    ),
    (["translate", "z", "Der Hund"], "error: to translate a text: echo 'Der Hund' | nmt translate z"),
    (
        ["train", "c.yaml", "--lr", "3"],
        "error: --lr: no such option; a key of the configuration is set with --set training.optimizer.learning_rate=3",
    ),
    (["train", "c.yaml", "--hiden", "3"], "error: --hiden: no such option (see nmt train --help)"),
    (["translate", "--precision", "int4"], "error: --precision int4: use one of auto, float32, tf32"),
    (["train", "c.yaml", "--precision", "int8"], "error: --precision int8: use one of auto, float32, tf32"),
    (["translate", "--quiet", "-v"], "error: --quiet and --verbose contradict each other; give one of them"),
    (["evaluate", "--source", "x"], "error: --reference is missing; name the file with the reference translations"),
    (
        ["evaluate", "--reference", "x"],
        "error: there is nothing to score; give --source for a model to translate, or --hypothesis",
    ),
    (["align"], "error: --source is missing; name the file with the source sentences"),
    (
        ["align", "--source", "x", "--target", "y", "--free-running"],
        "error: --free-running aligns the model's own translations; leave out --target, or --free-running",
    ),
    (
        ["align", "--source", "x", "--target", "y", "--beam", "2"],
        "error: --beam, --length-penalty and --max-length-ratio do nothing where --target is given",
    ),
    (
        ["evaluate", "--reference", "x", "--hypothesis", "y", "runs/z"],
        "error: --hypothesis scores a file without a model; leave out MODEL, or --hypothesis",
    ),
    (["train", "no/such.yaml"], "error: no/such.yaml: no such file"),
    (["average", "no/such"], "error: no/such: no such run directory, checkpoint or config"),
    (["average", "--last", "1"], "error: --last: expected at least 2, found 1"),
    (["average", "--best", "2", "--best-by", "ter"], "error: --best-by ter: use one of loss, perplexity"),
    (["average", "--last", "2", "--best", "2"], "error: --last and --best contradict each other; give one of them"),
    (["average", "--best-by", "loss"], "error: --best-by says what --best N goes by; give that as well"),
    (["serve", "no/such"], "error: no/such: no such run directory, checkpoint or config"),
    (["serve", "--port", "80000"], "error: --port: expected at most 65535, found 80000"),
    # what other toolkits call it
    (
        ["translate", "--model", "runs/z"],
        "error: --model: MODEL is an argument and not an option: nmt translate runs/z",
    ),
    (["train", "--config=c.yaml"], "error: --config: CONFIG is an argument and not an option: nmt train c.yaml"),
    (["translate", "--src", "x"], "error: --src: no such option; use --input x (see nmt translate --help)"),
    (["score", "-src", "a", "-tgt", "b"], "error: -src: no such option; use --source a"),
    (["evaluate", "--hyp", "x", "--ref=y"], "error: --hyp: no such option; use --hypothesis x"),
    (["translate", "--beam_size=5"], "error: --beam_size: no such option; use --beam 5"),
    (["translate", "--gpu", "0"], "error: --gpu: no such option; use --device cuda (see"),
    (["translate", "--precision", "fp16"], "error: --precision fp16: use float16 (see nmt translate --help)"),
    (["align", "--confidence", "0.5"], "error: --confidence: no such option; use --min-probability 0.5"),
    (["align", "--format", "pdf"], "error: --format pdf: use one of pharaoh, gold, tsv"),
    (
        ["train", "--extend", "16", "c.yaml"],
        "error: --extend takes no value; the number of updates is --set training.stopping.updates=16",
    ),
    (["report", "--no-translations=yes"], "error: --no-translations takes no value; leave out yes"),
    (["export", "runs/z", "onnx"], "error: onnx: is the value of an option: --to onnx"),
    (["info", "a", "b"], "error: b: an argument too many: nmt info [MODEL]"),
    (["train", "my.de", "my.en"], "error: CONFIG is a YAML file, which nmt init NAME FILE FILE writes"),
    (["fast_align", "-i", "x"], "error: fast_align: no such command; use nmt align"),
    (["--version=1"], "error: --version takes no value; leave out 1 (see nmt --help)"),
    # sentence pairs
    (["score"], "error: --source and --target: missing; or name the files: nmt score FILE FILE"),
    (["filter", "--tsv", "x", "-s", "y"], "error: --tsv holds both sides; leave out --source, or it"),
    (["align", "no/such", "README.md"], "error: no/such: no such run, configuration or text file"),
    (["align", "runs/z", "a", "b", "c"], "error: c: an argument too many: nmt align [MODEL] [FILE FILE]"),
    (["init", "README.md", "LICENSE"], "error: NAME is missing: nmt init NAME README.md LICENSE"),
    (["serve", "--queue", "100"], "error: --max-sentences 256: such a request has no room in --queue 100"),
]


def test_a_fault_of_the_user_is_one_line_and_exit_2() -> None:
    for (_, expected), (lines, code, has_torch) in zip(FAULTS, run_each([words for words, _ in FAULTS]), strict=True):
        (error,) = lines
        assert error.startswith(expected)
        assert (code, has_torch) == (2, False)


def test_serve_says_which_extra_it_needs() -> None:
    missing = ["fastapi", "uvicorn", "prometheus_client"]
    expected = f"error: nmt serve: FastAPI, uvicorn or prometheus-client is not installed: {install_command('serve')}"
    assert run_each([["serve", "no/such"]] * 3, missing=missing) == [([expected], 2, False)] * 3


def test_no_command_prints_the_help_on_stderr(ended: Ended) -> None:
    code, out, err = ended()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: nmt ")


BROKEN_CONFIGS = {
    "rnu: x\ndata: {train: {pairs: x.tsv}}\n": ":1: rnu: unknown key; did you mean 'run'?",
    "run: [x\n": ":2: not valid YAML: expected ',' or ']', but got '<stream end>'",
    "": ": is empty; a configuration needs at least one 'key: value' line",
}


def test_a_fault_of_a_configuration_or_a_run_answers_without_torch(tmp_path: Path) -> None:
    commands, expected = [], []
    for number, (text, message) in enumerate(BROKEN_CONFIGS.items()):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        commands += [[word, str(path)] for word in ("prepare", "train", "translate")]
        expected += [f"error: {path}{message}"] * 3
    (tmp_path / "config.yaml").write_text(next(iter(BROKEN_CONFIGS)))
    (tmp_path / "checkpoints" / "step-00000001").mkdir(parents=True)
    commands.append(["align", str(tmp_path), "--source", "x"])
    expected.append(f"error: {tmp_path}/config.yaml:1: rnu: unknown key; did you mean 'run'?")
    for ((error, *_), code, has_torch), message in zip(run_each(commands), expected, strict=True):
        assert error.startswith(message)
        assert (code, has_torch) == (2, False)


@pytest.mark.parametrize(
    ("workflow", "code", "stderr"),
    [
        ("def translate(*a, **k): print('fine')", 0, ""),
        (
            "from nmt.core.errors import InputError\ndef translate(*a, **k): raise InputError('x.de:3: too\\n odd')",
            2,
            "error: x.de:3: too odd\n",
        ),
        (
            "def translate(*a, **k): raise OSError(28, 'No space left on device', 'out.en')",
            2,
            "error: out.en: No space left on device\n",
        ),
        ("def translate(*a, **k): raise KeyboardInterrupt", 130, ""),
    ],
)
def test_how_a_workflow_ends_is_the_exit_code(workflow: str, code: int, stderr: str, ended: Ended) -> None:
    found, _, err = ended("translate", workflow=workflow)
    assert (found, err) == (code, stderr)


def test_what_has_been_imported_is_not_collected() -> None:
    workflow = "import gc\ndef translate(*a, **k): assert gc.isenabled() and gc.get_freeze_count()"
    result = run(REPLACED, "translate", workflow=workflow)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_fault_of_ours_is_a_plain_traceback_and_exit_1(ended: Ended) -> None:
    result = run(REPLACED, "translate", workflow="def translate(*a, **k): raise ZeroDivisionError('x')")
    assert result.returncode == 1
    assert result.stderr.startswith("Traceback (most recent call last):\n")
    for error in (OSError(5, "Input/output error"), AssertionError("x")):
        with pytest.raises(type(error), match=str(error.args[-1])):
            ended("translate", workflow=f"def translate(*a, **k): raise {error!r}")


def test_options_reach_the_workflow(ended: Ended) -> None:
    workflow = "def translate(model, load, **k): print(model, *sorted(({**load.keywords, **k}).items()), sep='\\n')"
    arguments = "runs/x --beam 3 --input i --output o --length-penalty 0.6 --max-length-ratio 2 --batch-tokens 99 "
    arguments += "--device cuda:1 --precision bfloat16 --set a.b=1 --set c=[2] --n-best 3 --sample --temperature 0.5 "
    arguments += "--top-k 4 --top-p 0.9 --seed 5 --consensus bleu --samples 6 --prefix p --format jsonl --alignment "
    arguments += "--constraints c --replace-unknown --markup --document --context --workers 2"
    overrides = "a.b=1 c=[2] search.beam=3 search.length_penalty=0.6 search.max_length_ratio=2 search.batch_tokens=99 "
    overrides += "search.n_best=3 search.sampling={} search.sampling.temperature=0.5 search.sampling.top_k=4 "
    overrides += "search.sampling.top_p=0.9 search.sampling.seed=5 search.consensus.utility=bleu "
    overrides += "search.consensus.samples=6 search.replace_unknown=true search.markup=true search.document=true"
    expected = {
        "alignment": True, "constraints": Path("c"), "context": True, "device": "cuda:1", "engine": "nmt",
        "ensemble": [], "format": "jsonl", "input": Path("i"), "model": "runs/x", "output": Path("o"),
        "overrides": overrides.split(), "precision": "bfloat16", "prefix": Path("p"), "workers": 2,
    }  # fmt: skip
    code, out, _ = ended("translate", *arguments.split(), workflow=workflow)
    given = [line for line in out.splitlines() if not line.endswith(", None)")]
    assert (code, given) == (0, ["runs/x", *map(str, expected.items())])


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_exits_130() -> None:
    workflow = "import time\ndef translate(*a, **k):\n    print('on', flush=True)\n    time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", REPLACED, "translate"],
        env=environment(workflow),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
        assert process.wait(30) == 130


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
@pytest.mark.parametrize("lines", [1, 100_000], ids=["at the last flush", "on the way"])
def test_a_reader_that_goes_away_ends_the_command_quietly(lines: int) -> None:
    workflow = f"def translate(*a, **k):\n    for n in range({lines}): print('some line')"
    reader, writer = os.pipe()
    os.close(reader)
    assert run_into(writer, workflow) == (cli.BROKEN_PIPE, b"")
    os.close(writer)


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
def test_a_pipe_of_our_own_that_breaks_is_no_quiet_end(ended: Ended) -> None:
    workflow = "import os\ndef translate(*a, **k):\n    r, w = os.pipe()\n    os.close(r)\n    os.write(w, b'x')"
    with pytest.raises(RuntimeError, match="^a pipe within nmt broke$"):
        ended("translate", workflow=workflow)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    workflow = "def translate(*a, **k): print('some line')"
    with open("/dev/full", "wb") as full:
        assert run_into(full, workflow) == (2, b"error: stdout: No space left on device\n")


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
        found = run_into(out, workflow, PYTHONUNBUFFERED=unbuffered)
    assert found == (2, b"error: stdout: File too large\n")


def test_stdout_is_utf_8_in_a_file_and_never_fails_on_a_terminal(tmp_path: Path) -> None:
    workflow = "def translate(*a, **k): print('ein Pfeil → ü')"
    with (tmp_path / "out").open("wb") as out:
        assert run_into(out, workflow, PYTHONIOENCODING="cp1252") == (0, b"")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "ein Pfeil → ü\n"
    ours, theirs = pty.openpty()
    assert run_into(theirs, workflow, PYTHONIOENCODING="cp1252") == (0, b"")
    assert os.read(ours, 99) == "ein Pfeil ? ü\r\n".encode("cp1252")
    os.close(ours)
    os.close(theirs)


def test_python_dash_m() -> None:
    result = subprocess.run([sys.executable, "-m", "nmt", "--version"], cwd=ROOT, capture_output=True, text=True)
    assert result.stdout == f"nmt {nmt.__version__}\n"


def test_importing_the_library_is_cheap() -> None:
    program = "import nmt, sys; print(nmt.__version__, 'torch' in sys.modules, 'load' in dir(nmt))"
    assert run(program).stdout == f"{nmt.__version__} False True\n"
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        nmt.lode  # noqa: B018


def test_an_option_is_given_once_unless_it_takes_a_list() -> None:
    checked = 0
    for name in COMMANDS:
        command = cli.build_command(name)
        for option in command.params:
            if option.param_type_name != "option" or option.is_eager:
                continue
            value = [] if option.is_flag else ["1"] * option.nargs
            twice = [option.opts[-1], *value, option.opts[0], *value]
            context = command.context_class(command, info_name=name, resilient_parsing=False)
            with (
                contextlib.suppress(typer.TyperException, InputError)
                if option.multiple
                else pytest.raises(typer.TyperException) as caught
            ):
                command.parse_args(context, twice)
            if not option.multiple:
                longest = max(option.opts, key=len)
                assert caught.value.format_message() == f"{longest} is given 2 times; give it once"
                checked += 1
    assert checked > 150


@pytest.mark.parametrize("name", ["align", "score", "evaluate", "aligner", "states", "filter", "languages", "init"])
def test_pairs_are_two_files_or_one_as_options_or_arguments(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in ("a", "b", "c.yaml"):
        (tmp_path / file).touch()
    (tmp_path / "run").mkdir()
    for archive, member in (("model.zip", "run/config.yaml"), ("pairs.zip", "x.de")):
        with ZipFile(tmp_path / archive, "w") as packed:
            packed.writestr(member, "")
    command = cli.build_command(name)
    own = {"init": ["new"], "filter": [], "languages": []}.get(name, ["run"])

    def sides(*arguments: str) -> tuple[object, ...]:
        context = command.context_class(command, info_name=name)
        command.parse_args(context, list(arguments))
        assert "tsv" not in context.params
        target = context.params["reference" if name == "evaluate" else "target"]
        return (
            *(context.params[each.name] for each in command.params if each.param_type_name == "argument"),
            context.params["source"],
            target,
        )

    two, one = (*own, Path("a"), Path("b")), (*own, Path("a"), Path("a"))
    second = "--reference" if name == "evaluate" else "--target"
    assert sides(*own, "a", "b") == sides(*own, second, "b", "--source", "a") == sides("--quiet", *own, "a", "b") == two
    assert sides(*own, "--tsv", "a") == sides(*own, "a") == one
    if own == ["run"]:
        assert sides("a", "b") == (None, *two[1:])
        assert sides("a") == (None, *one[1:])
        assert sides("c.yaml", "a") == ("c.yaml", *one[1:])
        assert sides("model.zip", "a") == ("model.zip", *one[1:])
        assert sides("pairs.zip") == (None, Path("pairs.zip"), Path("pairs.zip"))
    if name == "init":
        assert sides("new", "--tsv", "a", "--valid-tsv", "b") == one
