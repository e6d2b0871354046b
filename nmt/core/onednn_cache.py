"""Limits of the caches in which oneDNN, and PyTorch's layer over it, keep compiled primitives.

Both compile a primitive for each shape of matrices and keep a thousand by default. Batches of sentences have ever new
shapes, so the caches fill up. Variables that the user has set in the environment are respected.
"""

from __future__ import annotations

import os


def limit_cache_for_training() -> None:
    """Keep 512 primitives of oneDNN. A thousand take several GiB in a long training; with far fewer than 512 the time
    to compile them again is noticeable."""
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "512")


def limit_caches_for_translation() -> None:
    """Keep 128 primitives in each cache of this process and its children. Call it before PyTorch is imported.

    With the defaults, translation of short lines grew from 470 to 890 MiB within ten windows and was no faster.
    """
    for name in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
        os.environ.setdefault(name, "128")
