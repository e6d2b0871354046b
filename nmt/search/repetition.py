"""Penalties for what a translation says again, which a model that is unsure of the next word likes too much.

A token counts as less probable by a margin if it ends a word or two said twice in a row ("a gray gray sweater",
"Maaaaaa"), or a phrase of three tokens said before. For each repetition of either kind in its source, a translation
may have one that costs nothing. So loops end, and "very, very good" stays. The margin decides which translation is
found, and how it ranks; its score is that of the model.

Shapes: N rows of hypotheses, T tokens so far, K candidates for the next token, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from nmt.core.device import uploaded
from nmt.core.operation import Operation
from nmt.core.record import BatchRecord, shared
from nmt.data.batching import TokenIds

PHRASE = 3
"""Tokens of a phrase."""

SPARE = 4
"""Number of candidates that a search looks at in addition, so that others are there for those that repeat."""


@dataclass(frozen=True)
class Repetitions(BatchRecord):
    """The repetitions of the hypothesis of each row."""

    free_N2: Tensor
    """How many more repetitions its source has: of words in a row, and of phrases; negative if it has fewer."""
    paid_N: Tensor
    """Sum of the margins that the row has paid, in nats."""
    margin: float = shared()

    @staticmethod
    def of(sources: TokenIds, margin: float, device: torch.device) -> Repetitions:
        """Begins the translations of a batch of sources."""
        free_N2 = torch.tensor([repetitions(source) for source in sources])
        return Repetitions(uploaded(free_N2, device), torch.zeros(len(sources), device=device), margin)

    def penalty(self, token_NK: Tensor, tokens_NT: Tensor) -> Tensor:
        """Computes what each of some tokens would pay after ``tokens_NT``, (N, K)."""
        return payments(token_NK, tokens_NT, self.free_N2, self.margin)[0]

    def after(self, token_N1: Tensor, tokens_NT: Tensor) -> Repetitions:
        """Returns the repetitions of the rows with one more token."""
        penalty_N1, free_N12 = payments(token_N1, tokens_NT, self.free_N2, self.margin)
        return replace(self, free_N2=free_N12[:, 0], paid_N=self.paid_N + penalty_N1[:, 0])

    def penalize(self, logits_NV: Tensor, tokens_NT: Tensor) -> None:
        """Lowers the logits of tokens that would say something again, in place; they are among the tokens so far."""
        logits_NV.scatter_(1, tokens_NT, logits_NV.gather(1, tokens_NT) - self.penalty(tokens_NT, tokens_NT))


@Operation
def payments(token_NK: Tensor, tokens_NT: Tensor, free_N2: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """Computes what each of some tokens would pay after ``tokens_NT``, (N, K), in float32, and what would be free then,
    (N, K, 2): see ``Repetitions``."""
    said_NT = F.pad(tokens_NT, (PHRASE, 0), value=-1)  # no token is -1
    third_N1, second_N1, last_N1 = said_NT[:, -3:-2], said_NT[:, -2:-1], said_NT[:, -1:]
    # x x, or y x y x
    in_a_row_NK = (token_NK == last_N1) | ((token_NK == second_N1) & (last_N1 == third_N1))
    ends_phrase_NK = (token_NK[:, :, None] == phrase_endings(said_NT, PHRASE)[:, None]).any(dim=2)
    repeats_NK2 = torch.stack([in_a_row_NK, ends_phrase_NK], dim=2)
    penalty_NK = margin * (repeats_NK2 & (free_N2 <= 0)[:, None]).any(dim=2)
    return penalty_NK, free_N2[:, None] - repeats_NK2.long()


def phrase_endings(tokens_NT: Tensor, size: int) -> Tensor:
    """Finds the tokens that would end a phrase of ``size`` tokens said before, one for each of the W phrases so far,
    (N, W); -1 for the other phrases. There are at least ``size`` tokens."""
    phrase_NWp = tokens_NT.unfold(1, size, 1)
    # a phrase that begins with the last tokens would be said again by its own last token
    last_N1p = tokens_NT[:, None, tokens_NT.shape[1] - size + 1 :]
    return phrase_NWp[:, :, -1].where((phrase_NWp[:, :, :-1] == last_N1p).all(dim=2), -1)


def repetitions(tokens: Sequence[int]) -> tuple[int, int]:
    """Counts the tokens that end a word or two said twice in a row, and those that end a phrase said before."""
    said = (-3, -2, -1, *tokens)
    in_a_row = sum(
        d == c or (d == b and c == a) for a, b, c, d in zip(said, said[1:], said[2:], said[3:], strict=False)
    )
    phrases = list(zip(tokens, tokens[1:], tokens[2:], strict=False))
    return in_a_row, len(phrases) - len(set(phrases))
