"""Reads a strip of handwritten digits from left to right, by soft or hard attention over the columns of the image.

Show, Attend and Tell (Xu et al. 2015) with digits for words: which digits a strip has is given, where they are is not.
A convolution over 11 columns gives each column an annotation a_s, a recurrence over these a key k_s. For each digit y_t

    score_ts = f_att(k_s, h_{t-1})                weight_t = softmax(score_t), or one column drawn from it
    z_t = sum over s of weight_ts a_s             (Xu et al. 2015, equations 4 to 6 and 13)
    h_t = LSTM([y_{t-1}; z_t], h_{t-1})           p(y_t) = softmax(W [h_t; z_t] + b)

``hard`` draws a column and learns where to look by REINFORCE (Williams 1992; Mnih et al. 2014), ``gumbel`` draws one
through a relaxation (Jang et al. 2017), ``local_m`` looks near the middle of the strip's t-th part (Luong et al. 2015).

Shapes: B strips, T digits, S columns, P pixels of a column, A width of an annotation, D width of a state, V digits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from nmt.attention.attention import Attention, AttentionOutput
from nmt.attention.config import AttentionConfig
from nmt.attention.registry import SCORES, WEIGHTS
from nmt.attention.reinforce import SampledPositions
from nmt.models.position_losses import reinforce_loss
from nmt.nn.recurrent import RecurrentStack

PIXELS, ROOM, NOISE, START = 8, 6, 0.1, 10
"""Height and width of a digit, columns of room for each, deviation of the noise, and the token before the first."""

Reading = tuple[Tensor, Tensor, SampledPositions | None]  # log p (B, T, V), weights (B, T, S), columns drawn


def strips(scan_NPS: Tensor, label_N: Tensor, count: int, digits: int) -> tuple[Tensor, Tensor, Tensor]:
    """Images (B, S, P) of digits drawn from the scans, with noise and gaps of random widths; the digits (B, T); and the
    columns of their middles (B, T), which only the evaluation reads."""
    chosen_BT = torch.randint(len(label_N), (count, digits))
    gap_BT = torch.rand(count, digits + 1)
    before_BT = gap_BT.cumsum(dim=1)[:, :-1] / gap_BT.sum(dim=1, keepdim=True) * ROOM * digits
    left_BT = before_BT.long() + PIXELS * torch.arange(digits)
    image_BSP = NOISE * torch.randn(count, digits * (PIXELS + ROOM), PIXELS)
    image_BSP[torch.arange(count)[:, None, None], left_BT[:, :, None] + torch.arange(PIXELS)] += scan_NPS[chosen_BT].mT
    return image_BSP, label_N[chosen_BT], left_BT + (PIXELS - 1) / 2


class DigitReader(nn.Module):
    """Annotations, attention and decoder of the equations above."""

    def __init__(self, attention: AttentionConfig, *, annotation: int = 64, size: int = 64) -> None:
        super().__init__()
        lower, upper = nn.Conv1d(PIXELS, annotation, 7, padding=3), nn.Conv1d(annotation, annotation, 5, padding=2)
        self.convolutions = nn.Sequential(lower, nn.ReLU(), upper, nn.ReLU())
        self.recurrence = nn.GRU(annotation, size // 2, batch_first=True, bidirectional=True)
        self.embedding = nn.Embedding(START + 1, 16)
        self.attention = Attention(attention, query_size=size, key_size=size, value_size=annotation)
        self.cell = RecurrentStack("lstm", input_size=16 + annotation, size=size, layers=1)
        self.output = nn.Linear(size + annotation, START)

    def forward(self, image_BSP: Tensor, steps: int, target_BT: Tensor | None = None) -> Reading:
        """Each step is given the digit before it: that of ``target_BT`` or, without one, the most probable."""
        annotation_BSA = self.convolutions(image_BSP.mT).mT
        key_BSD, _ = self.recurrence(annotation_BSA)
        batch, columns, size = key_BSD.shape
        memory = self.attention.memory(key_BSD, annotation_BSA, torch.zeros(batch, columns, dtype=torch.bool))
        state, digit_B = self.cell.start([torch.zeros(batch, size)]), torch.full((batch,), START)
        log_p, looks = list[Tensor](), list[AttentionOutput]()
        for step in range(steps):
            position_B1 = torch.full((batch, 1), (2 * step + 1) * columns // (2 * steps))  # p_t of local_m
            looks.append(self.attention(state.top_BD[:, None], position_B1, memory))
            context_BA = looks[-1].context_NTV[:, 0]
            state = self.cell.step(torch.cat([self.embedding(digit_B), context_BA], dim=1), state)
            log_p.append(self.output(torch.cat([state.top_BD, context_BA], dim=1)).log_softmax(dim=1))
            digit_B = log_p[-1].argmax(dim=1) if target_BT is None else target_BT[:, step]
        weights_BTS = torch.cat([look.weights_NHTS.mean(dim=1) for look in looks], dim=1)
        return torch.stack(log_p, dim=1), weights_BTS, SampledPositions.joined([look.sampled for look in looks])


def train(model: DigitReader, scan_NPS: Tensor, label_N: Tensor, digits: int, updates: int) -> None:
    """Adam on batches of 32 strips of 1 to ``digits`` digits: from a single one it learns what a digit looks like."""
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=updates)
    for update in range(updates):
        model.attention.update = update  # the temperature of gumbel falls
        image_BSP, digit_BT, _ = strips(scan_NPS, label_N, 32, int(torch.randint(1, digits + 1, ())))
        log_p_BTV, _, sampled = model(image_BSP, digit_BT.shape[1], digit_BT)
        log_p_BT = log_p_BTV.gather(2, digit_BT[:, :, None])[:, :, 0]
        loss = -log_p_BT.sum()
        if sampled is not None:  # a column is rewarded by the log p of the digit that was read there
            loss = loss + reinforce_loss([sampled], log_p_BT, digit_BT == START)
        optimizer.zero_grad()
        (loss / digit_BT.numel()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def plot(path: Path, image_BSP: Tensor, weights_BTS: Tensor, best_BT: Tensor) -> None:
    """Writes the picture: each strip once for each digit read, under the weights of its columns."""
    count, steps, columns = weights_BTS.shape
    figure = Figure(figsize=(count * columns / 10, steps * 0.9), layout="constrained")
    paper_B1PS1, shade_BT1S1 = 1 - image_BSP.mT.clamp(0, 1)[:, None, ..., None], 0.75 * weights_BTS[:, :, None, :, None]
    row_BTPS3 = paper_B1PS1 * (1 - shade_BT1S1) + torch.tensor([0.85, 0.28, 0.05]) * shade_BT1S1
    row_BTPS3 = nn.functional.pad(row_BTPS3, (0, 0, 0, 0, 0, 1), value=1.0)
    for axes, row_TPS3, best_T in zip(figure.subplots(1, count), row_BTPS3, best_BT, strict=True):
        axes.imshow(row_TPS3.flatten(0, 1))
        axes.set(
            frame_on=False, xticks=[], yticks=[9 * step + 3.5 for step in range(steps)], yticklabels=best_T.tolist()
        )
    figure.savefig(path, dpi=150, format="png")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", choices=WEIGHTS, default="softmax", help="default: softmax")
    parser.add_argument("--score", choices=SCORES, default="additive", help="f_att; default: additive")
    parser.add_argument("--digits", type=int, default=4, help="in a strip; default: 4")
    parser.add_argument("--updates", type=int, default=600, help="of training; default: 600; gumbel needs 1500")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="F.png", help="write a picture of two strips that are read")
    args = parser.parse_args()
    if args.digits < 1 or args.updates < 1 or (args.output and not args.output.parent.is_dir()):
        parser.error("--digits and --updates must be at least 1, and --output in a folder that is there")
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        parser.error("the digits come from scikit-learn: pip install scikit-learn")
    torch.manual_seed(args.seed)
    scans = load_digits()
    scan_NPS, label_N = torch.tensor(scans.images, dtype=torch.float32) / 16, torch.tensor(scans.target)
    model = DigitReader(AttentionConfig.model_validate({"score": args.score, "weights": args.weights}))
    train(model, scan_NPS[:1400], label_N[:1400], args.digits, args.updates)
    image_BSP, digit_BT, middle_BT = strips(scan_NPS[1400:], label_N[1400:], 500, args.digits)
    with torch.no_grad():
        log_p_BTV, weights_BTS, _ = model.eval()(image_BSP, args.digits)
    best_BT, distance_BT = log_p_BTV.argmax(dim=2), (weights_BTS.argmax(dim=2) - middle_BT).abs()
    right_BT, near_BT = (best_BT == digit_BT).float(), (distance_BT < PIXELS / 2).float()
    print(f"read correctly: {right_BT.mean():.1%} of digits, {right_BT.prod(dim=1).mean():.1%} of strips")
    print(f"heaviest column: on the digit {near_BT.mean():.1%}, from its middle {distance_BT.mean():.2f} columns")
    if args.output:
        plot(args.output, image_BSP[:2], weights_BTS[:2], best_BT[:2])


if __name__ == "__main__":
    main()
