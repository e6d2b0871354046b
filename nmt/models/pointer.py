"""A model that can copy source tokens: the pointer-generator of See, Liu & Manning 2017, "Get To The Point:
Summarization with Pointer-Generator Networks", section 2.2; after Gu et al. 2016, "Incorporating Copying Mechanism in
Sequence-to-Sequence Learning", whose copies have scores of their own.

Shapes as in ``seq2seq``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from nmt.core.record import BatchRecord
from nmt.models.feed import Feed
from nmt.models.seq2seq import Decoded, Decoder, DecoderStep, Encoder, Seq2Seq, Step
from nmt.nn.copies import Copies
from nmt.nn.output import OutputLayer, top_tokens_in_parts
from nmt.ops import TopTokens


@dataclass(frozen=True)
class PointerMemory(BatchRecord):
    """The memory of a decoder, and the tokens to copy."""

    decoder: BatchRecord
    source_BS: Tensor
    """The source tokens, with padding in place of those that no target contains."""


class PointerGenerator(Seq2Seq[PointerMemory, Any]):
    """p(y_t) = (1 - g_t) softmax(W r_t + b) + g_t sum over s with x_s = y_t of a_ts,  g_t = sigmoid(w . r_t + b')

    g is the gate, 1 - p_gen in the paper (equations 8 and 9), and a the mean of the weights of some heads. The paper's
    gate reads the context, the state and the last word; here it reads r, which is computed from them. A source token
    that no target contains is never copied, and its share stays with the softmax.

    Both sides have one vocabulary of subwords, which can spell any name; so it is not extended by the words of a
    sentence as in the paper.
    """

    def __init__(
        self, encoder: Encoder, decoder: Decoder[Any, Any], output: OutputLayer, *, heads: Sequence[int], pad: int,
        bos: int,
    ) -> None:  # fmt: skip
        """``heads`` are the indices of those whose weights are copied by, in ``decoder.head_names``."""
        super().__init__(encoder, decoder, output, pad=pad, bos=bos)
        self.gate = nn.Linear(decoder.readout_size, 1)
        self.heads = list(heads)
        self.trained_heads = decoder.return_weights_of(heads)
        """The index of each in training."""

    def encode_embedded(self, embedded_BSE: Tensor, source_BS: Tensor) -> PointerMemory:
        """See ``Seq2Seq.encode_embedded``."""
        copied_BS = source_BS
        for token in self.output.suppressed:
            copied_BS = copied_BS.masked_fill(source_BS == token, self.pad)
        return PointerMemory(super().encode_embedded(embedded_BSE, source_BS), copied_BS)

    def decoder_memory(self, memory: PointerMemory) -> BatchRecord:
        """See ``Seq2Seq.decoder_memory``."""
        return memory.decoder

    def predicted(self, step: DecoderStep[Any], memory: PointerMemory) -> Step[Any]:
        """See ``Seq2Seq.predicted``; the logits are log-probabilities, in float32 or wider."""
        copies = self._copies(step.readout_NR, step.weights(), memory)

        def logits(rows: slice) -> Tensor:
            return copies.part(rows).log_mixed(self.output(step.readout_NR[rows]))

        def top_tokens(count: int, normalized: bool) -> TopTokens:
            return top_tokens_in_parts(logits, step.readout_NR, self.output.vocabulary, count, normalized)

        return Step(self.output.vocabulary, logits, top_tokens, step.weights, step.state)

    def teacher_forced(self, target_BT: Tensor, memory: PointerMemory) -> Decoded:
        """See ``Seq2Seq.teacher_forced``."""
        return self._with_copies(super().teacher_forced(target_BT, memory), memory)

    def decode(self, target_BT: Tensor, memory: PointerMemory, feed: Feed) -> Decoded:
        """See ``Seq2Seq.decode``."""
        return self._with_copies(super().decode(target_BT, memory, feed), memory)

    def guess_logits(self, readout_BR: Tensor, weights_BHS: Callable[[], Tensor], memory: PointerMemory) -> Tensor:
        """See ``Seq2Seq.guess_logits``."""
        return self._copies(readout_BR, weights_BHS(), memory).log_mixed(self.output(readout_BR))

    def _with_copies(self, decoded: Decoded, memory: PointerMemory) -> Decoded:
        """Adds the copies of all positions, B x T rows."""
        rows_NR, weights_BHTS = decoded.readout_BTR.flatten(0, 1), decoded.weights_BHTS
        return replace(decoded, copies=self._copies(rows_NR, weights_BHTS.transpose(1, 2).flatten(0, 1), memory))

    def _copies(self, readout_NR: Tensor, weights_NHS: Tensor, memory: PointerMemory) -> Copies:
        """Computes g a_s; the rows of a sentence are neighbours."""
        token_NS, rows = memory.source_BS, readout_NR.shape[0]
        if token_NS.shape[0] != rows:  # an export, whose number of rows is open, cannot tell that the factor is 1
            token_NS = token_NS.repeat_interleave(rows // token_NS.shape[0], dim=0)
        # a: the mean of the heads
        weights_NS = weights_NHS[:, self.trained_heads if self.training else self.heads].mean(dim=1)
        # g = sigmoid(w . r + b'), and nothing of what no target contains
        copied_NS = self.gate(readout_NR).sigmoid() * weights_NS
        return Copies(copied_NS.masked_fill(token_NS == self.pad, 0.0), token_NS)
