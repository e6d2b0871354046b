"""Filters of training pairs.

The filters apply in the order of `Verdict`; a pair is counted under the first that drops it. All except the last two
read text, before tokenisation. Texts are compared without white space at both ends.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from nmt.data.config import FiltersConfig

_CHUNK = 1 << 18


class Verdict(enum.IntEnum):
    """Result of the filters for a training pair: kept, or dropped by a filter. The value is one byte in a file of
    prepare."""

    KEPT = 0
    NO_PAIR = 1
    EMPTY = 2
    CONTROL_CHARACTERS = 3
    IDENTICAL = 4
    HELD_OUT = 5
    DUPLICATE = 6
    NEAR_DUPLICATE = 7
    TOO_LONG = 8
    LENGTH_RATIO = 9

    @property
    def label(self) -> str:
        """The filter's name in reports."""
        return self.name.lower().replace("_", " ")


DROPPED: Final = tuple(verdict for verdict in Verdict if verdict is not Verdict.KEPT)

CONTROL: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Control characters that drop a pair: C0 except TAB, DEL, C1, line and paragraph separator, byte order mark, and the
two noncharacters that occur in damaged UTF-16. Joiners, direction marks and soft hyphens are part of how languages are
written, so they are allowed."""


class TextFilter:
    """The filters that need only the text of a pair.

    Args:
        held_out: The pairs of the validation and test sets.
    """

    def __init__(self, config: FiltersConfig, held_out: Iterable[tuple[str, str]]) -> None:
        self._identical = config.identical
        self._control = config.control_characters
        self._by_pair = config.held_out == "pair"
        pairs = () if config.held_out == "none" else held_out
        self._held_out = frozenset(self._key(source.strip(), target.strip()) for source, target in pairs)

    def __call__(self, source: str, target: str) -> Verdict:
        """Returns the verdict on a pair of stripped sides."""
        if not source or not target:
            return Verdict.EMPTY
        if self._control and (_has_control(source) or _has_control(target)):
            return Verdict.CONTROL_CHARACTERS
        if self._identical and source == target:
            return Verdict.IDENTICAL
        if self._held_out and self._key(source, target) in self._held_out:
            return Verdict.HELD_OUT
        return Verdict.KEPT

    def _key(self, source: str, target: str) -> str:
        return f"{source}\n{target}" if self._by_pair else source


def _has_control(text: str) -> bool:
    # isprintable() is many times faster than the search, and False for every text in which the search could match
    return not text.isprintable() and CONTROL.search(text) is not None


def length_verdicts(
    source_lengths: npt.NDArray[np.integer], target_lengths: npt.NDArray[np.integer], config: FiltersConfig
) -> npt.NDArray[np.uint8]:
    """Returns the verdicts on pairs of these lengths in subwords. A text that normalisation removes completely is
    empty."""
    longer, shorter = np.maximum(source_lengths, target_lengths), np.minimum(source_lengths, target_lengths)
    return np.select(
        [shorter == 0, longer > config.max_length, longer > config.max_ratio * shorter],
        [np.uint8(Verdict.EMPTY), np.uint8(Verdict.TOO_LONG), np.uint8(Verdict.LENGTH_RATIO)],
        default=np.uint8(Verdict.KEPT),
    )


def pair_hash(source: str, target: str, *, seed: int) -> bytes:
    """Computes a hash of eight bytes of a pair. The probability that two of ten million different pairs have the same
    hash is 1 in 400,000."""
    text = f"{source}\n{target}".encode()
    return hashlib.blake2b(text, digest_size=8, key=seed.to_bytes(8, "little")).digest()


class _Letters(dict[int, int | None]):
    """A table for `str.translate` that removes punctuation, symbols, numbers, white space and control characters."""

    def __missing__(self, character: int) -> int | None:
        is_letter = unicodedata.category(chr(character))[0] in "LM"  # marks are the vowels of some scripts
        self[character] = character if is_letter else None
        return self[character]


_LETTERS = _Letters()


def letters(text: str) -> str:
    """Returns the letters of a text, case folded, or the text itself if it has no letters. Near-duplicates have the
    same letters."""
    return text.casefold().translate(_LETTERS) or text


def mark_duplicates(
    verdicts: Path, hashes: Path, scratch: Path, *, verdict: Verdict = Verdict.DUPLICATE, partition: int = 1 << 19
) -> None:
    """Changes the verdict on every kept pair that equals an earlier one to duplicate, in constant memory.

    The pairs are divided among files by their hash, so that equal ones are in the same file, which is then sorted.

    Args:
        verdicts: File of one byte per pair, changed in place. Only pairs that are kept are compared.
        hashes: File of eight bytes per pair, in the same order.
        scratch: Folder for files that are removed at the end.
        verdict: Verdict on the duplicates.
        partition: Average number of pairs per file, as long as there are at most 256 files.
    """
    pairs = verdicts.stat().st_size
    assert hashes.stat().st_size == 8 * pairs
    parts = min(max(-(-pairs // partition), 1), 256)
    paths = [scratch / f"duplicates-{part:03}.bin" for part in range(parts)]
    record = np.dtype([("hash", "<u8"), ("pair", "<i8")])
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(path.open("wb")) for path in paths]
        verdict_file, hash_file = stack.enter_context(verdicts.open("rb")), stack.enter_context(hashes.open("rb"))
        for start in range(0, pairs, _CHUNK):
            count = min(_CHUNK, pairs - start)
            kept = np.flatnonzero(np.frombuffer(verdict_file.read(count), np.uint8) == Verdict.KEPT)
            records = np.empty(len(kept), record)
            records["hash"] = np.frombuffer(hash_file.read(8 * count), "<u8")[kept]
            records["pair"] = start + kept
            part_of = records["hash"] % np.uint64(parts)
            for part, file in enumerate(files):
                file.write(records[part_of == part].tobytes())
    marks = np.memmap(verdicts, np.uint8, "r+") if pairs else np.zeros(0, np.uint8)  # an empty file cannot be mapped
    for path in paths:
        records = np.fromfile(path, record)
        path.unlink()
        records.sort(order=["hash", "pair"])
        marks[records["pair"][1:][records["hash"][1:] == records["hash"][:-1]]] = verdict
