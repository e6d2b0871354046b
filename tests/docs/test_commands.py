"""Commands, files and targets that the pages name exist, and work."""

from __future__ import annotations

import importlib.util
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.cli.app import COMMANDS, build_command
from tests.docs.pages import PAGES, ROOT, code_lines, commands, shown
from tests.docs.workshop import make_workshop, work


def options_of() -> dict[str, set[str]]:
    """Every command with what it calls its options."""
    found: dict[str, set[str]] = {"words": set()}  # of examples/plugin
    for name in COMMANDS:
        own = (each for option in build_command(name).params for each in option.opts if each.startswith("-"))
        found[name] = {"--help", "-h", *own}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_that_a_page_shows_is_there(page: Path) -> None:
    known = options_of()
    for use in shown(page):
        assert use.command in known, use
        assert set(use.options) <= known[use.command] | {"--metric"}, use  # which a plug-in shows


def test_commands_are_found_in_the_pages() -> None:
    """The test above would pass on pages in which nothing is found."""
    assert {use.command for page in PAGES for use in shown(page)} == set(options_of())
    assert len([use for page in PAGES for use in shown(page) if use.options]) > 70


def test_lines_of_code_are_read_whole() -> None:
    text = "text\n\n    $ nmt align x \\\n      --base 1   # why\n    out\n\n```yaml\n    no: code\n```\n\n    second\n"
    assert list(filter(None, code_lines(text))) == ["$ nmt align x --base 1   # why", "out", "second"]


# ------------------------------------------------------------------------------------------------ they are also run

NOT_RUN = {
    "pip install": "needs the network",
    "make setup": "needs the network; the tests run in what it makes",
    ". .venv/bin/activate": "the tests run in an environment of another name",
    "make package": "needs the network; tests/packaging/test_wheel.py runs what it does",
    "make test": "runs this test",
    "make docs": "tests/docs/test_site.py runs what it does",
    "make mutants": "takes hours; tests/scripts/test_mutants.py",
    "make corpus": "takes minutes, and runs the tests of the generator",
    "make test-cuda": "tests/scripts/test_on_cuda.py",
    "make fuzz": "takes hours; the command below it on the page is run",
    "make endurance": "takes hours; tests/scripts/test_endurance.py runs each of its parts",
    "make compatibility": "needs the network, and hours; tests/scripts/test_check_compatibility.py runs its parts",
    "check_compatibility.py": "the same",
    "--ray": "needs Ray; tests/extras/cluster/test_translate_shards.py runs it",
    "download_multi30k.py": "needs the network",
    "compare_attention.py": "takes hours; tests/scripts/test_compare_attention.py",
    "export OMP_NUM_THREADS=8": "of a script for SLURM",
    "configs/de-en.yaml --set model.attention.score=manhattan": "tests/examples/test_plugin.py installs the package",
    "--metric exact": "the same",
    "nmt words": "the same",
    "srun ": "needs SLURM; torchrun is run by itself",
    "nmt calibrate": "needs right translations; tests/extras/test_trust.py runs it",
    "--confidence": "needs a calibrated model; the same",
    "--reject-below": "the same",
    "--risk-coverage": "the same",
    "--choose-from": "the same",
    "--min-confidence": "the same",
}
"""Parts of commands that are not run here, and why. What they have of `make` is looked for, at least, see below."""

if importlib.util.find_spec("eflomal") is None:
    NOT_RUN["benchmark_alignment.py"] = "needs the extra eflomal, which `make setup` leaves out"

if importlib.util.find_spec("py3langid") is None:
    NOT_RUN["--faults"] = "runs nmt languages"
    NOT_RUN["nmt languages"] = "needs the extra language-id; tests/extras/corpus/test_languages.py runs it"


VALUES = {"source": "x.de", "target": "x.en", "reference": "x.en", "hypothesis": "hypothesis.en", "gold": "x.align"}
VALUES |= {"aligner": "de-en.aligner", "alignment": "links", "output": "scores.jsonl", "plot": "by-length.png"}
VALUES |= {"symmetrize": "soft-product", "threshold": "0.1", "view": "attention"}

