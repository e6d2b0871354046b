"""Plants faults in a copy of the toolkit, one at a time, and runs the tests that should catch each.

    python scripts/mutants.py                 all of them
    python scripts/mutants.py --only beam     those whose name or function contains a word
    python scripts/mutants.py --list

A fault is an edit of one expression in one function, and the tests that should fail with it (DeMillo, Lipton & Sayward
1978, "Hints on Test Data Selection"). The same tests must pass without it. Code may be reformatted and moved within its
package: a function has its qualified name, and an expression is compared as a syntax tree. Exit code 0: the tests catch
every fault.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("nmt", "tests", "scripts", "examples", "configs", "docs", "data", "pyproject.toml", "README.md")
"""Parts of the repository that the tests need."""

Verdict = Literal["caught", "survived", "blind"]


@dataclass(frozen=True)
class Mutant:
    """One fault."""

    name: str
    function: str
    """``package:qualified name``: a function of that package or module, or of a module in it."""
    code: str
    """Source of an expression that the function contains once; a call may be a statement of its own."""
    replacement: str
    tests: tuple[str, ...]
    """Arguments for pytest: the tests that should catch the fault."""


MULTIHEAD, WEIGHTS = "tests/attention/test_multihead.py", "tests/attention/test_weights.py"
REINFORCE = "tests/attention/test_reinforce.py"
TRANSFORMER = "tests/models/test_transformer.py"
BEAM, CONSTRAINED = "tests/search/test_beam.py", "tests/extras/decoding/test_constrained_search.py"
ANY_FILES = ("tests/workflows/test_any_files.py", "-m", "not slow")
STOPPED = "tests/workflows/test_train.py"


def contract(test: str, models: str) -> tuple[str, ...]:
    """One contract test with the models whose names match an expression of ``pytest -k``."""
    return ("tests/models/test_contract.py", "-k", f"{test} and ({models})")


MUTANTS = (
    # attention
    Mutant(
        "padding is not masked",
        "nmt.attention:Attention._is_hidden",
        "is_pad_BS[:, None, None, :]",
        "torch.zeros_like(is_pad_BS[:, None, None, :])",
        ("tests/attention/test_scores.py", "-k", "padding"),
    ),
    Mutant(
        "weights of beams go to the wrong rows",
        "nmt.attention:unfold_beams",
        "weights_BHKTS.transpose(1, 2)",
        "weights_BHKTS",
        ("tests/attention", "-k", "beam"),
    ),
    Mutant(
        "keys are scaled before they are projected",
        "nmt.attention:Attention.memory",
        "keys_BSK.unsqueeze",
        "(3 * keys_BSK).unsqueeze",
        ("tests/attention", "-k", "scores or loops"),
    ),
    Mutant(
        "a single head attends to later words",
        "nmt.attention:Attention._is_hidden",
        "not self.causal",
        "True",
        (MULTIHEAD, "-k", "causal"),
    ),
    Mutant(
        "heads attend to later words",
        "nmt.attention:DotProductHeads._is_hidden",
        "not self.causal or time == 1",
        "True",
        (MULTIHEAD, "-k", "causal"),
    ),
    Mutant(
        "heads attend to padding",
        "nmt.attention:DotProductHeads._is_hidden",
        "None if is_pad_BS is None else is_pad_BS[:, None, None]",
        "None",
        (MULTIHEAD, "-k", "plain_loops or padding"),
    ),
    Mutant(
        "dot products of heads are not scaled",
        "nmt.attention:DotProductHeads.forward",
        "self.scale",
        "1.0",
        (MULTIHEAD, "-k", "torchs or plain_loops"),
    ),
    Mutant(
        "attention weights of heads are not dropped",
        "nmt.ops:attend",
        "kept_BHTS * dropout_factors",
        "kept_BHTS",
        (MULTIHEAD, "-k", "dropout"),
    ),
    Mutant(
        "past keys and values are forgotten",
        "nmt.attention:KeyValues.extended",
        "torch.cat([self.keys_BHSA, present.keys_BHSA], dim=2)",
        "torch.cat([torch.zeros_like(self.keys_BHSA), present.keys_BHSA], dim=2)",
        contract("forced_equals_stepwise", "transformer-pre-sinusoidal"),
    ),
    Mutant(
        "the key of a step is not rotated",
        "nmt.attention:MultiHead.attend_to_self",
        "apply_rotary(present.keys_BHSA, angles)",
        "present.keys_BHSA",
        (MULTIHEAD, "-k", "rotary"),
    ),
    Mutant(
        "sparsemax takes the wrong support",
        "nmt.attention:Sparsemax.__call__",
        "1.0 + rank_S * descending_BHTS",
        "0.5 + rank_S * descending_BHTS",
        (WEIGHTS,),
    ),
    Mutant("the Gaussian of local_p is missing", "nmt.attention:LocalPredictive.__call__", "-2.0", "-0.0", (WEIGHTS,)),
    Mutant(
        "glimpses attend to padding",
        "nmt.attention:Glimpse.__call__",
        "is_near_HPS & is_word_BS[:, None, None]",
        "is_near_HPS.expand(len(is_word_BS), *is_near_HPS.shape)",
        (WEIGHTS,),
    ),
    Mutant(
        "the straight-through gradient of gumbel is lost",
        "nmt.attention:Gumbel.__call__",
        "soft_BHTS - soft_BHTS.detach()",
        "0.0 * soft_BHTS.detach()",
        contract("every_parameter_learns", "additive-gumbel"),
    ),
    Mutant(
        "the straight-through gradient of argmax is that of softmax twice",
        "nmt.attention:Argmax.__call__",
        "soft_BHTS - soft_BHTS.detach()",
        "2.0 * (soft_BHTS - soft_BHTS.detach())",
        (WEIGHTS,),
    ),
    Mutant(
        "hard attention samples positions in translation",
        "nmt.attention:HardAttention.sample",
        "scores_BTS.argmax(dim=-1)",
        "scores_BTS.softmax(-1).flatten(0, 1).multinomial(1).view(scores_BTS.shape[:2])",
        contract("forced_equals_stepwise", "additive-hard"),
    ),
    Mutant(
        "the reward of hard attention passes a gradient on",
        "nmt.models:reinforce_loss",
        "log_p_BT.detach()",
        "log_p_BT",
        (REINFORCE,),
    ),
    Mutant(
        "the policy gradient of hard attention has the wrong sign",
        "nmt.models:reinforce_loss",
        'stacked("log_prob_BT") * advantage_CBT',
        '-stacked("log_prob_BT") * advantage_CBT',
        (REINFORCE,),
    ),
    # models
    Mutant(
        "a recurrent decoder does not count its position",
        "nmt.models:RNNDecoder._step",
        "state.position_N + 1",
        "state.position_N",
        contract("forced_equals_stepwise", "narrow"),
    ),
    Mutant(
        "the last readout is not fed",
        "nmt.models:RNNDecoder._step",
        "[state.readout_NR]",
        "[torch.zeros_like(state.readout_NR)]",
        ("tests/models", "-k", "every_parameter or oracle or cell"),
    ),
    Mutant(
        "all steps at once ask without the last word",
        "nmt.models:RNNDecoder.teacher_forced",
        "self._query(top_BTD, embedded_BTE)",
        "self._query(top_BTD, torch.zeros_like(embedded_BTE))",
        contract("forced_equals_stepwise", "query_embedding"),
    ),
    Mutant(
        "a recurrent step leaves its residual connection out",
        "nmt.nn:RecurrentStack.step",
        "layer > 0 and self.residual",
        "False",
        contract("forced_equals_stepwise", "residual"),
    ),
    Mutant(
        "a sentence is reversed with its padding",
        "nmt.models:_reversal",
        "length_B[:, None]",
        "torch.full_like(length_B, size)[:, None]",
        contract("depend_on_its_batch", "additive-softmax"),
    ),
    Mutant(
        "free running reads gold words",
        "nmt.models:FreeRunning.next",
        "most_probable(logits_BV)",
        "gold_B",
        contract("free_running", "additive-softmax"),
    ),
    Mutant(
        "the marginal likelihood forgets the weights",
        "nmt.models:MarginalLikelihood.__call__.marginal",
        "log_p_X.view_as(log_weight_NS) + log_weight_NS",
        "log_p_X.view_as(log_weight_NS)",
        ("tests/models/test_marginal.py",),
    ),
    Mutant(
        "a Transformer's residual connection is missing",
        "nmt.models:Residual.add",
        "x_BTD + self.dropout(output_BTD)",
        "self.dropout(output_BTD)",
        (TRANSFORMER, "-k", "equals_torchs"),
    ),
    Mutant(
        "a Transformer's steps stay at the first position",
        "nmt.models:TransformerDecoder.step",
        "state.position_N + 1",
        "state.position_N",
        contract("forced_equals_stepwise", "transformer-pre-sinusoidal"),
    ),
    Mutant(
        "an ensemble averages log-probabilities",
        "nmt.models:Ensemble.step.logits",
        "log_probs_MNV.logsumexp(dim=0) - math.log(len(steps))",
        "log_probs_MNV.mean(dim=0)",
        ("tests/models/test_ensemble.py",),
    ),
    Mutant(
        "tuples of a state are not selected",
        "nmt.core:_apply",
        "tuple(_apply(function, entry) for entry in value)",
        "value",
        contract("states_follow", "lstm-2"),
    ),
    Mutant(
        "dropout does not scale what it keeps",
        "nmt.nn:Dropout.factors",
        "factors.mul_(self.scale)",
        "factors",
        (MULTIHEAD, "-k", "dropout"),
    ),
    # search
    Mutant(
        "the state of a beam does not follow its parent",
        "nmt.search:BeamSearch.__call__",
        "state.select(parents_N)",
        "state",
        contract("rescoring", "additive-softmax"),
    ),
    Mutant(
        "a hypothesis is not scored with its length penalty",
        "nmt.search:BeamSearch._read",
        "Hypothesis(tokens, float(ended_BW[at]), float(score_BW[at]))",
        "Hypothesis(tokens, float(ended_BW[at]), float(ended_BW[at]))",
        contract("rescoring", "additive-softmax"),
    ),
    Mutant(
        "only the best candidate of a step may finish",
        "nmt.search:advance",
        "log_prob_BW.masked_fill(~ends_BW, -torch.inf)[:, :beam]",
        "log_prob_BW.masked_fill(~ends_BW, -torch.inf)[:, :1]",
        contract("brute_force", "previous or transformer"),
    ),
    Mutant(
        "coverage is that of another hypothesis",
        "nmt.search:BeamSearch._read",
        "covered_N.astype(float)[parent_BW]",
        "covered_N.astype(float)[-1]",
        (BEAM, "-k", "ranked"),
    ),
    Mutant(
        "logits of beams are not normalized",
        "nmt.search:BeamSearch._advance_by_logits",
        "log_normalizer(logits_NV)",
        "0 * log_normalizer(logits_NV)",
        contract("rescoring", "transformer-pre-sinusoidal"),
    ),
    Mutant(
        "search stops by the length of its hypotheses",
        "nmt.search:BeamSearch._read",
        "best_BG.astype(float) / finished.penalty_B1[rows]",
        "best_BG.astype(float) / self.ranking.penalty(length)",
        (BEAM,),
    ),
    Mutant(
        "groups of beams may choose the same tokens",
        "nmt.search:advance_groups",
        "diversity * exists_BK.float()",
        "0 * exists_BK.float()",
        (BEAM, "-k", "apart"),
    ),
    Mutant(
        "a sampled token depends on the row of its sentence",
        "nmt.search:_uniform",
        "[seed, key, draw]",
        "[seed, len(rows), draw]",
        ("tests/search/test_sampling.py",),
    ),
    Mutant(
        "a constrained hypothesis ends before its phrases",
        "nmt.extras.decoding.constrained_search:ConstrainedBeamSearch.advance",
        "missing_BC == 0",
        "missing_BC >= 0",
        (CONSTRAINED,),
    ),
    Mutant(
        "an interrupted phrase counts as met",
        "nmt.extras.decoding.phrases:Progress.after",
        "match.rest[0] == token",
        "match.rest",
        (CONSTRAINED,),
    ),
    # training, and the order of its data
    Mutant(
        "label smoothing is not in the loss",
        "nmt:_CrossEntropy.forward",
        "(1.0 - smoothing) * cross_entropy_N + smoothing * uniform_N",
        "(1.0 - smoothing) * cross_entropy_N",
        ("tests/nn",),
    ),
    Mutant(
        "biases decay",
        "nmt.training:NamedOptimizer.__init__",
        "parameter.dim() > 1",
        "parameter.dim() > 0",
        ("tests/training/test_optimizer.py",),
    ),
    Mutant(
        "gradients of an update that ran out of memory remain",
        "nmt.training:OutOfMemoryRetry.attempts",
        "self._model.zero_grad(set_to_none=True)",
        "None",
        ("tests/training/test_out_of_memory.py",),
    ),
    Mutant(
        "recomputation draws other dropout",
        "nmt.nn:recomputed",
        "checkpoint(function, *arguments, use_reentrant=False)",
        "checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)",
        ("tests/models/test_recompute.py",),
    ),
    Mutant(
        "guidance is averaged over tokens without links too",
        "nmt.training:Objective._mean",
        "totals.linked",
        "totals.tokens",
        ("tests/training/test_objective.py", "-k", "objective"),
    ),
    Mutant(
        "a resumed epoch begins anew",
        "nmt.training:Stream.after",
        "range(position.batch, len(order), self.accumulate)",
        "range(0, len(order), self.accumulate)",
        ("tests/training/test_stream.py",),
    ),
    Mutant(
        "a batch is never exactly full",
        "nmt.data:_cuts",
        "'right'",
        "'left'",
        ("tests/data/test_batching.py", "-m", "not slow"),
    ),
    Mutant(
        "links go to another pair",
        "nmt.workflows:_store_train.passed",
        "_links(corpus, block, rows)",
        "_links(corpus, block, sorted(rows, reverse=True))",
        ("tests/data/test_token_links.py", "-k", "follow"),
    ),
    # checkpoints and runs
    Mutant(
        "a resumed training draws other numbers",
        "nmt.training:Trainer.resume",
        "restore_generators(_below('generator/', tensors), self.compute.device)",
        "None",
        ("tests/workflows/test_killed.py", "-m", "not slow"),
    ),
    Mutant(
        "a validation that a signal has ended is forgotten",
        "nmt.training:Trainer.resume",
        "state.get('owes_validation', False)",
        "False",
        (STOPPED, "-k", "would_take_long"),
    ),
    Mutant(
        "a validation that is better by the loss alone counts as a gain",
        "nmt.training:BestValidation.after",
        "now[:2] > best[:2]",
        "now > best",
        ("tests/training/test_validation.py",),
    ),
    Mutant(
        "of validations with BLEU 0 the loss alone decides",
        "nmt.training:deciding_metric",
        "'chrf' in figures",
        "'chrf' not in figures",
        ("tests/training/test_validation.py",),
    ),
    Mutant(
        "BLEU's tokenizer depends on the translations",
        "nmt.evaluation:sentence_counts",
        "bleu_tokenizer(lines.references)",
        "bleu_tokenizer([lines.hypotheses])",
        ("tests/evaluation/test_bootstrap.py", "-k", "same_tokenizer"),
    ),
    Mutant(
        "files of a checkpoint are not brought to disk",
        "nmt.data:replace_folder",
        "sync_entry(path)",
        "None",
        ("tests/workflows/test_killed.py", "-m", "not slow"),
    ),
    Mutant(
        "a checkpoint that was damaged is loaded",
        "nmt.training:verify",
        "digest != noted[name]",
        "not digest",
        (STOPPED, "-k", "damage and flip"),
    ),
    Mutant(
        "a folder that was set aside is not restored",
        "nmt.data:recover",
        "replaced.rename(_partial(folder) if folder.exists() else folder)",
        "replaced.rename(_partial(folder))",
        ("tests/data/test_atomic_folder.py",),
    ),
    Mutant(
        "a checkpoint is deleted file by file under its name",
        "nmt.training:prune",
        "atomic_folder.remove",
        "shutil.rmtree",
        ("tests/training/test_checkpoint.py", "-k", "deleted"),
    ),
    Mutant(
        "a training does not lock its run directory",
        "nmt.workflows:_exclusive_run",
        "fcntl.LOCK_EX",
        "fcntl.LOCK_SH",
        (STOPPED, "-k", "lock"),
    ),
    Mutant(
        "a checkpoint of a newer format is read",
        "nmt.training:read_state",
        "format > FORMAT",
        "format > FORMAT + 1",
        ("tests/workflows/test_golden.py", "-k", "newer"),
    ),
    # input
    Mutant(
        "bytes that are not UTF-8 are replaced",
        "nmt.data:_line_groups",
        "data.decode('utf-8')",
        "data.decode('utf-8', 'replace')",
        ANY_FILES,
    ),
    # server
    Mutant(
        "a search that nobody waits for runs on",
        "nmt.extras.service:Batcher._translate.on_step",
        "all(job.future.done() for job, _ in parts)",
        "False",
        ("tests/extras/service/test_batcher.py", "-k", "nobody_waits"),
    ),
    Mutant(
        "light requests may pass a heavy one for ever",
        "nmt.extras.service:Batcher._translate.on_step",
        "time.monotonic() - paused >= SLICE_S",
        "False",
        ("tests/extras/service/test_batcher.py", "-k", "starve_a_heavy"),
    ),
    Mutant(
        "large requests pass each other",
        "nmt.extras.service:Batcher._translate.on_step",
        "weight // LIGHTER",
        "weight",
        ("tests/extras/service/test_batcher.py", "-k", "pass"),
    ),
    # alignment
    Mutant(
        "shifted attention is not shifted",
        "nmt.alignment:forced_weights.attention",
        "weights_BHTS[:, :, 1:]",
        "weights_BHTS[:, :, :-1]",
        ("tests/extras/aligner/test_layer.py",),
    ),
    Mutant(
        "a piece of two words gives each its whole weight",
        "nmt.alignment:to_words_of_parts",
        "np.maximum(ends_MN - begins_MN, 0)",
        "1.0",
        ("tests/alignment/test_words.py", "-k", "several or hand"),
    ),
    Mutant(
        "a grown link forgets its target word",
        "nmt.alignment:_Growth._add",
        "self.targets.add(link[1])",
        "None",
        ("tests/alignment/test_symmetrize.py",),
    ),
    Mutant(
        "links of the backward model are not swapped",
        "nmt.alignment:_swapped",
        "tuple(sorted((source, target) for target, source in links))",
        "links",
        ("tests/alignment/test_directions.py",),
    ),
    Mutant(
        "padding keeps its probability",
        "nmt.models:Seq2Seq.frozen",
        "-torch.inf",
        "0.0",
        ("tests/translator/test_translator.py", "-k", "impossible"),
    ),
    Mutant(
        "an n-best list repeats texts",
        "nmt.translator:Translator._found",
        "distinct(ranked, itemgetter(0))",
        "list(ranked)",
        ("tests/translator/test_translator.py", "-k", "repeat"),
    ),
    Mutant(
        "the first of two uses of an option is dropped",
        "nmt.cli:GroupedCommand.parse_args",
        "given.count(parameter) > 1",
        "False",
        ("tests/cli/test_app.py", "-k", "given"),
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="TEXT", default="", help="faults whose name or function contains this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="faults at a time; default: one a CPU")
    parser.add_argument("--list", action="store_true", help="show the faults and do nothing")
    options = parser.parse_args(arguments)
    chosen = [mutant for mutant in MUTANTS if options.only in f"{mutant.name}\n{mutant.function}"]
    if not chosen:
        print(f"error: --only {options.only}: no name or function of a fault contains it (see --list)", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(f"{mutant.name:<55} {mutant.function}" for mutant in chosen))
        return 0
    with ThreadPoolExecutor(options.jobs) as executor:
        verdicts = []
        for mutant, verdict in zip(chosen, executor.map(judge, chosen), strict=True):
            print(f"{verdict:<9} {mutant.name}", flush=True)
            verdicts.append(verdict)
    caught = verdicts.count("caught")
    print(f"{caught} of {len(chosen)} faults are caught")
    return 0 if caught == len(chosen) else 1


def judge(mutant: Mutant) -> Verdict:
    """Run the tests without and with the fault; ``blind``: they fail without it too, or select nothing."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / part, root / part)
        if not _pass(root, mutant):
            return "blind"
        path, text = planted(mutant, root)
        path.write_bytes(text)
        return "survived" if _pass(root, mutant) else "caught"


