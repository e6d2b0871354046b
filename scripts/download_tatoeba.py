"""Download sentence pairs of tatoeba.org, as manythings.org/anki collects them, and split them in three parts.

    python scripts/download_tatoeba.py [FOLDER]                     # German and English, to data/tatoeba-de-en
    python scripts/download_tatoeba.py --language es                # Spanish and English, to data/tatoeba-es-en
    python scripts/download_tatoeba.py --archive deu-eng.zip        # an archive that is there already

Writes six gzip files: train, valid and test, source sentences and their English translations. Many sentences have
several translations, so pairs are split by sentence: of those drawn for valid and test no sentence, on either side,
occurs twice or in train; pairs that would repeat one are left out of train. The same archive and seed give the same
bytes. Needs nothing but Python.

The sentences are under CC BY 2.0 FR: credit tatoeba.org and their authors, whom the archive names.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import random
import sys
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from download_multi30k import DownloadError, fetch

SOURCE = "https://www.manythings.org/anki"

LANGUAGES = {"de": "deu", "es": "spa", "fr": "fra", "it": "ita", "nl": "nld", "pt": "por", "ru": "rus"}
"""Names of languages in the archives."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class Parts:
    """The split of a corpus."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]
    left_out: int
    """Number of pairs with a sentence of valid or test that are left out."""


def read_pairs(archive: bytes, name: str) -> list[Pair]:
    """The different pairs of an archive, source and English, in its order. A line of its text is English, TAB, source,
    maybe TAB and the authors.

    Raises:
        DownloadError: It is no such archive; ``name`` is its name in the message.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as files:
            texts = [file for file in files.namelist() if file.endswith(".txt") and not file.startswith("_")]
            if len(texts) != 1:
                raise DownloadError(f"{name}: holds {len(texts)} texts of pairs instead of one")
            lines = files.read(texts[0]).decode("utf-8-sig").removesuffix("\n").split("\n")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError) as error:
        raise DownloadError(f"{name}: is no archive of sentence pairs ({error})") from None
    pairs: dict[Pair, None] = {}
    for number, line in enumerate(lines, 1):
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) < 2 or not all(columns[:2]):
            raise DownloadError(f"{name}: line {number} of {texts[0]} is not English, TAB, its translation")
        pairs[columns[1], columns[0]] = None
    return list(pairs)


def split(pairs: Sequence[Pair], *, valid: int, test: int, seed: int) -> Parts:
    """Draw ``valid`` and ``test`` pairs such that none of their sentences is in another pair of the result.

    Raises:
        DownloadError: There are too few pairs.
    """
    shuffled = random.Random(seed).sample(pairs, len(pairs))
    held_out: list[Pair] = []
    sentences: tuple[set[str], set[str]] = (set(), set())
    rest = []
    for pair in shuffled:
        if len(held_out) < valid + test and pair[0] not in sentences[0] and pair[1] not in sentences[1]:
            held_out.append(pair)
            for side, sentence in zip(sentences, pair, strict=True):
                side.add(sentence)
        else:
            rest.append(pair)
    train = [pair for pair in rest if pair[0] not in sentences[0] and pair[1] not in sentences[1]]
    if len(held_out) < valid + test or not train:
        raise DownloadError(f"{len(pairs):,} pairs are too few to hold {valid:,} and {test:,} out")
    return Parts(train, held_out[:valid], held_out[valid:], len(rest) - len(train))


def write(parts: Parts, folder: Path, language: str) -> None:
    """Write each part to two gzip files, which are complete or do not exist."""
    for part, pairs in (("train", parts.train), ("valid", parts.valid), ("test", parts.test)):
        for side, ending in enumerate((language, "en")):
            path = folder / f"{part}.{ending}.gz"
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            partial = path.with_name(f"{path.name}.part")
            partial.write_bytes(gzip.compress(text.encode(), mtime=0))
            os.replace(partial, path)
        print(f"{folder / part}.{language}.gz, .en.gz: {len(pairs):,} pairs")


def download(
    folder: Path,
    *,
    language: str = "de",
    archive: Path | None = None,
    source: str = SOURCE,
    valid: int = 1000,
    test: int = 2000,
    seed: int = 1,
) -> None:
    """Fill ``folder`` from ``archive``, or from the one that is fetched.

    Raises:
        DownloadError: The archive cannot be had, is none, or is too small; or a file cannot be read or written.
    """
    url = f"{source}/{LANGUAGES[language]}-eng.zip"
    try:
        if any(folder.glob("*.gz")):
            raise DownloadError(f"{folder}: holds a corpus already; delete it, or name another folder")
        data = fetch(url) if archive is None else archive.read_bytes()
        pairs = read_pairs(data, url if archive is None else str(archive))
        parts = split(pairs, valid=valid, test=test, seed=seed)
        folder.mkdir(parents=True, exist_ok=True)
        write(parts, folder, language)
    except OSError as error:
        raise DownloadError(f"{error.filename or folder}: {error.strerror or error}") from None
    print(f"{len(pairs):,} different pairs; {parts.left_out:,} with a sentence of valid or test are left out of train")


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="default: data/tatoeba-LANGUAGE-en")
    parser.add_argument("--language", choices=sorted(LANGUAGES), default="de", help="default: %(default)s")
    parser.add_argument("--archive", type=Path, metavar="FILE", help="the zip file, where it is there already")
    parser.add_argument("--seed", type=int, default=1, help="another seed holds out other pairs")
    arguments = parser.parse_args()
    folder = arguments.folder or Path(f"data/tatoeba-{arguments.language}-en")
    try:
        download(folder, language=arguments.language, archive=arguments.archive, seed=arguments.seed)
    except DownloadError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if arguments.language == "de":
        print(f"train with it: TATOEBA={folder} nmt train configs/tatoeba-de-en.yaml")
    return 0


if __name__ == "__main__":
    sys.exit(main())
