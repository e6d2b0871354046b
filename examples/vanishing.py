"""Shows how the gradient vanishes, explodes or survives on its way down through the layers of a network.

Layer l computes h_l = f(W_l h_{l-1} + U_l h'_l), where h'_l is its state at the step before: 0 at the first step, so
that with --steps 1 this is a feed-forward network. By the chain rule, the gradient that arrives at the input is

    d loss / d h_0 = W_1^T diag(f'_1) ... W_L^T diag(f'_L) d loss / d h_L

a product of L matrices. So it shrinks or grows like a power of L, as it does with time in a recurrent network
(Hochreiter 1991; Bengio et al. 1994). What it is multiplied by at each layer depends on

    f        f' is at most 1 for tanh, and at most 1/4 for the logistic function
    W        "small" weights, U(-1/sqrt(D), 1/sqrt(D)), have gain 1/sqrt(3); Glorot & Bengio 2010 draw them so that the
             gain is 1; an orthogonal W keeps every length (Saxe et al. 2014)
    residual h_l = f(...) + h_{l-1} from the second layer on: each factor is I + W^T diag(f'), and the product has a
             path without any f' (He et al. 2016)
    norm     f(LN(W h)): small or saturated inputs of f become inputs of variance 1 again (Ba et al. 2016)

The size is that of a gradient with length 1 at the top and a random direction: the root mean square of the singular
values of d h_L / d h_0, before training, as a geometric mean over inputs. "per layer" is (size_32 / size_1)^(1/31).

Shapes: N inputs, T steps, D width, B = N x D rows: one for each input and unit of the top.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from nmt.nn.deep_recurrent import DeepStack
from nmt.nn.dropout import Dropout
from nmt.nn.recurrent import CELL_TYPES, CellState

DEPTHS = [1, 2, 4, 8, 16, 32]


class Network(NamedTuple):
    """Kind of network."""

    function: Callable[[Tensor], Tensor] = torch.tanh
    draw: Callable[[Tensor], Tensor] = nn.init.xavier_uniform_
    residual: bool = False
    layer_norm: bool = False


def small(weight: Tensor) -> Tensor:
    """Draws weights as was common before Glorot & Bengio 2010 (their equation 1)."""
    return nn.init.uniform_(weight, -(weight.shape[1] ** -0.5), weight.shape[1] ** -0.5)


NETWORKS = {
    "linear, orthogonal": Network(torch.clone, nn.init.orthogonal_),
    "tanh, small": Network(draw=small),
    "tanh": Network(),
    "tanh, residual": Network(residual=True),
    "tanh, norm": Network(layer_norm=True),
    "tanh, residual, norm": Network(residual=True, layer_norm=True),
    "logistic": Network(torch.sigmoid),
    "logistic, residual": Network(torch.sigmoid, residual=True),
    "logistic, norm": Network(torch.sigmoid, layer_norm=True),
}


def build(network: Network, layers: int, size: int) -> DeepStack:
    """Layers of nmt's Elman cell, with another function in place of tanh; U is orthogonal, biases are 0."""
    stack = DeepStack(
        "elman", input_size=size, size=size, layers=layers, residual=network.residual, layer_norm=network.layer_norm
    ).double()
    stack.cell = CELL_TYPES["elman"]._replace(
        step=lambda input_BG, recurrent_BG, state: CellState(network.function(input_BG + recurrent_BG), None)
    )
    for name, weight in stack.named_parameters():
        if "weight_ih" in name:
            network.draw(weight.data)
    return stack


def jacobian(stack: DeepStack, input_NTD: Tensor) -> Tensor:
    """d h_L / d h_0 of the last step, (N, D, D). The weights get the gradient of the sum over inputs of 1 . h_L."""
    inputs, _, size = input_NTD.shape
    # D copies of each input, of which the i-th has the gradient of unit i
    input_BTD = input_NTD.repeat_interleave(size, dim=0).requires_grad_()
    top_NDD = stack(input_BTD, None, Dropout(0.0))[:, -1].view(inputs, size, size)
    top_NDD.diagonal(dim1=1, dim2=2).sum().backward()
    assert input_BTD.grad is not None
    return input_BTD.grad[:, -1].view(inputs, size, size)


def gradient_size(jacobian_NDD: Tensor) -> float:
    """Root mean square of the singular values, |J| / sqrt(D), as a geometric mean over inputs."""
    size_N = jacobian_NDD.flatten(1).norm(dim=1) / jacobian_NDD.shape[1] ** 0.5
    return float(size_N.log().mean().exp())


def plot(path: Path, sizes: dict[str, list[float]], weights: dict[str, list[float]]) -> None:
    """Writes the picture: the size at the input by number of layers, and the gradient of the weights of each layer."""
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for index, name in enumerate(sizes):
        style = {"color": f"C{index}", "linestyle": ("-", "--", ":")[("residual" in name) + ("norm" in name)]}
        left.plot(DEPTHS, sizes[name], "o", markersize=3, **style)
        right.plot(range(1, DEPTHS[-1] + 1), weights[name], label=name, **style)
    left.set(title="Size of the gradient at the input", xlabel="layers", yscale="log", ylim=(1e-9, 100))
    right.set(title=f"|d loss / d W| of {DEPTHS[-1]} layers, top = 1", xlabel="layer", yscale="log", ylim=(1e-9, 100))
    figure.legend(frameon=False, loc="outside right center")
    figure.savefig(path, dpi=100, format="png")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64, help="D; default: 64")
    parser.add_argument("--inputs", type=int, default=8, help="N; default: 8")
    parser.add_argument("--steps", type=int, default=1, help="T; more than 1 is a recurrent network; default: 1")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="F.png", help="write a picture of the sizes")
    args = parser.parse_args()
    if min(args.size, args.inputs, args.steps) < 1 or (args.output and not args.output.parent.is_dir()):
        parser.error("--size, --inputs and --steps must be at least 1, and --output in a folder that is there")
    sizes, weights = {name: list[float]() for name in NETWORKS}, dict[str, list[float]]()
    print(f"{'layers':20}", *(f"{depth:8}" for depth in DEPTHS), "per layer")
    for name, network in NETWORKS.items():
        torch.manual_seed(args.seed)
        for depth in DEPTHS:
            stack = build(network, depth, args.size)
            input_NTD = torch.randn(args.inputs, args.steps, args.size, dtype=torch.float64)
            sizes[name].append(gradient_size(jacobian(stack, input_NTD)))
        factor = (sizes[name][-1] / sizes[name][0]) ** (1 / (DEPTHS[-1] - DEPTHS[0]))
        print(f"{name:20}", *(f"{size:8.2g}" for size in sizes[name]), f"{factor:9.3f}")
        gradients = [stack.get_parameter(f"rnns.{layer}.weight_ih_l0").grad for layer in range(DEPTHS[-1])]
        norms = [float(gradient.norm()) for gradient in gradients if gradient is not None]
        weights[name] = [norm / norms[-1] for norm in norms]
    if args.output:
        plot(args.output, sizes, weights)


if __name__ == "__main__":
    main()
