"""Search over models whose every probability is written down."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.core.device import Compute
from nmt.core.record import BatchRecord
from nmt.models.seq2seq import Decoded, Decoder, DecoderStep, Encoded, Encoder, Seq2Seq
from nmt.nn.output import OutputLayer
from nmt.ops import TopTokens
from nmt.search.beam import Beams, Extensions, advance
from nmt.search.config import SearchConfig
from nmt.search.decode import decode
from nmt.search.scoring import Ranking, max_lengths
from tests.search.plain_search import beam_search, greedy

EOS = 3


@dataclass(frozen=True)
class Place(BatchRecord):
    step_B: Tensor


class Script(Decoder[Place, Place]):
    """Step t has the probabilities of row t of a table, whatever came before; the readout is their logarithm."""

    def __init__(self, probabilities_TV: list[list[float]]) -> None:
        super().__init__()
        self.table_TV = torch.tensor(probabilities_TV).log()
        self.readout_size = self.table_TV.shape[1]

    def memory(self, encoded: Encoded) -> Place:
        return Place(torch.zeros(len(encoded.is_pad_BS), dtype=torch.int64))

    def start(self, memory: Place) -> Place:
        return memory

    def step(self, token_N: Tensor, memory: Place, state: Place) -> DecoderStep[Place]:
        row_N = state.step_B.clamp(max=len(self.table_TV) - 1)
        return DecoderStep(self.table_TV[row_N], lambda: torch.ones(len(row_N), 1, 1), Place(state.step_B + 1))

    def teacher_forced(self, input_BT: Tensor, memory: Place) -> Decoded:
        raise NotImplementedError

    def free_running(
        self, first_B: Tensor, memory: Place, steps: int, following: Callable[[int, Tensor], Tensor]
    ) -> Decoded:
        raise NotImplementedError


class Nothing(Encoder):
    size = 1

    def embed(self, source_BS: Tensor) -> Tensor:
        return torch.zeros(*source_BS.shape, 1)

    def forward(self, embedded_BSE: Tensor, is_pad_BS: Tensor) -> Encoded:
        return Encoded(embedded_BSE, embedded_BSE[:, 0], is_pad_BS)


def scripted(probabilities_TV: list[list[float]]) -> Seq2Seq[Any, Any]:
    width = len(probabilities_TV[0])
    output = OutputLayer(width, width)
    with torch.no_grad():
        output.weight_VD.copy_(torch.eye(width))
    return Seq2Seq(Nothing(), Script(probabilities_TV), output, pad=0, bos=2).eval()


SOURCE = torch.tensor([[4, 5, 3], [4, 3, 0]])


@pytest.mark.parametrize("beam", [1, 2, 3, 5])
def test_a_sure_model_is_not_cut_short_by_early_ends(beam: int) -> None:
    """At each step the end is the second best token: K early ends are found long before the sentence is over."""
    sure = [[0.001, 0.001, 0.001, 0.02, 0.975, 0.002]] * 8 + [[0.001, 0.001, 0.001, 0.99, 0.005, 0.002]]
    for hypotheses in beam_search(scripted(sure), SOURCE, torch.tensor([30, 30]), beam=beam, eos=EOS, exponent=1.0):
        assert hypotheses[0].tokens == (4,) * 8


def test_a_beam_finds_what_greedy_search_misses() -> None:
    # Greedy takes 4 (0.5) and then nothing better than 0.4: 0.2. After 5 the best is the same table here, so make the
    # difference at the end: an early end at 0.45 beats 0.5 * 0.4.
    table = [[0.01, 0.01, 0.01, 0.45, 0.5, 0.02], [0.1, 0.1, 0.1, 0.4, 0.2, 0.1]]
    limits = torch.tensor([9, 9])
    assert greedy(scripted(table), SOURCE, limits, eos=EOS, exponent=0.0)[0].tokens == (4,)
    best = beam_search(scripted(table), SOURCE, limits, beam=2, eos=EOS, exponent=0.0)[0][0]
    assert best.tokens == ()
    assert best.score == pytest.approx(torch.tensor(0.45).log().item(), abs=1e-5)


def test_search_goes_on_while_a_longer_hypothesis_may_still_win() -> None:
    """An early end is found at once, and the one unfinished hypothesis stands below it: as long as it is. By the length
    penalty of six tokens it is the better one."""
    sure = [0.004, 0.004, 0.004, 0.004, 0.98, 0.004]
    table = [[0.01, 0.01, 0.01, 0.5, 0.45, 0.02], *[sure] * 4, [0.006, 0.006, 0.006, 0.97, 0.006, 0.006]]
    limits = torch.tensor([9, 9])
    for best, *_ in beam_search(scripted(table), SOURCE, limits, beam=2, eos=EOS, exponent=1.0):
        assert best.tokens == (4,) * 5


def test_the_length_penalty_is_gnmts() -> None:
    assert Ranking(0.6).penalty(1) == 1.0
    assert Ranking(1.0).penalty(7) == 2.0
    assert Ranking(0.0).penalty(100) == 1.0
    table = [[0.01, 0.01, 0.01, 0.45, 0.5, 0.02], [0.02, 0.02, 0.02, 0.8, 0.1, 0.04]]
    found = beam_search(scripted(table), SOURCE, torch.tensor([9, 9]), beam=3, eos=EOS, exponent=2.0, n_best=2)[0]
    assert [each.tokens for each in found] == [(4,), ()]  # -0.67 and -0.80; by log-probability -0.92 and -0.80
    expected = (torch.tensor(0.5).log() + torch.tensor(0.8).log()).item() / ((5 + 2) / 6) ** 2
    assert next(each for each in found if each.tokens == (4,)).score == pytest.approx(expected, abs=1e-5)


def test_the_length_limit_ends_each_sentence_by_itself() -> None:
    endless = [[0.01, 0.01, 0.01, 0.01, 0.95, 0.01]]
    for beam in (1, 4):
        if beam == 1:
            lengths = [
                len(each.tokens)
                for each in greedy(scripted(endless), SOURCE, torch.tensor([5, 1]), eos=EOS, exponent=0.0)
            ]
        else:
            found = beam_search(scripted(endless), SOURCE, torch.tensor([5, 1]), beam=beam, eos=EOS, exponent=9.0)
            lengths = [len(best.tokens) for best, *_ in found]
        assert lengths == [4, 0]
    assert max_lengths(torch.tensor([3, 10]), 1.5).tolist() == [14, 25]


def test_advance_keeps_the_best_and_names_their_parents() -> None:
    beams = Beams(torch.tensor([[7], [8], [7], [8]]), torch.tensor([-1.0, -2.0, -1.0, -torch.inf]))
    log_probs = torch.tensor([[-0.1, -9.0, -9.0, -3.0], [-0.5, -0.2, -9.0, -0.3], [-2.0, -1.0, -9.0, -0.1], [0.0] * 4])
    of_all = Extensions.from_top_tokens(beams, TopTokens(*log_probs.topk(4, dim=1), None), beam=2)
    step = advance(beams, of_all, beam=2, eos=3)
    # sentence 0: -1.1 (row 0, token 0), -2.2 (row 1, token 1), then the end at -2.3 is third: not among the first two
    # sentence 1: the end at -1.1 is first, then -2.0 (token 1) and -3.0 (token 0)
    assert step.parents_N.tolist() == [0, 1, 2, 2]
    assert step.beams.tokens_NT.tolist() == [[7, 0], [8, 1], [7, 1], [7, 0]]
    assert step.beams.log_prob_N.tolist() == pytest.approx([-1.1, -2.2, -2.0, -3.0])
    assert [(each.sentence, each.parent) for each in step.ended] == [(1, 2)]
    # the same from each row's best alone, with logits that are more than log-probabilities by another sum each
    more_N = torch.tensor([3.0, -2.0, 0.5, 7.0])
    best = TopTokens(*(log_probs + more_N[:, None]).topk(4, dim=1), more_N)
    of_best = Extensions.from_top_tokens(beams, best, beam=2)
    torch.testing.assert_close(of_best.log_prob_BW, of_all.log_prob_BW)
    assert torch.equal(of_best.parent_BW, of_all.parent_BW)
    assert torch.equal(of_best.token_BW, of_all.token_BW)


def test_decode_keeps_the_order_whatever_the_batches() -> None:
    model = scripted([[0.01, 0.01, 0.01, 0.01, 0.95, 0.01]])
    sources = [[4] * length for length in (3, 1, 7, 2, 9, 1)]
    for tokens in (1, 8, 1000):
        config = SearchConfig(beam=2, max_length_ratio=1.0, batch_tokens=tokens, length_penalty=9.0)
        found = decode(model, sources, config, Compute(torch.device("cpu"), "float32"))
        # the limit is the source's length, end included, and ten more; the end is the last
        assert [len(best.tokens) for best, *_ in found] == [len(source) + 1 + 10 - 1 for source in sources]
