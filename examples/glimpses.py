"""Finds and reads a handwritten digit on a large canvas by a few glimpses, whose places are learnt by REINFORCE.

This is the recurrent attention model (Mnih et al. 2014, "Recurrent Models of Visual Attention", sections 3 and 4.1). A
digit of scikit-learn lies somewhere on a canvas of 28 x 28 pixels, among noise and pieces of other digits. The model
never sees the whole canvas. At each step t it takes a glimpse at a place l_t = (y, x), which is (-1, -1) at the upper
left pixel and (1, 1) at the lower right one. After n glimpses it names the digit:

    l_t ~ N(tanh(W s_{t-1} + b), deviation^2)                 location network; evaluation takes the mean
    rho_t = patches of three scales around l_t                retina-like sensor, see ``sensor``
    g_t = ReLU(W [ReLU(W rho_t + b); ReLU(W l_t + b)] + b)    glimpse network
    s_t = GRU(g_t, s_{t-1})                                   core; ReLU(W s_{t-1} + U g_t) in the paper
    p(digit) = softmax(W s_n + b)

Cross-entropy trains all parts but the location network. A place is drawn, and the sensor has no derivative with respect
to it, so the location network learns by REINFORCE (Williams 1992): the gradient of the log-density of each place is
multiplied by R - baseline. It reaches the core as well, which must remember where the digit may be. The reward R of all
n places is 1 if the digit is right and 0 otherwise, as in the paper. This is what we want, and it is bounded; log p of
the digit could fall without limit for a few bad canvases, which would then decide the gradient. The baseline
W s_{t-1} + b is learnt by least squares from R. The loss is that of nmt's hard attention, ``reinforce_loss``, which
also subtracts the mean of R - baseline over the other canvases.

Two things help REINFORCE here. A batch has 256 canvases, because the estimate is noisy. And there is a curriculum
(Bengio et al. 2009): digits lie near the middle at first, where the first glimpse falls, and then further and further
away. So the model can read a digit before it must look for one, and its first rewards tell good places from bad ones.

The same model is also trained with places drawn at random, and with a single glimpse at the middle.

Shapes: B canvases, Y rows, X columns, T glimpses, D width of a state, P values of a sensor, V digits; 2: a place.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor, nn
from torch.distributions import Normal
from torch.nn import functional as F

from nmt.attention.reinforce import ReinforceOptions, SampledPositions
from nmt.models.position_losses import reinforce_loss
from nmt.nn.recurrent import RecurrentStack

CANVAS, DIGIT, PIECES, PIECE, NOISE = 28, 8, 4, 3, 0.1
"""Widths of the canvas and of a digit; number and width of the pieces of other digits; deviation of the noise."""

CELLS, SCALES = 6, 3
"""A patch has 6 x 6 cells, which are 1, 2 and 4 pixels wide: the patches are 6, 12 and 24 pixels wide."""

SIZE, DEVIATION, BATCH = 128, 0.15, 256
"""Width of a state, deviation of the places that training draws (2 pixels), canvases of a batch."""

Places: TypeAlias = Callable[[Tensor], tuple[Tensor, SampledPositions | None]]
"""Chooses places (B, 2) from the states (B, D); with the draws, if it learns from them."""


def pixel(place_B2: Tensor) -> Tensor:
    """Rounds a place to the row and column of a pixel (B, 2); one outside of the canvas is moved to its border."""
    return ((place_B2.clamp(-1.0, 1.0) + 1.0) / 2.0 * (CANVAS - 1)).round().long()


def windows(corner_B2: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Indexes the pixels of squares (B, width, width) with these upper left corners, one for each canvas."""
    rows_B1, step = torch.arange(len(corner_B2))[:, None, None], torch.arange(width)
    return rows_B1, (corner_B2[:, :1] + step)[:, :, None], (corner_B2[:, 1:] + step)[:, None]


