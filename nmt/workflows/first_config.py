"""A first configuration for a corpus: sizes that suit it and the machine, each with its reason.

The smallest two are of the models that README.md and docs/results.md measure; the others follow Vaswani et al. 2017,
table 3 (base), on CUDA, and on a CPU what trains there in a day or so.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nmt.config.yaml_source import write
from nmt.data.config import CorpusConfig
from nmt.data.splitting import Survey

SMALL, BASE = 5_000, 100_000
"""Pairs from which on a corpus is small, and is no longer small."""


@dataclass(frozen=True)
class Size:
    """A model and how it is trained."""

    name: str
    reason: str
    """Comment lines."""
    model: str
    """The lines of the section."""
    subwords: int
    batch_tokens: int
    learning_rate: float
    epochs: float


TINY = Size(
    name="tiny, recurrent",
    reason="""\
# So few pairs teach a recurrent model more than a Transformer, which has to learn from them alone what order is;
# from some 5,000 pairs on a Transformer is better. A narrow model and much dropout, lest it learn them by heart.
""",
    model="""\
  embedding: {size: 128, tie: all}          # one table for source, target and output layer: fewer parameters
  encoder: {kind: rnn, cell: lstm, layers: 1, size: 128}
  decoder: {kind: rnn, cell: lstm, layers: 1, size: 256, query: current, input_feeding: true}
  attention: {score: additive, weights: softmax}
  dropout: {embedding: 0.3, layers: 0.3}
""",
    subwords=2000,
    batch_tokens=1024,
    learning_rate=3e-3,
    epochs=40,
)

SMALL_TRANSFORMER = Size(
    name="small, Transformer",
    reason="""\
# A small Transformer (Wu et al. 2021): of the models that were compared on 29,000 pairs it was the best, and took less
# time to train than the recurrent one (README.md).
""",
    model="""\
  embedding: {size: 128, tie: all}          # one table for source, target and output layer: fewer parameters
  encoder: {kind: transformer, layers: 4, size: 128, heads: 4, feed_forward: 256}
  decoder: {kind: transformer, layers: 4, size: 128, heads: 4, feed_forward: 256}
  dropout: {embedding: 0.2, layers: 0.2}
""",
    subwords=8000,
    batch_tokens=4096,
    learning_rate=4e-3,
    epochs=20,
)

MEDIUM_CPU = Size(
    name="medium, Transformer",
    reason="""\
# A Transformer of a width that a CPU can still train; with a GPU, `nmt init --device cuda` takes the base model of
# Vaswani et al. 2017.
""",
    model="""\
  embedding: {size: 256, tie: all}          # one table for source, target and output layer: fewer parameters
  encoder: {kind: transformer, layers: 4, size: 256, heads: 4, feed_forward: 1024}
  decoder: {kind: transformer, layers: 4, size: 256, heads: 4, feed_forward: 1024}
  dropout: {embedding: 0.1, layers: 0.1}
""",
    subwords=16_000,
    batch_tokens=4096,
    learning_rate=2e-3,
    epochs=15,
)

BASE_CUDA = Size(
    name="base, Transformer",
    reason="""\
# The base model of Vaswani et al. 2017, table 3, for the GPU that is here. Where memory is short, less batch_tokens.
""",
    model="""\
  embedding: {size: 512, tie: all}          # one table for source, target and output layer: fewer parameters
  encoder: {kind: transformer, layers: 6, size: 512, heads: 8, feed_forward: 2048}
  decoder: {kind: transformer, layers: 6, size: 512, heads: 8, feed_forward: 2048}
  dropout: {embedding: 0.1, layers: 0.1}
""",
    subwords=32_000,
    batch_tokens=16_384,
    learning_rate=1e-3,
    epochs=15,
)


def size_for(pairs: int, *, cuda: bool) -> Size:
    """The model for so many training pairs."""
    if pairs < SMALL:
        return TINY
    if pairs < BASE:
        return SMALL_TRANSFORMER
    return BASE_CUDA if cuda else MEDIUM_CPU


def subwords_for(size: Size, found: Survey) -> int:
    """Entries of the vocabulary: no more than the text has words, and room for all its characters."""
    least = found.characters + 8
    return max(least, min(max(size.subwords, 2 * least), least + found.words * 4 // 5))


def updates_for(size: Size, found: Survey, pairs: int) -> int:
    """Updates of that many passes, of fewer the larger the corpus; a subword is some four bytes long."""
    tokens = found.target_bytes / 4 + found.pairs
    epochs = max(3.0, size.epochs * min(1.0, math.pow(BASE / max(pairs, 1), 0.4)))
    updates = epochs * tokens / size.batch_tokens
    return max(200, round(updates / 100) * 100)


def config_text(
    *,
    path: Path,
    run: str,
    found: Survey,
    train_pairs: int,
    corpora: Mapping[str, CorpusConfig],
    cuda: bool,
    seed: int,
) -> str:
    """The configuration, with comments. ``corpora``: train, and valid and test where there are such."""
    size = size_for(train_pairs, cuda=cuda)
    updates = updates_for(size, found, train_pairs)
    sections = "".join(_corpus(part, corpus) for part, corpus in corpora.items())
    validation = "  # no data.valid: nothing is measured, and the last checkpoint is the one that translates\n"
    if "valid" in corpora:
        every = max(50, updates // 10)
        validation = f"  validation: {{every: {every}, metric: bleu}}   # BLEU decides which checkpoint is best\n"
    return f"""\
# {path.name}: {train_pairs:,} sentence pairs to train on, {"on CUDA" if cuda else "on a CPU"}. Written by nmt init.
# Every key has a default and an explanation: nmt config --explain training.optimizer.learning_rate
# To train:  nmt train {shlex.quote(str(path))}     The same command goes on after whatever stopped it.
{write({"run": run})}seed: {seed}
data:
{sections}\
  # One vocabulary for both languages. Fewer subwords if pairs are few: each must be seen often enough to be learnt.
  subwords: {{kind: bpe, size: {subwords_for(size, found)}, joint: true}}
model:
{_indented(size.reason)}{size.model}\
training:
  batching: {{batch_tokens: {size.batch_tokens}}}          # target subwords of an update
  optimizer: {{kind: adamw, learning_rate: {size.learning_rate:g}}}   # lower it if the loss does not fall
  # The rate rises over warmup updates, stays for half of the training, then falls: set stopping.updates with care, for
  # it cannot be changed once training has begun. More updates for more quality, fewer for a first try.
  schedule: {{kind: linear, warmup: {max(20, min(4000, updates // 10))}, hold: 0.5, final: 0.02}}
  label_smoothing: 0.1
  stopping: {{updates: {updates}}}
{validation}"""


def _corpus(part: str, corpus: CorpusConfig) -> str:
    files = {"pairs": corpus.pairs} if corpus.pairs is not None else {"source": corpus.source, "target": corpus.target}
    lines = write({name: str(path) for name, path in files.items()})
    return f"  {part}:\n" + "".join(f"    {line}\n" for line in lines.splitlines())


def _indented(comment: str) -> str:
    return "".join(f"  {line}\n" for line in comment.splitlines())
