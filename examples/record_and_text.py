"""Answers questions about a record of numbers and a note in words, by one attention over both.

A weather record has five fields with a number each. The note beside it names two fields with a number each: some
clauses correct the record, others are about another day.

    temperature 11, wind 4, rain 0, cloud 7, pressure 12
    the wind is now nine and yesterday the cloud was three

What is the wind? Nine, not 4; but the cloud is 7, not three. The model answers by one step of attention, with the field
f as the question. The keys k and values v are of two kinds, side by side:

    record   k_i = v_i = E f_i + tanh(w n_i + b)       embedding of a field f_i, and projection of its number n_i
    text     k_s = [forward GRU; backward GRU]_s,  v_s = E' x_s                     state and embedding of a word x_s
    weight   = softmax(score),  score_j = a . tanh(W E f + U k_j)  for all j of both  (Bahdanau et al. 2015)
    answer   p = softmax(W_2 tanh(W_1 [c; E f])),  c = sum over j of weight_j v_j

The decoder of Mei et al. 2016 ("What to talk about and how?") attends to the records of a weather forecast, that of
Wiseman et al. 2017 to the tables of a game. One softmax over two memories is the flat combination of Libovický & Helcl
2017; its weights say which of them an answer came from. Half of the questions need the note, half the record. With one
of them as padding, a model can know only half of the answers, and guesses one in 13 of the others: 53.8 per cent.

Shapes: B items, F fields, S words of a note, J = F + S positions, D width of a state.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from nmt.attention.attention import Attention
from nmt.attention.config import AttentionConfig
from nmt.attention.registry import SCORES
from nmt.models.rnn.config import RNNEncoderConfig
from nmt.models.rnn.encoder import RNNEncoder
from nmt.nn.config import DropoutConfig
from nmt.nn.embedding import Embedding

FIELDS = ["temperature", "wind", "rain", "cloud", "pressure"]
NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
CORRECTS = ["the {} is now {}", "{} has changed to {}", "the true {} is {}", "please read {} as {}"]
IGNORED = ["yesterday the {} was {}", "{} had been {} before", "tomorrow the {} will be {}", "we expect {} of {} later"]
WORDS = ["<pad>", *sorted({*" ".join(CORRECTS + IGNORED).split(), "and", *FIELDS, *NUMBERS} - {"{}"})]

Item = tuple[list[int], list[str], int, int, int]
"""The numbers of a record, a note, the field that is asked for, the answer, and the position j of the answer."""


def draw(rng: random.Random) -> Item:
    """An item; in half of all, the note corrects the field that is asked for."""
    record, named = rng.choices(range(len(NUMBERS)), k=len(FIELDS)), rng.sample(range(len(FIELDS)), 2)
    asked = rng.choice(named) if rng.random() < 0.75 else rng.choice([f for f in range(len(FIELDS)) if f not in named])
    answer, position, note = record[asked], asked, list[str]()
    for field in named:
        corrects, number = rng.random() < 2 / 3, rng.randrange(len(NUMBERS))
        clause = rng.choice(CORRECTS if corrects else IGNORED).format(FIELDS[field], NUMBERS[number])
        note += [*["and"] * bool(note), *clause.split()]
        if corrects and field == asked:
            answer, position = number, len(FIELDS) + max(s for s, word in enumerate(note) if word == NUMBERS[number])
    return record, note, asked, answer, position


class Answerer(nn.Module):
    """The equations above, with the record or the text as padding if it ``reads`` only the other."""

    def __init__(self, reads: str, score: str, *, size: int = 64) -> None:
        super().__init__()
        self.reads = reads
        self.field, self.number = nn.Embedding(len(FIELDS), size), nn.Linear(1, size)
        embedding, dropout = Embedding(len(WORDS), size, pad=0), DropoutConfig(embedding=0.0, layers=0.0)
        config = RNNEncoderConfig(cell="gru", size=size // 2)
        self.encoder = RNNEncoder(config, embedding, width=size, dropout=dropout)
        attention = AttentionConfig.model_validate({"score": score})
        self.attention = Attention(attention, query_size=size, key_size=size, value_size=size)
        self.output = nn.Sequential(nn.Linear(2 * size, 2 * size), nn.Tanh(), nn.Linear(2 * size, len(NUMBERS)))

    def forward(self, items: list[Item]) -> tuple[Tensor, Tensor]:
        """The logits of the answers (B, numbers) and the weights (B, J)."""
        number_BF1 = torch.tensor([item[0] for item in items])[:, :, None] / 2 - 3
        record_BFD = self.field.weight + self.number(number_BF1).tanh()
        notes = [torch.tensor([WORDS.index(word) for word in item[1]]) for item in items]
        word_BS = nn.utils.rnn.pad_sequence(notes, batch_first=True)
        embedded_BSD = self.encoder.embed(word_BS)
        state_BSD = self.encoder(embedded_BSD, word_BS == 0).states_BSD
        # one memory after the other, and padding in place of what is not read
        record = self.attention.memory(record_BFD, record_BFD, torch.full(record_BFD.shape[:2], self.reads == "text"))
        text = self.attention.memory(state_BSD, embedded_BSD, (word_BS == 0) | (self.reads == "record"))
        query_BD = self.field(torch.tensor([item[2] for item in items]))
        position_B1 = torch.zeros(len(items), 1, dtype=torch.int64)
        attended = self.attention(query_BD[:, None], position_B1, record.extended(text))
        return self.output(torch.cat([attended.context_NTV[:, 0], query_BD], 1)), attended.weights_NHTS[:, 0, 0]


def train(model: Answerer, updates: int, rng: random.Random) -> None:
    """Adam on batches of 64 new items."""
    optimizer = torch.optim.Adam(model.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=updates)
    for _ in range(updates):
        items = [draw(rng) for _ in range(64)]
        loss = nn.functional.cross_entropy(model(items)[0], torch.tensor([item[3] for item in items]))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()


def plot(path: Path, model: Answerer, items: list[Item]) -> None:
    """Writes the picture: the weights of each question over the fields and the words."""
    figure = Figure(figsize=(11, 2.2 * len(items)), layout="constrained")
    for axes, item in zip(figure.subplots(len(items), 1), items, strict=True):
        logits_1V, weights_1J = model([item])
        labels = [f"{field}\n{number}" for field, number in zip(FIELDS, item[0], strict=True)] + item[1]
        axes.bar(
            range(len(labels)), weights_1J[0].tolist(), color=["#2171b5"] * len(FIELDS) + ["#d9480f"] * len(item[1])
        )
        axes.set(title=f"What is the {FIELDS[item[2]]}? {NUMBERS[logits_1V.argmax()]}", ylabel="weight", ylim=(0, 1))
        axes.set_xticks(range(len(labels)), labels, fontsize=8)
    figure.savefig(path, dpi=100, format="png")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--score", choices=SCORES, default="additive", help="default: additive")
    parser.add_argument("--updates", type=int, default=400, help="of training; default: 400")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="F.png", help="write a picture of two questions and weights")
    args = parser.parse_args()
    if args.updates < 1 or (args.output and not args.output.parent.is_dir()):
        parser.error("--updates must be at least 1, and --output in a folder that is there")
    rng = random.Random("test")
    items = [draw(rng) for _ in range(1000)]
    answer_B, position_B = (torch.tensor([item[index] for item in items]) for index in (3, 4))
    in_note_B = position_B >= len(FIELDS)
    for reads in ("record", "text", "both"):
        torch.manual_seed(args.seed)
        model = Answerer(reads, args.score)
        train(model, args.updates, random.Random(args.seed))
        with torch.no_grad():
            logits_BV, weights_BJ = model.eval().requires_grad_(False)(items)
        is_right_B = (logits_BV.argmax(dim=1) == answer_B).float()
        rates = [is_right_B[mask_B].mean() for mask_B in (in_note_B | True, ~in_note_B, in_note_B)]
        print("{:6} {:6.1%} right, {:6.1%} from the record, {:6.1%} from the note".format(reads, *rates))
    record_B, place_B = weights_BJ[:, : len(FIELDS)].sum(dim=1), weights_BJ.gather(1, position_B[:, None])[:, 0]
    for name, mask_B in (("record", ~in_note_B), ("note", in_note_B)):
        shares = record_B[mask_B].mean(), place_B[mask_B].mean()
        print("answer in the {}: weight {:6.1%} on the record, {:6.1%} on the answer".format(name, *shares))
    if args.output:
        note = ["the", "wind", "is", "now", "nine", "and", "yesterday", "the", "cloud", "was", "three"]
        plot(args.output, model, [([11, 4, 0, 7, 12], note, asked, 0, 0) for asked in (1, 3)])


if __name__ == "__main__":
    main()