def planted(mutant: Mutant, root: Path) -> tuple[Path, bytes]:
    """File of the tree under ``root`` that contains the function, and its text with the fault.

    Raises LookupError where the function or the expression is missing or not unique.
    """
    package, _, name = mutant.function.partition(":")
    folder = root / package.replace(".", "/")
    code = ast.dump(ast.parse(mutant.code, mode="eval").body)
    places: list[tuple[Path, ast.expr]] = []
    for path in [folder.with_suffix(".py")] if not folder.is_dir() else folder.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        function = scopes(text).get(name) if name.rpartition(".")[2] in text else None
        nodes = ast.walk(function) if function is not None else ()
        places += [(path, node) for node in nodes if isinstance(node, ast.expr) and ast.dump(node) == code]
    if len(places) != 1:
        raise LookupError(f"{mutant.name}: {mutant.function} has its expression {len(places)} times, not once")
    path, node = places[0]
    lines = path.read_bytes().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
    data = b"".join(lines)
    return path, data[:start] + f"({mutant.replacement})".encode() + data[end:]


@cache
def scopes(text: str) -> dict[str, ast.AST]:
    """Functions and classes of a module's text by qualified name, and the module by an empty name."""
    tree = ast.parse(text)

    def walk(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            inside = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inside = f"{name}.{child.name}".lstrip(".")
                yield inside, child
            yield from walk(child, inside)

    return {"": tree, **dict(walk(tree, ""))}


def _pass(root: Path, mutant: Mutant) -> bool:
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
