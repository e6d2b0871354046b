"""nmt: neural machine translation with attention.

    >>> import nmt
    >>> translator = nmt.load("runs/de-en")
    >>> translator.translate("Der Hund bellt oft.").text  # such as "The dog often barks."
    '...'

`import nmt` is cheap; PyTorch is imported when a model is loaded or trained. Errors of input are `nmt.InputError`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.core.errors import InputError
from nmt.core.version import VERSION

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from torch import device as Device

    from nmt.api import align, evaluate, load, train
    from nmt.translator.loading import TrainedModel
    from nmt.translator.translator import Engine, Translator

    OpenEngine = Callable[[TrainedModel, str, str], Engine]

# A thread that has done its part of a matrix product waits actively for the next one for some 20 microseconds, then
# sleeps. The default is a thousand: where another program has one of the cores, all threads then wait for a thread that
# the system has suspended, measured up to a hundred times as long. Read when PyTorch is imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")

__version__ = VERSION
__all__ = ["InputError", "Translator", "__version__", "align", "evaluate", "load", "train"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nmt import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return __all__


def load_translator(
    model: str | Path | None = None,
    *,
    device: str | Device = "auto",
    precision: str = "auto",
    overrides: Sequence[str] = (),
    ensemble: Sequence[str | Path] = (),
    engine: str = "nmt",
    wait: int | None = None,
    target_language: str | None = None,
    glossary: object = None,
    dictionary: str | Path | None = None,
    neighbors: str | Path | None = None,
    confidence: object = None,
) -> Translator:
    """Loads a translator from a run directory, a checkpoint folder or a config; None means the run under ``runs/`` that
    was trained last.

    ``overrides`` are ``dotted.key=value`` changes of the run's config, such as ``search.beam=1``. The models of
    ``ensemble``, of the same vocabulary, translate together with the first, each step by the mean of their
    probabilities. ``engine`` translates: our own search, for a model that ``nmt export`` has written ``ctranslate2``,
    whose precision is then ``precision``, or ``auto``, the faster of them. ``wait`` is k of `nmt translate --wait`.
    ``target_language`` is one of a model of several; ``translator.to`` chooses another, or another device. Translations
    have the terms of ``glossary``, the file of `nmt translate --glossary` or the same as an object, or the entries of
    the file ``dictionary`` for rare words, and with ``confidence=True`` the confidence of `nmt translate --confidence`.
    They follow the similar pairs of ``neighbors``, the file of `nmt translate --neighbors` or ``train``.
    Raises InputError; ``nmt.load`` is the same, with errors in words of Python.
    """
    from nmt import plugins
    from nmt.config.yaml_source import Override
    from nmt.core import log
    from nmt.core.cpu import thread_count
    from nmt.translator.loading import load_trained
    from nmt.translator.translator import Translator, torch_engine

    device = str(device)
    if target_language is not None:
        overrides = [*overrides, Override.text("search.to", "--to", target_language)]
    threads = thread_count()
    # in this order: wait refuses terms, and neighbors a model that waits
    parts = {"glossary": glossary, "dictionary": dictionary, "wait": wait, "neighbors": neighbors}
    own = [name for name, value in {"ensemble": ensemble, **parts}.items() if value]
    if engine == "auto" and own:
        log.info(f"engine: nmt's own: --{own[0]} needs it")
        engine = "nmt"
    if engine == "nmt":
        import torch

        accelerate()
        threads = torch.get_num_threads()
        trained = load_trained(model, overrides, device=device, precision=precision)
        others = [load_trained(name, device=device, precision=precision) for name in ensemble]
        if wait is not None and len({each.experiment.training.wait is None for each in [trained, *others]}) > 1:
            raise InputError("--wait: some models of the ensemble were trained with training.wait; use those or others")
        searcher = torch_engine(trained, others)
    else:
        if ensemble:
            raise InputError(f"--ensemble: --engine {engine} knows one model; use --engine nmt")
        of_engine: OpenEngine = plugins.find("engines", engine, f"--engine {engine}", ["nmt"])
        precision_of_model = precision if engine == "auto" else "float32"
        trained = load_trained(model, overrides, device=device, precision=precision_of_model, before_use=accelerate)
        searcher = of_engine(trained, device, precision)
    translator = Translator(trained, trained.experiment.search, searcher, threads)
    for part, option in {**parts, "confidence": confidence}.items():
        if option is not None and option is not False:
            extended: Callable[[Translator, object], Translator] = plugins.find("parts", part, f"--{part}")
            translator = extended(translator, option)
    return translator


def accelerate() -> None:
    """Puts faster implementations in place, where a plug-in has such; without them the textbook bodies run."""
    from nmt import plugins

    if plugins.has("parts", "accelerate"):
        plugins.find("parts", "accelerate", "")()


def on_idle_cores(before: int | None = None) -> AbstractContextManager[bool]:
    """The threads of a plug-in to train with on a CPU, true where other programs keep cores busy; ``before``: those
    that the training began with."""
    from contextlib import nullcontext

    from nmt import plugins

    if not plugins.has("parts", "training_threads"):
        return nullcontext(False)
    threads: Callable[[int | None], AbstractContextManager[bool]] = plugins.find("parts", "training_threads", "")
    return threads(before)