OUTLINES: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"nmt export \[MODEL\] --to hf": "nmt import hf opus-mt-de-en --run runs/opus && nmt export runs/opus --to hf",
    r"\[MODEL\]|\bMODEL\b": "runs/mine",
    r"\[RUN\]|\bRUN RUN …": "runs/mine runs/de-en",
    r"\bCHECKPOINT CHECKPOINT …": "runs/mine/checkpoints/step-00000002 runs/mine/checkpoints/step-00000003",
    r"\bCONFIG\b": "configs/big.yaml",
    r" \[options\]|…": "",
    r"evaluate \.\.\.": "evaluate --source x.de --reference x.en",
    r"text \| tsv \| jsonl": "jsonl",
    r"nmt links F": "nmt links fwd --source x.de --target x.en",
    r"(?<=--)(\w+) (?:F\.png|F|HOW|X|VIEW)\b": lambda found: f"{found[1]} {VALUES[found[1]]}",
    r"\[(--[^]]+)\]": r"\1",
}
"""Patterns of the parts that pages leave open, and their replacements here; optional parts in brackets are always
given."""

SHORTER = {
    "make demo": f"touch installed && make demo INSTALLED=installed BIN={Path(sys.executable).parent}",
    "python -m pytest": "python -m pytest --collect-only",
    "benchmark_alignment.py": "benchmark_alignment.py --rounds 1",
    "benchmark_finetuning.py ": "benchmark_finetuning.py --pairs 50 ",
    "size=256": "size=16",
    "feed_forward=512": "feed_forward=16",
    "stopping.updates=600": "stopping.updates=2",
    "--size 8000 --learn 20000": "--size 400 --learn 2000",
    "--pairs 100000 1500000": "--pairs 1000 2000",
    "--pairs 500000 --workers": "--pairs 3000 --workers",
    "--pairs 100000 --train 60 --repeat 500": "--pairs 3000 --train 0.2 --repeat 2",
    "--nproc-per-node 4 --master-addr node-1": "--nproc-per-node 1 --master-addr 127.0.0.1",
    "curl ": "curl --fail ",
    "sentence_classifier.py": "sentence_classifier.py --updates 2",
    "digit_reader.py": "digit_reader.py --updates 2",
    "glimpses.py": "glimpses.py --updates 2",
    "crossings.py": "crossings.py --updates 2",
    "one_file.py": "one_file.py --updates 2",
    "record_and_text.py": "record_and_text.py --updates 2",
    "score_function.py": "score_function.py --repeats 2",
    "vanishing.py": "vanishing.py --size 8",
}
"""Parts of commands that are run in another form than on the page: shorter, or on one machine; tests are collected, not
run again."""

FRESH = {
    "README.md": ["runs"],
    "tutorial.md": ["runs"],
    "begin.md": ["runs", "data"],
    "train.md": ["runs/de-en"],
    "results.md": ["runs"],
    "prepare.md": ["runs"],
    "recipes.md": ["runs/mine"],
    "align.md": ["runs/en-de"],
}
"""Folders that a page makes itself, which therefore do not exist before it."""


def is_run(command: str) -> bool:
    """Returns True if tests run the command here."""
    return not any(part in command for part in NOT_RUN)


def comments(config: str) -> list[str]:
    """Returns the commands in the comments of a shipped configuration that are run before its training."""
    text = re.sub(r" \\\n# *", " ", (ROOT / config).read_text(encoding="utf-8"))
    typed = re.findall(r"^#   (\S.*?)(?: {2,}#.*)?$", text, flags=re.MULTILINE)
    return typed[: typed.index(f"nmt train {config}")]


BEFORE = {"nmt train configs/multi30k-en-de-distilled.yaml": comments("configs/multi30k-en-de-distilled.yaml")}
"""Commands to run before a command, which are not on its page."""


