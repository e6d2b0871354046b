"""A process that translates windows of lines for ``nmt.translator.workers``."""

from __future__ import annotations

import gc
import signal

import torch

from nmt.core import log
from nmt.translator.translator import Translator
from nmt.translator.windows import OutputOptions, Window, WindowTranslation
from nmt.translator.workers import LoadOptions

_state: tuple[Translator, OutputOptions] | None = None


def initialize(loading: LoadOptions, options: OutputOptions) -> None:
    """Loads the translator of this process, which has one thread."""
    global _state
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the first process ends this one
    log.set_verbosity(log.Verbosity.SILENT)
    torch.set_num_threads(1)
    translator = loading.load(
        loading.model,
        device=loading.device,
        precision=loading.precision,
        overrides=loading.overrides,
        ensemble=loading.ensemble,
    )
    _state = translator, options
    gc.freeze()  # a full collection would scan all of PyTorch, a tenth of a second


def translate(window: Window) -> WindowTranslation:
    """Translates a window."""
    assert _state is not None
    translator, options = _state
    return options.translate(translator, window)
