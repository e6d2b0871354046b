"""Files that a configuration names: they are searched in the working directory, then beside the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.config.file_path import expand
from nmt.config.yaml_source import Document, Place, dotted
from nmt.core.errors import InputError

SECTIONS = ("train", "valid", "test", "old_domain", "subwords")
KEYS = ("source", "target", "pairs", "links", "model")


def find_beside(document: Document, configuration: Path) -> None:
    """Replaces each path of the section `data` that does not exist by the one beside the configuration, if that
    exists."""
    for node, key, _ in _paths(document):
        path = _expanded(node[key])
        if path is not None and not path.is_absolute() and not path.exists():
            beside = configuration.parent / path
            if beside.exists():
                node[key] = str(beside)


def refuse_missing(document: Document) -> None:
    """Raises InputError with the places of all corpus files that are missing or not files. The subword model of a run
    that has already started may be missing."""
    faults = []
    for node, key, place in _paths(document):
        path = _expanded(node[key])
        if path is None or path.is_file() or key == "model":
            continue
        from nmt.data.corpus import open_bytes

        try:
            open_bytes(path).close()
        except InputError as error:
            where = "" if path.exists() or path.is_absolute() else ", nor is it beside the configuration"
            faults.append(f"{document.mark(place)}: {dotted(place)}: {error}{where}")
    if faults:
        raise InputError(*faults)


def _paths(document: Document) -> Iterator[tuple[dict[str, Any], str, Place]]:
    """Yields the paths in the section `data`: the node of each, its key in the node, and its place in the document."""
    data: Any = document.tree.get("data")
    for section in SECTIONS if isinstance(data, dict) else ():
        node = data.get(section)
        for index, entry in enumerate(node) if isinstance(node, list) else [(None, node)]:
            for key in KEYS if isinstance(entry, dict) else ():
                if isinstance(entry.get(key), str):
                    yield entry, key, ("data", section, *([] if index is None else [index]), key)


def _expanded(path: str) -> Path | None:
    try:
        return expand(Path(path))
    except ValueError:  # of an unknown variable, which validation reports
        return None
