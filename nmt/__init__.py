"""nmt: neural machine translation with attention.

    >>> import nmt
    >>> translator = nmt.load("runs/de-en")
    >>> translator.translate("Der Hund bellt oft.").text  # such as "The dog often barks."
    '...'

`import nmt` is cheap; PyTorch is imported when a model is loaded or trained. Errors of input are `nmt.InputError`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.core.errors import InputError
from nmt.core.version import VERSION

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from torch import Tensor
    from torch import device as Device

    from nmt.api import align, evaluate, load, train
    from nmt.extras.glossary.glossary import Glossary
    from nmt.search.config import SearchConfig
    from nmt.search.engine import Engine
    from nmt.search.hypothesis import Constraint, Search
    from nmt.translator.aligner import LearntAligner
    from nmt.translator.loading import TrainedModel
    from nmt.translator.segmentation import MarkedLine
    from nmt.translator.translator import EngineName, Translator

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
    engine: EngineName = "nmt",
    wait: int | None = None,
    target_language: str | None = None,
    glossary: Glossary | str | Path | None = None,
) -> Translator:
    """Loads a translator from a run directory, a checkpoint folder or a config; None means the run under ``runs/`` that
    was trained last.

    ``overrides`` are ``dotted.key=value`` changes of the run's config, such as ``search.beam=1``. The models of
    ``ensemble``, with the same vocabulary, translate together with the first, by the mean of their probabilities at
    each step. ``engine`` is the toolkit's own search or, for a model that ``nmt export`` has written, CTranslate2,
    whose precision is then ``precision``. ``wait`` is k of ``nmt.extras.streaming.wait_k``. ``target_language`` is for
    a model of several; ``translator.to`` chooses another one, or another device. Translations use the terms of
    ``glossary``, an object or a file; see ``nmt.extras.glossary``. Raises InputError; ``nmt.load`` is the same, with
    errors in the terms of Python.
    """
    import torch

    from nmt.config.yaml_source import Override
    from nmt.translator.loading import load_trained
    from nmt.translator.translator import Translator, own_engine

    device = str(device)
    if target_language is not None:
        overrides = [*overrides, Override.text("search.to", "--to", target_language)]
    accelerate()
    threads = torch.get_num_threads()  # now, because CTranslate2 sets it to one
    if engine == "ctranslate2" and ensemble:
        raise InputError("--ensemble: --engine ctranslate2 knows one model; use --engine nmt")
    trained = load_trained(
        model, overrides, device=device, precision="float32" if engine == "ctranslate2" else precision
    )
    searcher: Engine
    if engine == "ctranslate2":
        from nmt.extras.export.export_model import exported_engine

        searcher = exported_engine(trained, device=device, precision=precision)
    else:
        others = [load_trained(name, device=device, precision=precision) for name in ensemble]
        searcher = own_engine(trained, others, constrained_search)
    translator = Translator(trained, trained.experiment.search, searcher, marked_line, threads, learnt_aligner)
    if glossary is not None:
        from nmt.extras.glossary.terminology import with_glossary

        translator = with_glossary(translator, glossary)
    if wait is None:
        return translator
    from nmt.extras.streaming.wait_k import waiting

    return waiting(translator, wait)


def accelerate() -> None:
    """Registers the implementations of ``nmt.extras.accel``; without that package the textbook formulas run."""
    if find_spec("nmt.extras") is not None:
        from nmt.extras.accel.optimize import register

        register()


def on_idle_cores(before: int | None = None) -> AbstractContextManager[bool]:
    """Context manager of ``nmt.extras`` that chooses the threads for training on a CPU; ``before`` is the number that
    the training began with."""
    if find_spec("nmt.extras") is None:
        from contextlib import nullcontext

        return nullcontext(False)
    from nmt.extras.accel.threads import on_idle_cores as threads

    return threads(before)


def constrained_search(
    config: SearchConfig, phrases: tuple[tuple[Constraint, ...], ...], follows_word_V: Tensor | None = None
) -> Search:
    """Creates the search of ``nmt.extras`` for translations that contain phrases."""
    from nmt.extras.constraints.search import constrained_search as search

    return search(config, phrases, follows_word_V)


def marked_line(line: str, stand_in: str | None) -> MarkedLine:
    """Removes the markup of a line by ``nmt.extras``, for ``search.markup``."""
    from nmt.extras.markup.transfer import transferred_line

    return transferred_line(line, stand_in)


def learnt_aligner(trained: TrainedModel) -> LearntAligner:
    """Loads the word aligner of ``nmt.extras``, for method ``trained``."""
    from nmt.extras.word_aligner.model_aligner import load_model_aligner

    return load_model_aligner(trained)
