"""The vector c of a sentence in the decoder: its initial state, and the inputs that contain c.

Sutskever, Vinyals & Le 2014, "Sequence to Sequence Learning with Neural Networks"; Cho et al. 2014, "Learning Phrase
Representations using RNN Encoder-Decoder for Statistical Machine Translation"; Bahdanau, Cho & Bengio 2015.

Shapes: B batch, T target positions, D width of c.
"""

from __future__ import annotations

from typing import final

import torch
from torch import Tensor, nn

from nmt.models.rnn.config import RNNDecoderConfig


@final
class ContextInjection(nn.Module):
    """The first state of the decoder and the part of its inputs that come from c.

    Sutskever et al. also pass on the memory cell of the encoder's LSTM, where here the decoder's starts at 0; Bahdanau
    et al. start from the backward state of the first source word.

    ``start``     zeros:       h_0 = 0
                  raw:         h_0 = c (Sutskever et al. 2014, section 2); c must be as wide as the state
                  projected:   h_0 = tanh(W c + b), another W for each layer (Cho et al. 2014; Bahdanau et al. 2015,
                               appendix A.2.2), or a deeper network, tanh(W_n ... tanh(W_1 c + b_1))
    ``context``   every_step:  f_t = c (Cho et al. 2014, section 2.2; unlike there the readout does not see c)
                  first_step:  f_1 = c; f_t = 0 or a learnt placeholder later
    """

    def __init__(self, config: RNNDecoderConfig, *, summary_size: int) -> None:
        super().__init__()
        assert config.start != "raw" or summary_size == config.size, "h_0 = c has one width"
        self.config = config
        self.input_size = 0 if config.context.enters == "nothing" else summary_size
        """Width added to the input of the cell."""
        projections = config.layers if config.start == "projected" else 0
        self.layers = nn.ModuleList(nn.Linear(summary_size, config.size) for _ in range(projections))
        upper = config.start_layers - 1
        self.upper = nn.ModuleList(
            nn.Sequential(*(part for _ in range(upper) for part in (nn.Linear(config.size, config.size), nn.Tanh())))
            for _ in range(projections)
        )
        """The layers of each network above the first; nothing by default."""
        for linear in self.modules():
            if isinstance(linear, nn.Linear):
                nn.init.xavier_uniform_(linear.weight)
                nn.init.zeros_(linear.bias)
        self.placeholder_D: nn.Parameter | None = None
        if config.context.enters == "first_step" and config.context.placeholder == "learnt":
            self.placeholder_D = nn.Parameter(torch.empty(summary_size))
            nn.init.normal_(self.placeholder_D, std=0.1)

    def start(self, summary_BD: Tensor) -> list[Tensor]:
        """Computes the hidden state of each layer before the first step."""
        if self.config.start == "projected":
            return [upper(linear(summary_BD).tanh()) for linear, upper in zip(self.layers, self.upper, strict=True)]
        zeros_BD = summary_BD.new_zeros(summary_BD.shape[0], self.config.size)
        return [summary_BD if self.config.start == "raw" else zeros_BD] * self.config.layers

    def inputs(self, summary_BD: Tensor, position_BT: Tensor) -> Tensor:
        """Computes f_t (B, T, ``input_size``), the part of the cell's input at target positions that comes from c."""
        if self.config.context.enters == "nothing":
            return summary_BD.new_empty(*position_BT.shape, 0)
        context_BTD = summary_BD[:, None].expand(-1, position_BT.shape[1], -1)
        if self.config.context.enters == "every_step":
            return context_BTD
        # zero or a learnt vector replaces c at later steps
        later = 0.0 if self.placeholder_D is None else self.placeholder_D.to(summary_BD.dtype)
        return torch.where(position_BT[:, :, None] == 0, context_BTD, later)
