"""Counts where lines cross: by a template written by hand, by one learnt from the counts alone, and by attention.

An image has horizontal and vertical segments, one pixel thick and at least three long. A crossing is a pixel inside a
horizontal and inside a vertical segment; the ends of a segment are not inside it. So there is none where a segment ends
on another one or next to it (a T or an L). Two horizontal segments that share a column have a blank row between them,
and two in one row have at least two blank pixels between them; the same holds for vertical ones. Under these rules a
pixel is a crossing exactly if it and its four neighbours are ink. Without them, two segments that end on either side of
a third one would look like a crossing.

The processor looks at each place s of the image through a small window x_s and compares it with a template w:

    c_s = ReLU(w . x_s + b)          count = sum over s of c_s

By hand, w is 1 on the five pixels of a plus and 0 elsewhere, and b = -4: c_s is 1 at a crossing and 0 at all others.

The same processor can learn w and b from images and counts, without any places (Lempitsky & Zisserman 2010, "Learning
to Count Objects in Images", learn a sum over places, too, but from places). ReLU has no gradient where it is 0, and a
template soon gets stuck there. Training replaces it by softplus, log(1 + exp(beta u)) / beta, and raises beta; the last
fifth of the updates has ReLU. Four templates are trained side by side, and the one with the least error in training is
kept.

The learnt template need not be the one by hand to find the same crossings. It may be moved by a pixel inside its
window, as counts say nothing about where a crossing is. The corners of a crossing are always blank, so that a negative
weight on them does no harm. Then the middle matters less: a blank pixel between four of ink is the hole of a #, where
most of the corners are ink.

Attention computes sum over s of weight_s v_s instead, where the weights sum to 1: an average. It does not change if
each place comes twice, but the count doubles. A sum tells such sets apart, a mean cannot (Xu et al. 2019, "How Powerful
are Graph Neural Networks?", section 5.2; Zhang et al. 2018, "Learning to Count Objects in Natural Images for Visual
Question Answering", section 3). If all images have one size, the share of crossings among the places still gives the
count away, and attention learns this share times a constant. The constant is wrong for larger images.

Shapes: B images, Y rows, X columns, R templates, S places, K pixels of a window.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn import functional as F

from nmt.attention.attention import Attention
from nmt.attention.config import AttentionConfig

WINDOW, LARGE, BATCH = 5, 40, 64
"""Height and width of a window and of the larger images, and images of a batch."""

Segment: TypeAlias = tuple[int, int, int]  # its row, first and last column; or its column, first and last row
Counter: TypeAlias = Callable[[Tensor, float], Tensor]  # from images and the progress of training to counts (B, R)


def draw(size: int, trials: int) -> tuple[Tensor, list[Segment], list[Segment]]:
    """Draws an image (Y, X) and its horizontal and vertical segments; a trial that breaks a rule above is left out."""
    is_ink_2YX = torch.zeros(2, size, size, dtype=torch.bool)  # the vertical ones transposed
    segments: tuple[list[Segment], list[Segment]] = ([], [])
    for _ in range(trials):
        direction, length = int(torch.randint(2, ())), int(torch.randint(3, size // 2 + 2, ()))
        row, first = int(torch.randint(size, ())), int(torch.randint(size - length + 1, ()))
        is_ink_YX, end = is_ink_2YX[direction], first + length
        beside, ahead = is_ink_YX[max(row - 1, 0) : row + 2, first:end], is_ink_YX[row, max(first - 2, 0) : end + 2]
        if not beside.any() and not ahead.any():
            is_ink_YX[row, first:end] = True
            segments[direction].append((row, first, end - 1))
    return (is_ink_2YX[0] | is_ink_2YX[1].T).float(), *segments


def draw_batch(count: int, size: int, trials: int) -> tuple[Tensor, Tensor]:
    """Draws images (B, Y, X) and counts their crossings (B,) from the segments, not from pixels."""
    images, counts = list[Tensor](), list[int]()
    for _ in range(count):
        image_YX, horizontal, vertical = draw(size, int(torch.randint(trials // 10, trials, ())))
        images.append(image_YX)
        counts.append(sum(x0 < x < x1 and y0 < y < y1 for y, x0, x1 in horizontal for x, y0, y1 in vertical))
    return torch.stack(images), torch.tensor(counts, dtype=torch.float32)


def detect(image_BYX: Tensor, template_RYX: Tensor, offset_R: Tensor, beta: float | None = None) -> Tensor:
    """Computes c (B, R, Y, X) at all places: ReLU of the match, or softplus of sharpness ``beta``."""
    match_BRYX = F.conv2d(image_BYX[:, None], template_RYX[:, None], offset_R, padding=template_RYX.shape[1] // 2)
    return match_BRYX.relu() if beta is None else F.softplus(match_BRYX, beta=beta)


def handmade() -> tuple[Tensor, Tensor]:
    """The template of a plus (1, K, K), and its offset (1,)."""
    middle, template_1YX = WINDOW // 2, torch.zeros(1, WINDOW, WINDOW)
    template_1YX[0, middle, middle - 1 : middle + 2] = template_1YX[0, middle - 1 : middle + 2, middle] = 1.0
    return template_1YX, torch.tensor([-4.0])


def fit(
    parameters: Iterable[nn.Parameter], counter: Counter, image_BYX: Tensor, count_B: Tensor, rate: float, updates: int
) -> None:
    """Minimises the squared error of the counts by Adam; a counter is given the progress of training, from 0 to 1."""
    optimizer = torch.optim.Adam(parameters)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=updates)
    for update in range(updates):
        rows_B = torch.randint(len(image_BYX), (BATCH,))
        error_BR = counter(image_BYX[rows_B], update / updates) - count_B[rows_B, None]
        optimizer.zero_grad()
        error_BR.square().mean(dim=0).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()


def learn(image_BYX: Tensor, count_B: Tensor, updates: int, *, starts: int = 4) -> tuple[Tensor, Tensor]:
    """Learns templates from the counts, and returns the best (1, K, K) with its offset (1,)."""
    template_RYX = nn.Parameter(0.1 * torch.randn(starts, WINDOW, WINDOW))
    offset_R = nn.Parameter(torch.full((starts,), -4.0))  # softplus starts near 0: most places are no crossings

    def counter(image_BYX: Tensor, progress: float) -> Tensor:
        beta = 1 + 20 * progress if progress < 0.8 else None
        return detect(image_BYX, template_RYX, offset_R, beta).sum(dim=(2, 3))

    fit([template_RYX, offset_R], counter, image_BYX, count_B, 0.1, updates)
    with torch.no_grad():
        best = int((counter(image_BYX, 1.0) - count_B[:, None]).square().mean(dim=0).argmin())
    return template_RYX[best : best + 1].detach(), offset_R[best : best + 1].detach()


class AverageCounter(nn.Module):
    """count = a . context + c, where attention averages the values ReLU(V x_s + b) of the windows; its query is a
    parameter."""

    def __init__(self, *, size: int = 16, features: int = 8) -> None:
        super().__init__()
        self.query_Q, self.values = nn.Parameter(torch.randn(size) / size**0.5), nn.Linear(WINDOW**2, features)
        self.attention = Attention(AttentionConfig(), query_size=size, key_size=WINDOW**2, value_size=features)
        self.output = nn.Linear(features, 1)

    def forward(self, image_BYX: Tensor, progress: float = 1.0, *, twice: bool = False) -> Tensor:
        """Estimates the counts (B, 1); with ``twice``, those of a memory that has each place two times."""
        window_BSK = F.unfold(image_BYX[:, None], WINDOW, padding=WINDOW // 2).mT
        is_pad_BS = torch.zeros(window_BSK.shape[:2], dtype=torch.bool)
        memory = self.attention.memory(window_BSK, self.values(window_BSK).relu(), is_pad_BS)
        memory = memory.extended(memory) if twice else memory
        query_B1Q, position_B1 = self.query_Q.expand(len(image_BYX), 1, -1), torch.zeros(len(image_BYX), 1)
        count_B1: Tensor = self.output(self.attention(query_B1Q, position_B1, memory).context_NTV[:, 0])
        return count_B1


def displacement(found_BYX: Tensor, hand_BYX: Tensor) -> tuple[int, int]:
    """Finds the rows and columns by which the places found must be moved to meet most of those found by hand."""
    reach = range(-(WINDOW // 2), WINDOW // 2 + 1)
    moves = [(rows, columns) for rows in reach for columns in reach]
    return max(moves, key=lambda move: int((found_BYX.roll(move, (1, 2)) & hand_BYX).sum()))


def plot(
    path: Path, image_YX: Tensor, found_2YX: Tensor, template_2YX: Tensor, count_B: Tensor, estimates: dict[str, Tensor]
) -> None:
    """Writes the picture: the places found by hand and by the learnt template, both templates, and the counts."""
    figure = Figure(figsize=(12, 8), layout="constrained")
    panels = figure.subplots(2, 3)
    for row, name in enumerate(("by hand", "learnt")):
        panels[row, 0].imshow(1 - image_YX, cmap="gray", vmin=-1)
        y_N, x_N = found_2YX[row].nonzero(as_tuple=True)
        panels[row, 0].plot(x_N, y_N, "o", markersize=9, markerfacecolor="none", markeredgecolor="#d9480f")
        panels[row, 0].set(title=f"{len(x_N)} places found {name}", xticks=[], yticks=[])
        panels[row, 1].imshow(template_2YX[row], cmap="RdBu_r", vmin=-1.5, vmax=1.5)
        for place, weight in enumerate(template_2YX[row].flatten().tolist()):
            panels[row, 1].text(place % WINDOW, place // WINDOW, f"{weight:z.2f}", ha="center", va="center")
        panels[row, 1].set(title=f"template {name}", xticks=[], yticks=[])
    for axes, name in zip(panels[:, 2], list(estimates)[1:], strict=True):
        axes.plot([0, count_B.max()], [0, count_B.max()], color="#999999", linewidth=1)
        axes.plot(count_B, estimates[name], ".", color="#2171b5")
        axes.set(title=name, xlabel="crossings of a larger image", ylabel="estimate")
    figure.savefig(path, dpi=90, format="png")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=1000, help="of training; default: 1000")
    parser.add_argument("--size", type=int, default=12, help="height and width of images of training; default: 12")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="F.png", help="write a picture of places and templates")
    args = parser.parse_args()
    if args.updates < 1 or args.size < 6:
        parser.error("--updates must be at least 1 and --size at least 6")
    if args.output and not args.output.parent.is_dir():
        parser.error(f"--output {args.output}: there is no folder {args.output.parent}; make it first")
    torch.manual_seed(args.seed)
    image_BYX, count_B = draw_batch(2000, args.size, 50)
    tests = {args.size: draw_batch(500, args.size, 50), LARGE: draw_batch(300, LARGE, 400)}
    hand, learnt, average = handmade(), learn(image_BYX, count_B, args.updates), AverageCounter()
    fit(average.parameters(), average, image_BYX, count_B, 0.03, args.updates)
    counters: dict[str, Counter] = {
        "sum, by hand": lambda image_BYX, _: detect(image_BYX, *hand).sum(dim=(2, 3)),
        "sum, learnt": lambda image_BYX, _: detect(image_BYX, *learnt).sum(dim=(2, 3)),
        "average, attention": average,
    }
    estimates = dict[str, Tensor]()  # on the larger images
    with torch.no_grad():
        for size, (test_BYX, true_B) in tests.items():
            print(f"{size} x {size} pixels, {true_B.mean():.1f} crossings, at most {true_B.max():.0f}:")
            for name, counter in counters.items():
                estimates[name] = estimate_B = counter(test_BYX, 1.0)[:, 0]
                exact, error = (estimate_B.round() == true_B).float().mean(), (estimate_B - true_B).abs().mean()
                print(f"  {name:18} {exact:6.1%} of counts are exact, mean error {error:.2f}")
        test_BYX, true_B = tests[args.size]
        once, twice = average(test_BYX).mean(), average(test_BYX, twice=True).mean()
        print(f"each place twice: {true_B.mean():.2f} crossings become {2 * true_B.mean():.2f}; the sum doubles, too;")
        print(f"  the average says {once:.2f} and then {twice:.2f}")
    # where the crossings of the larger images are, by hand and learnt
    test_BYX, template_2YX = tests[LARGE][0], torch.cat([hand[0], learnt[0]])
    hand_BYX, learnt_BYX = (detect(test_BYX, *each)[:, 0] > 0.5 for each in (hand, learnt))
    move = displacement(learnt_BYX, hand_BYX)
    moved_BYX, moved_YX = learnt_BYX.roll(move, (1, 2)), learnt[0][0].roll([-each for each in move], (0, 1))
    both, similarity = (hand_BYX & moved_BYX).sum(), torch.corrcoef(torch.stack([hand[0][0], moved_YX]).flatten(1))
    print(f"learnt template, with b = {learnt[1].item():.2f}:")
    for line in learnt[0][0].tolist():
        print("  " + " ".join(f"{weight:z5.2f}" for weight in line))
    print(f"moved by {move} it finds {both} of {hand_BYX.sum()} crossings, and {moved_BYX.sum() - both} other places")
    print(f"correlation with the template by hand {similarity[0, 1]:.2f}")
    if args.output:
        found_2YX = torch.stack([hand_BYX[0], learnt_BYX[0]])
        plot(args.output, test_BYX[0], found_2YX, template_2YX, tests[LARGE][1], estimates)


if __name__ == "__main__":
    main()
