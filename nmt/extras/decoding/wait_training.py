"""Training for wait-k translation along several paths at once: Elbayad, Besacier & Verbeek 2020, "Efficient Wait-k
Models for Simultaneous Machine Translation", section 3.

All steps run over the whole source, whose states do not depend on later words, and a mask hides from a step all source
words after the first k + b, where b words of the target have begun before (equation 3). So the first subword of word t
sees k + t - 1 words, and its further ones see k + t, since nothing before them tells whether the word goes on. One
model learns every k, because each sentence draws its own at each update, where the paper draws one for a batch.

Shapes as in ``wait_k``.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from nmt.attention.attention import AttentionMemory
from nmt.attention.multihead import HeadsMemory
from nmt.core.record import BatchRecord
from nmt.data.tokenizer import TokenizerPair
from nmt.extras.decoding.wait_k import WordStarts
from nmt.models.feed import Feed
from nmt.models.seq2seq import Decoded, Seq2Seq
from nmt.training.config import WaitConfig


class WaitKTraining(nn.Module):
    """A model whose decoder sees a growing prefix of the source; ``token_loss`` reads it as it reads the model."""

    decoder = None
    """An accelerated pass looks here for what it knows, and finds nothing."""

    def __init__(self, model: Seq2Seq[Any, Any], config: WaitConfig, tokenizers: TokenizerPair) -> None:
        super().__init__()
        self.model, self.config = model, config
        self.output, self.pad = model.output, model.pad
        self.words = WordStarts.of(tokenizers, model.output.bias_V.device)

    def encode(self, source_BS: Tensor) -> tuple[BatchRecord, Tensor]:
        """Computes the memory, and the number of the word that each token belongs to (B, S)."""
        return self.model.encode(source_BS), self.words.of_source(source_BS)

    def decode(self, target_BT: Tensor, source: tuple[BatchRecord, Tensor], feed: Feed) -> Decoded:
        """See ``Seq2Seq.decode``."""
        memory, word_BS = source
        # k is uniform between least and most, by default the number of words
        most_B = word_BS[:, -1] if self.config.most is None else torch.full_like(word_BS[:, -1], self.config.most)
        choices_B = (most_B - self.config.least + 1).clamp(min=1)
        wait_B = self.config.least + (torch.rand(len(memory), device=word_BS.device) * choices_B).long()
        read_BT = wait_B[:, None] + self.words.begun_before(target_BT)
        return self.model.decode(target_BT, masked(memory, word_BS[:, None] > read_BT[:, :, None]), feed)


def masked(record: Any, unread_BTS: Tensor) -> Any:
    """Returns a memory in which each attention has the mask of source positions that have not been read."""
    if isinstance(record, AttentionMemory | HeadsMemory):
        return replace(record, unread_BTS=unread_BTS)
    if isinstance(record, tuple):
        return tuple(masked(part, unread_BTS) for part in record)
    if not isinstance(record, BatchRecord):
        return record
    return replace(record, **{each.name: masked(getattr(record, each.name), unread_BTS) for each in fields(record)})
