"""The interface that training, search and alignment know: encode a source, decode a target step by step or at once.

Shapes: B sentences, S source positions, T target positions, N = B x beams rows (the rows of a sentence side by side),
H heads, D width of an encoder state, R width of a readout, V target vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import torch
from torch import Tensor, nn

from nmt.attention.reinforce import Choice
from nmt.core.record import BatchRecord
from nmt.models.feed import Feed, TeacherForcing
from nmt.nn.native import BestOutputs
from nmt.nn.output import OutputLayer

if TYPE_CHECKING:
    from nmt.models.among import Among, Choices

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
    """The mean of each sentence's states, padding left out, (B, D)."""
    kept_BSD = states_BSD.masked_fill(is_pad_BS[:, :, None], 0.0)
    return kept_BSD.sum(dim=1) / (~is_pad_BS).sum(dim=1, keepdim=True).to(states_BSD.dtype)


class Encoder(nn.Module, ABC):
    """Source tokens to states."""

    size: int
    """D, the width of a state."""

    @abstractmethod
    def embed(self, source_BS: Tensor) -> Tensor:
        """The embeddings of source tokens, (B, S, E)."""

    @abstractmethod
    def forward(self, embedded_BSE: Tensor, is_pad_BS: Tensor) -> Encoded:
        """Encodes embedded tokens. Padding stands at the end of a row and changes no state but its own."""


@dataclass(frozen=True)
class DecoderStep(Generic[S]):
    """What one decoder step yields."""

    readout_NR: Tensor
    weights: Callable[[], Tensor]
    """Forms the weights (N, H, S), which few searches want."""
    state: S


@dataclass(frozen=True)
class Branches:
    """What a decoder would read out at each step if it looked at one source position alone, for every position."""

    readout_BTSR: Tensor
    log_weight_BTS: Tensor
    """Log-probability of looking there; -inf at padding."""


@dataclass(frozen=True)
class Decoded:
    """What a decoder yields for all positions of a target."""

    readout_BTR: Tensor
    weights_BHTS: Tensor
    """Of all heads, in the order of ``Decoder.head_names``; in training see ``Decoder.hand_out``."""
    choices: tuple[Choice, ...] = ()
    """How source positions were drawn, for each attention that learns from a reward; in training alone."""
    branches: Branches | None = None
    """For attention whose likelihood is summed over all source positions; in training alone."""


class Decoder(nn.Module, ABC, Generic[M, S]):
    """Target tokens to readouts, with attention to a memory; without attention, weights have no heads (H = 0)."""

    readout_size: int

    head_names: tuple[str, ...]
    """What each head of the weights is called."""

    @abstractmethod
    def memory(self, encoded: Encoded) -> M:
        """All that can be computed once for each source sentence."""

    @abstractmethod
    def start(self, memory: M) -> S:
        """The state before the first token."""

    @abstractmethod
    def step(self, token_N: Tensor, memory: M, state: S) -> DecoderStep[S]:
        """One step, from the token before it. ``state`` has N rows, ``memory`` one for each sentence: N is a multiple
        of B, and a sentence's rows stand side by side."""

    @abstractmethod
    def forced(self, input_BT: Tensor, memory: M) -> Decoded:
        """All steps over given tokens, each the token *before* its position; equal to looping ``step``."""

    @abstractmethod
    def unrolled(self, first_B: Tensor, memory: M, steps: int, following: Callable[[int, Tensor], Tensor]) -> Decoded:
        """``steps`` steps, the first over ``first_B``; ``following`` gives the token to read next from a step's number
        and readout (B, R). Like ``step`` in a loop, but for what a loop in training can share: weights cast once, one
        dropout mask for a sentence."""

    def settle(self) -> None:
        """Has the decoder prepare once what steps of searches share: its weights do not change from now on."""

    def hand_out(self, heads: Sequence[int]) -> list[int]:
        """Has training hand out the weights of these heads, by their places in ``head_names``, which it may not do
        otherwise; returns where each of them stands among the heads of ``weights_BHTS`` in training."""
        return list(heads)

    def at_update(self, update: int) -> None:
        """Says how many updates of training are done, for what is annealed."""


def _not_known(count: int, normalized: bool) -> None:
    return None


