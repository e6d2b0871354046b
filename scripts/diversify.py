"""More training pairs from those that are there: data diversification (Nguyen et al. 2020, "Data Diversification: A
Simple Strategy For Neural Machine Translation"), with one model in each direction.

    python scripts/diversify.py configs/multi30k-de-en-tiny.yaml --out runs/diverse --set training.stopping.updates=2500

trains the configuration and, files exchanged, its opposite, both at once on half of the cores each, and lets each
translate its side of the training pairs. The folder then holds

    source.txt, target.txt            the training pairs
    target.translated.txt             source.txt, translated
    source.translated.txt             target.txt, translated back
    forward, backward                 the two runs

and the section ``data.train`` of a configuration that learns from all three kinds of pairs is printed; for the other
direction, exchange source and target in it. What is there already is not made again: the same command goes on.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from nmt import experiment as experiments
from nmt.core.errors import InputError
from nmt.data.config import CorpusConfig
from nmt.data.corpus import read_blocks

BEAM = 5


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path, help="of one of the two directions")
    parser.add_argument("--out", type=Path, required=True, help="folder for all that is made")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    try:
        made = diversify(arguments.config, arguments.overrides, arguments.out)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print("data:\n  train:")
    for source, target in made:
        print(f"    - {{source: {source}, target: {target}}}")


def diversify(config: Path, overrides: Sequence[str], out: Path) -> list[tuple[Path, Path]]:
    """Makes what the module's docstring says; the three corpora, source and target each."""
    data = experiments.load(config, overrides).data
    source, target = out / "source.txt", out / "target.txt"
    out.mkdir(parents=True, exist_ok=True)
    with source.open("w", encoding="utf-8") as sources, target.open("w", encoding="utf-8") as targets:
        for corpus in data.train_corpora:
            for block in read_blocks(corpus):
                sources.writelines(f"{line}\n" for line in block.sources)
                targets.writelines(f"{line}\n" for line in block.targets)
    held_out = {"data.valid": data.valid_corpora, "data.test": data.test_corpora}
    exchanged = {key: [_exchanged(corpus) for corpus in corpora] for key, corpora in held_out.items()}
    settings = [
        [f"data.train={_shown(source, target)}"],
        [f"data.train={_shown(target, source)}"]
        + [f"{key}=[{', '.join(corpora)}]" for key, corpora in exchanged.items()],
    ]
    runs = out / "forward", out / "backward"
    common = [part for override in overrides for part in ("--set", override)]
    _together(
        ["train", str(config), *common, "--set", f"run={run}", *(part for each in own for part in ("--set", each))]
        for run, own in zip(runs, settings, strict=True)
    )
    translated = out / "target.translated.txt", out / "source.translated.txt"
    todo = [each for each in zip(runs, (source, target), translated, strict=True) if not each[2].exists()]
    _together(
        ["translate", str(run), "--beam", str(BEAM), "--input", str(given), "--output", str(_unfinished(made))]
        for run, given, made in todo
    )
    for _, _, made in todo:
        _unfinished(made).replace(made)
    return [(source, target), (source, translated[0]), (translated[1], target)]


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def _shown(source: Path, target: Path) -> str:
    return f"{{source: '{source}', target: '{target}'}}"


def _exchanged(corpus: CorpusConfig) -> str:
    if corpus.source is None or corpus.target is None:
        raise InputError(f"{corpus.name}: cannot be exchanged; give source and target as two files")
    return _shown(corpus.target, corpus.source)


def _together(commands: Iterator[list[str]]) -> None:
    """Runs commands of the toolkit at once; ends with the first exit status that is not 0."""
    todo = list(commands)
    threads = max((os.cpu_count() or 1) // max(len(todo), 1), 1)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    with ExitStack() as stack:
        started = []
        for command in todo:
            print("$ nmt", *command, file=sys.stderr, flush=True)
            started.append(
                stack.enter_context(subprocess.Popen([sys.executable, "-m", "nmt", *command], env=environment))
            )
        failed = [status for process in started if (status := process.wait()) != 0]
    if failed:
        sys.exit(failed[0])


if __name__ == "__main__":
    main()
