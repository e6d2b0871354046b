"""``--engine auto``: CTranslate2 where it computes what our own engine does, and our own elsewhere. Like the engine of
CTranslate2, this module does not import torch."""

from __future__ import annotations

from contextlib import suppress

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import replace_file
from nmt.extras.exchange.export import engine
from nmt.translator.loading import TrainedModel
from nmt.translator.translator import Engine, torch_engine

PRECISIONS = {"auto": "float32", "float32": "float32", "int8": "int8"}
"""The precision of CTranslate2 for each of ours. Its own ``auto`` may choose 8-bit integers."""


def automatic_engine(trained: TrainedModel, device: str, precision: str) -> Engine:
    """CTranslate2 for a model that it can compute, on a CPU, and otherwise our own engine; a message tells why.

    The model is exported into its run directory by the first call, and again when its weights have changed. The export
    is not used if it translates sentences of the validation corpus otherwise than our own engine; see
    ``nmt.extras.exchange.export.export_model``.
    """
    try:
        _prepare(trained, device, precision)
        return engine.exported_engine(trained, "cpu", PRECISIONS[precision])
    except (InputError, OSError) as error:
        reason, _, _ = str(error).partition("; ")
        log.info(f"engine: nmt's own: {reason}")
    return torch_engine(trained, [])


def _prepare(trained: TrainedModel, device: str, precision: str) -> None:
    """Exports the model unless it is exported. Raises InputError if CTranslate2 is not to be used."""
    gpus = engine.required().get_cuda_device_count()
    if device not in ("auto", "cpu") or (device == "auto" and gpus):
        raise InputError(f"--device {device}: it is for CPUs")
    if precision not in PRECISIONS:
        raise InputError(f"--precision {precision}: is not one of {', '.join(PRECISIONS)}")
    engine.check_search(trained.experiment.search)
    with suppress(InputError):
        engine.exported_files(trained)
        return
    from nmt.extras.exchange.export import ctranslate2
    from nmt.extras.exchange.export.export_model import export

    ctranslate2.check(trained.experiment.model)
    refused = engine.export_folder(trained, "ctranslate2.differs")
    weights = engine.weights_hash(trained)
    if refused.exists() and refused.read_text(encoding="utf-8") == weights:
        raise InputError(f"{refused}: the export of these weights translates otherwise")
    try:
        export(str(trained.checkpoint.resolve()), [], to="ctranslate2", output=None)
    except RuntimeError as error:  # too few translations are the same
        replace_file(refused, weights)
        raise InputError(str(error)) from error
