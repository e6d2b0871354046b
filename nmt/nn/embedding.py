"""Word embeddings."""

from __future__ import annotations

from torch import Tensor, nn


class Embedding(nn.Module):
    """A table of one vector for each token. The vector of the padding token starts at 0, and looking it up does not
    train it.

    The vectors are drawn from N(0, 1/width), so that a tied output layer starts with logits of about unit variance.
    """

    def __init__(self, tokens: int, width: int, *, pad: int) -> None:
        super().__init__()
        self.table = nn.Embedding(tokens, width, padding_idx=pad)
        nn.init.normal_(self.table.weight, std=width**-0.5)
        self.table.weight.data[pad].zero_()

    @property
    def weight_VD(self) -> nn.Parameter:
        """The table, which a tied output layer shares."""
        return self.table.weight  # type: ignore[return-value]

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Looks up the vectors of tokens, (B, T, D)."""
        vectors: Tensor = self.table(tokens_BT)
        return vectors
