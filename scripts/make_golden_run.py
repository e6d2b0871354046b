"""Makes the small run directories that later releases must still read: those in ``tests/golden``.

    python scripts/make_golden_run.py                 into tests/golden/format-N, which must not hold any yet
    python scripts/make_golden_run.py --out FOLDER

A recurrent model with additive attention and a Transformer are trained on a corpus that this script writes, which takes
a minute. Beside each stands ``expected.json``: what the commands make of it, and where its links lead.
``tests/workflows/test_golden.py`` asks the release at hand for the same. The older ones stay as they are when a new
format gets its own.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import sentencepiece
import torch

from nmt import __version__
from nmt.training.run_directory import FORMAT

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "golden" / f"format-{FORMAT}"

Command: TypeAlias = Callable[[Sequence[str], Path], str]
"""Function that runs ``nmt`` with arguments in a folder and returns its stdout; it raises if the command fails."""

WORDS = {"eins": "one", "zwei": "two", "drei": "three", "Hund": "dog", "Katze": "cat", "und": "and", "grün": "green"}

CONFIG = """\
run: run
data:
  train: {{source: train.de, target: train.en}}
  valid: {{source: valid.de, target: valid.en}}
  subwords: {{kind: {kind}, size: 40, joint: true, normalization: identity}}
model:
{model}
training:
  batching: {{batch_tokens: 160}}
  optimizer: {{kind: adamw, learning_rate: 0.01}}
  stopping: {{updates: 600}}
{training}
  log_every: 100
  save_every: 600