@dataclass(frozen=True)
class Step(Generic[S]):
    """One step of a model.

    Its logits are formed when they are asked for, some rows at a time: those of a whole batch take much memory, and are
    gone from a CPU's cache before all are read.
    """

    vocabulary: int
    """V, the number of a row's logits."""
    logits: Callable[[slice], Tensor]
    """Those of some of the rows."""
    weights: Callable[[], Tensor]
    """Forms ``weights_NHS``."""
    state: S
    best: Callable[[int, bool], BestOutputs | None] = _not_known
    """So many tokens with the largest logits of each row and, if that is wanted too, the log-normalizer of all logits;
    None where to find them takes the logits."""

    @property
    def weights_NHS(self) -> Tensor:
        """float32; sums to 1 over S, exactly 0 at padding."""
        return self.weights()

    @property
    def logits_NV(self) -> Tensor:
        """Those of all rows."""
        return self.logits(slice(None))


class Seq2Seq(nn.Module, Generic[M, S]):
    """An encoder, a decoder and an output layer; any kind of the one with any kind of the other."""

    def __init__(self, encoder: Encoder, decoder: Decoder[M, S], output: OutputLayer, *, pad: int, bos: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.output = output
        self.pad = pad
        self.bos = bos

    def encode(self, source_BS: Tensor) -> M:
        """The memory of source tokens, each row ended by end-of-sentence and filled up with padding."""
        return self.encode_embedded(self.encoder.embed(source_BS), source_BS == self.pad)

    def encode_embedded(self, embedded_BSE: Tensor, is_pad_BS: Tensor) -> M:
        """The memory of source embeddings (``encoder.embed``), with respect to which gradients may be taken."""
        return self.decoder.memory(self.encoder(embedded_BSE, is_pad_BS))

    def start(self, memory: M) -> S:
        """The decoder's state before the first step, one row for each sentence."""
        return self.decoder.start(memory)

    def step(self, token_N: Tensor, memory: M, state: S) -> Step[S]:
        """One step: from the last token of N rows to the logits of their next. See ``Decoder.step``."""
        step = self.decoder.step(token_N, memory, state)

        def logits(rows: slice) -> Tensor:
            return self.output(step.readout_NR[rows])  # type: ignore[no-any-return]

        def best(count: int, normalized: bool) -> BestOutputs | None:
            return self.output.best(step.readout_NR, count, normalized=normalized)

        return Step(self.output.vocabulary, logits, step.weights, step.state, best)

    def forced(self, target_BT: Tensor, memory: M) -> Decoded:
        """All steps under teacher forcing: position t has seen the tokens of ``target_BT`` before t."""
        return self.decoder.forced(self._before(target_BT), memory)

    def decode(self, target_BT: Tensor, memory: M, feed: Feed) -> Decoded:
        """All steps with the inputs that ``feed`` chooses; at once where it never looks at the model's guesses."""
        if isinstance(feed, TeacherForcing):
            return self.forced(target_BT, memory)
        rows, steps = target_BT.shape
        chooser = feed.begin(rows, target_BT.device)

        def following(time: int, readout_BR: Tensor) -> Tensor:
            with torch.no_grad():
                return chooser.next(target_BT[:, time], self.output(readout_BR))

        return self.decoder.unrolled(self.first_token(rows, target_BT.device), memory, steps, following)

    def settle(self) -> None:
        """See ``Decoder.settle``; for a model whose weights are in their place and their precision."""
        self.decoder.settle()

    def at_update(self, update: int) -> None:
        """Says how many updates of training are done, for what is annealed."""
        self.decoder.at_update(update)

    def first_token(self, rows: int, device: torch.device) -> Tensor:
        """The begin-of-sentence token for each row, what the first step is fed with."""
        return torch.full((rows,), self.bos, dtype=torch.int64, device=device)

    def among(self, choices: Choices) -> Among[M, S]:
        """The same model for a search in which each sentence of a batch chooses among some tokens."""
        from nmt.models.among import Among  # which is made of this class

        return Among(self, choices)

    def _before(self, target_BT: Tensor) -> Tensor:
        first_B1 = self.first_token(target_BT.shape[0], target_BT.device)[:, None]
        return torch.cat([first_B1, target_BT[:, :-1]], dim=1)
