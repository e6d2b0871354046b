"""A folder in which the commands of the pages can be run: what they name is there, all of it small."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from docx import Document

from tests.docs.pages import ROOT
from tests.extras.exchange.convert.marian_folders import SHAPES
from tests.extras.exchange.convert.marian_folders import write as write_marian

KEPT = {"train": 1000, "valid": 30, "test": 50, "hard": 50}
"""Pairs of the corpus that ships."""

MEMORY = (
    '<tmx version="1.4"><header srclang="de"/><body><tu><tuv xml:lang="de"><seg>Der Hund bellt.</seg></tuv>'
    '<tuv xml:lang="en"><seg>The dog barks.</seg></tuv></tu></body></tmx>'
)
SHORT = ("training.stopping.updates=3", "training.validation.every=1", "search.max_length_ratio=1.0")
"""Overrides that keep a training short, for any configuration and command."""

SMALLER = (
    (r"(subwords: .*size: )\d+", r"\g<1>400"),
    (r"\b(size|feed_forward): (128|192|256|384|512)\b", lambda found: f"{found[1]}: {int(found[2]) // 8}"),
    (r"(stopping: \{updates: )\d+", r"\g<1>3"),
    (r"(validation: \{every: )\d+", r"\g<1>1"),
    (r"\bwarmup: \d+", "warmup: 1"),
    (r"^search: \{", "search: {max_length_ratio: 1.0, "),
)
"""Patterns in the shipped configurations, and replacements that make them small with sizes in proportion."""

MADE = {
    "runs/de-en": ("de-en", ["old"], False),
    "runs/en-de": ("multi30k-de-en-tiny", ["multi30k-en-de-best"], True),
    "runs/mine": ("multi30k-de-en-tiny", ["multi30k-de-en-best", "multi30k-de-en"], False),
}
"""The runs: of which configuration, under what other names, and whether its direction is turned."""

TURNED = " ".join(
    f"--set data.{part}.source=data/multi30k/{name}.en.gz --set data.{part}.target=data/multi30k/{name}.de.gz"
    for part, name in (("train", "train"), ("valid", "val"), ("test", "test_2016_flickr"))
)


def make_workshop(folder: Path) -> None:
    """Creates a folder like a clone of the repository, with small corpora under the names of large ones, runs and the
    reader's files."""
    for name in ("scripts", "examples", "tests", "nmt", "Makefile", "setup.py", "pyproject.toml", "constraints.txt"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "docs", folder / "docs")
    _add_corpora(folder)
    _add_configs(folder)
    _add_mechanisms(folder)
    _add_command(folder)
    work(folder, ["nmt aligner --source x.de --target x.en --output de-en.aligner"])
    for run, (config, others, is_turned) in MADE.items():
        work(folder, [f"nmt train configs/{config}.yaml --set run={run} {TURNED if is_turned else ''}"])
        for other in others:
            # Without what says when it was trained: no two may be the last.
            order = shutil.ignore_patterns(".order")
            shutil.copytree(folder / run, folder / "runs" / other, symlinks=True, ignore=order)


def _add_corpora(folder: Path) -> None:
    corpus, multi30k = folder / "data" / "de-en", folder / "data" / "multi30k"
    corpus.mkdir(parents=True)
    (folder / "data" / "generator").symlink_to(ROOT / "data" / "generator")
    multi30k.mkdir()
    (tatoeba := folder / "data" / "tatoeba-de-en").mkdir()
    for name, count in KEPT.items():
        for path in (ROOT / "data" / "de-en").glob(f"{name}.*"):
            _cut(path, count, corpus / path.name)
    for kind in ("de", "en"):
        for name, count, of in (("train", 300, "train"), ("val", 20, "valid"), ("test_2016_flickr", 20, "test")):
            with gzip.open(multi30k / f"{name}.{kind}.gz", "wt", encoding="utf-8") as file:
                file.write(_head(corpus / f"{of}.{kind}", count))
        for name, of in (("train", "train"), ("valid", "val")):
            shutil.copy(multi30k / f"{of}.{kind}.gz", tatoeba / f"{name}.{kind}.gz")
        for name, count, of in (("my", 600, "train"), ("train", 300, "train"), ("test_2016_flickr", 20, "test")):
            _cut(corpus / f"{of}.{kind}", count, folder / f"{name}.{kind}")
    for kind in ("de", "en", "align"):
        for name, of in (("x", "test"), ("dev", "valid")):
            _cut(corpus / f"{of}.{kind}", 20, folder / f"{name}.{kind}")
    copies = {
        "x.de": "source.de more.de text.cs gold.cs",
        "x.en": "reference.en more.en text.en gold.en",
        "x.align": "fwd rev links gold.align",
        "dev.en": "hypothesis.en",
    }
    for of, names in copies.items():
        for name in names.split():
            shutil.copy(folder / of, folder / name)
    document = Document()
    document.add_paragraph("Der Hund bellt oft.")
    document.save(str(folder / "report.docx"))
    (folder / "shards").mkdir()
    (folder / "shards" / "01.txt").write_text("Der Hund bellt oft.\n", encoding="utf-8")
    (folder / "de-en.tsv").write_text("Regen\train\nKiefer {f}\tpine\n", encoding="utf-8")
    (folder / "memory.tmx").write_text(MEMORY, encoding="utf-8")
    (folder / "terms.tsv").write_text("Hund\tdog|hound\nMotor\tengine\n", encoding="utf-8")


