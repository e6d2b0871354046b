"""Kernel regression is attention: queries and keys are places x, values are what was measured there.

    m(x) = sum over s of K(x - x_s) y_s / sum over s of K(x - x_s)         (Nadaraya 1964; Watson 1964)

With K(u) = exp(-u^2 / 2 h^2) the weights are softmax(score) of the score ``gaussian``, and m(x) is the context. The
bandwidth h decides: a wide kernel gives the mean of all y, a narrow one passes through every point, noise included.
With ``--weights sparsemax`` the kernel is a parabola cut off at 0, as Epanechnikov's (Martins et al. 2020, "Sparse and
Continuous Attention Mechanisms").

h can be learned, as any parameter of attention, but not from the error at the points themselves, where the narrowest
kernel is best. Each point must be estimated from the others (leave one out): attention hides it as it hides padding.

Shapes: T queries, S training points.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from nmt.attention.attention import Attention, AttentionOutput
from nmt.attention.config import AttentionConfig

BANDWIDTHS = [1.0, 0.3, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002]
COLUMNS = ["train", "leave one out", "test"]


def truth(x: Tensor) -> Tensor:
    """The regression function, E[y | x]."""
    return torch.sin(2 * math.pi * x) + 0.5 * torch.cos(6 * math.pi * x)


def sample(points: int, noise: float) -> tuple[Tensor, Tensor]:
    """Points x, uniform in [0, 1] and sorted, and y = truth(x) + noise."""
    x_S = torch.rand(points).sort().values
    return x_S, truth(x_S) + noise * torch.randn(points)


def kernel(bandwidth: float, weights: str, *, learned: bool = False) -> Attention:
    """Attention whose score is -(x - x_s)^2 / 2 h^2."""
    score = {"kind": "gaussian", "bandwidth": bandwidth, "learned": learned}
    config = AttentionConfig.model_validate({"score": score, "weights": weights})
    return Attention(config, query_size=1, key_size=1, value_size=1).eval()


def estimate(attention: Attention, x_T: Tensor, x_S: Tensor, y_S: Tensor, is_hidden_TS: Tensor | None = None) -> Tensor:
    """m(x_T), the contexts of attention to the points (x_S, y_S), of which each query may have some hidden."""
    shape = len(x_T), len(x_S)
    is_pad_TS = torch.zeros(shape, dtype=torch.bool) if is_hidden_TS is None else is_hidden_TS
    memory = attention.memory(x_S.expand(shape)[:, :, None], y_S.expand(shape)[:, :, None], is_pad_TS)
    attended: AttentionOutput = attention(x_T[:, None, None], torch.zeros(len(x_T), 1, dtype=torch.int64), memory)
    return attended.context_NTV[:, 0, 0]


def learn(weights: str, x_S: Tensor, y_S: Tensor, is_hidden_SS: Tensor | None, updates: int) -> tuple[float, Attention]:
    """The bandwidth with the least squared error at the training points, by gradient descent, and its kernel."""
    attention = kernel(0.1, weights, learned=True)
    optimizer = torch.optim.Adam(attention.parameters(), lr=0.05)
    for _ in range(updates):
        optimizer.zero_grad()
        (estimate(attention, x_S, x_S, y_S, is_hidden_SS) - y_S).square().mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return 0.1 * attention.score_parameters["log_bandwidth_1"].exp().item(), attention


def plot(
    path: Path,
    x_S: Tensor,
    y_S: Tensor,
    fits: dict[float, Attention],
    errors: Sequence[Sequence[float]],
    learned: float,
) -> None:
    """Writes the picture: a panel for each fit, from the widest kernel, and the errors against the bandwidth."""
    figure = Figure(figsize=(11, 6), layout="constrained")
    panels = figure.subplots(2, 3).flatten()
    x_T = torch.linspace(0, 1, 400)
    for axes, (bandwidth, attention) in zip(panels, fits.items(), strict=False):
        axes.plot(x_S, y_S, ".", color="#999999", markersize=4)
        axes.plot(x_T, truth(x_T), "--", color="#999999", linewidth=1.2, label="E[y | x]")
        axes.plot(x_T, estimate(attention, x_T, x_S, y_S).detach(), color="#2171b5", linewidth=1.6, label="m(x)")
        axes.set(title=f"h = {bandwidth:.2g}" + ", learned" * (bandwidth == learned), xlim=(0, 1), xlabel="x")
    panels[0].legend(frameon=False, loc="lower left")
    axes = panels[-1]
    for name, colour, curve in zip(COLUMNS, ("#999999", "#2171b5", "#d9480f"), errors, strict=True):
        axes.plot(BANDWIDTHS, curve, "o-", markersize=3, color=colour, label=name)
    axes.axvline(learned, ymax=0.4, color="#2171b5", linestyle=":", label="learned h")
    axes.set(title="mean squared error", xscale="log", xlabel="bandwidth h")
    axes.invert_xaxis()
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120, format="png")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--weights", choices=["softmax", "sparsemax"], default="softmax", help="kernel: Gaussian, parabola"
    )
    parser.add_argument("--points", type=int, default=80, help="training points; default: 80")
    parser.add_argument("--noise", type=float, default=0.3, help="standard deviation of the noise; default: 0.3")
    parser.add_argument("--updates", type=int, default=200, help="steps that learn the bandwidth; default: 200")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="F.png", help="write a picture of the fits and errors")
    args = parser.parse_args()
    if args.points < 2 or args.updates < 1 or args.noise < 0:
        parser.error("--points must be at least 2, --updates 1 and --noise 0")
    if args.output and not args.output.parent.is_dir():
        parser.error(f"--output {args.output}: there is no folder {args.output.parent}; make it first")
    torch.manual_seed(args.seed)
    x_S, y_S = sample(args.points, args.noise)
    test_x_T, test_y_T = sample(1000, args.noise)
    is_itself_SS = torch.eye(args.points, dtype=torch.bool)

    def row(bandwidth: float, attention: Attention, note: str = "") -> list[float]:
        """Prints the errors of a bandwidth, and returns them."""
        with torch.no_grad():
            train = estimate(attention, x_S, x_S, y_S) - y_S
            others = estimate(attention, x_S, x_S, y_S, is_itself_SS) - y_S
            test = estimate(attention, test_x_T, x_S, y_S) - test_y_T
        errors = [error.square().mean().item() for error in (train, others, test)]
        print("{:9.4f} {:8.4f} {:14.4f} {:8.4f}".format(bandwidth, *errors), note)
        return errors

    print("bandwidth {:>8} {:>14} {:>8}".format(*COLUMNS))
    table = [row(bandwidth, kernel(bandwidth, args.weights)) for bandwidth in BANDWIDTHS]
    bandwidth, overfitted = learn(args.weights, x_S, y_S, None, args.updates)
    row(bandwidth, overfitted, "learned from the points themselves")
    bandwidth, fitted = learn(args.weights, x_S, y_S, is_itself_SS, args.updates)
    row(bandwidth, fitted, "learned by leaving one out")
    if args.output:
        fits = [(h, kernel(h, args.weights)) for h in (1.0, 0.1, 0.01, 0.002)] + [(bandwidth, fitted)]
        plot(args.output, x_S, y_S, dict(sorted(fits, reverse=True)), list(zip(*table, strict=True)), bandwidth)


if __name__ == "__main__":
    main()