def draw_canvases(scan_NYX: Tensor, label_N: Tensor, count: int, spread: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Draws canvases (B, Y, X), their digits (B,) and the upper left corners of these (B, 2), which only the evaluation
    reads. A ``spread`` below 1 keeps the digits near the middle."""
    canvas_BYX = torch.zeros(count, CANVAS, CANVAS)
    for _ in range(PIECES):
        other_BYX = scan_NYX[torch.randint(len(scan_NYX), (count,))]
        piece_BYX = other_BYX[windows(torch.randint(DIGIT - PIECE + 1, (count, 2)), PIECE)]
        canvas_BYX[windows(torch.randint(CANVAS - PIECE + 1, (count, 2)), PIECE)] = piece_BYX
    chosen_B, room = torch.randint(len(scan_NYX), (count,)), CANVAS - DIGIT
    corner_B2 = (room / 2 + spread * room * (torch.rand(count, 2) - 0.5)).round().long()
    canvas_BYX[windows(corner_B2, DIGIT)] = scan_NYX[chosen_B]
    return canvas_BYX + NOISE * torch.randn_like(canvas_BYX), label_N[chosen_B], corner_B2


def sensor(canvas_BYX: Tensor, place_B2: Tensor) -> Tensor:
    """Computes rho (B, P). Cell (i, j) of scale k is the mean of the 2^k x 2^k pixels whose first one is 2^k (i - 3)
    rows and 2^k (j - 3) columns from the place. Pixels outside of the canvas are 0."""
    widest = CELLS * 2 ** (SCALES - 1)
    patch_BYX = F.pad(canvas_BYX, [widest // 2] * 4)[windows(pixel(place_B2), widest)]
    rho = list[Tensor]()
    for width in (2**scale for scale in range(SCALES)):
        edge = (widest - CELLS * width) // 2
        inner_BYX = patch_BYX[:, edge : widest - edge, edge : widest - edge]
        rho.append(inner_BYX.reshape(-1, CELLS, width, CELLS, width).mean(dim=(2, 4)).flatten(1))
    return torch.cat(rho, dim=1)


class LearntPlaces(nn.Module):
    """The location network, with the baseline."""

    def __init__(self) -> None:
        super().__init__()
        self.mean, self.baseline = nn.Linear(SIZE, 2), nn.Linear(SIZE, 1)

    def forward(self, state_BD: Tensor) -> tuple[Tensor, SampledPositions | None]:
        """Draws places (B, 2) while training, and returns the mean of the density when evaluating."""
        mean_B2 = self.mean(state_BD).tanh()
        if not self.training:
            return mean_B2, None
        # the draw has no gradient, its log-density has one
        place_B2 = mean_B2.detach() + DEVIATION * torch.randn_like(mean_B2)
        log_p_B2: Tensor = Normal(mean_B2, DEVIATION).log_prob(place_B2)  # type: ignore[no-untyped-call]
        log_p_B1 = log_p_B2.sum(dim=1, keepdim=True)
        # the state does not learn to be predictable
        baseline_B1 = self.baseline(state_BD.detach())
        # the entropy of the density is constant, 0 stands in for it; all places are drawn
        entropy_B1, is_drawn_B1 = torch.zeros_like(log_p_B1), torch.ones_like(log_p_B1, dtype=torch.bool)
        return place_B2, SampledPositions(ReinforceOptions(), log_p_B1, entropy_B1, baseline_B1, is_drawn_B1)


def random_places(state_BD: Tensor) -> tuple[Tensor, None]:
    """Draws places (B, 2) that are uniform over the canvas."""
    return 2.0 * torch.rand(len(state_BD), 2) - 1.0, None


def middle(state_BD: Tensor) -> tuple[Tensor, None]:
    """Returns the middle of the canvas as places (B, 2)."""
    return torch.zeros(len(state_BD), 2), None


class GlimpseReader(nn.Module):
    """Sensor, glimpse network, core and classification of the equations above."""

    def __init__(self, places: Places, glimpses: int) -> None:
        super().__init__()
        self.places, self.glimpses = places, glimpses
        self.what, self.where = nn.Linear(SCALES * CELLS**2, SIZE), nn.Linear(2, SIZE // 4)
        self.glimpse = nn.Linear(SIZE + SIZE // 4, SIZE)
        self.core = RecurrentStack("gru", input_size=SIZE, size=SIZE, layers=1)
        self.output = nn.Linear(SIZE, 10)

    def forward(self, canvas_BYX: Tensor) -> tuple[Tensor, Tensor, SampledPositions | None]:
        """Returns logits (B, V), places (B, T, 2), and in training the draws."""
        state = self.core.start([torch.zeros(len(canvas_BYX), SIZE)])
        places, draws = list[Tensor](), list[SampledPositions | None]()
        for _ in range(self.glimpses):
            place_B2, sampled = self.places(state.top_BD)
            what_BD, where_BX = self.what(sensor(canvas_BYX, place_B2)).relu(), self.where(place_B2).relu()
            glimpse_BD = self.glimpse(torch.cat([what_BD, where_BX], dim=1)).relu()
            state = self.core.step(glimpse_BD, state)
            places.append(place_B2)
            draws.append(sampled)
        return self.output(state.top_BD), torch.stack(places, dim=1), SampledPositions.joined(draws)


def train(model: GlimpseReader, scan_NYX: Tensor, label_N: Tensor, updates: int, *, curriculum: bool) -> None:
    """Trains by Adam; with the curriculum, digits lie anywhere after a bit more than half of the updates."""
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-3, total_steps=updates)
    for update in range(updates):
        spread = min(1.0, 0.1 + 1.6 * update / updates) if curriculum else 1.0
        canvas_BYX, label_B, _ = draw_canvases(scan_NYX, label_N, BATCH, spread)
        logits_BV, _, sampled = model(canvas_BYX)
        loss = F.cross_entropy(logits_BV, label_B, reduction="sum")
        if sampled is not None:  # all glimpses have the same reward, 1 for the right digit
            reward_B1 = (logits_BV.argmax(dim=1) == label_B).float()[:, None]
            loss = loss + reinforce_loss([sampled], reward_B1, torch.zeros_like(reward_B1, dtype=torch.bool))
        optimizer.zero_grad()
        (loss / BATCH).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()


def is_on_digit(place_BT2: Tensor, corner_B2: Tensor) -> Tensor:
    """Returns True for the places (B, T) whose pixel is one of the digit's 8 x 8."""
    offset_BT2 = pixel(place_BT2) - corner_B2[:, None]
    return ((offset_BT2 >= 0) & (offset_BT2 < DIGIT)).all(dim=2)


def plot(path: Path, canvas_BYX: Tensor, label_B: Tensor, readings: dict[str, tuple[Tensor, Tensor]]) -> None:
    """Writes the picture: the canvases with the path of the glimpses, a row for each model. The square is the sharpest
    patch of the last glimpse."""
    figure = Figure(figsize=(1.9 * len(canvas_BYX), 2.1 * len(readings)), layout="constrained")
    panels = figure.subplots(len(readings), len(canvas_BYX), squeeze=False)
    for (name, (best_B, place_BT2)), row in zip(readings.items(), panels, strict=True):
        row[0].set_ylabel(name)
        for axes, canvas_YX, label, best, place_T2 in zip(row, canvas_BYX, label_B, best_B, place_BT2, strict=True):
            (y_T, x_T), edge = pixel(place_T2).T.tolist(), CELLS / 2 + 0.5
            axes.imshow(1 - canvas_YX, cmap="gray", vmin=-0.7, vmax=1)
            axes.plot(x_T, y_T, "o-", color="#d9480f", markersize=4, linewidth=1)
            axes.add_patch(Rectangle((x_T[-1] - edge, y_T[-1] - edge), CELLS, CELLS, fill=False, edgecolor="#2171b5"))
            for glimpse, (x, y) in enumerate(zip(x_T, y_T, strict=True), start=1):
                axes.annotate(str(glimpse), (x, y), xytext=(3, 3), textcoords="offset points", color="#d9480f")
            axes.set_title(f"{label}, read as {best}", color="black" if best == label else "#999999", fontsize=9)
            axes.set(xticks=[], yticks=[], xlim=(-0.5, CANVAS - 0.5), ylim=(CANVAS - 0.5, -0.5))
    figure.savefig(path, dpi=90, format="png")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glimpses", type=int, default=3, help="n; default: 3")
    parser.add_argument("--updates", type=int, default=1200, help="of training, for each model; default: 1200")
    parser.add_argument("--no-curriculum", action="store_true", help="digits lie anywhere from the start")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="F.png", help="write a picture of canvases and glimpses")
    args = parser.parse_args()
    if args.glimpses < 1 or args.updates < 1 or (args.output and not args.output.parent.is_dir()):
        parser.error("--glimpses and --updates must be at least 1, and --output in a folder that is there")
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        parser.error("the digits come from scikit-learn: pip install scikit-learn")
    torch.manual_seed(args.seed)
    scans = load_digits()
    scan_NYX, label_N = torch.tensor(scans.images, dtype=torch.float32) / 16, torch.tensor(scans.target)
    canvas_BYX, label_B, corner_B2 = draw_canvases(scan_NYX[1400:], label_N[1400:], 1000)
    models = {
        "learnt": GlimpseReader(LearntPlaces(), args.glimpses),
        "random": GlimpseReader(random_places, args.glimpses),
        "middle": GlimpseReader(middle, glimpses=1),
    }
    readings = dict[str, tuple[Tensor, Tensor]]()
    for name, model in models.items():
        train(model, scan_NYX[:1400], label_N[:1400], args.updates, curriculum=not args.no_curriculum)
        with torch.no_grad():
            logits_BV, place_BT2, _ = model.eval()(canvas_BYX)
        best_B = logits_BV.argmax(dim=1)
        readings[name] = best_B[:6], place_BT2[:6]
        on_digit_T = is_on_digit(place_BT2, corner_B2).float().mean(dim=0).tolist()
        print(f"{name}: {(best_B == label_B).float().mean():.1%} of digits are right; glimpses on the digit:", end=" ")
        print(", then ".join(f"{share:.1%}" for share in on_digit_T), flush=True)
    if args.output:
        plot(args.output, canvas_BYX[:6], label_B[:6], readings)


if __name__ == "__main__":
    main()
