"""A trained model in the format of another engine, and the engine for a model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.corpus import read_blocks
from nmt.data.vocabulary import EOS
from nmt.export import ctranslate2
from nmt.export.engine import CTranslate2Engine, required
from nmt.search.config import SearchConfig
from nmt.search.engine import Engine, OwnEngine
from nmt.workflows.loading import Trained, load_trained
from nmt.workflows.locate import run_of

ExportFormat = Literal["ctranslate2"]

SAMPLE = 100
"""Sentences that are translated with the model and what was made of it."""

LEAST_ALIKE = 0.9
"""The share of them that must be the same. Where the second best token is as probable as the best, the order in which
products are summed decides."""

_ABOUT = "nmt.json"


def export(model: str | None, overrides: Sequence[str], *, to: ExportFormat, output: Path | None) -> None:
    """Writes a model to a folder, by default ``exported/<format>`` in its run directory, and translates sentences of
    its validation corpus with both. What stands there is replaced. Raises InputError for a model that the engine cannot
    compute and for a folder that holds something else."""
    required()
    trained = load_trained(model, overrides, device="cpu", precision="float32")
    config = trained.experiment.model
    ctranslate2.check(config)
    folder = output or place(trained, to)
    if folder.exists() and not (folder / _ABOUT).exists():
        raise InputError(f"--output {folder}: is there and is no export of ours; name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    ctranslate2.save(trained.model, config, trained.tokenizers, unfinished)
    about = {
        "format": to,
        "checkpoint": trained.checkpoint.resolve().name,
        "vocabulary": trained.tokenizers.fingerprint,
    }
    (unfinished / _ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
    engine = CTranslate2Engine(unfinished, trained.tokenizers, device="cpu", precision="float32", workers=1)
    _compare(trained, engine)
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.replace(folder)
    size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
    log.info(f"wrote {folder} ({size:.1f} MiB)")


def place(trained: Trained, to: ExportFormat) -> Path:
    """Where a model is exported to unless one says otherwise."""
    return run_of(trained.checkpoint) / "exported" / to


def exported_engine(trained: Trained, *, device: str, precision: str) -> CTranslate2Engine:
    """The engine for a model that has been exported. Raises InputError where another checkpoint of it has, or none."""
    folder, name = place(trained, "ctranslate2"), trained.checkpoint.resolve().name
    required()
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder}: is not there; make it with: nmt export {trained.checkpoint}") from None
    except (OSError, ValueError):
        raise InputError(f"{folder / _ABOUT}: is damaged; make it anew with: nmt export {trained.checkpoint}") from None
    if about.get("checkpoint") != name or about.get("vocabulary") != trained.tokenizers.fingerprint:
        raise InputError(
            f"{folder}: was made of {about.get('checkpoint')}, not of {name}; make it anew with: "
            f"nmt export {trained.checkpoint}"
        )
    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    return CTranslate2Engine(
        folder, trained.tokenizers, device=where, precision=precision, workers=torch.get_num_threads()
    )


def _compare(trained: Trained, engine: Engine) -> None:
    sources = _sample(trained)
    search = SearchConfig(beam=1, batch_tokens=trained.experiment.search.batch_tokens)
    own = OwnEngine(trained.model, trained.compute).decode(sources, search)
    theirs = engine.decode(sources, search)
    same = sum(ours[0].tokens == other[0].tokens for ours, other in zip(own, theirs, strict=True))
    log.info(f"{same} of {len(sources)} sentences are translated alike, greedily, in float32")
    if same < LEAST_ALIKE * len(sources):
        raise RuntimeError(f"the exported model translates only {same} of {len(sources)} sentences as ours does")


def _sample(trained: Trained) -> list[list[int]]:
    """Sentences of the validation corpus or, where that is no longer there, subwords at random."""
    valid, source = trained.experiment.data.valid, trained.tokenizers.source
    texts: Sequence[str] = ()
    if valid is not None:
        try:
            texts = next((block.sources for block in read_blocks(valid, SAMPLE)), ())
        except InputError as error:
            log.info(f"compared on random subwords: {error}")
    if encoded := [tokens for tokens in map(source.encode, texts) if tokens]:
        return encoded
    random = np.random.default_rng(1)
    return [random.integers(EOS + 1, source.size, length).tolist() for length in random.integers(1, 30, SAMPLE)]
