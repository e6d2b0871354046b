"""Download Multi30k, German and English: 29,000 training pairs, 1,014 for validation and 1,000 for test (2016, Flickr).

    python scripts/download_multi30k.py [FOLDER]        # data/multi30k where none is given

Writes six gzip files, each checked by the SHA-256 of its text. Files that are there already and right are kept, so it
can be run again after a lost connection. Needs nothing but Python.

The text is for non-commercial research and education. Cite Elliott et al., "Multi30K: Multilingual English-German Image
Descriptions", 2016 (https://aclanthology.org/W16-3210).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import sys
import urllib.error
import urllib.request
import zlib
from pathlib import Path

SOURCE = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"

SHA256 = {
    "train.de.gz": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "train.en.gz": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "val.de.gz": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "val.en.gz": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "test_2016_flickr.de.gz": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "test_2016_flickr.en.gz": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
}
"""Hash of the text within each file, because the same text may be compressed to other bytes."""

TIMEOUT_S = 60


class DownloadError(Exception):
    """A file cannot be downloaded; the message is one line."""


def text_sha256(data: bytes) -> str | None:
    """Computes the SHA-256 of the text in a gzip file's bytes; None if they are not a gzip file."""
    try:
        return hashlib.sha256(gzip.decompress(data)).hexdigest()
    except (OSError, EOFError, zlib.error):
        return None


def fetch(url: str) -> bytes:
    """Downloads the bytes at a URL."""
    request = urllib.request.Request(url, headers={"User-Agent": "nmt"})  # some servers refuse Python's own user agent
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            data: bytes = response.read()
            return data
    except urllib.error.HTTPError as error:
        raise DownloadError(f"{url}: the server answered {error.code} {error.reason}") from None
    except (OSError, EOFError) as error:
        reason = getattr(error, "reason", error)
        raise DownloadError(f"{url}: not reached ({reason}); is there a network?") from None


def download(folder: Path, source: str = SOURCE) -> None:
    """Put all files into `folder`, fetching those that are missing or wrong.

    Raises:
        DownloadError: A file cannot be had, is not the expected text, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, expected in SHA256.items():
            path = folder / name
            if path.is_file() and text_sha256(path.read_bytes()) == expected:
                print(f"{path}: there already")
                continue
            url = f"{source}/{name}"
            data = fetch(url)
            if text_sha256(data) != expected:
                raise DownloadError(
                    f"{url}: is not the text that was expected (SHA-256 differs); nothing was kept of it"
                )
            part = path.with_name(f"{name}.part")
            part.write_bytes(data)
            os.replace(part, path)
            print(f"{path}: downloaded, {len(data):,} bytes")
    except OSError as error:
        raise DownloadError(f"{error.filename or folder}: {error.strerror or error}") from None


def main() -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("data/multi30k"), help="default: %(default)s")
    arguments = parser.parse_args()
    try:
        download(arguments.folder)
    except DownloadError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"train with it: MULTI30K={arguments.folder} nmt train configs/multi30k-de-en.yaml")
    return 0


if __name__ == "__main__":
    sys.exit(main())