def lines_to_run(page: Path) -> list[str]:
    """Returns the lines of a page that are run, in order."""
    return concrete([line for each in commands(page) if is_run(each) for line in (*BEFORE.get(each, []), each)])


def concrete(lines: list[str]) -> list[str]:
    """Replaces commands and outlines of pages by those that are run."""
    text = "\n".join(lines)
    for pattern, choice in OUTLINES.items():
        text = re.sub(pattern, choice, text, flags=re.MULTILINE)
    for part, shorter in SHORTER.items():
        text = text.replace(part, shorter)
    # Of a training on two machines both have to be there at once.
    text = re.sub(r"(torchrun .*--node-rank 0 .*)\n(torchrun .*)", r"\1 & \2; wait $!", text)
    return text.replace("--master-port 29500", f"--master-port {free_port()}").splitlines()


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with everything that the pages name, made once; tests copy it."""
    folder = tmp_path_factory.mktemp("workshop")
    make_workshop(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(map(is_run, commands(page)))], ids=lambda page: page.name
)
def test_what_a_page_has_one_type_works(workshop: Path, tmp_path: Path, page: Path) -> None:
    folder = tmp_path / "workshop"
    shutil.copytree(workshop, folder, symlinks=True)
    for name in FRESH.get(page.name, []):
        shutil.rmtree(folder / name)
    work(folder, lines_to_run(page))


_A_COMMAND = re.compile(
    r"^(?: {4}|\t)\s*(?:\$ +|\d +)?((?:[A-Z_]+=\S+ )*(?:nmt|python|make|torchrun|srun|curl|sacrebleu|pip|docker) .*)"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_command_of_a_page_escapes(page: Path) -> None:
    """Read line by line, without regard to blocks; code between fences is none for a shell."""
    text = page.read_text("utf-8")
    begun = [found[1] for found in map(_A_COMMAND.match, text.splitlines()) if found]
    known = [each for each in commands(page) if _A_COMMAND.match(f"    {each}")]
    assert [line.split()[:2] for line in begun] == [line.split()[:2] for line in known]
    assert set(re.findall(r"^ *```(\w+)", text, flags=re.MULTILINE)) <= {"json", "math", "python", "toml", "yaml"}


def test_what_is_not_run_is_on_a_page() -> None:
    everything = [command for page in PAGES for command in commands(page)]
    run = list(filter(is_run, everything))
    assert [part for part in NOT_RUN if part not in "\n".join(everything)] == []
    assert [part for part in SHORTER if part not in NOT_RUN and part not in "\n".join(run)] == []
    assert len(run) > 130


@pytest.mark.parametrize("line", ["python -m nmt config --explain no.such.key", "false | true"])
def test_what_fails_is_seen(tmp_path: Path, line: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(line)):
        work(tmp_path, ["true", line])


def test_no_outline_is_left_open() -> None:
    outline = re.compile(r"\[-|\[[A-Z]|…| \.\.\.|(?<!\S)[A-Z]+(?!\S)")
    lines = [line for page in PAGES for line in lines_to_run(page)]
    assert [line for line in lines if outline.search(re.sub("'[^']*'", "", line))] == []


def test_every_target_of_make_is_there() -> None:
    """Targets that are not run are checked as well, by printing their commands."""
    targets = sorted({command for page in PAGES for command in commands(page) if command.startswith("make ")})
    assert len(targets) > 8
    for target in targets:
        done = subprocess.run(["make", "--dry-run", *target.split()[1:]], cwd=ROOT, capture_output=True, check=False)
        assert done.returncode == 0, target


def test_every_extra_that_is_installed_is_there() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    asked = set(",".join(re.findall(r"pip install '\.\[([a-z0-9,]+)\]", text)).split(","))
    there = re.findall(r"^([a-z0-9]+) = \[", (ROOT / "pyproject.toml").read_text("utf-8"), flags=re.MULTILINE)
    assert {"serve", "ray", "onnx"} <= asked <= set(there)
