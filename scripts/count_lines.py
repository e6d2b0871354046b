"""Measures how much code there is to read, and compares it with the bars below. Blank lines, comments and docstrings
are not counted, so that explaining costs nothing.

    python scripts/count_lines.py                what the sources show: a second
    python scripts/count_lines.py --run          also a small training, translation and alignment: half a minute

Prints a table on stderr and a JSON line for each figure on stdout. Exit code 1: a figure exceeds its bar.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BARS: Mapping[str, float] = {
    "lines of the core": 7009,
    "lines of nmt": 35200,
    "longest function": 80,
    "'is no'": 5,
    "oblique docstrings, %": 3,
    "frames to the score in train": 13,
    "frames to the score in translate": 13,
    "frames to the score in align": 14,
    "lines loaded by train and translate": 9515,
}
"""Maximum of each figure."""

CORE = ("core", "ops", "nn", "attention", "models", "search", "training")
SUFFIXES = (".py", ".cpp", ".html", ".css", ".js")
NO_CODE = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
)  # fmt: skip
OBLIQUE = re.compile(r"(What|How|Whether|Where|Which|Of|As)\b")
SETTINGS = (
    "run=run",
    "model.embedding={size: 32, tie: none}",
    "model.encoder={kind: rnn, size: 32}",
    "model.decoder={kind: rnn, size: 32}",
    "data.train={source: train.de, target: train.en}",
    "data.valid={source: valid.de, target: valid.en}",
    "data.test=[]",
    "data.subwords={kind: bpe, size: 200, joint: true}",
    "training.stopping={updates: 1}",
    "training.validation={every: 1, metric: loss, bleu: false}",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="measure a training and a translation too")
    figures = static_figures(ROOT) | (run_figures() if parser.parse_args(arguments).run else {})
    for name, value in figures.items():
        excess = "  exceeded" if value > BARS[name] else ""
        print(f"{name:<36} {value:>8.6g}  bar {BARS[name]:g}{excess}", file=sys.stderr)
        print(json.dumps({"name": name, "value": value, "bar": BARS[name]}))
    return int(any(value > BARS[name] for name, value in figures.items()))


def static_figures(root: Path) -> dict[str, float]:
    """Computes figures that need only the sources."""
    package = root / "nmt"
    lines = {path: code_lines(path) for path in package.rglob("*") if path.suffix in SUFFIXES}
    names = {path: path.relative_to(package).parts for path in lines}
    trees = [ast.parse(_text(path)) for path in lines if path.suffix == ".py"]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    documented = (ast.AsyncFunctionDef, ast.ClassDef, ast.FunctionDef, ast.Module)
    docstrings = [text for node in nodes if isinstance(node, documented) and (text := ast.get_docstring(node))]
    functions = [node for node in nodes if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)]
    prose = [path for path in (*package.rglob("*"), *(root / "docs").rglob("*")) if path.suffix in (".py", ".md")]
    return {
        "lines of the core": sum(count for path, count in lines.items() if names[path][0] in CORE),
        "lines of nmt": sum(lines.values()),
        "longest function": max((node.end_lineno or 0) - node.body[0].lineno + 2 for node in functions),
        "'is no'": sum(len(re.findall(r"(?<!there )\bis no\b", _text(path))) for path in (*prose, root / "README.md")),
        "oblique docstrings, %": round(100 * sum(map(bool, map(OBLIQUE.match, docstrings))) / len(docstrings), 2),
    }


def code_lines(path: Path) -> int:
    """Counts the lines of a file that hold code."""
    text = _text(path)
    if path.suffix != ".py":
        lines = re.sub(r"/\*.*?\*/|<!--.*?-->", "", text, flags=re.DOTALL).splitlines()
        return sum(bool(line.strip()) and not line.strip().startswith("//") for line in lines)
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        match node:  # a docstring, or a text below a field, which explains it
            case ast.Expr(value=ast.Constant(value=str())):
                code.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
    return len(code)


def run_figures() -> dict[str, float]:
    """Measures a training of one update, a greedy translation and an alignment, by a copy of the package without
    extras."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "nmt", Path(folder) / "nmt", ignore=shutil.ignore_patterns("extras", "__pycache__"))
        for name, count in (("train", 400), ("valid", 20)):
            for side in ("de", "en"):
                lines = _text(ROOT / "data" / "de-en" / f"{name}.{side}").splitlines(keepends=True)
                (Path(folder) / f"{name}.{side}").write_text("".join(lines[:count]), encoding="utf-8")
        config = str(ROOT / "configs" / "de-en.yaml")
        settings = [word for setting in SETTINGS for word in ("--set", setting)]
        compute = ["--device", "cpu", "--precision", "float32"]
        _probe(["prepare", config, *settings], folder)
        train = _probe(["train", config, *settings, *compute], folder)
        translate = _probe(["translate", "run", "--beam", "1", *compute], folder)
        align = _probe(["align", "run", "--source", "valid.de", "--target", "valid.en", *compute], folder)
    paths = {Path(file).relative_to(folder) for file in (*train["files"], *translate["files"])}
    return {
        "frames to the score in train": len(train["stack"]),
        "frames to the score in translate": len(translate["stack"]),
        "frames to the score in align": len(align["stack"]),
        "lines loaded by train and translate": sum(code_lines(ROOT / path) for path in paths if not _is_choice(path)),
    }


def _is_choice(path: Path) -> bool:
    """Returns True for mechanisms of attention that are loaded as choices of a configuration, and not run."""
    return path.parts[1] == "attention" and len(path.parts) == 4 and path.stem not in ("additive", "softmax")


def _probe(command: Sequence[str], folder: str) -> Any:
    words = [sys.executable, __file__, *command, "--quiet"]
    environment = {**os.environ, "PYTHONPATH": folder, "COUNT_LINES": f"{folder}/probe.json"}
    done = subprocess.run(words, cwd=folder, env=environment, input=b"ein Hund\n", capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())
    return json.loads(_text(Path(folder) / "probe.json"))


def probed(file: Path) -> None:
    """Run ``nmt`` in this process; write the files that it loads, and the stack of calls that leads to its first
    attention score.
    """
    stack: list[str] = []

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if (
            event == "call"
            and frame.f_code.co_name == "__call__"
            and "/nmt/attention/scores/" in frame.f_code.co_filename
        ):
            stack[:] = reversed(list(_ours(frame.f_back)))
            sys.setprofile(None)

    # the finder of an editable installation would find the folder that is left out
    sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in str(finder)]
    from nmt.cli.app import main as nmt

    sys.setprofile(watch)
    try:
        nmt()
    finally:
        sys.setprofile(None)
        files = {getattr(module, "__file__", None) for name, module in sys.modules.items() if name.startswith("nmt")}
        record = {"stack": stack, "files": sorted(filter(None, files))}
        file.write_text(json.dumps(record, indent=1), encoding="utf-8")


def _ours(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        if "/nmt/" in frame.f_code.co_filename:
            yield f"{frame.f_code.co_filename}:{frame.f_code.co_name}"
        frame = frame.f_back


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    if "COUNT_LINES" in os.environ:
        probed(Path(os.environ["COUNT_LINES"]))
    else:
        sys.exit(main())
