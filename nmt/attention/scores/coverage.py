"""Coverage scores: an additive score that also reads how much each word has been attended so far.

Tu, Lu, Liu, Liu & Li 2016, "Modeling Coverage for Neural Machine Translation", section 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from nmt.attention.mechanism import Parameter, Parameters, Sizes, StatefulScore, linear
from nmt.nn.config import Size

if TYPE_CHECKING:
    from torch import Tensor

MAX_FERTILITY = 2.0
"""N of equation 9: the largest number of target words for a source word, as in the paper."""


class Coverage(StatefulScore):
    """score_s = v . tanh(W q + U k_s + V c_s), where c_s is the coverage of the word s, 0 before the first step.

    ``sum``: c_s adds up the weights of s in all steps so far (also See et al. 2017, "Get To The Point", equation 11).
    ``fertility``: the sum divided by the number of words that s is expected to give, N sigmoid(f . k_s) with N = 2
    (equations 8 and 9, "linguistic coverage").
    ``gru``: c_s = GRU([weight_s; k_s; q], c_s) (equation 6, "neural network based coverage"), with the GRU of Cho et
    al. 2014: z = sigmoid(W_z x + U_z c), r = sigmoid(W_r x + U_r c), c' = (1 - z) c + z tanh(W_c x + U_c (r c)).
    """

    formula: ClassVar[str] = "v·tanh(W q + U k + V c), c: the weights so far"
    source: ClassVar[str] = "Tu et al. 2016; See et al. 2017"

    kind: Literal["coverage"] = "coverage"
    coverage: Literal["sum", "fertility", "gru"] = "sum"
    """What c is: the sum of the weights so far, the same divided by a fertility, or the state of a GRU."""
    size: Size | None = None
    """A, the width inside tanh; null means the width of the query."""
    width: Size = 10
    """C, the width of c with ``gru``; otherwise c is one number."""

    def parameters(self, sizes: Sizes) -> dict[str, Parameter]:
        """W, U, V and v; f of the fertility; the matrices of the GRU, those of its three gates side by side."""
        inner, width = self.size or sizes.query, self._width
        common = {
            "query_weight_AQ": Parameter((inner, sizes.query)),
            "key_weight_AK": Parameter((inner, sizes.key)),
            "coverage_weight_AC": Parameter((inner, width)),
            "v_A": Parameter((inner,)),
        }
        if self.coverage == "fertility":
            common["fertility_1K"] = Parameter((1, sizes.key))
        if self.coverage == "gru":
            inputs = {"weight": 1, "key": sizes.key, "query": sizes.query}
            common |= {f"gates_{name}_GX": Parameter((3 * width, size)) for name, size in inputs.items()}
            common |= {"gates_coverage_GC": Parameter((2 * width, width)), "reset_CC": Parameter((width, width))}
        return common

    @property
    def _width(self) -> int:
        return self.width if self.coverage == "gru" else 1

    def precompute_keys(self, keys_BHSK: Tensor, parameters: Parameters) -> Tensor:
        """U k and, beside it, what the coverage reads of a key: its fertility, or its part of the GRU's input."""
        import torch

        projected_BHSA = linear(keys_BHSK, parameters["key_weight_AK"])
        if self.coverage == "fertility":
            # N sigmoid(f . k)
            fertility_BHS1 = MAX_FERTILITY * linear(keys_BHSK, parameters["fertility_1K"]).sigmoid()
            return torch.cat([projected_BHSA, fertility_BHS1], dim=-1)
        if self.coverage == "gru":
            return torch.cat([projected_BHSA, linear(keys_BHSK, parameters["gates_key_GX"])], dim=-1)
        return projected_BHSA

    def initial_state(self, keys_BHSA: Tensor) -> Tensor:
        """Coverage 0 of every word, (B, S, C)."""
        import torch

        return keys_BHSA.new_zeros(keys_BHSA.shape[0], keys_BHSA.shape[2], self._width, dtype=torch.float32)

    def with_state(self, query_BHTQ: Tensor, keys_BHSA: Tensor, parameters: Parameters, state_BTX: Tensor) -> Tensor:
        """v . tanh(W q + U k + V c) for all pairs."""
        v_A = parameters["v_A"]
        # W q, U k, V c
        query_BHTA = linear(query_BHTQ, parameters["query_weight_AQ"])
        coverage_BTSA = linear(state_BTX.to(v_A.dtype), parameters["coverage_weight_AC"])
        inner_BHTSA = query_BHTA[:, :, :, None] + keys_BHSA[:, :, None, :, : len(v_A)] + coverage_BTSA[:, None]
        return inner_BHTSA.tanh() @ v_A

    def next_state(
        self, state_BTX: Tensor, weights_BTS: Tensor, query_BTQ: Tensor, keys_BHSA: Tensor, parameters: Parameters
    ) -> Tensor:
        """c of the next step."""
        import torch

        # what precompute_keys put beside U k
        beside_B1SG = keys_BHSA[:, :1, :, len(parameters["v_A"]) :].float()
        share_BTS1 = weights_BTS.unsqueeze(-1)
        if self.coverage == "sum":
            return state_BTX + share_BTS1
        if self.coverage == "fertility":
            return state_BTX + share_BTS1 / beside_B1SG
        # W x, of x = [weight; key; query], for the update gate, the reset gate and the candidate
        of_query_BT1G = linear(query_BTQ, parameters["gates_query_GX"]).unsqueeze(2)
        input_BTSG = linear(share_BTS1, parameters["gates_weight_GX"]) + beside_B1SG + of_query_BT1G
        gates_BTSG, candidate_BTSC = torch.split(input_BTSG, [2 * self.width, self.width], dim=-1)
        update_BTSC, reset_BTSC = (
            (gates_BTSG + linear(state_BTX, parameters["gates_coverage_GC"])).sigmoid().chunk(2, dim=-1)
        )
        candidate_BTSC = (candidate_BTSC + linear(reset_BTSC * state_BTX, parameters["reset_CC"])).tanh()
        return torch.lerp(state_BTX, candidate_BTSC, update_BTSC)
