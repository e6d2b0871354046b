"""Sentence pairs that are held out of a corpus. They are chosen by their content, so that no pair is in two parts.

The choice is a function of the seed and of the pairs, not of their order: the pairs with the smallest keyed hashes are
held out. A pair that occurs several times has one hash, and is held out once.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from nmt.data.config import CorpusConfig, FiltersConfig
from nmt.data.corpus import numbered_pairs
from nmt.data.filters import TextFilter, Verdict, pair_hash

MOST_WORDS = 50_000
"""Maximum number of different words that are counted; more make no difference."""

SAMPLE = 20_000
"""Number of pairs that are drawn at random."""

_ACCENTS = re.compile("[\u0300-\u036f]")
_IDEOGRAPHS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Survey:
    """Counts over a corpus."""

    pairs: int
    target_letters: int
    """Length of the target side: accents are no letters, and an ideograph counts as three."""
    characters: int
    """Number of different characters of both sides."""
    words: int
    """Number of different runs of letters of both sides, up to ``MOST_WORDS``."""
    candidates: tuple[bytes, ...]
    """Hashes of pairs that may be held out, each once, in the order in which they are taken."""
    others: bool
    """True if more pairs may be held out."""
    identical: int
    """Number of pairs whose sides are the same text."""
    sample: tuple[tuple[str, str], ...] = ()
    """Up to ``SAMPLE`` different pairs that may be held out or trained on, drawn at random."""


@dataclass(frozen=True)
class Held:
    """Sizes of the parts of a corpus; each pair is in one of them."""

    train: int
    held_out: Mapping[str, int]
    """Number of pairs in each part that was held out."""
    repeats: int
    """Number of pairs that are in such a part already, and are left out."""


def survey(
    corpus: CorpusConfig, *, most: int, seed: int, known: Iterable[CorpusConfig] = (), keep_identical: bool = False
) -> Survey:
    """Reads a corpus once, in constant memory, and finds up to ``most`` pairs that may be held out: pairs that the
    filters of training would keep and that are not in ``known``. Raises InputError as ``nmt.data.corpus.read_blocks``
    does."""
    judge = TextFilter(FiltersConfig(identical=not keep_identical), [pair for each in known for pair in _pairs(each)])
    pairs = target_letters = identical = 0
    characters: set[str] = set()
    words: set[str] = set()
    least: list[int] = []  # a heap of the smallest hashes, negated, so that the largest of them is first
    chosen: dict[int, tuple[str, str]] = {}
    others = False
    for source, target in _pairs(corpus):
        pairs += 1
        identical += source == target
        target_letters += len(target) - len(_ACCENTS.findall(target)) + 2 * len(_IDEOGRAPHS.findall(target))
        characters.update(source, target)
        if len(words) < MOST_WORDS:
            words.update(_LETTERS.findall(f"{source} {target}"))
        number = int.from_bytes(pair_hash(source, target, seed=seed), "big")
        if number in chosen or judge(source, target) is not Verdict.KEPT:
            continue
        if len(least) < max(most, SAMPLE):
            heapq.heappush(least, -number)
        else:
            others = True
            if -number < least[0]:
                continue
            del chosen[-heapq.heapreplace(least, -number)]
        chosen[number] = source, target
    numbers = sorted(chosen)
    return Survey(
        pairs, target_letters, len(characters), min(len(words), MOST_WORDS),
        candidates=tuple(number.to_bytes(8, "big") for number in numbers[:most]),
        others=others or len(numbers) > most,
        identical=identical,
        sample=tuple(chosen[number] for number in numbers[:SAMPLE]),
    )  # fmt: skip


def write_parts(
    corpus: CorpusConfig, parts: Mapping[str, tuple[Path, ...]], held: Mapping[str, frozenset[bytes]], *, seed: int
) -> Held:
    """Writes each pair to the files of one part: the part that has its hash, else ``train``. A repeated pair of a
    held-out part is not written. The lines are unchanged, except that all end in LF."""
    counts = dict.fromkeys(parts, 0)
    written: set[bytes] = set()
    repeats = 0
    with ExitStack() as stack:
        files = {
            part: [stack.enter_context(path.open("w", encoding="utf-8", newline="\n")) for path in paths]
            for part, paths in parts.items()
        }
        for _, source, target in numbered_pairs(corpus):
            digest = pair_hash(source.strip(), target.strip(), seed=seed)
            part = next((name for name, hashes in held.items() if digest in hashes), "train")
            if part != "train":
                if digest in written:
                    repeats += 1
                    continue
                written.add(digest)
            counts[part] += 1
            texts = (f"{source}\t{target}\n",) if len(files[part]) == 1 else (f"{source}\n", f"{target}\n")
            for file, text in zip(files[part], texts, strict=True):
                file.write(text)
    return Held(counts.pop("train"), counts, repeats)


def _pairs(corpus: CorpusConfig) -> Iterator[tuple[str, str]]:
    """Yields the pairs without white space at both ends, as the filters compare them."""
    for _, source, target in numbered_pairs(corpus):
        yield source.strip(), target.strip()
