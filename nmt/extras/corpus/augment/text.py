"""Text of one language: lines to translate, in files of a few thousand lines."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nmt.core.errors import InputError
from nmt.core.files import naming, whole_file
from nmt.data.filters import CONTROL, pair_hash

SHARD_LINES = 20_000
"""Number of lines of a file, which is the maximum that is translated again after an interruption."""

CHARACTERS_PER_WORD = 20
MOST_CHARACTERS = 16_000
"""Maximum number of characters of any line: at four bytes each, nmt translate would cut a longer one."""


@dataclass(frozen=True)
class Cleaning:
    """Filters lines: leaves out blank ones, repeats, lines that no training pair may have, and lines of the validation
    and test corpora.

    Attributes:
        max_length: Maximum number of words of a line, and a twentieth of its maximum number of characters.
        held_out: Lines of the validation and test corpora.
    """

    max_length: int
    held_out: Collection[str]

    def __call__(self, lines: Iterable[str], counts: Counter[str]) -> Iterator[str]:
        """Yields the lines to keep, without white space at both ends; counts them as "kept", and the others by
        reason."""
        seen: set[bytes] = set()
        for line in map(str.strip, lines):
            verdict = self._verdict(line, seen)
            counts[verdict] += 1
            if verdict == "kept":
                yield line

    def _verdict(self, line: str, seen: set[bytes]) -> str:
        if not line:
            return "blank"
        if len(line) > min(CHARACTERS_PER_WORD * self.max_length, MOST_CHARACTERS) or (
            len(line.split()) > self.max_length
        ):
            return "too long"
        if CONTROL.search(line):
            return "with control characters"
        if line in self.held_out:
            return "in valid or test"
        key = pair_hash(line, "", seed=0)
        if key in seen:
            return "repeated"
        seen.add(key)
        return "kept"


def write_shards(lines: Iterable[str], folder: Path) -> None:
    """Writes files of ``SHARD_LINES`` lines into a new folder, which replaces an existing one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, group in enumerate(_groups(lines, SHARD_LINES)):
        write_lines(group, folder / f"{number:05}.txt")


def _groups(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(lines)
    while group := [line for _, line in zip(range(size), iterator, strict=False)]:
        yield group


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


def read_translations(folder: Path) -> Iterator[ScoredTranslation]:
    """Reads the files that ``nmt translate --format jsonl`` wrote into a folder, in order. Raises InputError for a
    damaged one."""
    try:
        for line in read_shards(folder):
            row = json.loads(line)
            best = row["translations"][0]
            text = " ".join(str.split(best["text"]))  # a line end in it would give two lines of a corpus
            yield ScoredTranslation(str.strip(row["source"]), text, best["log_prob"] / (len(best["tokens"]) + 1))
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError):
        raise InputError(f"{folder}: is damaged; delete it to have it made again") from None


def read_copies(folder: Path) -> Iterator[ScoredTranslation]:
    """Yields the lines of a folder as their own translations."""
    return (ScoredTranslation(line, line, 0.0) for line in read_shards(folder))
