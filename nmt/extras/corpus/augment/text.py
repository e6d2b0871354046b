"""Text of one language: lines to translate, in files of a few thousand lines."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from nmt.core.errors import InputError
from nmt.core.files import naming, whole_file
from nmt.data.filters import CONTROL, pair_hash

SHARD_LINES = 20_000
"""Number of lines of a file, which is the maximum that is translated again after an interruption."""

CHARACTERS_PER_WORD = 20
MOST_CHARACTERS = 16_000
"""Maximum number of characters of any line: at four bytes each, nmt translate would cut a longer one."""


def cleaned(lines: Iterable[str], counts: Counter[str], *, max_length: int, held_out: Collection[str]) -> Iterator[str]:
    """Yields the lines to keep, without white space at both ends; counts them as "kept", and the others by reason:
    blank ones, repeats, lines that no training pair may have, and lines that are ``held_out``, of the validation and
    test corpora. ``max_length`` is the maximum number of words of a line, and a twentieth of its maximum number of
    characters."""
    seen: set[bytes] = set()
    most = min(CHARACTERS_PER_WORD * max_length, MOST_CHARACTERS)
    for line in map(str.strip, lines):
        if not line:
            counts["blank"] += 1
        elif len(line) > most or len(line.split()) > max_length:
            counts["too long"] += 1
        elif CONTROL.search(line):
            counts["with control characters"] += 1
        elif line in held_out:
            counts["in valid or test"] += 1
        elif (key := pair_hash(line, "", seed=0)) in seen:
            counts["repeated"] += 1
        else:
            counts["kept"] += 1
            seen.add(key)
            yield line


def write_shards(lines: Iterable[str], folder: Path) -> None:
    """Writes files of ``SHARD_LINES`` lines into a new folder, which replaces an existing one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    remaining, numbers = iter(lines), count()
    while group := list(islice(remaining, SHARD_LINES)):
        write_lines(group, folder / f"{next(numbers):05}.txt")


def write_lines(lines: Iterable[str], path: Path) -> None:
    """Writes a file atomically."""
    with whole_file(path) as partial, naming(path), partial.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(f"{line}\n" for line in lines)


def read_shards(folder: Path) -> Iterator[str]:
    """Yields the lines of all files of a folder, in order."""
    for path in sorted(folder.glob("[!.]*.txt")):
        with path.open(encoding="utf-8", newline="\n") as stream:
            for line in stream:
                yield line.removesuffix("\n")


@dataclass(frozen=True)
class ScoredTranslation:
    """A line, its translation, and the mean log-probability of the translation's tokens, end-of-sentence included."""

    line: str
    text: str
    score: float
    confidence: float = 1.0
    """Probability that it is right; 1 if it was not estimated."""


def read_translations(folder: Path) -> Iterator[ScoredTranslation]:
    """Reads the files that ``nmt translate --format jsonl`` wrote into a folder, in order. Raises InputError for a
    damaged one."""
    try:
        for line in read_shards(folder):
            row = json.loads(line)
            best = row["translations"][0]
            text = " ".join(str.split(best["text"]))  # a line end in it would give two lines of a corpus
            score, confidence = best["log_prob"] / (len(best["tokens"]) + 1), best.get("confidence")
            right = 1.0 if confidence is None else float(confidence["right"])
            yield ScoredTranslation(str.strip(row["source"]), text, score, right)
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError):
        raise InputError(f"{folder}: is damaged; delete it to have it made again") from None


def read_copies(folder: Path) -> Iterator[ScoredTranslation]:
    """Yields the lines of a folder as their own translations."""
    return (ScoredTranslation(line, line, 0.0) for line in read_shards(folder))
