"""Shows the score-function estimator of a gradient, by which hard attention learns, in a picture.

One step of attention draws a position s with p(s) = softmax(e)_s and gets a reward R(s), for example the
log-probability of the right word. How does the expected reward change with the scores e? A draw has no derivative, but
its probability has one, because grad p = p grad log p (Williams 1992, REINFORCE; also "likelihood ratio"):

    grad E[R(s)] = sum over s of R(s) p(s) grad log p(s) = E[R(s) grad log p(s)]
    estimate     = mean over K draws of (R(s_k) - b) grad log p(s_k),    d log p(s) / d e_j = 1[s = j] - p(j)

This is equation 2 of Mnih et al. 2014 and the rule of Xu et al. 2015, section 4.1. It needs no derivative of R. Because
E[grad log p(s)] = 0, a baseline b that does not depend on the draw changes nothing in the mean, but much in the
variance: without one, every draw with R < 0 makes its position less probable, the best position as well.

    plain      b = 0
    baseline   b = E[R], which a learnt baseline approaches
    divided    b = E[R], and the term divided by the standard deviation of R: a biased estimate, in the right direction
    nmt        nmt's ``reinforce_loss``: b is the mean reward of the other draws (Kool et al. 2019); unbiased
    nmt div.   the same, divided by the deviation over the draws if it is above 1: ``variance_normalization: true``

The table compares each with the exact gradient, from a sum over all positions. |bias| is the distance of the mean of
all repeats from it. This is never 0: an unbiased estimate has about "chance", the square root of variance / repeats.

Shapes: S positions, K draws of an estimate, N repeats of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor

from nmt.attention.reinforce import SampledPositions
from nmt.attention.weights.hard import Hard
from nmt.models.position_losses import reinforce_loss

DRAWS = [1, 10, 100, 1000]
COLOURS = {"plain": "#d9480f", "baseline": "#2171b5", "divided": "#999999", "nmt": "#2b8a3e", "nmt div.": "#9c36b5"}

SCORE_S = torch.tensor([0.3, 1.2, -0.5, 0.8, 2.0, -1.0, 0.1, -0.3], dtype=torch.float64)
REWARD_S = torch.tensor([-6.0, -0.4, -7.5, -3.0, -4.2, -8.0, -5.5, -6.6], dtype=torch.float64)
"""The scores e, and rewards in nats: the position with the best reward has the second best score."""

Estimator = Callable[[Tensor, Tensor, Tensor], Tensor]  # of the gradient (N, S), from e, R and draws (N, K)


def exact(score_S: Tensor, reward_S: Tensor) -> Tensor:
    """d E[R] / d e_j = p(j) (R(j) - E[R]), by the sum over all positions."""
    p_S = score_S.softmax(dim=0)
    return p_S * (reward_S - p_S @ reward_S)


def terms(score_S: Tensor, reward_S: Tensor, chosen_NK: Tensor, name: str) -> Tensor:
    """The terms (N, K, S) of an estimate by the formula above."""
    p_S = score_S.softmax(dim=0)
    mean = p_S @ reward_S
    deviation = (p_S @ (reward_S - mean).square()).sqrt()
    # (R(s) - b) grad log p(s), for each position s that can be drawn
    grad_log_p_SS = torch.eye(len(p_S), dtype=p_S.dtype) - p_S
    term_SS = (reward_S - (0.0 if name == "plain" else mean))[:, None] * grad_log_p_SS
    return (term_SS / deviation if name == "divided" else term_SS)[chosen_NK]


def by_formula(name: str) -> Estimator:
    """The mean of the terms."""
    return lambda score_S, reward_S, chosen_NK: terms(score_S, reward_S, chosen_NK, name).mean(dim=1)


def by_nmt(*, divided: bool) -> Estimator:
    """The gradient of nmt's loss, for a batch of K sentences with one word each."""
    rule = Hard(variance_normalization=divided, entropy=0.0)

    def estimate(score_S: Tensor, reward_S: Tensor, chosen_NK: Tensor) -> Tensor:
        gradients = []
        for chosen_K in chosen_NK:
            score_leaf_S, zeros_K1 = score_S.clone().requires_grad_(), score_S.new_zeros(len(chosen_K), 1)
            log_p_K1 = score_leaf_S.log_softmax(dim=0)[chosen_K][:, None]
            sampled = SampledPositions(rule, log_p_K1, zeros_K1, zeros_K1, zeros_K1 == 0)
            loss = reinforce_loss([sampled], reward_S[chosen_K][:, None], zeros_K1 != 0) / len(chosen_K)
            gradients.append(-torch.autograd.grad(loss, score_leaf_S)[0])  # a loss is minimised, R maximised
        return torch.stack(gradients)

    return estimate


