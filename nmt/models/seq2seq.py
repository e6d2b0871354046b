"""The interface that training, search and alignment use: encode a source, decode a target step by step or at once.

Shapes: B sentences, S source positions, T target positions, N = B x beams rows (the rows of a sentence are neighbours),
H heads, D width of an encoder state, R width of a readout, V target vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from nmt.attention.reinforce import SampledPositions
from nmt.core.operation import Operation
from nmt.core.record import BatchRecord
from nmt.models.feed import Feed, TeacherForcing
from nmt.nn.embedding import Embedding
from nmt.nn.output import OutputLayer
from nmt.ops import TopTokens

if TYPE_CHECKING:
    from nmt.nn.copies import Copies

M = TypeVar("M", bound=BatchRecord)
S = TypeVar("S", bound=BatchRecord)


@dataclass(frozen=True)
class Encoded(BatchRecord):
    """A batch of encoded source sentences."""

    states_BSD: Tensor
    final_BD: Tensor
    """One vector for the whole sentence."""
    is_pad_BS: Tensor


def mean_state(states_BSD: Tensor, is_pad_BS: Tensor) -> Tensor:
    """Computes the mean of each sentence's states without padding, (B, D)."""
    kept_BSD = states_BSD.masked_fill(is_pad_BS[:, :, None], 0.0)
    return kept_BSD.sum(dim=1) / (~is_pad_BS).sum(dim=1, keepdim=True).to(states_BSD.dtype)


NextToken: TypeAlias = Callable[[int, Tensor, Callable[[], Tensor]], Tensor]
"""Computes the next input, (B,), from a step's number, its readout (B, R) and a function that computes its weights
(B, H, S)."""


class Encoder(nn.Module, ABC):
    """Maps source tokens to states."""

    size: int
    """D, the width of a state."""
    embedding: Embedding

    def embed(self, source_BS: Tensor) -> Tensor:
        """Looks up the embeddings of source tokens, (B, S, E)."""
        embedded_BSE: Tensor = self.embedding(source_BS)
        return embedded_BSE

    @abstractmethod
    def forward(self, embedded_BSE: Tensor, is_pad_BS: Tensor) -> Encoded:
        """Encodes embedded tokens. Padding stands at the end of a row and changes no state but its own."""


@dataclass(frozen=True)
class DecoderStep(Generic[S]):
    """Result of one decoder step."""

    readout_NR: Tensor
    weights: Callable[[], Tensor]
    """Computes the weights (N, H, S), which few searches need."""
    state: S


@dataclass(frozen=True)
class MarginalReadouts:
    """The readouts of each step, computed separately for attention to each single source position."""

    readout_BTSR: Tensor
    log_weight_BTS: Tensor
    """Log-probability of each source position; -inf at padding."""


@dataclass(frozen=True)
class Decoded:
    """Result of a decoder for all positions of a target."""

    readout_BTR: Tensor
    weights: Callable[[], Tensor]
    """Computes the weights of all heads (B, H, T, S), in the order of ``Decoder.head_names``, which few losses need; in
    training they are those that ``Decoder.return_weights_of`` has selected."""
    sampled: tuple[SampledPositions, ...] = ()
    """The source positions that each attention that learns from a reward has drawn in training."""
    marginal: MarginalReadouts | None = None
    """The readouts for every source position, in training with attention whose likelihood is summed over all of them;
    else None."""
    copies: Copies | None = None
    """The copies of source tokens at each position, B x T rows: see ``nmt.models.pointer``."""

    @property
    def weights_BHTS(self) -> Tensor:
        """The result of ``weights``."""
        return self.weights()


class Decoder(nn.Module, ABC, Generic[M, S]):
    """Maps target tokens to readouts, with attention to a memory; without attention, weights have no heads (H = 0)."""

    readout_size: int

    head_names: tuple[str, ...]
    """The names of the heads of the weights."""

    @abstractmethod
    def memory(self, encoded: Encoded) -> M:
        """Computes everything that is computed once per source sentence."""

    @abstractmethod
    def start(self, memory: M) -> S:
        """Computes the state before the first token."""

    @abstractmethod
    def step(self, token_N: Tensor, memory: M, state: S) -> DecoderStep[S]:
        """Computes one step of a search from the preceding token, without dropout.

        ``state`` has N rows, ``memory`` has one row per sentence: N is a multiple of B, and the rows of a sentence are
        neighbours.
        """

    @abstractmethod
    def teacher_forced(self, input_BT: Tensor, memory: M) -> Decoded:
        """Computes all steps over given tokens, each of which is the token *before* its position; the result equals a
        loop of steps."""

    @abstractmethod
    def free_running(self, first_B: Tensor, memory: M, steps: int, next_token: NextToken) -> Decoded:
        """Runs ``steps`` steps, the first over ``first_B``, with dropout in training.

        ``next_token`` is not called for the last step.
        """

    def return_weights_of(self, heads: Sequence[int]) -> list[int]:
        """Makes training return the weights of these heads, given by their index in ``head_names``.

        Returns the index of each among the heads of ``weights_BHTS`` in training.
        """
        return list(heads)

    def at_update(self, update: int) -> None:
        """Sets the number of updates of training so far, which annealed settings depend on."""


