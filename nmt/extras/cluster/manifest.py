"""The model and options of the translations in a folder, so that resumed work does not mix two of them.
``.manifest.json``:

    {"format": 1, "made_with": {"model": …, "search": {…}, …}, "shards": {"a.txt": {"size": …, "mtime_ns": …}, …}}

It is written before any translation. A translation is complete or does not exist, so existing ones are not made again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt.config.yaml_source import dotted, leaves
from nmt.core.errors import InputError
from nmt.core.files import read_json, replace_file
from nmt.extras.cluster.shards import Shard

FILE = ".manifest.json"

_FORMAT = 1


@dataclass(frozen=True)
class ShardManifest:
    """The manifest of an output folder."""

    made_with: Mapping[str, Any] = field(default_factory=dict)
    """Everything that a translation is a function of, except for the shard."""
    shards: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Size and time of each shard at the start of its translation, by its name."""

    @classmethod
    def load(cls, folder: Path) -> ShardManifest | None:
        """Reads the manifest of a folder in which translations have started; returns None if there is none. Raises
        InputError if it is damaged."""
        path = folder / FILE
        try:
            tree = read_json(path)
            if tree["format"] != _FORMAT:
                raise ValueError
            if not all(_is_name(name) for name in tree["shards"]):
                raise ValueError("a shard that can have no file")
            return cls(dict(tree["made_with"]), dict(tree["shards"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"{path}: is damaged, or of another version of nmt; use another --output") from None

    def save(self, folder: Path) -> None:
        """Writes the manifest. Raises OSError."""
        tree = {"format": _FORMAT, "made_with": self.made_with, "shards": self.shards}
        replace_file(folder / FILE, json.dumps(tree, indent=1, ensure_ascii=False) + "\n")

    def has_any(self, folder: Path) -> bool:
        """Returns True if the folder has any translation that others must match."""
        return any((folder / name).exists() for name in self.shards)

    def check(self, made_with: Mapping[str, Any], folder: Path) -> None:
        """Raises InputError, which names the differences, if translations would be made with other settings than the
        existing ones."""
        trees = (self.made_with, made_with)
        before, now = ({dotted(place): value for place, value in leaves(dict(tree))} for tree in trees)
        for key in [*now, *before]:
            values = [tree.get(key) for tree in (before, now)]
            if values[0] != values[1]:
                old, new = ("unset" if value is None else json.dumps(value, ensure_ascii=False) for value in values)
                what = f"with another {_LONG[key]}" if key in _LONG else f"with {key} {old}, not {new}"
                raise InputError(f"--output {folder}: was begun {what}; keep its settings, or name another folder")

    def remaining(self, shards: Sequence[Shard], folder: Path) -> list[Shard]:
        """Lists the shards without a translation. Raises InputError for a translation whose shard has changed, and for
        a file that nmt has not written."""
        remaining = []
        for shard in shards:
            target = folder / shard.name
            if not target.exists():
                remaining.append(shard)
            elif shard.name not in self.shards:
                raise InputError(f"{target}: is there, and no translation of ours; name another --output")
            elif self.shards[shard.name] != _about(shard):
                raise InputError(f"{shard.path}: has changed since {target} was written; delete that to go on")
        return remaining

    def begin(self, made_with: Mapping[str, Any], shards: Sequence[Shard]) -> ShardManifest:
        """Returns the manifest with shards added that are about to be translated."""
        return ShardManifest(made_with, {**self.shards, **{shard.name: _about(shard) for shard in shards}})


def remove_leftovers(folder: Path, shards: Sequence[Shard]) -> None:
    """Removes the files that killed processes have left. No process may be working in the folder."""
    begun = tuple(f".{shard.name}.partial-" for shard in shards)
    for path in list(folder.iterdir()):
        if path.name.startswith(begun):
            path.unlink(missing_ok=True)


_LONG = {"model": "model", "vocabulary": "vocabulary", "exported": "exported model"}
"""Facts that a manifest has as hashes, and their names for messages."""


def _is_name(name: str) -> bool:
    """Returns True if a file in the folder itself can have this name."""
    return Path(name).name == name and "\0" not in name and len(name.encode("utf-8", "surrogatepass")) <= 255


def _about(shard: Shard) -> dict[str, int]:
    return {"size": shard.size, "mtime_ns": shard.mtime_ns}
