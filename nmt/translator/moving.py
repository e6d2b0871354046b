"""A translator on another device."""

from __future__ import annotations

from dataclasses import replace

from nmt.core.errors import InputError
from nmt.search.engine import TorchEngine
from nmt.translator.loading import load_trained
from nmt.translator.translator import Translator


def moved(translator: Translator, device: str) -> Translator:
    """Creates a translator with the same weights, read from the checkpoint again, on a device in the same precision.
    Raises InputError if a language is given instead of a device, and for an engine that cannot be moved."""
    trained = translator.trained
    if device in trained.experiment.data.target_languages:
        raise InputError(f"device={device!r}: is a language; write to(target_language={device!r})")
    if not isinstance(translator.engine, TorchEngine) or translator.engine.model is not translator.model:
        raise InputError(f"device={device!r}: this engine or ensemble stays where it is; use nmt.load with device")
    loaded = load_trained(trained.checkpoint.resolve(), device=device, precision=trained.compute.precision)
    engine = replace(translator.engine, model=loaded.model, compute=loaded.compute)
    return replace(translator, trained=replace(loaded, experiment=trained.experiment), engine=engine)
