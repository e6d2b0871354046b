"""A small corpus to try nmt with: German-English sentences of a hand-written grammar, with gold word links."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from nmt.core.errors import InputError
from nmt.data.config import CorpusConfig
from nmt.workflows.init_config import new_folder

PLACES = (Path(__file__).with_name("de-en"), Path(__file__).parents[3] / "data" / "de-en")
"""The corpus in an installed package, and in a clone."""

PAIRS = {"train": 4000, "valid": 200, "test": 200}
"""Number of pairs of each part, which is small, so that training takes minutes."""


def write_example(folder: Path) -> dict[str, CorpusConfig]:
    """Writes the parts of the corpus to a new folder, and the gold links of ``test``; returns the parts."""
    corpus = next((place for place in PLACES if place.is_dir()), None)
    if corpus is None:
        raise InputError("--example: this installation of nmt came without its corpus; give --source and --target")
    with new_folder(folder) as partial:
        for part, pairs in PAIRS.items():
            for ending in ("de", "en", *(["align"] if part == "test" else [])):
                with (corpus / f"{part}.{ending}").open(encoding="utf-8") as lines:
                    (partial / f"{part}.{ending}").write_text("".join(islice(lines, pairs)), encoding="utf-8")
    return {part: CorpusConfig(source=folder / f"{part}.de", target=folder / f"{part}.en") for part in PAIRS}
