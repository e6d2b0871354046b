"""Multi-head dot-product attention: matrix products, torch's fused kernel and our kernels, at sentence lengths.

    python scripts/benchmark_attention.py [--device cpu] [--precision bfloat16] [--heads 4] [--width 32] [--tokens 4096]
                                          [--dropout 0.1]

For each length a batch of ``--tokens`` tokens attends to itself under a causal mask, forward and backward, from
queries, keys and values as one projection leaves them: by the matrix products of ``Together``, by
``torch.nn.functional.scaled_dot_product_attention`` and by ``nmt.attention.sequences`` (where there are kernels), in
turn (A B C A B C). Prints milliseconds of CPU time (wall time on a GPU), the median of five, and their ratios to the
products; what chooses among them in ``nmt.attention.multihead`` is taken from it.
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
from nmt.attention.multihead import HeadsAttended, JointMemory, Projected, Together
from nmt.attention.sequences import has_kernels
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
    parser.add_argument("--dropout", type=float, default=0.0, help="of weights")
    arguments = parser.parse_args()
    chosen = compute(arguments.device, arguments.precision)
    dtype, heads, width = getattr(torch, chosen.precision), arguments.heads, arguments.width
    multihead.fused_from = lambda device, dtype: 1 << 30  # the products alone
    together = Together(width**-0.5, arguments.dropout, causal=True).train()
    for length in LENGTHS:
        batch = max(1, arguments.tokens // length)
        together_BTX = torch.randn(batch, length, 3 * heads * width, device=chosen.device, dtype=dtype)
        together_BTX.requires_grad_()
        position_BT = torch.arange(length, device=chosen.device).expand(batch, length)

        def split(x_BTX: Tensor = together_BTX) -> list[Tensor]:
            parts_BTHA = x_BTX.view(*x_BTX.shape[:2], 3, heads, width).unbind(2)
            return [part.transpose(1, 2).contiguous() for part in parts_BTHA]

        def products(position_BT: Tensor = position_BT, split: Callable[[], list[Tensor]] = split) -> Tensor:
            query, keys, values = split()
            attended: HeadsAttended = together(query, position_BT, together.memory(Projected(keys, values), None))
            return attended.context_BTQ

        def fused(split: Callable[[], list[Tensor]] = split) -> Tensor:
            query, keys, values = split()
            drops = together.dropout.threshold / 256
            context = F.scaled_dot_product_attention(query, keys, values, is_causal=True, dropout_p=drops)
            return context.transpose(1, 2).flatten(2)

        def kernels(position_BT: Tensor = position_BT, x_BTX: Tensor = together_BTX) -> Tensor:
            return together.whole(x_BTX, position_BT, JointMemory(x_BTX, None), heads, width).context_BTQ

        ways: dict[str, Callable[[], Tensor]] = {"products": products, "fused": fused}
        if has_kernels(together_BTX):
            ways["kernels"] = kernels
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, attend in ways.items():
                times[name].append(milliseconds(attend, together_BTX, chosen))
        median = {name: statistics.median(each) for name, each in times.items()}
        for name, each in median.items():
            report(f"attention_{length}_{name}", each, "ms", chosen)
            if name != "products":
                report(f"attention_{length}_{name}_over_products", each / median["products"], "", chosen)
    print_table()


def milliseconds(attend: Callable[[], Tensor], x_BTX: Tensor, chosen: Compute, repeats: int = 4) -> float:
    """Of one forward and backward pass, after one that warms up."""
    clock = time.perf_counter if chosen.device.type == "cuda" else time.process_time
    for count in (1, repeats):
        started = clock()
        for _ in range(count):
            context = attend()
            torch.autograd.grad(context, x_BTX, torch.ones_like(context))
        if chosen.device.type == "cuda":
            torch.cuda.synchronize()
    return (clock() - started) / repeats * 1e3


if __name__ == "__main__":
    plainly(main)