@dataclass(frozen=True)
class Step(Generic[S]):
    """One step of a model.

    Logits are computed on demand, some rows at a time. The logits of a whole batch take much memory and leave the cache
    of a CPU before all of them are read.
    """

    vocabulary: int
    """V, the number of logits of a row."""
    logits: Callable[[slice], Tensor]
    """Computes the logits of some rows."""
    top_tokens: Callable[[int, bool], TopTokens]
    """Finds the tokens with the largest logits of each row and, if the second argument is true, the normalizer."""
    weights: Callable[[], Tensor]
    """Computes the weights (N, H, S) in float32; they sum to 1 over S and are exactly 0 at padding."""
    state: S

    @property
    def weights_NHS(self) -> Tensor:
        """The result of ``weights``."""
        return self.weights()

    @property
    def logits_NV(self) -> Tensor:
        """The logits of all rows."""
        return self.logits(slice(None))


@Operation
def decoder_step(decoder: Decoder[Any, Any], token_N: Tensor, memory: Any, state: Any) -> DecoderStep[Any]:
    """Calls ``Decoder.step`` as one operation, for searches on a GPU."""
    return decoder.step(token_N, memory, state)


class Seq2Seq(nn.Module, Generic[M, S]):
    """An encoder, a decoder and an output layer; any encoder goes with any decoder."""

    def __init__(self, encoder: Encoder, decoder: Decoder[M, S], output: OutputLayer, *, pad: int, bos: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.pad = pad
        self.bos = bos

    def frozen(self) -> Self:
        """Prepares the model for use and returns it: without gradients, in eval mode, and with probability 0 of
        suppressed tokens.

        A bias of -inf removes these tokens before the softmax, at no cost, in every search, sample and score. The loss
        of training is over the whole vocabulary, so that the course and the weights of a run do not depend on this; it
        teaches the model that these tokens are improbable. The model must not be trained or saved as a checkpoint
        afterwards.
        """
        self.requires_grad_(False).eval()
        for token in self.output.suppressed:
            self.output.bias_V[token] = -torch.inf  # one by one: a list would be copied to the device
        return self

    def encode(self, source_BS: Tensor) -> M:
        """Computes the memory of source tokens; each row ends with end-of-sentence and is filled up with padding."""
        return self.encode_embedded(self.encoder.embed(source_BS), source_BS)

    def encode_embedded(self, embedded_BSE: Tensor, source_BS: Tensor) -> M:
        """Computes the memory of source embeddings (``encoder.embed``), with respect to which gradients may be
        taken."""
        return self.decoder.memory(self.encoder(embedded_BSE, source_BS == self.pad))

    def decoder_memory(self, memory: M) -> Any:
        """Returns the part of the memory that the decoder reads, here all of it."""
        return memory

    def start(self, memory: M) -> S:
        """Computes the decoder's state before the first step, one row for each sentence."""
        return self.decoder.start(self.decoder_memory(memory))

    def step(self, token_N: Tensor, memory: M, state: S) -> Step[S]:
        """Computes one step, from the last token of N rows to the logits of the next one. See ``Decoder.step``."""
        own = self.decoder_memory(memory)
        on_cpu = token_N.device.type == "cpu"  # a search would call an operation very often
        step = self.decoder.step(token_N, own, state) if on_cpu else decoder_step(self.decoder, token_N, own, state)
        return self.predicted(step, memory)

    def predicted(self, step: DecoderStep[S], memory: M) -> Step[S]:
        """Returns a step of the decoder with the logits of its readouts."""
        return Step(
            self.output.vocabulary,
            lambda rows: self.output(step.readout_NR[rows]),
            partial(self.output.top_tokens, step.readout_NR),
            step.weights,
            step.state,
        )

    def teacher_forced(self, target_BT: Tensor, memory: M) -> Decoded:
        """Runs all steps under teacher forcing: position t has seen the tokens of ``target_BT`` before t."""
        return self.decoder.teacher_forced(self._shifted(target_BT), self.decoder_memory(memory))

    def decode(self, target_BT: Tensor, memory: M, feed: Feed) -> Decoded:
        """Runs all steps with the inputs that ``feed`` chooses; they run at once if it never reads the guesses of the
        model."""
        own = self.decoder_memory(memory)
        if isinstance(feed, TeacherForcing):
            return self.decoder.teacher_forced(self._shifted(target_BT), own)
        rows, steps = target_BT.shape
        policy = feed.begin(rows, target_BT.device)

        def next_token(time: int, readout_BR: Tensor, weights: Callable[[], Tensor]) -> Tensor:
            with torch.no_grad():
                logits_BV = self.guess_logits(readout_BR, weights, memory)
                for token in self.output.suppressed:  # a guess is chosen as in translation
                    logits_BV[:, token] = -torch.inf
                return policy.next(target_BT[:, time], logits_BV)

        return self.decoder.free_running(self.first_token(rows, target_BT.device), own, steps, next_token)

    def guess_logits(self, readout_BR: Tensor, weights_BHS: Callable[[], Tensor], memory: M) -> Tensor:
        """Computes the logits of a step from which a feed chooses the next input, here those of the output layer."""
        logits_BV: Tensor = self.output(readout_BR)
        return logits_BV

    def at_update(self, update: int) -> None:
        """See ``Decoder.at_update``."""
        self.decoder.at_update(update)

    def first_token(self, rows: int, device: torch.device) -> Tensor:
        """Returns the begin-of-sentence token for each row, the input of the first step."""
        return torch.full((rows,), self.bos, dtype=torch.int64, device=device)

    def _shifted(self, target_BT: Tensor) -> Tensor:
        """Shifts a target by one position, so that each token is replaced by the token before it."""
        first_B1 = self.first_token(target_BT.shape[0], target_BT.device)[:, None]
        return torch.cat([first_B1, target_BT[:, :-1]], dim=1)
