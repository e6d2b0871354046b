"""Minimum risk training: the expected cost of the model's own hypotheses.

Shen et al. 2016, "Minimum Risk Training for Neural Machine Translation", equations 7 to 9. Of a sentence x with the
reference y*

    S(x)     the distinct hypotheses that are drawn from p(y | x), and y* where configured
    Q(y | x) = p(y | x)^alpha / sum over y' in S(x) of p(y' | x)^alpha
    risk(x)  = sum over y in S(x) of Q(y | x) (1 - reward(y, y*))

The draws count as constants. With cost(y) = 1 - reward(y, y*) the gradient is

    alpha x sum over y in S(x) of Q(y | x) (cost(y) - risk(x)) grad log p(y | x)

so that a hypothesis that costs less than the mean becomes more probable. Hypotheses are drawn without dropout, as the
model translates; p(y | x) is that of a pass with dropout, as the model learns otherwise.

Shapes: B sentences, K hypotheses drawn for each, N = B x K rows (the rows of a sentence side by side), C = 1 + K cells
for the hypotheses of a sentence, the reference in the first; M all distinct hypotheses, P some of them, W all their
tokens; S source positions, T target positions, R width of a readout, V target vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from nmt.core.device import Compute
from nmt.data.batching import length_batches, pad
from nmt.data.bleu_tokenizer import bleu_tokenizer, sentence_bleu
from nmt.data.vocabulary import BOS, EOS, PAD
from nmt.models.loss import TargetTokens
from nmt.models.scheduled_sampling import drawn
from nmt.models.seq2seq import Seq2Seq
from nmt.nn.output import TokenLoss
from nmt.search.logits_processors import LogitsProcessors, Suppress
from nmt.search.scoring import Ranking, max_lengths
from nmt.search.sequential import greedy_or_sample
from nmt.training.config import RiskConfig

PART = 2
"""Largest batch of hypotheses, as a multiple of the batch of sentence pairs. Larger batches have more padding (half of
the tokens, as measured with a single batch); smaller ones keep a GPU less busy."""


@dataclass(frozen=True)
class Candidates:
    """The distinct hypotheses of a batch; the first B are the references, even if they do not count."""

    target_MT: Tensor
    length_M: list[int]
    """Number of tokens of each hypothesis, end-of-sentence included."""
    cell_M: Tensor
    """Index of each hypothesis in the B x C cells, row by row."""
    counts_BC: Tensor
    """Mask of the cells whose hypotheses are in S(x)."""
    cost_BC: Tensor
    """1 - reward; 0 in an empty cell."""


@dataclass(frozen=True)
class MinimumRisk:
    """Computes the risk of batches, with draws from torch's generator of the device."""

    model: Seq2Seq[Any, Any]
    config: RiskConfig
    compute: Compute
    text: Callable[[Sequence[int]], str]
    """Function that detokenizes target tokens without end-of-sentence."""
    smoothing: float
    """Label smoothing of the usual loss."""

    def __call__(self, source_BS: Tensor, target_BT: Tensor) -> TokenLoss:
        """The usual loss of the references, and the risk, summed over the sentences, from one pass over all distinct
        hypotheses and the references."""
        model, config = self.model, self.config
        # in an autocast of its own, because some versions of torch would reuse a weight that was cast without a
        # gradient
        length_B = (source_BS != model.pad).sum(dim=1).cpu().numpy()
        max_length_B = torch.from_numpy(max_lengths(length_B, config.max_length_ratio))
        with _evaluating(model), self.compute.autocast():
            drawn = sample(model, source_BS, max_length_B, samples=config.samples, temperature=config.temperature)
        rewarded = reward(config.reward)
        pool = candidates(target_BT, drawn, self.text, rewarded, include_reference=config.include_reference)
        with self.compute.autocast():
            # log p(y | x) of each hypothesis: the sum over its tokens
            readout_WR, token_W, hypothesis_W = _forced(model, source_BS, pool, cells=PART * target_BT.numel())
            log_p_W = model.output.likelihood(readout_WR, token_W).smoothed_N
            log_p_M = log_p_W.new_zeros(len(pool.cell_M)).index_add(0, hypothesis_W, log_p_W)
            # into a table of sentences by hypotheses, -inf where there is none
            log_p_BC = log_p_M.new_full((pool.counts_BC.numel(),), -torch.inf).index_copy(0, pool.cell_M, log_p_M)
            risk_B = expected_cost(log_p_BC.view(pool.counts_BC.shape), pool, alpha=config.alpha)
            # the references are among the hypotheses, so their usual loss costs no further pass
            gold_tokens = sum(pool.length_M[: len(target_BT)])
            of_gold = (hypothesis_W < len(target_BT)).nonzero_static(size=gold_tokens)[:, 0]
            with torch.set_grad_enabled(config.cross_entropy > 0.0):
                gold_readout_WR = readout_WR.index_select(0, of_gold)
                gold = model.output.loss(gold_readout_WR, token_W[of_gold], smoothing=self.smoothing)
        return replace(gold, risk=risk_B.sum())


