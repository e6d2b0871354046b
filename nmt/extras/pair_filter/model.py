"""The decomposable attention model: are two sentences translations of each other?

Parikh, Täckström, Das and Uszkoreit 2016, "A Decomposable Attention Model for Natural Language Inference". With a_i the
embeddings of the source's tokens and b_j those of the target's (in parentheses the paper's equations):

    attend     e_ij = F(a_i) . F(b_j)                                                     (1)
               beta_i  = sum over j of softmax_j(e_ij) b_j                                (2)
               alpha_j = sum over i of softmax_i(e_ij) a_i
    compare    v1_i = G([a_i; beta_i])        v2_j = G([b_j; alpha_j])                    (3)
    aggregate  v1 = sum over i of v1_i        v2 = sum over j of v2_j                     (4)
               y = H([v1; v2])                                                            (5, 6)

Differences from the paper: y is one number, the log-odds that the pair is a translation. H also sees the maximum of
v1_i over i and of v2_j over j, because a sum hides one token without a counterpart, and the log of the ratio of the
lengths. End-of-sentence, the last token of each side, is the empty word, to which others may attend.

Shapes: B sentence pairs, S source and T target tokens, D width of an embedding, W of a hidden layer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nmt.attention.mechanism import AttentionContext
from nmt.attention.scores.dot import Dot
from nmt.attention.weights.softmax import Softmax
from nmt.data.vocabulary import PAD
from nmt.nn.embedding import Embedding


class DecomposableAttention(nn.Module):
    """The log-odds that sentences are translations of each other."""

    score = Dot()
    normalizer = Softmax()

    def __init__(self, tokens: int, size: int) -> None:
        """``tokens`` of one vocabulary for both sides; ``size`` of an embedding and of each hidden layer."""
        super().__init__()
        self.embedding = Embedding(tokens, size, pad=PAD)
        self.F = _feed_forward(size, size)
        self.G = _feed_forward(2 * size, size)
        self.H = nn.Sequential(*_feed_forward(4 * size + 1, size), nn.Linear(size, 1))

    def forward(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """The log-odds of token ids (B, S) and (B, T), each row with an end-of-sentence and then padding: (B,)."""
        is_pad_BS, is_pad_BT = source_BS == PAD, target_BT == PAD
        a_BSD, b_BTD = self.embedding(source_BS), self.embedding(target_BT)
        e_BST = self.score(self.F(a_BSD)[:, None], self.F(b_BTD)[:, None], {})[:, 0]  # (1)
        beta_BSD = self._context(e_BST, b_BTD, is_pad_BT)  # (2)
        alpha_BTD = self._context(e_BST.mT, a_BSD, is_pad_BS)
        v1_BW = _aggregate(self.G(torch.cat([a_BSD, beta_BSD], dim=-1)), is_pad_BS)  # (3, 4)
        v2_BW = _aggregate(self.G(torch.cat([b_BTD, alpha_BTD], dim=-1)), is_pad_BT)
        ratio_B1 = (~is_pad_BS).sum(dim=1, keepdim=True) / (~is_pad_BT).sum(dim=1, keepdim=True)
        logit_B1: Tensor = self.H(torch.cat([v1_BW, v2_BW, ratio_B1.log()], dim=-1))  # (5)
        return logit_B1[:, 0]

    def _context(self, e_BTS: Tensor, values_BSD: Tensor, is_pad_BS: Tensor) -> Tensor:
        """The mean of the values by the weights of their scores, for each query: (B, T, D)."""
        position_BT = torch.zeros(e_BTS.shape[:2], dtype=torch.int64, device=e_BTS.device)  # softmax reads none
        scores_BHTS = e_BTS.masked_fill(is_pad_BS[:, None], -torch.inf)[:, None]
        context = AttentionContext(e_BTS, position_BT, self.training, 0)
        return self.normalizer(scores_BHTS, context, {}).weights_BHTS[:, 0] @ values_BSD


def _feed_forward(inputs: int, width: int) -> nn.Sequential:
    """Two hidden layers: relu(W_2 relu(W_1 x + b_1) + b_2)."""
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())


def _aggregate(v_BSW: Tensor, is_pad_BS: Tensor) -> Tensor:
    """The sum and the maximum over the tokens, (B, 2 W); no v is below 0."""
    v_BSW = v_BSW.masked_fill(is_pad_BS[..., None], 0.0)
    return torch.cat([v_BSW.sum(dim=1), v_BSW.amax(dim=1)], dim=-1)
