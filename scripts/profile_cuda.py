"""Profile of a GPU's time, in an update of training and in a search.

    python scripts/profile_cuda.py CONFIG [--set key=value] [--device cuda] [--beam 5] [--sentences 1000]

For the configuration's model on its own data, with weights as they begin: the wall time of an update, and how much of
it the GPU computed; the kernels that were launched, and how often the host waited for the GPU; the kernels that took
most time, and how much each kind of them took. Then the same for a search of the validation sentences, and for one
sentence. Counts are those of ``torch.profiler``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from benchmark_training import Training
from measuring import plainly

import nmt
from nmt import experiment as experiments
from nmt.core import log
from nmt.core.device import compute
from nmt.search.engine import TorchEngine
from nmt.translator.loading import for_inference

WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")

KINDS = {
    "matrix products": ("gemm", "gemv", "cutlass", "nvjet", "xmma", "splitKreduce", "cublas"),
    "attention": ("fmha", "flash", "attention", "softmax"),
    "copies and casts": ("copy", "Memcpy", "Memset", "CatArray", "transpose", "fill"),
    "normalisation": ("layer_norm", "LayerNorm", "GammaBeta"),
    "random numbers": ("distribution", "random", "philox", "dropout"),
    "optimiser": ("multi_tensor", "fused_adam", "lpnorm"),
    "compiled": ("triton",),
    "lookups": ("index", "gather", "scatter", "embedding", "nonzero", "Scan"),
    "sums": ("reduce",),
    "top tokens": ("topk", "radix", "sort", "bitonic"),
}
"""Kinds of kernels by a part of their names; the first that matches counts."""


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=1000, help="0: no search")
    parser.add_argument("--rows", type=int, default=12, help="kernels that are listed")
    arguments = parser.parse_args()
    log.set_verbosity(log.Verbosity.QUIET)
    nmt.accelerate()
    experiment = experiments.load(arguments.config, [*arguments.overrides, f"search.beam={arguments.beam}"])
    chosen = compute(arguments.device, arguments.precision)
    with tempfile.TemporaryDirectory() as folder:
        training = Training.of(experiment, chosen, Path(folder), updates=8)
    for index in range(24):  # so that each shape has its graph
        training.update(index % 8)
    shown = partial(show, rows=arguments.rows)
    shown("an update", training.update, 8)
    if arguments.sentences == 0:
        return
    store = training.data.train
    sources = [store.source(pair).tolist() for pair in range(arguments.sentences)]
    engine = TorchEngine(for_inference(training.model, chosen), chosen)
    for name, ids in (("a search", sources), ("a search of one sentence", sources[:1])):

        def search(_: int, ids: list[list[int]] = ids) -> None:
            engine.translate_ids(ids, experiment.search)

        search(0)
        shown(f"{name}, beam {arguments.beam}", search, 3)


def show(name: str, run: Callable[[int], object], times: int, rows: int) -> None:
    """Prints figures of ``run``, which has been warmed up, each for one of ``times``."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    for index in range(times):
        run(index)
    launched = time.perf_counter() - started
    torch.cuda.synchronize()
    seconds = (time.perf_counter() - started) / times
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    ) as profile:
        for index in range(times):
            run(index)
        torch.cuda.synchronize()
    waits = -1  # for the one above
    of_kernel: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for event in profile.events():
        waits += event.name in WAITS
        if event.device_type == torch._C._autograd.DeviceType.CUDA:
            of_kernel[event.name] += event.time_range.elapsed_us() / 1000 / times
            calls[event.name] += 1
    kinds: Counter[str] = Counter()
    for kernel, milliseconds in of_kernel.items():
        kinds[next((kind for kind, parts in KINDS.items() if any(p in kernel for p in parts)), "elementwise")] += (
            milliseconds
        )
    busy = sum(of_kernel.values())
    print(f"\n{name}: {1000 * seconds:.2f} ms, of which the host launched for {1000 * launched / times:.2f} ms")
    count = sum(calls.values()) / times
    print(f"  the GPU computed for {busy:.2f} ms ({busy / seconds / 10:.0f} %): {count:.0f} kernels")
    print(f"  the host waited {waits / times:.3g} times")
    print("  " + ", ".join(f"{kind} {milliseconds:.2f} ms" for kind, milliseconds in kinds.most_common()))
    for kernel, milliseconds in of_kernel.most_common(rows):
        print(f"  {milliseconds:8.3f} ms {calls[kernel] / times:7.1f} x {kernel[:110]}")


if __name__ == "__main__":
    plainly(main)
