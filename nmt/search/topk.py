"""The largest entries of long rows, what makes them probabilities, and how many rows to look at together.

On a CPU ``topk`` and ``argmax`` look at one entry after another, which takes as long as the product that made them;
``amax`` over a dimension that is not the last looks at many at once. So a row is cut into parts, the maximum formed of
the entries at the same place of each, and only what stands under the largest maxima is looked at one by one.

Shapes: N rows, M groups of rows, V entries of a row, W places of a part, K wanted, P parts.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from nmt.nn import native

PARTS = 8
SHORT = 1024
"""Rows with fewer entries are not cut."""

TOGETHER = 1 << 22
"""Logits that are formed and read together on a CPU, 16 MB of them: a batch has several times as many. Against all at
once the output layer takes a seventh less time in 8-bit integers and as long in the others; a quarter as many still
saves integers a fifth, but costs float32 a tenth, whose products want more rows."""


def parts(rows: int, vocabulary: int, device: torch.device, *, together: int = 1) -> Iterator[slice]:
    """Cuts rows of logits into parts for a CPU's cache and memory, never between ``together`` rows of a group."""
    if device.type != "cpu":
        yield slice(0, rows)
        return
    size = max(TOGETHER // (vocabulary * together), 1) * together
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def log_normalizer(logits_NV: Tensor) -> Tensor:
    """What to take from the logits of a row, in float32 or wider, for log-probabilities: (N,). A search that takes it
    from what few it chooses spares a pass that writes as much as it reads."""
    kernels = native.kernels(logits_NV)
    if kernels is None or not logits_NV.is_contiguous():
        return logits_NV.logsumexp(dim=1)
    return kernels.log_normalizer(logits_NV)


def most_probable(logits_NV: Tensor) -> Tensor:
    """The place of the largest entry of each row, (N,)."""
    kernels = native.kernels(logits_NV)
    if kernels is None or not logits_NV.is_contiguous():
        return largest(logits_NV, 1)[1][:, 0]
    return kernels.argmax(logits_NV)


def largest(x_NV: Tensor, count: int, *, together: int = 1, summand_N: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The ``count`` largest entries of each group of ``together`` neighbouring rows, largest first, and their places
    in the group, (M, K) both: what ``topk`` gives for rows of ``together`` x V entries, but for the order of equal
    ones. ``summand_N`` is added to each row first, but only where it counts: not to all entries."""
    vocabulary = x_NV.shape[1]
    kernels = native.kernels(x_NV) if x_NV.dtype == torch.float32 and x_NV.is_contiguous() else None
    if kernels is not None:
        return kernels.largest(x_NV, count, together, summand_N)
    if vocabulary < SHORT or x_NV.device.type != "cpu":
        summed_NV = x_NV if summand_N is None else x_NV + summand_N[:, None]
        values_MK, index_MK = summed_NV.view(-1, together * vocabulary).topk(count, dim=1)
        return values_MK, index_MK
    width = vocabulary // PARTS
    rest = vocabulary - PARTS * width
    maxima_NW = x_NV[:, : PARTS * width].view(-1, PARTS, width).amax(dim=1)
    if rest:
        torch.maximum(maxima_NW[:, :rest], x_NV[:, PARTS * width :], out=maxima_NW[:, :rest])
    if summand_N is not None:
        maxima_NW += summand_N[:, None]  # a larger one stays so, however sums are rounded
    # Among the K largest entries there is none under a smaller maximum: each of the K larger ones has an entry under it
    # that is larger.
    found_MK = maxima_NW.view(-1, together * width).topk(count, dim=1).indices
    row_MK1, place_MK1 = (found_MK // width)[:, :, None], (found_MK % width)[:, :, None]
    entry_MKP = place_MK1 + width * torch.arange(PARTS + bool(rest), device=x_NV.device)
    is_there_MKP = entry_MKP < vocabulary
    index_MX = (row_MK1 * vocabulary + entry_MKP.clamp(max=vocabulary - 1)).flatten(1)
    first_M1 = torch.arange(0, x_NV.numel(), together * vocabulary, device=x_NV.device)[:, None]
    entries_MX = x_NV.reshape(-1).index_select(0, (first_M1 + index_MX).flatten()).view_as(index_MX)
    if summand_N is not None:
        rows_MX = row_MK1.expand_as(entry_MKP).flatten(1)
        entries_MX = entries_MX + summand_N.view(-1, together).gather(1, rows_MX)
    values_MK, chosen_MK = entries_MX.masked_fill(~is_there_MKP.flatten(1), -torch.inf).topk(count, dim=1)
    return values_MK, index_MX.gather(1, chosen_MK)