def _add_configs(folder: Path) -> None:
    """Adds the shipped configurations and the reader's own."""
    (folder / "configs").mkdir()
    for path in (ROOT / "configs").iterdir():
        text = path.read_text(encoding="utf-8")
        for pattern, small in SMALLER:
            text = re.sub(pattern, small, text, flags=re.MULTILINE)
        (folder / "configs" / path.name).write_text(text, encoding="utf-8")
    for name, of in (("config", "comparison-de-en"), ("new", "de-en"), ("configs/big", "de-en")):
        tree = yaml.safe_load((folder / "configs" / f"{of}.yaml").read_text(encoding="utf-8"))
        tree["run"] = f"runs/{Path(name).name}"
        if name == "new":
            tree["data"]["subwords"] = {"model": "runs/old"}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    write_marian(folder / "opus-mt-de-en", SHAPES["relu"])


def _add_mechanisms(folder: Path) -> None:
    """The reader's own, as the pages have them."""
    for page in (folder / "docs").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for name, code in re.findall(r"```python\n# (mechanisms/\S+)(.*?)```", text, flags=re.DOTALL):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"# {name}{code}", encoding="utf-8")


def _add_command(folder: Path) -> None:
    """An `nmt` whose trainings are short, and whose aligner's layer and pair filter hardly learn."""
    command = folder / "bin" / "nmt"
    command.parent.mkdir()
    short = " ".join(f"--set {each}" for each in SHORT)
    main = "import nmt.cli.app; nmt.cli.app.main()"
    filter_ = f"import nmt.extras.corpus.pair_filter.pair_filter as it; it.EPOCHS = 1, 1; {main}"
    hardly = f"import nmt.extras.aligner.model_aligner as it; it.UPDATES = 5; {main}"
    script = f"""#!/bin/sh
case $1 in
  train|augment) set -- "$@" {short} ;;
  aligner) exec "{sys.executable}" -c '{hardly}' "$@" ;;
  filter) exec "{sys.executable}" -c '{filter_}' "$@" ;;
esac
exec "{sys.executable}" -m nmt "$@"
"""
    command.write_text(script, encoding="utf-8")
    command.chmod(0o755)


def _head(path: Path, count: int) -> str:
    """The first lines of a file."""
    return "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:count])


def _cut(path: Path, count: int, to: Path) -> None:
    to.write_text(_head(path, count), encoding="utf-8")


def work(folder: Path, lines: list[str]) -> None:
    """Has a shell run each line; a server goes on until the next one or the end, and curl asks it."""
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    added = {"PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MULTI30K": "data/multi30k"}
    added |= {"SLURM_ARRAY_TASK_ID": "1"}
    environment = {**os.environ, **added}
    server: Server | None = None
    try:
        for line in lines:
            shell = ["bash", "-e", "-o", "pipefail", "-c", line]
            if line.startswith("nmt serve"):
                if server is not None:
                    server.stop()
                port = "" if "--port" in line else " --port 0"  # the one that it takes by itself may be taken
                server = Server([*shell[:-1], f"exec {line}{port}"], folder, environment)
                continue
            if server is not None:
                shell[-1] = line.replace("http://127.0.0.1:8000", server.address)
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
            done = subprocess.run(shell, cwd=folder, env=environment, check=False, **streams)
            assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    finally:
        if server is not None:
            server.stop()


class Server:
    """An `nmt serve` that runs."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, cwd=folder, env=environment, **streams)
        assert self.process.stderr is not None
        said = ""
        for line in self.process.stderr:
            said += line
            if found := re.search(r"http://[\w.]+:\d+", line):
                self.address = found[0]
                return
        raise AssertionError(f"{command[-1]}\n{said}")

    def stop(self) -> None:
        """Ends it, in good order."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        assert self.process.returncode == 0
