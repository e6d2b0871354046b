"""How many kernels a CPU's library keeps.

oneDNN makes a kernel for each shape of matrices that it meets, PyTorch's layer over it keeps them by shape as well, by
default a thousand each, and batches of sentences have ever new shapes.
"""

from __future__ import annotations

import os


def keep_half() -> None:
    """For training: keeps 512 of oneDNN's, unless the environment says otherwise. A thousand come to several GiB in a
    long one; far fewer than half of them would cost speed, because kernels are then made again and again."""
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "512")


def keep_few() -> None:
    """For translation, in this process and those that it starts: keeps 128 of each, unless the environment says
    otherwise. Call it before PyTorch is imported. With the defaults translation of short lines grew from 470 to 890 MiB
    within ten windows, and was no faster."""
    for name in ("LRU_CACHE_CAPACITY", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
        os.environ.setdefault(name, "128")
