"""Forgetting by distance: the size of the derivative of each target word's score by each source word's embedding,
|d log p(y_t | y_<t, x) / d x_s|, against the distance between them, for the runs given.

    python scripts/forgetting.py runs/elman runs/lstm runs/lstm-attention --source test.de --target test.en \\
      --output forgetting.svg

Prints the median and the quartiles of each distance and system, and draws them on a logarithmic axis. The distance is
t - s, in subwords or, with ``--by path``, the recurrent steps from x_s to y_t by way of the encoder's last state,
S - s + t with S source subwords and end-of-sentence. Along this path the derivative shrinks or grows like a power
(Bengio et al. 1994; Pascanu et al. 2013). x_s is the embedding that enters the encoder; ``--method input-x-gradient``
takes |x_s . d log p / d x_s|, in nats, which does not depend on the scale of the embeddings.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from measuring import plainly
from numpy.typing import NDArray

from nmt.alignment import GradientMethod
from nmt.alignment.gradient import gradient_weights
from nmt.alignment.request import AlignmentRequest
from nmt.core.errors import InputError
from nmt.core.files import refuse_unwritable
from nmt.extras.pages.draw import COLOURS, SVG_SETTINGS
from nmt.translator.loading import load_trained
from nmt.workflows.align import pairs

Distance: TypeAlias = Literal["offset", "path"]

FEW = 10
"""Minimum number of values of a distance; distances with fewer are left out."""


class Spread(NamedTuple):
    """The derivatives at one distance."""

    distance: float
    low: float
    median: float
    high: float
    number: int


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--by", choices=("offset", "path"), default="offset")
    parser.add_argument("--bin", type=int, default=1, metavar="N", help="distances to a bin")
    parser.add_argument("--method", choices=("gradient", "input-x-gradient"), default="gradient")
    parser.add_argument("--output", type=Path, required=True, help="the picture: .svg or .png")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    refuse_unwritable(given.output)
    if given.bin < 1:
        raise InputError(f"--bin {given.bin}: give 1 or more")
    lines = list(zip(*pairs(given.source, given.target), strict=True))
    if not lines:
        raise InputError(f"{given.source}: holds no line")
    systems = {
        run: spreads(derivatives(run, *lines, method=given.method, device=given.device), given.by, given.bin)
        for run in given.runs
    }
    print("\n".join(table(systems)))
    draw(systems, given.output, given.by)


def derivatives(
    run: str, sources: Sequence[str], targets: Sequence[str], *, method: GradientMethod, device: str
) -> list[NDArray[np.float32]]:
    """Computes the sizes (T, S) of each pair, between subwords, without end-of-sentence."""
    trained = load_trained(run, device=device, precision="float32")
    encoded = trained.encode_pairs(sources, targets, 1)
    found = gradient_weights(
        trained.model,
        [source.ids for source, _ in encoded],
        [target.ids for _, target in encoded],
        trained.compute,
        requests=[AlignmentRequest(method, magnitude="raw")],
        batch_tokens=trained.experiment.search.batch_tokens,
    )
    return [size_TS[:-1, :-1] for (size_TS,) in found]


def spreads(matrices: Sequence[NDArray[np.float32]], by: Distance, width: int) -> list[Spread]:
    """Computes the quartiles of the sizes in each bin of ``width`` distances; a bin is named by its middle."""
    distances, sizes = [], []
    for size_TS in matrices:
        target_T1, source_S = np.arange(size_TS.shape[0])[:, None], np.arange(size_TS.shape[1])
        steps = target_T1 - source_S + (size_TS.shape[1] + 1 if by == "path" else 0)
        distances.append(steps.ravel())
        sizes.append(size_TS.ravel())
    bin_N, size_N = np.concatenate(distances) // width, np.concatenate(sizes)
    found = []
    for number in np.unique(bin_N):
        low, median, high = np.quantile(size_N[bin_N == number], (0.25, 0.5, 0.75)).tolist()
        middle = number * width + (width - 1) / 2
        found.append(Spread(float(middle), low, median, high, int((bin_N == number).sum())))
    return [spread for spread in found if spread.number >= FEW]


def factor(found: Sequence[Spread]) -> float:
    """Computes the factor per step of the power law that fits the medians at distances from 0 on best, by least squares
    of their logarithms; NaN for fewer than two."""
    fitted = np.array([(each.distance, each.median) for each in found if each.distance >= 0 and each.median > 0])
    return float(np.exp(np.polyfit(fitted[:, 0], np.log(fitted[:, 1]), 1)[0])) if len(fitted) > 1 else float("nan")


def table(systems: Mapping[str, Sequence[Spread]]) -> list[str]:
    """Formats a row for each distance: median, quartiles and number of values of each system; then the factors per
    step."""
    rows = {name: {each.distance: each for each in found} for name, found in systems.items()}
    lines = ["distance" + "".join(f"  {name:>38}" for name in systems)]
    for distance in sorted({each.distance for found in systems.values() for each in found}):
        line = f"{distance:8g}"
        for found in rows.values():
            each = found.get(distance)
            shown = f"{each.median:.2e} [{each.low:.2e}, {each.high:.2e}] {each.number:7,}" if each else "–"
            line += f"  {shown:>38}"
        lines.append(line)
    return [*lines, "per step" + "".join(f"  {f'x {factor(found):.3f}':>38}" for found in systems.values())]


def draw(systems: Mapping[str, Sequence[Spread]], path: Path, by: Distance) -> None:
    """Draws a curve of medians for each system in a band of quartiles, on a logarithmic axis."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", SVG_SETTINGS]):
        figure = Figure(figsize=(7.5, 4.6))
        axes = figure.add_subplot()
        for number, (name, found) in enumerate(systems.items()):
            colour = COLOURS[number % len(COLOURS)]
            distance, low, median, high, _ = zip(*found, strict=True) if found else ((),) * 5
            axes.plot(distance, median, color=colour, linewidth=1.6, label=name.replace("$", r"\$"))
            axes.fill_between(distance, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set_yscale("log")
        axes.grid(color="#e4e4e4", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("distance t − s, in subwords" if by == "offset" else "recurrent steps from x to y")
        axes.set_ylabel("|∂ log p(y) / ∂ x|, median and quartiles")
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        metadata = {"Creator": None, "Date": None} if path.suffix.lower() == ".svg" else None
        figure.savefig(path, dpi=200, bbox_inches="tight", metadata=metadata)


if __name__ == "__main__":
    plainly(main)