def expected_cost(log_p_BC: Tensor, pool: Candidates, *, alpha: float) -> Tensor:
    """Computes the sum over y in S(x) of Q(y | x) cost(y), (B,), from log p(y | x), which may have any value outside
    S(x)."""
    # Q(y | x) = p(y | x)^alpha, normalised over S(x)
    q_BC = (alpha * log_p_BC).masked_fill(~pool.counts_BC, -torch.inf).softmax(dim=1)
    # the expected cost
    return (q_BC * pool.cost_BC).sum(dim=1)


def reward(kind: Literal["bleu", "chrf"]) -> Callable[[str, str], float]:
    """Creates a function that maps a hypothesis and its reference to a reward from 0 to 1: sentence BLEU with
    exponential smoothing over the orders that the hypothesis is long enough for, or chrF2, as sacreBLEU's
    ``sentence_bleu`` (with the tokenizer for the reference's script) and ``sentence_chrf`` compute them."""
    from sacrebleu.metrics.chrf import CHRF

    chrf = CHRF()

    def of(hypothesis: str, reference: str) -> float:
        metric = sentence_bleu(bleu_tokenizer([[reference]])) if kind == "bleu" else chrf
        # rounding errors may exceed 1
        return min(float(metric.sentence_score(hypothesis, [reference]).score) / 100.0, 1.0)

    return of


def sample(
    model: Seq2Seq[Any, Any], source_BS: Tensor, max_length_B: Tensor, *, samples: int, temperature: float
) -> list[list[tuple[int, ...]]]:
    """Draws K hypotheses of each sentence, without end-of-sentence, token by token from softmax(logits / temperature)
    without padding and begin-of-sentence.

    ``max_length_B`` (at least 1, on the CPU) counts end-of-sentence. A hypothesis that reaches this length is forced to
    take it as its last token, as in greedy search; its probability then includes the one that the model gives to ending
    there.
    """
    allowed = [Suppress(PAD), Suppress(BOS)]
    processors = LogitsProcessors(max_length_B, eos=EOS, processors=allowed, device=source_BS.device)

    def pick(logits_NV: Tensor, time: int, row_N: Tensor) -> Tensor:
        return drawn(logits_NV.float() / temperature)

    found = greedy_or_sample(model, source_BS, processors, pick=pick, count=samples, eos=EOS, ranking=Ranking())
    return [[hypothesis.tokens for hypothesis in of_sentence] for of_sentence in found]


def candidates(
    target_BT: Tensor, drawn: Sequence[Sequence[tuple[int, ...]]], text: Callable[[Sequence[int]], str],
    reward: Callable[[str, str], float], *, include_reference: bool,
) -> Candidates:  # fmt: skip
    """Collects the references and the distinct drawn hypotheses, with their costs. Two
    segmentations of one text are two hypotheses. A reference that was drawn counts in any case."""
    sentences, cells = len(target_BT), 1 + len(drawn[0])
    counts_BC, cost_BC = torch.zeros(sentences, cells, dtype=torch.bool), torch.zeros(sentences, cells)
    references: list[list[int]] = []
    others: list[list[int]] = []
    cell_M = [row * cells for row in range(sentences)]
    for row, (target, hypotheses) in enumerate(zip(target_BT.tolist(), drawn, strict=True)):
        gold = tuple(target[: target.index(EOS)])
        references.append(list(gold))
        reference = text(gold)
        # cell 0 is the reference; a hypothesis that was drawn twice has one cell
        for cell, hypothesis in enumerate(dict.fromkeys([gold, *hypotheses])):
            counts_BC[row, cell] = cell > 0 or include_reference or gold in hypotheses
            cost_BC[row, cell] = 1.0 - reward(text(hypothesis), reference)
            if cell > 0:
                others.append(list(hypothesis))
                cell_M.append(row * cells + cell)
    target_MT, length_M = pad(references + others)
    first, *rest = (torch.as_tensor(each).to(target_BT.device) for each in (target_MT, cell_M, counts_BC, cost_BC))
    return Candidates(first, length_M.tolist(), *rest)


def _forced(
    model: Seq2Seq[Any, Any], source_BS: Tensor, pool: Candidates, *, cells: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Computes the readouts of all hypotheses, concatenated: returns the readout before each token (W, R), the tokens
    (W,), and the row of ``Candidates.target_MT`` that each comes from (W,). Each sentence goes through the encoder
    once. Hypotheses of similar length go through the decoder together, at most ``cells`` tokens at a time, padding
    included, because some drawn hypotheses may be twice as long as the rest."""
    memory = model.encode(source_BS)
    sentence_M = pool.cell_M // pool.counts_BC.shape[1]
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    for rows in length_batches(pool.length_M, cells):
        # length_batches puts the longest first, so all are padded to the length of the first
        row_P = torch.tensor(rows, device=sentence_M.device)
        target_PT = pool.target_MT[row_P, : pool.length_M[rows[0]]]
        decoded = model.teacher_forced(target_PT, memory.select(sentence_M[row_P]))
        # the number of tokens is known, so the device need not be asked for it
        tokens = TargetTokens.of(target_PT, model.pad, sum(pool.length_M[row] for row in rows))
        row_W = row_P[tokens.token_index_N // target_PT.shape[1]]
        parts.append((tokens.rows(decoded.readout_BTR), tokens.gold_N, row_W))
    readout_WR, token_W, hypothesis_W = map(torch.cat, zip(*parts, strict=True))
    return readout_WR, token_W, hypothesis_W


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Turns dropout off in the body of the context."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
