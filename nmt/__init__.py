"""nmt: neural machine translation with attention.

    import nmt

    translator = nmt.load("runs/de-en")
    print(translator.translate(["Der Hund schläft."])[0].text)

`import nmt` is cheap; PyTorch is imported when a model is loaded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.workflows.translator import load as load

# Threads of a matrix product that is done sleep until the next one. By default they go on looking for it, and where
# another program has one of the cores, all wait for a thread that the system has put aside: a hundred times as long.
# It is read when PyTorch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    if name == "load":
        from nmt.workflows.translator import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
