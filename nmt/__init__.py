"""nmt: neural machine translation with attention.

    >>> import nmt
    >>> translator = nmt.load("runs/de-en")
    >>> translator.translate(["Der Hund schläft."])[0].text  # such as "The dog is sleeping."
    '...'

`import nmt` is cheap; PyTorch is imported when a model is loaded.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from nmt.core.version import VERSION

if TYPE_CHECKING:
    from nmt.translator.translator import load as load

# Threads that have done their part of a matrix product look out for the next one for some 20 microseconds, and then
# sleep. By default they look out for a thousand, and where another program has one of the cores, all wait for a thread
# that the system has put aside: measured, that takes up to a hundred times as long. Read when PyTorch is imported.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "20000")

__version__ = VERSION
__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    if name == "load":
        from nmt.translator.translator import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
