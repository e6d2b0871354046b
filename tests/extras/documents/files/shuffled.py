"""Another text with the same tags, as a translation has it."""

from __future__ import annotations

import random
import re
from typing import TypeAlias

Tree: TypeAlias = "str | tuple[str, list[Tree]]"


def shuffled(text: str, draw: random.Random) -> str:
    """Returns a marked text whose words and tags are in another order, in each pair of tags."""
    root: list[Tree] = []
    open_ = [root]
    for part in re.findall(r"<[^<>]*>|[^<>\s]+", text):
        if part.startswith("</"):
            open_.pop()
        elif part.startswith("<") and not part.endswith("/>"):
            inner: list[Tree] = []
            open_[-1].append((part, inner))
            open_.append(inner)
        else:
            open_[-1].append(part)
    assert open_ == [root], text
    return _written(root, draw)


def _written(trees: list[Tree], draw: random.Random) -> str:
    parts = [tree if isinstance(tree, str) else f"{tree[0]}{_written(tree[1], draw)}</{tree[0][1:]}" for tree in trees]
    return " ".join(draw.sample(parts, k=len(parts)))
