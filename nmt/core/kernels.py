"""How many kernels a CPU's library keeps."""

from __future__ import annotations

import os

KEPT = 128
"""For each kind of product. By default a thousand: as batches come in ever new sizes, translation of short lines grew
so from 470 to 890 MiB within ten windows, and was no faster than with these."""


def keep_few() -> None:
    """Has oneDNN and PyTorch's layer over it keep few of the kernels that they make for each size of a product, unless
    the environment says otherwise. Read when they are first used, in this process and those that it starts."""
    for name in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(KEPT))
