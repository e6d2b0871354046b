"""Classifies German texts by attention with one learnt query, and by the last state or the mean of states instead.

Does a text say what English says with *will*? Half of the texts do, in one sentence, by the translations in the corpus;
nobody tells which word decides. A logistic regression reads one vector c, made of the encoder's states h_s:

    last        c = [forward state at the last word; backward state at the first]
    mean        c = sum over s of h_s / S
    attention   c = sum over s of weight_s h_s,  weight = softmax(score),  score_s = v . tanh(W q + U h_s)

The score is that of Bahdanau et al. 2015; with a parameter as q, W q is a bias (Yang et al. 2016, equations 5 to 7).

Shapes: B texts, S words of a text, D width of a state.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from pathlib import Path

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from nmt.attention.attention import Attention, AttentionOutput
from nmt.attention.config import AttentionConfig
from nmt.attention.registry import SCORES
from nmt.models.position_losses import reinforce_loss
from nmt.models.rnn.config import RNNEncoderConfig
from nmt.models.rnn.encoder import RNNEncoder
from nmt.models.seq2seq import Encoded, mean_state
from nmt.nn.config import DropoutConfig
from nmt.nn.embedding import Embedding

CORPUS = Path(__file__).resolve().parent.parent / "data" / "de-en"
PAD, UNKNOWN = 0, 1
Texts = list[list[str]]  # words and signs


def read(split: str, word: str) -> tuple[Texts, Texts]:
    """The German sentences whose translation does not have a word, and those whose does."""
    german, english = ((CORPUS / f"{split}.{side}").read_text(encoding="utf-8").splitlines() for side in ("de", "en"))
    apart: tuple[Texts, Texts] = ([], [])
    for source, target in zip(german, english, strict=True):
        apart[word in re.findall(r"\w+", target.lower())].append(re.findall(r"\w+|[^\w\s]", source))
    return apart


def draw(apart: tuple[Texts, Texts], count: int, sentences: int, rng: random.Random) -> tuple[Texts, Tensor]:
    """Texts of some sentences in a row, the first half with one that has the word, and 1.0 for these (B,)."""
    texts = [rng.choices(apart[0], k=sentences) for _ in range(count)]
    for text in texts[: count // 2]:
        text[rng.randrange(sentences)] = rng.choice(apart[1])
    return [[w for sentence in text for w in sentence] for text in texts], (torch.arange(count) < count // 2).float()


class Classifier(nn.Module):
    """p(word | text) = sigmoid(w . c + b)."""

    def __init__(self, summary: str, attention: AttentionConfig, vocabulary: list[str], *, size: int = 32) -> None:
        super().__init__()
        self.summary = summary
        self.ids = {word: number for number, word in enumerate(vocabulary, start=UNKNOWN + 1)}
        embedding, dropout = Embedding(len(vocabulary) + 2, size, pad=PAD), DropoutConfig(embedding=0.0, layers=0.0)
        self.encoder = RNNEncoder(RNNEncoderConfig(cell="gru", size=size), embedding, width=size, dropout=dropout)
        self.query_D = nn.Parameter(torch.randn(2 * size) / (2 * size) ** 0.5)
        self.attention = Attention(attention, query_size=2 * size, key_size=2 * size, value_size=2 * size)
        self.output = nn.Linear(2 * size, 1)

    def forward(self, texts: Texts) -> tuple[Tensor, AttentionOutput]:
        """The logits (B,) and, whether they come from it or not, what is attended."""
        ids = [torch.tensor([self.ids.get(word, UNKNOWN) for word in text]) for text in texts]
        word_BS = nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=PAD)
        encoded: Encoded = self.encoder(self.encoder.embed(word_BS), word_BS == PAD)
        memory = self.attention.memory(encoded.states_BSD, encoded.states_BSD, encoded.is_pad_BS)
        query_B1D, position_B1 = self.query_D.expand(len(texts), 1, -1), torch.zeros(len(texts), 1, dtype=torch.int64)
        attended = self.attention(query_B1D, position_B1, memory)
        mean_BD, context_BD = mean_state(encoded.states_BSD, encoded.is_pad_BS), attended.context_NTV[:, 0]
        c_BD = {"last": encoded.final_BD, "mean": mean_BD, "attention": context_BD}[self.summary]
        return self.output(c_BD)[:, 0], attended


def train(model: Classifier, apart: tuple[Texts, Texts], sentences: int, updates: int, rng: random.Random) -> None:
    """Adam on batches of 16 texts."""
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(updates):
        texts, has_word_B = draw(apart, 16, sentences, rng)
        logit_B, attended = model(texts)
        log_p_B = -nn.functional.binary_cross_entropy_with_logits(logit_B, has_word_B, reduction="none")
        loss = -log_p_B.sum()
        if attended.sampled is not None and model.summary == "attention":
            loss = loss + reinforce_loss([attended.sampled], log_p_B[:, None], torch.zeros(16, 1, dtype=torch.bool))
        optimizer.zero_grad()
        (loss / 16).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def plot(path: Path, text: list[str], weights: list[float], columns: int = 84) -> None:
    """Writes the picture: the text, each word as dark behind as its weight."""
    figure = Figure(figsize=(columns / 11, len(" ".join(text)) / columns * 0.3 + 0.4))
    axes, row, column = figure.add_axes((0, 0, 1, 1), frame_on=False), 0, 0
    for word, weight in zip(text, weights, strict=False):
        row, column = (row, column) if column + len(word) <= columns else (row + 1, 0)
        box = {"facecolor": (0.85, 0.28, 0.05, 0.9 * weight), "edgecolor": "none", "pad": 1.5}
        axes.text(column, row, word, family="monospace", size=10, va="center", parse_math=False, bbox=box)
        column += len(word) + 1
    axes.set(xlim=(-1, columns + 1), ylim=(row + 0.7, -0.7), xticks=[], yticks=[])
    figure.savefig(path, dpi=150, format="png")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--word", default="will", help="the English word; default: will")
    parser.add_argument("--sentences", type=int, default=12, help="in a text; default: 12")
    parser.add_argument("--score", choices=SCORES, default="additive", help="default: additive")
    parser.add_argument("--weights", choices=["softmax", "sparsemax", "hard"], default="softmax")
    parser.add_argument("--updates", type=int, default=150, help="of training; default: 150")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, metavar="F.png", help="write a picture of a text and its weights")
    args = parser.parse_args()
    if args.sentences < 1 or args.updates < 1 or (args.output and not args.output.parent.is_dir()):
        parser.error("--sentences and --updates must be at least 1, and --output in a folder that is there")
    train_apart, test_apart = read("train", args.word.lower()), read("test", args.word.lower())
    if not all((*train_apart, *test_apart)):
        parser.error(f"--word {args.word}: no sentence of the corpus has it, or every one; name another word")
    counts = Counter(word for sentence in train_apart[0] + train_apart[1] for word in sentence)
    attention = AttentionConfig.model_validate({"score": args.score, "weights": args.weights})
    texts, has_word_B = draw(test_apart, 500, args.sentences, random.Random(args.seed))
    for summary in ("last", "mean", "attention"):
        torch.manual_seed(args.seed)
        model = Classifier(summary, attention, [word for word, count in counts.items() if count >= 5])
        train(model, train_apart, args.sentences, args.updates, random.Random(args.seed))
        with torch.no_grad():
            logit_B, attended = model.eval()(texts)
        print(f"{summary:9} {((logit_B > 0) == has_word_B.bool()).float().mean():7.1%} of texts right")
    weights_BS, heaviest = attended.weights_NHTS[:, 0, 0], attended.weights_NHTS[:, 0, 0].argmax(dim=1).tolist()
    print("heaviest:", *Counter(text[at] for text, at in zip(texts[:250], heaviest, strict=False)).most_common(8))
    for text, weights_S, at in zip(texts[:4], weights_BS, heaviest, strict=False):
        words = [word if w < 0.05 else f"{word} ({w:.2f})" for word, w in zip(text, weights_S, strict=False)]
        print("…", *words[max(at - 6, 0) : at + 7], "…")
    if args.output:
        plot(args.output, texts[0], weights_BS[0].tolist())


if __name__ == "__main__":
    main()
