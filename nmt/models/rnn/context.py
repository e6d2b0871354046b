"""The four ways to hand a decoder one vector for the whole sentence.

Sutskever, Vinyals & Le 2014, "Sequence to Sequence Learning with Neural Networks"; Cho et al. 2014, "Learning Phrase
Representations using RNN Encoder-Decoder for Statistical Machine Translation".

Shapes: B batch, T target positions, D width of the vector c, L layers of the decoder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import torch
from torch import Tensor, nn

from nmt.models.rnn.config import ContextConfig
from nmt.models.seq2seq import mean_state


class ContextInjection(nn.Module, ABC):
    """The place where the vector of the sentence enters the decoder."""

    input_size: int
    """Width added to the input of the cell."""

    @abstractmethod
    def start(self, summary_BD: Tensor) -> list[Tensor]:
        """The hidden state of each layer before the first step."""

    def inputs(self, summary_BD: Tensor, position_BT: Tensor) -> Tensor:
        """The part that it adds to the input of the cell at target positions, (B, T, ``input_size``)."""
        return summary_BD.new_empty(*position_BT.shape, 0)


@final
class EveryStep(ContextInjection):
    """c is part of every input; h_0 = 0 (Cho et al. 2014, section 2.2). Unlike there the readout does not see c."""

    def __init__(self, summary_size: int, size: int, layers: int) -> None:
        super().__init__()
        self.input_size = summary_size
        self._sizes = [size] * layers

    def start(self, summary_BD: Tensor) -> list[Tensor]:
        """See ``ContextInjection.start``."""
        return _zeros(summary_BD, self._sizes)

    def inputs(self, summary_BD: Tensor, position_BT: Tensor) -> Tensor:
        """See ``ContextInjection.inputs``."""
        return summary_BD[:, None].expand(-1, position_BT.shape[1], -1)


@final
class FirstStep(ContextInjection):
    """c_1 = c, and a learnt placeholder for every later step; h_0 = 0."""

    def __init__(self, summary_size: int, size: int, layers: int) -> None:
        super().__init__()
        self.input_size = summary_size
        self._sizes = [size] * layers
        self.placeholder_D = nn.Parameter(torch.empty(summary_size))
        nn.init.normal_(self.placeholder_D, std=0.1)

    def start(self, summary_BD: Tensor) -> list[Tensor]:
        """See ``ContextInjection.start``."""
        return _zeros(summary_BD, self._sizes)

    def inputs(self, summary_BD: Tensor, position_BT: Tensor) -> Tensor:
        """See ``ContextInjection.inputs``."""
        return torch.where(position_BT[:, :, None] == 0, summary_BD[:, None], self.placeholder_D.to(summary_BD.dtype))


@final
class InitialState(ContextInjection):
    """h_0 = c for each layer (Sutskever et al. 2014, section 2); c must be as wide as the state."""

    def __init__(self, summary_size: int, size: int, layers: int) -> None:
        super().__init__()
        assert summary_size == size, f"a state of {size} cannot start as a vector of {summary_size}"
        self.input_size = 0
        self.layers = layers

    def start(self, summary_BD: Tensor) -> list[Tensor]:
        """See ``ContextInjection.start``."""
        return [summary_BD] * self.layers


@final
class ProjectedInitialState(ContextInjection):
    """h_0 = tanh(W c + b), another W for each layer (Cho et al. 2014; Bahdanau et al. 2015, appendix A.2.2)."""

    def __init__(self, summary_size: int, size: int, layers: int) -> None:
        super().__init__()
        self.input_size = 0
        self.layers = nn.ModuleList(nn.Linear(summary_size, size) for _ in range(layers))
        for linear in self.layers:
            assert isinstance(linear, nn.Linear)
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def start(self, summary_BD: Tensor) -> list[Tensor]:
        """See ``ContextInjection.start``."""
        return [linear(summary_BD).tanh() for linear in self.layers]


CONTEXT_INJECTIONS: dict[str, Callable[[int, int, int], ContextInjection]] = {
    "every_step": EveryStep,
    "first_step": FirstStep,
    "initial_state": InitialState,
    "projected_initial_state": ProjectedInitialState,
}


def context_injection(config: ContextConfig, *, summary_size: int, size: int, layers: int) -> ContextInjection:
    """The module that a configuration names, for a decoder of ``layers`` layers of ``size``."""
    return CONTEXT_INJECTIONS[config.kind](summary_size, size, layers)


def summary(config: ContextConfig, states_BSD: Tensor, final_BD: Tensor, is_pad_BS: Tensor) -> Tensor:
    """c (B, D): the encoder's last state, or the mean of its states."""
    if config.summary == "last":
        return final_BD
    return mean_state(states_BSD, is_pad_BS)


def _zeros(summary_BD: Tensor, sizes: list[int]) -> list[Tensor]:
    return [summary_BD.new_zeros(summary_BD.shape[0], size) for size in sizes]
