"""Plants faults in a copy of the toolkit, one at a time, and sees whether the tests catch each.

    python scripts/mutants.py                 all of them
    python scripts/mutants.py --only beam     those whose name or file holds a word
    python scripts/mutants.py --list

A fault is a place in a file, what shall stand there instead, and the tests that ought to fail by it (DeMillo, Lipton &
Sayward 1978, "Hints on Test Data Selection"). The same tests must pass without it. Exit code 0: every fault is caught.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("nmt", "tests", "scripts", "configs", "docs", "data", "pyproject.toml", "README.md")
"""What the tests need of the repository."""

Verdict = Literal["caught", "survived", "blind"]


@dataclass(frozen=True)
class Mutant:
    """One fault."""

    name: str
    file: str
    text: str
    """Stands in the file once."""
    instead: str
    tests: tuple[str, ...]
    """Arguments for pytest: the tests that should catch it."""


CONTRACT = "tests/models/test_contract.py"
"""Too many to run for each fault: those of some models are enough."""
MULTIHEAD = "tests/attention/test_multihead.py"
TRANSFORMER = "tests/models/test_transformer.py"
OPTIONS = "tests/search/test_options.py"
NATIVE = "tests/nn/test_native.py"
QUANTIZED = "tests/nn/test_quantized.py"
GOLDEN = "tests/workflows/test_golden.py"
ANY_FILES = ("tests/workflows/test_any_files.py", "-m", "not slow")
KILLED, STOPPED = "tests/workflows/test_killed.py", "tests/workflows/test_stopped.py"


def contract(test: str, models: str) -> tuple[str, ...]:
    """One contract test for the models whose names hold an expression."""
    return (CONTRACT, "-k", f"{test} and ({models})")


MUTANTS = (
    Mutant(
        "padding is not masked",
        "nmt/attention/attention.py",
        "        is_hidden = self._is_pad_B11S\n",
        "        is_hidden = torch.zeros_like(self._is_pad_B11S)\n",
        contract("padding", "additive-softmax"),
    ),
    Mutant(
        "keys are projected twice",
        "nmt/attention/attention.py",
        "self.score.prepared(keys_BSA.unsqueeze(1))",
        "self.score.prepared((keys_BSA @ keys_BSA.mT @ keys_BSA).unsqueeze(1))",
        ("tests/attention", "-k", "scores or loops"),
    ),
    Mutant(
        "weights of beams go to the wrong rows",
        "nmt/attention/attention.py",
        "weights_BHTS.view(batch, heads, beams, time, positions).transpose(1, 2)",
        "weights_BHTS.view(batch, beams, heads, time, positions)",
        ("tests/attention", "-k", "beam"),
    ),
    Mutant(
        "the first beam's query serves all",
        "nmt/attention/attention.py",
        "query_BHTA = projected_NTA.reshape(batch, 1, -1, projected_NTA.shape[-1])",
        "query_BHTA = projected_NTA.reshape(batch, 1, -1, projected_NTA.shape[-1])[:, :, :1].expand(-1, -1, "
        "projected_NTA.shape[0] // batch * time, -1)",
        contract("rescoring", "additive-softmax"),
    ),
    Mutant(
        "the state of a beam does not follow its parent",
        "nmt/search/beam.py",
        "state = state.select(parents_N)",
        "state = state",
        contract("rescoring", "additive-softmax"),
    ),
    Mutant(
        "the length penalty is forgotten",
        "nmt/search/beam.py",
        "Hypothesis(tuple(tokens), each.log_prob, score)",
        "Hypothesis(tuple(tokens), each.log_prob, each.log_prob)",
        contract("rescoring", "additive-softmax"),
    ),
    Mutant(
        "a finished hypothesis beyond the beam counts",
        "nmt/search/beam.py",
        "finished_BW = ends_BW & (rank_W < beam) & log_prob_BW.isfinite()",
        "finished_BW = ends_BW & (rank_W < 1) & log_prob_BW.isfinite()",
        (*contract("brute_force", "additive-softmax or dot-softmax"), "tests/search"),
    ),
    Mutant(
        "coverage is that of the hypothesis beside",
        "nmt/search/beam.py",
        "covered(beams.attended_NS[parent_N], is_pad_BS[sentence_N])",
        "covered(beams.attended_NS[parent_N.flip(0)], is_pad_BS[sentence_N])",
        (OPTIONS, "-k", "ranked"),
    ),
    Mutant(
        "padding counts as not covered",
        "nmt/search/scoring.py",
        ".log().masked_fill(is_pad_NS, 0.0)",
        ".log()",
        (OPTIONS, "-k", "ranked"),
    ),
    Mutant(
        "a group does not see what the groups before it took",
        "nmt/search/beam.py",
        "handicap_BV = handicap_BV.scatter_add(",
        "handicap_BV.scatter_add(",
        (OPTIONS, "-k", "apart"),
    ),
    Mutant(
        "the handicap stays in the score",
        "nmt/search/beam.py",
        "            log_prob_BW = total_NV.view(rows // beam, -1).gather(1, index_BW)",
        "            log_prob_BW = (total_NV.view(rows // beam, -1) - handicap_BV.repeat(1, beam)).gather(1, index_BW)",
        (OPTIONS, "-k", "apart"),
    ),
    Mutant(
        "a repeated sequence is found one place too far",
        "nmt/search/logits_processors.py",
        "logits_NV[row_M, grams_NWn[row_M, place_M, before]]",
        "logits_NV[row_M, grams_NWn[row_M, place_M, 0]]",
        (OPTIONS, "-k", "twice"),
    ),
    Mutant(
        "rules rule out what the prefix demands",
        "nmt/search/logits_processors.py",
        "torch.where(has_choice_N1, logits_NV.gather(1, token_N1), kept_N1)",
        "logits_NV.gather(1, token_N1)",
        (OPTIONS, "-k", "told or stronger"),
    ),
    Mutant(
        "a draw depends on its place in the batch",
        "nmt/search/sampling.py",
        "np.random.Philox([seed, key, draw])",
        "np.random.Philox([seed, len(rows), draw])",
        (OPTIONS, "-k", "draw"),
    ),
    Mutant(
        "a draw is scored at its own temperature",
        "nmt/search/sequential.py",
        "-log_normalizer(logits_NV.float())",
        "-log_normalizer(logits_NV.float() / 2)",
        (OPTIONS, "-k", "draw"),
    ),
    Mutant(
        "beams forget what makes their logits log-probabilities",
        "nmt/search/beam.py",
        "its_beams.log_prob_N - log_normalizer(logits_NV)",
        "its_beams.log_prob_N - 0 * log_normalizer(logits_NV)",
        contract("rescoring", "transformer-pre-sinusoidal"),
    ),
    Mutant(
        "a kernel lets padding have a say in the largest score",
        "nmt/nn/native/kernels.cpp",
        "seen[s] > 0.0f ? scores[s] : -INFINITY",
        "scores[s]",
        (NATIVE, "-k", "hidden or one_query"),
    ),
    Mutant(
        "a kernel takes the memory of another sentence",
        "nmt/nn/native/kernels.cpp",
        "const int64_t sentence = n / beams;",
        "const int64_t sentence = n / beams * 0;",
        (NATIVE, "-k", "one_query"),
    ),
    Mutant(
        "the way back of the LSTM's kernel forgets what goes through the memory",
        "nmt/nn/native/kernels.cpp",
        "wide(new_gradient[n * width + d]) + of_hidden",
        "of_hidden",
        (NATIVE, "-k", "way_back"),
    ),
    Mutant(
        "the way back to the keys takes each sentence's first step alone",
        "nmt/nn/native/kernels.cpp",
        "for (int64_t n = m * beams; n < (m + 1) * beams; ++n) {",
        "for (int64_t n = m * beams; n < m * beams + 1; ++n) {",
        ("tests/attention/test_scores.py", "-k", "loops_gradients"),
    ),
    Mutant(
        "in training a word sees the one after it",
        "nmt/nn/native/kernels.cpp",
        "is_unseen ? LANES : causal ? s - start : 0",
        "is_unseen ? LANES : causal ? s - start - 1 : 0",
        (NATIVE, "-k", "whole_sequences"),
    ),
    Mutant(
        "dropout of weights is forgotten on the way back",
        "nmt/nn/native/kernels.cpp",
        "if (drops) into[t] *= factor[t];",
        "",
        (NATIVE, "-k", "whole_sequences"),
    ),
    Mutant(
        "training by kernels takes values for keys",
        "nmt/nn/native/__init__.py",
        "end - 2 * each, end - each",
        "end - each, end - each",
        ("tests/attention/test_multihead.py", "-k", "by_kernels"),
    ),
    Mutant(
        "of what threads share out the last part is left undone",
        "nmt/nn/native/kernels.cpp",
        "all.count * (own + 1) / threads}",
        "(all.count - 1) * (own + 1) / threads}",
        (NATIVE, "-k", "threads_change"),
    ),
    Mutant(
        "a kernel passes over a block that holds one of the largest",
        "nmt/nn/native/kernels.cpp",
        "is_any |= wide(row[v]) + add >= least;",
        "is_any |= wide(row[v]) >= least;",
        ("tests/search/test_topk.py", "-k", "summand"),
    ),
    Mutant(
        "a kernel adds the bias twice where it adds to a sum",
        "nmt/nn/native/kernels.cpp",
        "if (onto) value += wide(to[o]);",
        "if (onto) value += wide(to[o]) + (bias ? wide(bias[o]) : 0.0f);",
        (NATIVE, "-k", "integers"),
    ),
    Mutant(
        "a product of bytes begins where rows were not raised",
        "nmt/nn/native/__init__.py",
        "(-128 * values_OI.sum",
        "(0 * values_OI.sum",
        (NATIVE, "-k", "integers"),
    ),
    Mutant(
        "a product of bytes leaves out the last rows",
        "nmt/nn/native/kernels.cpp",
        "tile<2>, tile<3>,",
        "tile<2>, tile<2>,",
        (NATIVE, "-k", "integers"),
    ),
    Mutant(
        "a glance does not see the columns after the last whole pair",
        "nmt/nn/native/kernels.cpp",
        "if (a < whole) add_columns(sums, lanes(key + a), lanes(v + a), queries + a, row);",
        "",
        (NATIVE, "-k", "one_glance"),
    ),
    Mutant(
        "the largest output is the last of several",
        "nmt/nn/native/kernels.cpp",
        "return one > other ||",
        "return one >= other ||",
        (NATIVE, "-k", "best_outputs"),
    ),
    Mutant(
        "what was summed of a row counts in full after a larger logit",
        "nmt/nn/native/kernels.cpp",
        "sum = _mm512_mul_ps(sum, falling_exp(_mm512_set1_ps(most - risen)));",
        "",
        (NATIVE, "-k", "log_normalizer"),
    ),
    Mutant(
        "what a sum rounds to the same comes in another order than by itself",
        "nmt/nn/native/kernels.cpp",
        "own > bare[at]",
        "false",
        ("tests/search/test_search.py", "-k", "equal_by_rounding"),
    ),
    Mutant(
        "beams without logits forget what makes those log-probabilities",
        "nmt/search/beam.py",
        "beams.log_prob_N - best.log_normalizer_N",
        "beams.log_prob_N - 0 * best.log_normalizer_N",
        (OPTIONS, "-k", "without_logits"),
    ),
    Mutant(
        "an LSTM's step starts anew with each part of its input",
        "nmt/nn/native/kernels.cpp",
        "p ? nullptr : bias + own",
        "bias + own",
        (NATIVE, "-k", "step_of_the_lstm"),
    ),
    Mutant(
        "sentences out of order stay where their length puts them",
        "nmt/nn/recurrent.py",
        "return states_BTD if is_in_order else",
        "return states_BTD if True else",
        (QUANTIZED, "-k", "any_lengths"),
    ),
    Mutant(
        "a limit does not end what is found without logits",
        "nmt/search/logits_processors.py",
        "return not self._bans and self._only(time, sentence_N) is None",
        "return not self._bans",
        (OPTIONS, "-k", "without_logits"),
    ),
    Mutant(
        "a settled model forgets its positions after the first sixty",
        "nmt/models/transformer/searching.py",
        "time >= len(self._vectors_TD)",
        "False",
        (TRANSFORMER, "-k", "settled_model_makes"),
    ),
    Mutant(
        "a settled model with post-norm adds to what is not normalised",
        "nmt/models/transformer/searching.py",
        "x_ND = x_ND if is_first else of_source(x_ND)",
        "x_ND = x_ND",
        (TRANSFORMER, "-k", "settled_model_makes"),
    ),
    Mutant(
        "what a row brings along is left out of the entries",
        "nmt/search/topk.py",
        "summand_N.view(-1, together).gather(1, rows_MX)",
        "0 * rows_MX",
        ("tests/search/test_topk.py", "-k", "summand"),
    ),
    Mutant(
        "the parents of all parts are counted from 0",
        "nmt/search/beam.py",
        "step.parents_N + first for step",
        "step.parents_N for step",
        (OPTIONS, "-k", "together"),
    ),
    Mutant(
        "what ends in a part belongs to the first sentences",
        "nmt/search/beam.py",
        "Ended(each.sentence + first // beam, ",
        "Ended(each.sentence, ",
        (OPTIONS, "-k", "together"),
    ),
    Mutant(
        "rules of a part are those of the first sentences",
        "nmt/search/sequential.py",
        "row_N[part] // count",
        "row_N[: part.stop - part.start] // count",
        (OPTIONS, "-k", "together"),
    ),
    Mutant(
        "a sentence chooses among the tokens of the whole batch",
        "nmt/search/shortlist.py",
        "Choices.of(np.unique(self.always_A), is_own_BV, device)",
        "Choices.of(np.unique(self.always_A), is_own_BV | is_own_BV.any(axis=0), device)",
        ("tests/search/test_shortlist.py",),
    ),
    Mutant(
        "what is behind the end of a list is a token too",
        "nmt/nn/listed.py",
        "logits_NL.masked_fill_(place_L >= lists.length_B[sentence_N, None], -torch.inf)",
        "logits_NL",
        ("tests/search/test_shortlist.py",),
    ),
    Mutant(
        "a part of a batch looks into the lists of its first sentences",
        "nmt/models/among.py",
        "first, _, _ = rows.indices(len(token_N))",
        "first = 0",
        ("tests/search/test_shortlist.py",),
    ),
    Mutant(
        "a beam looks back at the past of the row that it stands in",
        "nmt/nn/native/kernels.cpp",
        "steps[s] + trail[n * positions + s] * step_row",
        "steps[s] + n * step_row",
        ("tests/models/test_transformer.py",),
    ),
    Mutant(
        "a kernel leaves the end of a list open",
        "nmt/nn/native/kernels.cpp",
        "for (int64_t l = length; l < of.columns; ++l) narrow(-INFINITY, out[n * of.columns + l]);",
        "for (int64_t l = length + 1; l < of.columns; ++l) narrow(-INFINITY, out[n * of.columns + l]);",
        ("tests/nn/test_native.py",),
    ),
    Mutant(
        "the list of a source token begins one too late",
        "nmt/search/shortlist.py",
        "first_Y = self.offsets_X1[source_Y]",
        "first_Y = self.offsets_X1[source_Y] + 1",
        ("tests/search/test_shortlist.py",),
    ),
    Mutant(
        "the empty word is left out of the mixture",
        "nmt/alignment/ibm_model_1.py",
        "for part in (empty, source)",
        "for part in (source,)",
        ("tests/alignment/test_ibm_model_1.py",),
    ),
    Mutant(
        "the lexicon is not renormalised",
        "nmt/alignment/ibm_model_1.py",
        "p_E = count_E / np.bincount(source_E + 1, count_E)[source_E + 1]",
        "p_E = count_E",
        ("tests/alignment/test_ibm_model_1.py",),
    ),
    Mutant(
        "a model in use drops attention out",
        "nmt/attention/multihead.py",
        "self.dropout.threshold / 256 if self.training else 0.0",
        "self.dropout.threshold / 256",
        (MULTIHEAD, "-k", "fused_kernel"),
    ),
    Mutant(
        "a step of self-attention sees its first key alone",
        "nmt/attention/multihead.py",
        "self.causal and query_BHTA.shape[2] > 1",
        "self.causal",
        (MULTIHEAD, "-k", "fused_kernel"),
    ),
    Mutant(
        "an ensemble means logarithms",
        "nmt/models/ensemble.py",
        "log_probs_MNV.logsumexp(dim=0) - math.log(len(steps))",
        "log_probs_MNV.mean(dim=0)",
        (OPTIONS, "-k", "ensemble"),
    ),
    Mutant(
        "what is broken off still counts as met",
        "nmt/search/constrained.py",
        "                if match.rest[0] == token:\n",
        "                if match.rest:\n",
        ("tests/search/test_constrained.py",),
    ),
    Mutant(
        "the first phrase that begins is followed alone",
        "nmt/search/constrained.py",
        "            found.add(match)\n",
        "            if token not in {phrase[0] for phrase in self.phrases}:\n                found.add(match)\n",
        ("tests/search/test_constrained.py", "-k", "progress"),
    ),
    Mutant(
        "a match with fewer phrases met is taken for one with more",
        "nmt/search/constrained.py",
        "self.unmet <= other.unmet",
        "self.unmet >= other.unmet",
        ("tests/search/test_constrained.py", "-k", "progress"),
    ),
    Mutant(
        "a match that misses more is taken for one that misses less",
        "nmt/search/constrained.py",
        "self.rest in ((), other.rest)",
        "self.rest in ((), other.rest, other.rest[1:])",
        ("tests/search/test_constrained.py", "-k", "progress"),
    ),
    Mutant(
        "no match is kept that the next token cannot break off",
        "nmt/search/constrained.py",
        "            best = best[:MAX_MATCHES] + [match for match in best[MAX_MATCHES:] if not match.rest][:1]\n",
        "            best = best[:MAX_MATCHES]\n",
        ("tests/search/test_constrained.py", "-k", "dropped"),
    ),
    Mutant(
        "phrases that need a step more than there are left are tried",
        "nmt/search/constrained.py",
        "len(tokens_NT[first]) - 2 ",
        "len(tokens_NT[first]) - 1 ",
        ("tests/search/test_constrained.py",),
    ),
    Mutant(
        "phrases that need all steps left are given up",
        "nmt/search/constrained.py",
        "len(tokens_NT[first]) - 2 ",
        "len(tokens_NT[first]) - 3 ",
        ("tests/search/test_constrained.py",),
    ),
    Mutant(
        "beams that a bank leaves go to those that have met least",
        "nmt/search/constrained.py",
        "    for bank in reversed(banks):\n",
        "    for bank in banks:\n",
        ("tests/search/test_constrained.py", "-k", "banks"),
    ),
    Mutant(
        "a search stops by the length that hypotheses have",
        "nmt/search/beam.py",
        "self.ranking.bound(best, limit)",
        "self.ranking.bound(best, length)",
        ("tests/search/test_search.py",),
    ),
    Mutant(
        "biases decay",
        "nmt/training/optimizer.py",
        "if parameter.dim() > 1 else",
        "if parameter.dim() > 0 else",
        ("tests/training/test_optimizer.py",),
    ),
    Mutant(
        "a linear schedule holds no longer than it warms up",
        "nmt/training/schedule.py",
        "max(self.warmup, round(self.hold * last))",
        "round(self.hold * last)",
        ("tests/training/test_schedule.py",),
    ),
    Mutant(
        "a weight at the threshold of share is too small",
        "nmt/alignment/extract.py",
        "(best_T1 >= self.threshold) & (weights_TS",
        "(best_T1 > self.threshold) & (weights_TS",
        ("tests/alignment/test_extract.py",),
    ),
    Mutant(
        "a batch is never exactly full",
        "nmt/data/batching.py",
        'np.searchsorted(cells, config.batch_tokens, side="right")',
        'np.searchsorted(cells, config.batch_tokens, side="left")',
        ("tests/data/test_batching.py", "-m", "not slow"),
    ),
    Mutant(
        "all groups of lengths are sorted upwards",
        "nmt/data/batching.py",
        "np.where(group % 2, -source_lengths, source_lengths)",
        "source_lengths",
        ("tests/data/test_batching.py", "-m", "not slow"),
    ),
    Mutant(
        "a hypothesis ends before it has met all",
        "nmt/search/constrained.py",
        "complete = [each for each in ranked if each.missing == 0][: self.beam]",
        "complete = ranked[: self.beam]",
        ("tests/search/test_constrained.py",),
    ),
    Mutant(
        "consensus counts a text once however often it was drawn",
        "nmt/evaluation/consensus.py",
        "np.array([counts[text] for text in different]) / len(texts)",
        "np.array([1 for text in different]) / len(different)",
        ("tests/evaluation/test_consensus.py",),
    ),
    Mutant(
        "the stream begins an epoch anew",
        "nmt/training/stream.py",
        "for first in range(position.batch, len(order), self.accumulate):",
        "for first in range(0, len(order), self.accumulate):",
        ("tests/training/test_stream.py",),
    ),
    Mutant(
        "tuples of a record are not selected",
        "nmt/core/record.py",
        "        return tuple(_apply(function, each) for each in value)",
        "        return value",
        contract("states_follow", "lstm-2"),
    ),
    Mutant(
        "the position of a row is not counted",
        "nmt/models/rnn/decoder.py",
        "RNNState(stack, feed_NR, state.position_N + 1)",
        "RNNState(stack, feed_NR, state.position_N)",
        contract("forced_equals_stepwise", "narrow"),
    ),
    Mutant(
        "attention asks with the wrong state",
        "nmt/models/rnn/decoder.py",
        "        if not decoder.attends_first:\n            attended = self._attended(stack, state.position_N)",
        "        if not decoder.attends_first:\n            attended = self._attended(state.stack, state.position_N)",
        contract("forced_equals_stepwise", "additive-softmax-parallel"),
    ),
    Mutant(
        "the last readout is not fed",
        "nmt/models/rnn/decoder.py",
        "fed = [] if state.feed_NR is None else [state.feed_NR]",
        "fed = [] if state.feed_NR is None else [torch.zeros_like(state.feed_NR)]",
        ("tests/models", "-k", "every_parameter or oracle or cell"),
    ),
    Mutant(
        "a step loop drops other elements",
        "nmt/models/rnn/decoder.py",
        "factors_BTE[:, time : time + 1]",
        "factors_BTE[:, :1]",
        (CONTRACT, "-k", "step_loop"),
    ),
    Mutant(
        "the placeholder never comes",
        "nmt/models/rnn/context.py",
        "position_BT[:, :, None] == 0",
        "position_BT[:, :, None] >= 0",
        ("tests/models/test_context.py",),
    ),
    Mutant(
        "a residual connection is missing step by step",
        "nmt/nn/recurrent.py",
        "top_BD = new[-1].hidden_BD + top_BD if self._stack.residual else new[-1].hidden_BD",
        "top_BD = new[-1].hidden_BD",
        contract("forced_equals_stepwise", "residual"),
    ),
    Mutant(
        "a sentence is reversed with its padding",
        "nmt/models/rnn/encoder.py",
        "mirrored_BS = length_B[:, None] - 1 - position_S",
        "mirrored_BS = torch.full_like(length_B, size)[:, None] - 1 - position_S",
        contract("depend_on_its_batch", "additive-softmax"),
    ),
    Mutant(
        "the weight gradient of a loop is that of its last step",
        "nmt/nn/deferred.py",
        "torch.cat([each.flatten(0, -2) for each in several])",
        "several[0].flatten(0, -2)",
        contract("gradients_are_those", "lstm-1-current"),
    ),
    Mutant(
        "label smoothing is not in the readout's gradient",
        "nmt/nn/output.py",
        "        readout_gradient_ND -= smoothing * mean_weight_D\n",
        "",
        ("tests/nn",),
    ),
    Mutant(
        "label smoothing is not in the weight's gradient",
        "nmt/nn/output.py",
        "        gradient_VX -= smoothing / vocabulary * extended_NX.sum(dim=0)\n",
        "",
        ("tests/nn",),
    ),
    Mutant(
        "the bias is not in the weight's gradient",
        "nmt/nn/output.py",
        "        gradient_VX *= tokens.f_V[:, None]\n        gradient_VX.index_add_(",
        "        gradient_VX.index_add_(",
        ("tests/nn",),
    ),
    Mutant(
        "exponentials that overflow are not made anew",
        "nmt/nn/output.py",
        "if shift_N1 is None and not _is_in_range(z_N1):",
        "if False:",
        ("tests/nn",),
    ),
    Mutant(
        "what did not fit into memory is not taken back",
        "nmt/training/more/out_of_memory.py",
        "            self._model.zero_grad(set_to_none=True)\n",
        "",
        ("tests/training/more/test_out_of_memory.py",),
    ),
    Mutant(
        "other draws of dropout where something is computed anew",
        "nmt/nn/recompute.py",
        "use_reentrant=False)",
        "use_reentrant=False, preserve_rng_state=False)",
        ("tests/models/test_recompute.py",),
    ),
    Mutant(
        "label smoothing is not in the loss",
        "nmt/nn/output.py",
        "((1.0 - smoothing) * cross_entropy_N + smoothing * uniform_N).sum()",
        "((1.0 - smoothing) * cross_entropy_N).sum()",
        ("tests/nn",),
    ),
    Mutant(
        "the baseline is not detached",
        "nmt/attention/reinforce.py",
        "residual_CBT = error_CBT.detach()",
        "residual_CBT = error_CBT",
        ("tests/attention/test_reinforce.py",),
    ),
    Mutant(
        "the reward passes a gradient on",
        "nmt/attention/reinforce.py",
        "reward_BT = log_p_BT.detach() * is_token_BT",
        "reward_BT = log_p_BT * is_token_BT",
        ("tests/attention/test_reinforce.py",),
    ),
    Mutant(
        "what was never looked at is rewarded",
        "nmt/attention/reinforce.py",
        "choice.is_drawn_BT & is_token_BT for choice",
        "is_token_BT for choice",
        ("tests/attention/test_reinforce.py",),
    ),
    Mutant(
        "later words do not count for the reward",
        "nmt/attention/reinforce.py",
        "reward_BT[:, time] += rule.discount * reward_BT[:, time + 1]",
        "reward_BT[:, time] += 0.0 * reward_BT[:, time + 1]",
        ("tests/attention/test_reinforce.py",),
    ),
    Mutant(
        "the reward is punished",
        "nmt/attention/reinforce.py",
        "error_CBT.square() - log_prob_CBT * advantage_CBT",
        "error_CBT.square() + log_prob_CBT * advantage_CBT",
        ("tests/attention/test_reinforce.py",),
    ),
    Mutant(
        "a reward is centred with itself",
        "nmt/attention/reinforce.py",
        "others_B3 = all_3 - own_B3",
        "others_B3 = all_3.expand_as(own_B3)",
        ("tests/attention/test_reinforce.py", "-k", "over_all_draws"),
    ),
    Mutant(
        "processes centre rewards each for itself",
        "nmt/training/more/distributed.py",
        "return own_N + own_N.new_tensor(others)",
        "return own_N",
        ("tests/training/more/test_distributed.py", "-k", "rewards"),
    ),
    Mutant(
        "processes ask each other for every part of a batch",
        "nmt/training/more/distributed.py",
        "            if not others:\n",
        "            others.clear()\n            if not others:\n",
        ("tests/training/more/test_distributed.py", "-k", "once_a_batch"),
    ),
    Mutant(
        "gradients in float16 are formed before the loss is scaled",
        "nmt/nn/output.py",
        "if not learns or compute_dtype(readout_ND) == torch.float16:",
        "if not learns:",
        ("tests/nn/test_layers.py", "-k", "float16"),
    ),
    Mutant(
        "hard attention draws when decoding",
        "nmt/attention/reinforce.py",
        "return _one_hot(scores_BTS.argmax(dim=-1), scores_BTS), None",
        "return _one_hot(scores_BTS.softmax(-1).flatten(0, 1).multinomial(1).view(scores_BTS.shape[:2]), scores_BTS), "
        "None",
        contract("forced_equals_stepwise", "additive-hard"),
    ),
    Mutant(
        "the exact sum forgets the weights",
        "nmt/models/likelihood.py",
        "spread_NS + log_weight_NS.masked_fill(log_weight_NS.isinf(), 0.0)",
        "spread_NS + 0.0 * log_weight_NS.masked_fill(log_weight_NS.isinf(), 0.0)",
        ("tests/models/test_marginal.py",),
    ),
    Mutant(
        "gumbel's gradient is lost",
        "nmt/attention/weights/gumbel.py",
        "_one_hot(soft_BHTS) + (soft_BHTS - soft_BHTS.detach())",
        "_one_hot(soft_BHTS)",
        contract("every_parameter_learns", "additive-gumbel"),
    ),
    Mutant(
        "gumbel's temperature does not fall",
        "nmt/attention/weights/gumbel.py",
        "min(1.0, update / self.updates)",
        "min(0.0, update / self.updates)",
        ("tests/attention/test_weights.py",),
    ),
    Mutant(
        "sparsemax takes the wrong support",
        "nmt/attention/weights/sparsemax.py",
        "(1.0 + rank_S * descending_BHTS > sums_BHTS)",
        "(0.5 + rank_S * descending_BHTS > sums_BHTS)",
        ("tests/attention/test_weights.py",),
    ),
    Mutant(
        "the Gaussian of local_p is missing",
        "nmt/attention/weights/local_p.py",
        "exponent_BTS = -2.0 * (distance_BTS / self.width).square()",
        "exponent_BTS = -0.0 * (distance_BTS / self.width).square()",
        ("tests/attention/test_weights.py",),
    ),
    Mutant(
        "the window of local_m runs past the sentence",
        "nmt/attention/weights/local_m.py",
        "asked.position_BT.unsqueeze(-1).minimum(self.allowed(scores_BHTS) - 1)",
        "asked.position_BT.unsqueeze(-1)",
        ("tests/attention/test_weights.py",),
    ),
    Mutant(
        "glimpses look at padding",
        "nmt/attention/weights/glimpse.py",
        "(is_near_HPS & is_word_BS[:, None, None])",
        "is_near_HPS.expand(len(is_word_BS), *is_near_HPS.shape)",
        ("tests/attention/test_weights.py",),
    ),
    Mutant(
        "a location past the last one is looked at",
        "nmt/attention/scores/location.py",
        'value=float("-inf")',
        "value=0.0",
        ("tests/attention/test_scores.py",),
    ),
    Mutant(
        "free running reads gold words",
        "nmt/models/feed.py",
        '        """The guess."""\n        return _most_probable(logits_BV)',
        '        """The guess."""\n        return gold_B',
        contract("free_running", "additive-softmax"),
    ),
    Mutant(
        "scheduled sampling's coin is upside down",
        "nmt/models/feed.py",
        "torch.rand(rows, device=device) < probability",
        "torch.rand(rows, device=device) >= probability",
        ("tests/models/test_feed.py",),
    ),
    Mutant(
        "a resumed training draws other numbers",
        "nmt/training/trainer.py",
        '        restore_generators(_below("generator/", tensors), self.compute.device)\n',
        "",
        ("tests/workflows/test_resume.py", "-k", "killed"),
    ),
    Mutant(
        "heads together see later words",
        "nmt/attention/multihead.py",
        "if self.causal and position_NT.shape[1] > 1:",
        "if False:",
        (MULTIHEAD, "-k", "causal"),
    ),
    Mutant(
        "a head apart sees later words",
        "nmt/attention/attention.py",
        "if attention.causal:",
        "if False:",
        (MULTIHEAD, "-k", "causal"),
    ),
    Mutant(
        "heads together see padding",
        "nmt/attention/multihead.py",
        "if memory.is_pad_BS is not None:",
        "if False:",
        (MULTIHEAD, "-k", "plain_loops or padding"),
    ),
    Mutant(
        "dot products of heads are not scaled",
        "nmt/attention/multihead.py",
        "alpha=self.scale",
        "alpha=1.0",
        (MULTIHEAD, "-k", "torchs or plain_loops"),
    ),
    Mutant(
        "beams' heads are mixed up",
        "nmt/attention/multihead.py",
        "x_BHKTA.transpose(1, 2).reshape(rows, heads, -1, width)",
        "x_BHKTA.reshape(rows, heads, -1, width)",
        (TRANSFORMER, "-k", "beams"),
    ),
    Mutant(
        "attention weights of heads together are not dropped",
        "nmt/attention/multihead.py",
        "self.dropout(scores_SGT.softmax(dim=0))",
        "scores_SGT.softmax(dim=0)",
        (MULTIHEAD, "-k", "dropout"),
    ),
    Mutant(
        "what dropout keeps is not scaled",
        "nmt/nn/dropout.py",
        "factors.mul_(self.scale)",
        "factors",
        (MULTIHEAD, "-k", "dropout"),
    ),
    Mutant(
        "past keys and values are forgotten",
        "nmt/attention/multihead.py",
        "            torch.cat([past.keys_BHSA, keys_NH1A], dim=2),\n"
        "            torch.cat([past.values_BHSA, values_NH1A], dim=2),\n",
        "            keys_NH1A,\n            values_NH1A,\n",
        contract("forced_equals_stepwise", "transformer-pre-sinusoidal"),
    ),
    Mutant(
        "steps of a Transformer all stand at the first position",
        "nmt/models/transformer/decoder.py",
        "TransformerState(tuple(kept), state.position_N + 1)",
        "TransformerState(tuple(kept), state.position_N)",
        contract("forced_equals_stepwise", "transformer-pre-sinusoidal"),
    ),
    Mutant(
        "a step's key is not turned",
        "nmt/attention/multihead.py",
        "rotated(keys_NH1A, position_N1)",
        "keys_NH1A",
        contract("forced_equals_stepwise", "transformer-pre-rotary"),
    ),
    Mutant(
        "rotary positions go with a matrix between query and key",
        "nmt/models/transformer/config.py",
        'ROTATING = ("dot", ',
        'ROTATING = ("dot", "general", ',
        (TRANSFORMER, "-k", "rotary"),
    ),
    Mutant(
        "a Transformer's residual connection is missing",
        "nmt/models/transformer/block.py",
        "added_BTD: Tensor = x_BTD + self.dropout(",
        "added_BTD: Tensor = self.dropout(",
        (TRANSFORMER, "-k", "equals_torchs"),
    ),
    Mutant(
        "the last states of a pre-norm Transformer are not normalised",
        "nmt/models/transformer/block.py",
        'return nn.LayerNorm(config.size) if config.norm == "pre" else nn.Identity()',
        "return nn.Identity()",
        (TRANSFORMER, "-k", "equals_torchs"),
    ),
    Mutant(
        "embeddings are not scaled",
        "nmt/models/transformer/block.py",
        "embedded_BTE.to(compute_dtype(embedded_BTE)) * self.scale",
        "embedded_BTE.to(compute_dtype(embedded_BTE))",
        (TRANSFORMER, "-k", "equals_torchs"),
    ),
    Mutant(
        "padding is in the mean of a sentence",
        "nmt/models/seq2seq.py",
        "kept_BSD = states_BSD.masked_fill(is_pad_BS[:, :, None], 0.0)",
        "kept_BSD = states_BSD",
        (TRANSFORMER, "-k", "encoder"),
    ),
    Mutant(
        "a long request keeps its place",
        "nmt/extras/serve/batcher.py",
        "for job in [*unserved, *served] if job.left",
        "for job in [*served, *unserved] if job.left",
        ("tests/extras/serve/test_batcher.py",),
    ),
    Mutant(
        "requests that want something else share a batch",
        "nmt/extras/serve/batcher.py",
        "for job in self._queue if job.options == self._queue[0].options",
        "for job in self._queue",
        ("tests/extras/serve/test_batcher.py",),
    ),
    Mutant(
        "what is dropped stays in the queue",
        "nmt/extras/serve/app.py",
        "        batcher.cancel(job)\n",
        "",
        ("tests/extras/serve/test_app.py",),
    ),
    Mutant(
        "a body is read to its end",
        "nmt/extras/serve/messages.py",
        "            if len(body) > limit:\n                raise too_large\n",
        "",
        ("tests/extras/serve/test_app.py",),
    ),
    Mutant(
        "the server ends with its queue",
        "nmt/extras/serve/server.py",
        "_aside(0.0, self._batcher.close)",
        "_aside(0.0, self._give_up)",
        ("tests/extras/serve/test_serve.py",),
    ),
    Mutant(
        "a request's options stay",
        "nmt/translator/translator.py",
        "        other = copy(self)\n        other.search",
        "        other = self\n        other.search",
        ("tests/extras/serve/test_serve.py",),
    ),
    Mutant(
        "the links of the backward model are not swapped",
        "nmt/alignment/directions.py",
        "return tuple(sorted((source, target) for target, source in links))",
        "return links",
        ("tests/alignment/test_directions.py",),
    ),
    Mutant(
        "a threshold is passed only by what is above it",
        "nmt/alignment/extract.py",
        "& (weights_TS >= self.threshold))\n\n\nclass Mutual",
        "& (weights_TS > self.threshold))\n\n\nclass Mutual",
        ("tests/alignment/test_directions.py",),
    ),
    Mutant(
        "a grown link forgets its target word",
        "nmt/alignment/symmetrize.py",
        "        self.targets.add(link[1])\n",
        "",
        ("tests/alignment/test_symmetrize.py",),
    ),
    Mutant(
        "the reverse model reads the source",
        "nmt/translator/both_directions.py",
        "self.backward.align(targets, sources, method",
        "self.backward.align(sources, targets, method",
        ("tests/workflows/test_align_both_directions.py", "-k", "every_format"),
    ),
    Mutant(
        "the first word of a gold file is 0, whatever is said",
        "nmt/workflows/evaluate_alignment.py",
        "read_gold(gold, base=gold_base)",
        "read_gold(gold)",
        ("tests/workflows/test_evaluate_alignment.py",),
    ),
    Mutant(
        "a zero width space belongs to the piece that it begins",
        "nmt/data/tokenizer.py",
        "while begin < end and begin in separators:",
        "while False:",
        ("tests/data/test_word_places.py",),
    ),
    Mutant(
        "a piece of two words gives each its whole weight",
        "nmt/alignment/words.py",
        "* np.maximum(ends_MN - begins_MN, 0)",
        "* 1.0",
        ("tests/alignment/test_words.py", "-k", "several or hand"),
    ),
    Mutant(
        "a table's pair without links has no row",
        "nmt/alignment/link_files.py",
        'rows = self._rows(alignment) or [[""] * (len(_COLUMNS) - 1)]',
        "rows = self._rows(alignment)",
        ("tests/alignment/test_link_files.py",),
    ),
    Mutant(
        "links of both directions are merely possible",
        "nmt/alignment/directions.py",
        "sure=frozenset(links) & frozenset(forward.links) & frozenset(swapped),",
        "sure=frozenset(),",
        ("tests/workflows/test_align_links.py", "-k", "joined"),
    ),
    Mutant(
        "the backward aligner is given the forward one's texts",
        "nmt/translator/aligners.py",
        'if side == "forward" else (targets, sources)',
        'if side == "forward" else (sources, targets)',
        ("tests/workflows/test_align_together.py",),
    ),
    Mutant(
        "a view of the backward direction stays target to source",
        "nmt/translator/aligners.py",
        "return [each.turned() for each in alone[asked]]",
        "return alone[asked]",
        ("tests/workflows/test_align_together.py",),
    ),
    Mutant(
        "reports go by the last view",
        "nmt/workflows/align.py",
        "report.add(window.sources, window.targets, found[0], first_line)",
        "report.add(window.sources, window.targets, found[-1], first_line)",
        ("tests/workflows/test_align_together.py", "-k", "alone"),
    ),
    Mutant(
        "links that are left over go unnoticed",
        "nmt/workflows/align_links.py",
        "            reader.end()\n",
        "            pass\n",
        ("tests/workflows/test_align_together.py", "-k", "late"),
    ),
    Mutant(
        "a flag falls apart",
        "nmt/data/words.py",
        "FF?[MZV]*",
        "F[MZV]*",
        ("tests/data/test_words.py",),
    ),
    Mutant(
        "an interval of 90 per cent",
        "nmt/evaluation/bootstrap.py",
        "(2.5, 97.5))",
        "(5, 95))",
        ("tests/workflows/test_evaluate_alignment.py",),
    ),
    Mutant(
        "a pair of tags encloses what looks elsewhere",
        "nmt/extras/markup/transfer.py",
        "return [2 * look.at(child.begin, child.end) / each - 1 for",
        "return [1 - 2 * look.at(child.begin, child.end) / each for",
        ("tests/extras/markup/test_transfer.py",),
    ),
    Mutant(
        "elements overlap",
        "nmt/extras/markup/transfer.py",
        "                is_free[first:last] = [False] * (last - first)\n",
        "",
        ("tests/extras/markup/test_transfer.py",),
    ),
    Mutant(
        "an item is put where another one stands",
        "nmt/extras/markup/transfer.py",
        "        if index not in done and max(holders[begin:end]) < 0:",
        "        if index not in done:",
        ("tests/extras/markup/test_transfer.py",),
    ),
    Mutant(
        "words that are kept run into their neighbours",
        "nmt/extras/markup/transfer.py",
        "        _set_apart(texts, gaps, kept)\n",
        "",
        ("tests/extras/markup/test_transfer.py",),
    ),
    Mutant(
        "long lines are split by the wrong limit",
        "nmt/data/pieces.py",
        "    if count(text) <= lengths.usual:",
        "    if count(text) <= lengths.longest:",
        ("tests/data/test_pieces.py",),
    ),
    Mutant(
        "the white space between sentences is lost",
        "nmt/translator/segmentation.py",
        "            joined += between + text",
        "            joined += between[:1] + text",
        ("tests/translator/test_segmentation.py", "-k", "over_sentences"),
    ),
    Mutant(
        "the last tokens of a vocabulary are not looked at",
        "nmt/search/topk.py",
        "    if rest:\n",
        "    if False:\n",
        ("tests/search/test_topk.py",),
    ),
    Mutant(
        "8-bit rows share a scale",
        "nmt/nn/quantized.py",
        "    scale_N1 = _scale(x_NI)\n",
        "    scale_N1 = _scale(x_NI).amax(dim=0, keepdim=True)\n",
        ("tests/nn/test_quantized.py",),
    ),
    Mutant(
        "processes answer in the order in which they are done",
        "nmt/translator/workers.py",
        "waiting.popleft()",
        "waiting.pop()",
        ("tests/translator/test_workers.py", "-k", "order"),
    ),
    Mutant(
        "a writer who waits is not answered",
        "nmt/translator/workers.py",
        "not is_full or len(waiting)",
        "len(waiting)",
        ("tests/translator/test_workers.py", "-k", "at_once"),
    ),
    Mutant(
        "a lexicon's group ends at the first target word",
        "nmt/extras/inspect/bilingual_lexicon.py",
        "                    sources += new\n",
        "",
        ("tests/extras/inspect/test_bilingual_lexicon.py",),
    ),
    Mutant(
        "rare entries of a lexicon change the probabilities",
        "nmt/extras/inspect/bilingual_lexicon.py",
        "            of_source[source] += count\n",
        "            of_source[source] += count if count >= min_count else 0\n",
        ("tests/extras/inspect/test_bilingual_lexicon.py",),
    ),
    Mutant(
        "lengths count by the source alone",
        "nmt/extras/inspect/corpus_filter.py",
        "        m = (l_s + l_t / self.ratio) / 2\n",
        "        m = l_s\n",
        ("tests/extras/inspect/test_corpus_filter.py",),
    ),
    Mutant(
        "a reverse model scores the target once more",
        "nmt/workflows/align_models.py",
        "backward.score(targets, sources,",
        "backward.score(sources, targets,",
        ("tests/workflows/test_align_reports.py",),
    ),
    Mutant(
        "suspicious pairs come as they are found",
        "nmt/extras/inspect/corpus_reports.py",
        "sorted(self._found, key=lambda pair: (-pair.score, pair.line))",
        "self._found",
        ("tests/workflows/test_align_reports.py",),
    ),
    Mutant(
        "what CTranslate2 finds is ranked as it ranks",
        "nmt/extras/export/engine.py",
        "key=lambda each: -each[0]",
        "key=lambda each: -each[1]",
        ("tests/extras/export/test_ctranslate2.py",),
    ),
    Mutant(
        "an exported query is scaled twice",
        "nmt/extras/export/ctranslate2.py",
        "if isinstance(score, Dot) else weight_QQ",
        "if not isinstance(score, Dot) else weight_QQ",
        ("tests/extras/export/test_ctranslate2.py",),
    ),
    Mutant(
        "links go to another pair than their own",
        "nmt/workflows/prepare.py",
        "                links = _links(corpus, block, rows)\n",
        "                links = _links(corpus, block, sorted(rows, reverse=True))\n",
        ("tests/data/test_links.py", "-k", "follow"),
    ),
    Mutant(
        "a word with many subwords is linked with its first alone",
        "nmt/data/batching.py",
        "    count_L = source_count_L * target_count_L\n",
        "    count_L = np.minimum(source_count_L, 1) * target_count_L\n",
        ("tests/data/test_links.py", "-k", "all_their_tokens"),
    ),
    Mutant(
        "sampled subwords lie in the words of the best segmentation",
        "nmt/data/tokenizer.py",
        "        ids, spans = self._sampler.sample_spans(normalized, strength=alpha, seed=seed)\n",
        "        ids, _ = self._sampler.sample_spans(normalized, strength=alpha, seed=seed)\n"
        "        _, spans = self._sampler.sample_spans(normalized, strength=0.0, seed=seed)\n"
        "        spans = (spans * len(ids))[: len(ids)]\n",
        ("tests/data/test_links.py", "-k", "sampled"),
    ),
    Mutant(
        "guidance is the mean over the tokens of a part of the update",
        "nmt/training/objective.py",
        "* guidance / whole.linked\n",
        "* guidance / max(batch.links.targets if batch.links else 1, 1)\n",
        ("tests/training/test_guided_attention.py", "-k", "objective"),
    ),
    Mutant(
        "another head than the guided one hands out its weights",
        "nmt/attention/multihead.py",
        "x.select(dimension, head) for head in self.handed_out",
        "x.select(dimension, -1 - head) for head in self.handed_out",
        ("tests/models/test_guidance.py", "-k", "plain_loops and transformer"),
    ),
    Mutant(
        "a jump from the empty word starts anywhere",
        "nmt/extras/word_aligner/hmm.py",
        "here_BX = torch.mul(before_TBX[time], empty_TB1[time], out=before_TBX[time + 1])",
        "here_BX = torch.mul(before_TBX[0], empty_TB1[time], out=before_TBX[time + 1])",
        ("tests/extras/word_aligner/test_hmm.py",),
    ),
    Mutant(
        "directions learn without agreeing",
        "nmt/extras/word_aligner/hmm.py",
        "agreed_BST = one.link_BST * other.link_BST.mT",
        "agreed_BST = one.link_BST",
        ("tests/extras/word_aligner/test_hmm.py",),
    ),
    Mutant(
        "padding goes on",
        "nmt/extras/word_aligner/hmm.py",
        "is_cell_BST = is_source_BS[:, :, None] & is_target_BT[:, None]",
        "is_cell_BST = is_source_BS[:, :, None] & (is_target_BT | True)[:, None]",
        ("tests/extras/word_aligner/test_hmm.py",),
    ),
    Mutant(
        "between words a backward weight is averaged over the target",
        "nmt/extras/word_aligner/aligner.py",
        "return both_2IJ[0] / target_I1[:, None], both_2IJ[1] / source_J",
        "return both_2IJ[0] / target_I1[:, None], both_2IJ[1] / target_I1[:, None]",
        ("tests/extras/word_aligner/test_aligner.py",),
    ),
    Mutant(
        "a word without tokens has its neighbour's weight",
        "nmt/extras/word_aligner/aligner.py",
        "    if nothing:  # reduceat gives the neighbour instead\n",
        "    if False:\n",
        ("tests/extras/word_aligner/test_aligner.py",),
    ),
    Mutant(
        "a silent granularity counts in the mean",
        "nmt/extras/word_aligner/aligner.py",
        "mean_2N += each.found_2N / heard_N",
        "mean_2N += each.found_2N / len(self.members)",
        ("tests/extras/word_aligner/test_aligner.py",),
    ),
    Mutant(
        "an aligner's file may hold anything for a probability",
        "nmt/extras/word_aligner/aligner.py",
        "not ((values >= 0) & (values < 1.01)).all()",
        "not (values < 1.01).any()",
        ("tests/extras/word_aligner/test_aligner.py",),
    ),
    Mutant(
        "the layer sees the state that predicts a word",
        "nmt/extras/word_aligner/layer.py",
        "readout_BTY[:, 1:].float()",
        "readout_BTY[:, :-1].float()",
        ("tests/extras/word_aligner/test_layer.py",),
    ),
    Mutant(
        "a piece without links is taught nothing",
        "nmt/extras/word_aligner/layer.py",
        "(count_BT1 == 0).float()",
        "torch.zeros_like(count_BT1)",
        ("tests/extras/word_aligner/test_layer.py",),
    ),
    Mutant(
        "a layer of other weights is taken",
        "nmt/extras/word_aligner/layer.py",
        "    if made_for != model:\n",
        "    if not made_for:\n",
        ("tests/extras/word_aligner/test_layer.py",),
    ),
    Mutant(
        "shifted attention is not shifted",
        "nmt/alignment/forced.py",
        "weights_BHTS = weights_BHTS[:, :, 1:]",
        "weights_BHTS = weights_BHTS[:, :, :-1]",
        ("tests/extras/word_aligner/test_layer.py",),
    ),
    Mutant(
        "a trained alignment is the aligner's alone",
        "nmt/translator/translator.py",
        "one + share_IJ * (other - one)",
        "one",
        ("tests/extras/word_aligner/test_learn.py",),
    ),
    Mutant(
        "a run's own pairs are not decoded as they were",
        "nmt/extras/word_aligner/learn.py",
        "[trained.tokenizers.target.decode(data.train.target(row)) for row in rows]",
        "[trained.tokenizers.target.decode(data.train.source(row)) for row in rows]",
        ("tests/extras/word_aligner/test_learn.py",),
    ),
    Mutant(
        "pairs that are too long are learnt from",
        "nmt/extras/word_aligner/aligner.py",
        "if max(map(len, both)) <= LONGEST",
        "if both",
        ("tests/extras/word_aligner/test_aligner.py",),
    ),
    Mutant(
        "what is gone on from is not linked again",
        "nmt/training/trainer.py",
        """            if self.position.update > 0:
                folders.point(""",
        """            if self.position.update < 0:
                folders.point(""",
        ("tests/workflows/test_resume.py", "-k", "its_link"),
    ),
    Mutant(
        "files of a checkpoint are not brought to disk",
        "nmt/training/checkpoint.py",
        "            sync(beside / name)\n",
        "            pass\n",
        (KILLED, "-m", "not slow"),
    ),
    Mutant(
        "a checkpoint that was damaged is loaded",
        "nmt/training/folders.py",
        "        if digest != noted[name]:\n",
        "        if not digest:\n",
        (STOPPED, "-k", "damage and flip"),
    ),
    Mutant(
        "what was set aside is not given back",
        "nmt/training/folders.py",
        "            replaced.rename(final)\n",
        "            pass\n",
        (STOPPED, "-k", "takes_the_place"),
    ),
    Mutant(
        "a checkpoint is deleted file by file under its name",
        "nmt/training/folders.py",
        "            remove(old)\n",
        "            shutil.rmtree(old)\n",
        ("tests/training/test_checkpoint.py", "-k", "deleted"),
    ),
    Mutant(
        "a validation that a signal has ended is forgotten",
        "nmt/training/trainer.py",
        'state.get("owes_validation", False)',
        "False",
        (STOPPED, "-k", "would_take_long"),
    ),
    Mutant(
        "a training does not lock its run directory",
        "nmt/workflows/train.py",
        "            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n",
        "            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)\n",
        (STOPPED, "-k", "lock"),
    ),
    Mutant(
        "a checkpoint of a newer format is read all the same",
        "nmt/training/folders.py",
        "    if format > FORMAT:\n",
        "    if format > FORMAT + 1:\n",
        (GOLDEN, "-k", "newer"),
    ),
    Mutant(
        "a newer run's configuration is read before its format",
        "nmt/translator/find_run.py",
        "        folders.refuse_newer(newest)\n",
        "        pass\n",
        (GOLDEN, "-k", "newer"),
    ),
    Mutant(
        "training goes on with draws of its own",
        "nmt/training/trainer.py",
        '        restore_generators(_below("generator/", tensors), self.compute.device)\n',
        "",
        (GOLDEN, "-k", "goes_on"),
    ),
    Mutant(
        "a last line without an end is lost",
        "nmt/core/lines.py",
        '                self._finish("")\n',
        "                self._number += 0\n",
        ANY_FILES,
    ),
    Mutant(
        "bytes that are no text are taken for text",
        "nmt/data/corpus.py",
        'lines = data.decode("utf-8").split(',
        'lines = data.decode("utf-8", "replace").split(',
        ANY_FILES,
    ),
    Mutant(
        "a byte order mark is text",
        "nmt/data/corpus.py",
        "data = data.removeprefix(_BOM)",
        'data = data.removeprefix(b"")',
        ANY_FILES,
    ),
    Mutant(
        "matrices of weights that are read are factorized first",
        "nmt/core/meta_init.py",
        "if function is torch.linalg.qr:",
        "if function is torch.linalg.lu:",
        ("tests/core/test_meta_init.py",),
    ),
    Mutant(
        "what PyTorch brings along is looked through by every full collection",
        "nmt/core/memory.py",
        "        keep()\n        gc.enable()",
        "        gc.enable()",
        ("tests/core/test_memory.py",),
    ),
    Mutant(
        "nothing is collected after an import",
        "nmt/core/memory.py",
        "        keep()\n        gc.enable()",
        "        keep()",
        ("tests/core/test_memory.py",),
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="TEXT", default="", help="faults whose name or file holds this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults at a time; default: one a CPU")
    parser.add_argument("--list", action="store_true", help="show them and do nothing")
    options = parser.parse_args(arguments)
    chosen = [mutant for mutant in MUTANTS if options.only in f"{mutant.name}\n{mutant.file}"]
    if not chosen:
        print(f"error: --only {options.only}: no fault has that in name or file; --list shows them", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(f"{mutant.name:<55} {mutant.file}" for mutant in chosen))
        return 0
    with ThreadPoolExecutor(options.jobs) as executor:
        verdicts = list(executor.map(_announced, chosen))
    caught = verdicts.count("caught")
    print(f"{caught} of {len(chosen)} faults are caught")
    return 0 if caught == len(chosen) else 1


def _announced(mutant: Mutant) -> Verdict:
    verdict = judge(mutant)
    print(f"{verdict:<9} {mutant.name}", flush=True)
    return verdict


def judge(mutant: Mutant) -> Verdict:
    """Whether the tests fail by the fault; ``blind``: they do not pass without it either, or there are none."""
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, Path(folder) / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / part, Path(folder) / part)
        if not _pass(Path(folder), mutant):
            return "blind"
        plant(mutant, Path(folder))
        return "survived" if _pass(Path(folder), mutant) else "caught"


def plant(mutant: Mutant, root: Path) -> None:
    """Puts the fault into the tree under ``root``. The place must be there, once: AssertionError."""
    path = root / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.text) == 1, f"{mutant.name}: {mutant.file} has its text {text.count(mutant.text)} times"
    path.write_text(text.replace(mutant.text, mutant.instead), encoding="utf-8")


def _pass(folder: Path, mutant: Mutant) -> bool:
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
