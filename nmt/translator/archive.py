"""Models in an archive, as `nmt export --to nmt` writes them."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from pathlib import Path

from nmt import experiment as experiments
from nmt.core.errors import InputError
from nmt.core.files import content_hash
from nmt.data.atomic_folder import locked, replace_folder

PACKED = re.compile(
    r"[^/]+/([^/]+\.(yaml|json|model|safetensors|md)|checkpoints/[^/]+/(.+\.(safetensors|json)|SHA256SUMS))"
)
"""Files of a run directory that are read from an archive; the weights, its largest part, are hardly compressible."""

MOST_PACKED = 20
"""Maximum size of the files, as a multiple of the size of the archive, so that a malicious archive cannot fill the
disk."""


def unpacked(archive: Path) -> Path:
    """Unpacks an archive that `nmt export --to nmt` has written into the user's cache, once, and returns the run
    directory."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "nmt"
    folder = cache / content_hash(archive).hex()[:16]
    with locked(folder):
        try:
            if not folder.exists():
                with zipfile.ZipFile(archive) as file, replace_folder(folder) as unfinished:
                    entries = [entry for entry in file.infolist() if PACKED.fullmatch(entry.filename)]
                    if sum(entry.file_size for entry in entries) > MOST_PACKED * archive.stat().st_size:
                        raise zipfile.BadZipFile("it is far larger unpacked")
                    file.extractall(unfinished, entries)  # which lets no name lead out of the folder
        except (OSError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(f"{archive}: cannot be unpacked: {error}") from None
    found = sorted(folder.glob(f"*/{experiments.FILE}"))
    if len(found) != 1:
        raise InputError(f"{archive}: holds no model; make one with nmt export --to nmt --output {archive}")
    return found[0].parent
