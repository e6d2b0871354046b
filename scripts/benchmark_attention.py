"""Multi-head dot-product attention: matrix products against torch's fused kernel, at sentence lengths.

    python scripts/benchmark_attention.py [--device cpu] [--precision bfloat16] [--heads 4] [--width 32] [--tokens 4096]

For each length a batch of ``--tokens`` tokens attends to itself under a causal mask, forward and backward, by the
matrix products of ``nmt.attention.multihead.Together`` and by ``torch.nn.functional.scaled_dot_product_attention``, in
turn (A B A B), each on the same projected heads. Prints milliseconds of CPU time (wall time on a GPU), the median of
five, and their ratio; ``nmt.attention.multihead.fused_from`` is taken from it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from measuring import plainly, print_table, report
from torch import Tensor
from torch.nn import functional as F

from nmt.attention import multihead
from nmt.attention.multihead import HeadsAttended, Projected, Together
from nmt.core.device import Compute, compute

LENGTHS = (8, 16, 32, 64, 128, 256, 512)
ROUNDS = 5


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--width", type=int, default=32, help="of a head")
    parser.add_argument("--tokens", type=int, default=4096)
    arguments = parser.parse_args()
    chosen = compute(arguments.device, arguments.precision)
    dtype = getattr(torch, chosen.precision)
    multihead.fused_from = lambda device, dtype: 1 << 30  # the products alone
    together = Together(arguments.width**-0.5, 0.0, causal=True).train()
    for length in LENGTHS:
        shape = (max(1, arguments.tokens // length), arguments.heads, length, arguments.width)
        heads = [torch.randn(shape, device=chosen.device, dtype=dtype, requires_grad=True) for _ in range(3)]
        position_BT = torch.arange(length, device=chosen.device).expand(shape[0], length)

        def products(heads: list[Tensor] = heads, position_BT: Tensor = position_BT) -> Tensor:
            query, keys, values = heads
            attended: HeadsAttended = together(query, position_BT, together.memory(Projected(keys, values), None))
            return attended.context_BTQ

        def fused(heads: list[Tensor] = heads) -> Tensor:
            query, keys, values = heads
            context = F.scaled_dot_product_attention(query, keys, values, is_causal=True)
            return context.transpose(1, 2).flatten(2)

        times: dict[str, list[float]] = {"products": [], "fused": []}
        for _ in range(ROUNDS):
            times["products"].append(milliseconds(products, heads, chosen))
            times["fused"].append(milliseconds(fused, heads, chosen))
        one, other = (statistics.median(each) for each in times.values())
        report(f"attention_{length}_products", one, "ms", chosen)
        report(f"attention_{length}_fused", other, "ms", chosen)
        report(f"attention_{length}_fused_over_products", other / one, "", chosen)
    print_table()


def milliseconds(attend: Callable[[], Tensor], heads: list[Tensor], chosen: Compute, repeats: int = 4) -> float:
    """Of one forward and backward pass, after one that warms up."""
    clock = time.perf_counter if chosen.device.type == "cuda" else time.process_time
    for count in (1, repeats):
        started = clock()
        for _ in range(count):
            context = attend()
            torch.autograd.grad(context, heads, torch.ones_like(context))
        if chosen.device.type == "cuda":
            torch.cuda.synchronize()
    return (clock() - started) / repeats * 1e3


if __name__ == "__main__":
    plainly(main)