"""
# without normalization, whose tables take 240 KB in each subword model

RECURRENT = CONFIG.format(
    kind="bpe",
    model="""\
  embedding: {size: 8}
  encoder: {kind: rnn, cell: gru, size: 8}
  decoder: {kind: rnn, cell: gru, size: 12}
  attention: {score: {kind: additive}}
  dropout: {embedding: 0.1, layers: 0.1}""",
    training="""\
  validation: {every: 600, bleu: false, metric: loss}
  keep: 1""",
)

TRANSFORMER = CONFIG.format(
    kind="word",
    model="""\
  embedding: {size: 12, tie: all}
  encoder: {kind: transformer, layers: 1, size: 12, heads: 2, feed_forward: 24}
  decoder: {kind: transformer, layers: 1, size: 12, heads: 2, feed_forward: 24}
  dropout: {embedding: 0.1, layers: 0.1}""",
    training="""\
  validation: {every: 300, bleu: false, metric: loss}
  average: 2
  keep: 2""",
)

CONFIGS = {"recurrent": RECURRENT, "transformer": TRANSFORMER}

UPDATES = 601
"""Number of updates after which the test stops: one more than in the stored training."""

EXACT = ("--device", "cpu", "--precision", "float32", "--set", "search.repetition_margin=null")


def sentences(count: int) -> list[tuple[str, str]]:
    """Draws sentences of 2 to 6 words, all different, with word by word translations."""
    draw = random.Random(1)
    pairs: dict[tuple[str, str], None] = {}
    while len(pairs) < count:
        words = draw.choices(list(WORDS), k=draw.randint(2, 6))
        pairs[" ".join(words) + " .", " ".join(WORDS[word] for word in words) + " ."] = None
    return list(pairs)


def write_corpus(folder: Path) -> None:
    """Writes 100 pairs for training, 6 for validation, and 4 for tests."""
    pairs = sentences(110)
    for name, part in (("train", pairs[:100]), ("valid", pairs[100:106]), ("test", pairs[106:])):
        for side, suffix in enumerate(("de", "en")):
            text = "".join(f"{pair[side]}\n" for pair in part)
            (folder / f"{name}.{suffix}").write_text(text, encoding="utf-8")


def measure(folder: Path, nmt: Command) -> dict[str, Any]:
    """Runs the commands on a run; returns translations, scores and alignments of its test files."""
    given = ("--source", "test.de", "--target", "test.en")

    def lines(*arguments: str) -> list[Any]:
        return [json.loads(line) for line in nmt([*arguments, "--format", "jsonl", "--quiet"], folder).splitlines()]

    found = {
        "translations": lines("translate", "run", *EXACT, "--input", "test.de", "--n-best", "2"),
        "scores": lines("score", "run", *EXACT, *given),
        "scores of latest": lines("score", "run/latest", *EXACT, *given),
        "alignments": lines("align", "run", *EXACT, *given),
    }
    if (folder / "aligner.safetensors").exists():
        found["alignments of the aligner"] = lines("align", "--aligner", "aligner.safetensors", *given)
    return found


def resume(folder: Path, nmt: Command) -> dict[str, float]:
    """Continues by one update; returns its loss and gradient norm."""
    more = ["--set", f"training.stopping.updates={UPDATES}", "--set", "training.log_every=1"]
    nmt(["train", "config.yaml", *EXACT, "--quiet", *more], folder)
    text = (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8")
    measured = [json.loads(line) for line in text.splitlines()]
    found = [line for line in measured if line["kind"] == "train" and line["update"] == UPDATES]
    assert len(found) == 1
    return {name: found[0][name] for name in ("loss", "gradient_norm")}


def copy(golden: Path, folder: Path) -> dict[str, Any]:
    """Copies a golden run into ``folder`` in the state that training left; returns the expected results. Its links are
    created here, because zip files and some checkouts do not keep links."""
    shutil.copytree(golden, folder)
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    for name, target in expected["links"].items():
        (folder / "run" / name).symlink_to(target)
    packed = folder / "aligner.safetensors.xz"
    if packed.exists():
        packed.with_suffix("").write_bytes(lzma.decompress(packed.read_bytes()))
    return expected


def make(name: str, golden: Path) -> None:
    """Trains a golden run, and writes it and the expected results to the folder ``golden``."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / name
        folder.mkdir()
        write_corpus(folder)
        (folder / "config.yaml").write_text(CONFIGS[name], encoding="utf-8")
        _nmt(["train", "config.yaml", *EXACT, "--quiet"], folder)
        if name == "transformer":
            _nmt(["aligner", "--source", "train.de", "--target", "train.en", "--output", "aligner.safetensors"], folder)
            data = (folder / "aligner.safetensors").read_bytes()
            (folder / "aligner.safetensors.xz").write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
        run = folder / "run"
        expected: dict[str, Any] = {
            "made_by": {
                "nmt": __version__,
                "python": platform.python_version(),
                "torch": torch.__version__.partition("+")[0],
                "sentencepiece": sentencepiece.__version__,
            },
            "links": {path.name: str(path.readlink()) for path in sorted(run.iterdir()) if path.is_symlink()},
        }
        expected |= measure(folder, _nmt)
        shutil.copytree(folder, Path(place) / "more", symlinks=True)
        expected["resumed"] = resume(Path(place) / "more", _nmt)
        (folder / "aligner.safetensors").unlink(missing_ok=True)
        for path in [*run.rglob(".*"), *(run / name for name in expected["links"])]:
            path.unlink()
        for checkpoint in (run / "checkpoints").iterdir():
            if f"checkpoints/{checkpoint.name}" not in expected["links"].values():
                shutil.rmtree(checkpoint)
        text = json.dumps(expected, indent=1, ensure_ascii=False) + "\n"
        (folder / "expected.json").write_text(text, encoding="utf-8")
        shutil.copytree(folder, golden)


def _nmt(arguments: Sequence[str], folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "nmt", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER", help=f"default: tests/golden/{OUT.name}")
    out: Path = parser.parse_args(arguments).out
    for name in CONFIGS:
        if (out / name).exists():
            print(f"error: {out / name}: is there; name another folder with --out, or delete it", file=sys.stderr)
            return 2
    for name in CONFIGS:
        make(name, out / name)
        size = sum(path.stat().st_size for path in (out / name).rglob("*") if path.is_file())
        print(f"{out / name}: {size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