ESTIMATORS = {name: by_formula(name) for name in ("plain", "baseline", "divided")}
ESTIMATORS |= {"nmt": by_nmt(divided=False), "nmt div.": by_nmt(divided=True)}


def plot(path: Path, errors: dict[str, list[float]]) -> None:
    """Writes the picture: distribution, draws and rewards; the terms of an estimate; the error by number of draws."""
    p_S, positions, width = SCORE_S.softmax(dim=0), range(1, len(SCORE_S) + 1), 0.3
    chosen_K = p_S.multinomial(200, replacement=True)
    figure = Figure(figsize=(14, 4.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(4, 5, 4))
    left.bar(positions, p_S.tolist(), color="#d0d7de")
    left.plot(chosen_K + 1 + 0.7 * (torch.rand(200) - 0.5), p_S[chosen_K] * torch.rand(200), ".", color="#2171b5", ms=3)
    for position, p, reward in zip(positions, p_S.tolist(), REWARD_S.tolist(), strict=True):
        left.text(position, p + 0.01, f"{reward:.1f}", ha="center")
    left.set(title="p(s), 200 draws, rewards R(s) above", xlabel="position s", ylim=(0, 0.48))
    for side, name in ((-1, "plain"), (1, "baseline")):
        term_KS = terms(SCORE_S, REWARD_S, chosen_K[None], name)[0]
        place_KS = torch.arange(1, len(p_S) + 1) + side * 0.22 + width * (torch.rand(term_KS.shape) - 0.5)
        middle.plot(place_KS, term_KS, ".", color=COLOURS[name], ms=2, alpha=0.4)
        places = [position + side * 0.22 for position in positions]
        middle.plot(places, term_KS.mean(dim=0), "D", color=COLOURS[name], mec="white", ms=7, label=f"mean, {name}")
    middle.hlines(
        exact(SCORE_S, REWARD_S), torch.arange(8) + 0.55, torch.arange(8) + 1.45, color="black", label="exact"
    )
    middle.set(title="(R(s) - b) d log p(s) / d $e_j$ of each draw", xlabel="position j", ylim=(-8.5, 6.5))
    middle.legend(frameon=False, loc="upper right")
    for name, curve in errors.items():
        right.plot(DRAWS, curve, "o--" if "nmt" in name else "o-", ms=4, color=COLOURS[name], label=name)
    right.plot(DRAWS, [errors["plain"][0] * draws**-0.5 for draws in DRAWS], "k:", label="slope -1/2")
    right.set(title="Root mean square error", xlabel="draws K", xscale="log", yscale="log")
    right.legend(frameon=False, loc="lower left")
    figure.savefig(path, dpi=100, format="png")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=500, help="of each estimate; default: 500")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="F.png", help="write a picture of draws, terms and errors")
    args = parser.parse_args()
    if args.repeats < 2 or (args.output and not args.output.parent.is_dir()):
        parser.error("--repeats must be at least 2, and --output in a folder that is there")
    torch.manual_seed(args.seed)
    gradient_S, errors = exact(SCORE_S, REWARD_S), {name: list[float]() for name in ESTIMATORS}
    print("exact gradient ", *(f"{each:6.3f}" for each in gradient_S.tolist()))
    print(f"{'K':>5} estimate  {'mean for each position':55} variance  |bias| chance")
    for draws in DRAWS:
        chosen_NK = SCORE_S.softmax(dim=0).expand(args.repeats, -1).multinomial(draws, replacement=True)
        for name, estimator in ESTIMATORS.items():
            estimate_NS = estimator(SCORE_S, REWARD_S, chosen_NK)
            mean_S, variance = estimate_NS.mean(dim=0), estimate_NS.var(dim=0).sum().item()
            errors[name].append((estimate_NS - gradient_S).square().sum(dim=1).mean().sqrt().item())
            print(f"{draws:5} {name:8}", *(f"{each:6.3f}" for each in mean_S.tolist()), end=" ")
            print(f"{variance:8.4f} {(mean_S - gradient_S).norm():7.3f} {(variance / args.repeats) ** 0.5:6.3f}")
    if args.output:
        plot(args.output, errors)


if __name__ == "__main__":
    main()
