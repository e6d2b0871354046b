"""Alignments by models: by attention or gradients, in one or in both directions, by one view or several; the choice of
heads, and the comparison of a model's methods (Jain & Wallace 2019, "Attention is not Explanation")."""

from __future__ import annotations

import json as json_format
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import combinations
from operator import itemgetter
from statistics import mean, median
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nmt import plugins
from nmt.alignment import Method
from nmt.alignment.agreement import Agreement, agreement
from nmt.alignment.choice import candidates, uncertainty
from nmt.alignment.directions import Join
from nmt.alignment.erasure import Erasure, probability_drops
from nmt.alignment.error_rate import AlignmentScore, Gold, score_pair
from nmt.alignment.formats import Level
from nmt.alignment.request import BY_ATTENTION, AlignmentRequest, Direction, align_both
from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.context import with_context_of
from nmt.data.tokenizer import EncodedWords
from nmt.models.names import matching
from nmt.training import metrics
from nmt.translator.find_run import run_of, shell_argument
from nmt.workflows.align import check_files, check_readable, gold_of, windows, write_alignments

if TYPE_CHECKING:
    from nmt.translator.loading import TrainedModel
    from nmt.translator.translator import Loader, Translator
    from nmt.workflows.align import AlignmentInputs, AlignmentOutputs

Criterion: TypeAlias = Literal["entropy", "gold"]
"""Criterion of the choice of heads: the lowest entropy of the weights, or the lowest error rate of the links."""

ENTROPY_PAIRS = 200
"""Number of the first pairs on which heads are chosen by entropy."""


@dataclass(frozen=True)
class Reverse:
    """A model that translates the target to the source, and the rule that joins its alignment with the forward one."""

    load: Loader
    join: Join


@dataclass(frozen=True)
class AlignmentModels:
    """One or two models, and the settings with which they align."""

    model: str | None
    """The model; None means the run that was trained last."""
    reverse: Reverse | None = None
    choose_heads: Criterion | None = None
    """The criterion by which heads are chosen for views without heads of their own; None means the configured heads."""
    level: Level = "word"


def align(
    models: AlignmentModels,
    requests: Sequence[AlignmentRequest],
    inputs: AlignmentInputs,
    outputs: AlignmentOutputs,
    load: Loader,
) -> Mapping[str, AlignmentScore]:
    """Writes alignments of the input pairs, or of source lines and their translations by the model, for each of
    ``requests``; two models are joined only between words. ``load`` loads the first of ``models``. With its estimator,
    alignments have the confidence of the target.

    Raises InputError for what ``write_alignments`` raises it for, and for methods and heads that a model does not have.
    """
    check_files(inputs, outputs)
    translators = _loaded(models, load)
    join = None if models.reverse is None else models.reverse.join
    requests = [replace(request, symmetrization=join) for request in expanded(requests, translators)]
    if models.choose_heads is not None:
        translators = _choosing(translators, models.choose_heads, inputs)
    forward, backward = translators["forward"], translators.get("backward")
    estimator, forward = forward.estimator, replace(forward, estimator=None)  # not of its own translations, too
    aligners = [partial(each.aligner.align, level=models.level, text=inputs.text) for each in translators.values()]
    totals = write_alignments(
        aligners[0] if backward is None else partial(align_both, aligners[0], aligners[1]),
        requests,
        inputs,
        outputs,
        pairs_in_windows=windows(forward, inputs.source, inputs.target),
        facts=[str(translator.trained.checkpoint) for translator in translators.values()],
        explanations={request.name: _explanation(request, translators) for request in requests},
        nlls=partial(pair_nlls, forward, backward),
        confidences=None if estimator is None else partial(estimator.of_pairs, forward.trained),
    )
    if outputs.path is not None and not totals:  # otherwise the scores are the last output
        checkpoint = forward.trained.checkpoint
        log.info(f"alignments: {outputs.path}")
        if (run_of(checkpoint) / metrics.FILE).exists():
            log.info(f"next: nmt report {shell_argument(models.model, checkpoint)}")
    return totals


def _explanation(request: AlignmentRequest, models: Mapping[Direction, Translator]) -> str:
    """Describes in sentences the rule that gives the links of a request, and the heads whose mean it is."""
    if request.symmetrization is not None and request.direction is None:
        return request.symmetrization.explanation
    if plugins.has("methods", request.method):
        return f"The links are those of the {request.method} aligner."
    aligner = models[request.direction or "forward"].aligner
    if request.magnitude != "relative":
        numbers = "Derivatives are in per cent of the pair's largest. Links are those of rows scaled to sum to 1."
        return f"{numbers} {aligner.extraction.explanation()}"
    if request.method not in BY_ATTENTION:
        return aligner.extraction.explanation()
    heads = matching(aligner.trained.model.decoder.head_names, request.heads or aligner.extraction.heads)
    return aligner.extraction.explanation(len(heads))


def pair_nlls(
    forward: Translator,
    backward: Translator | None,
    sources: Sequence[str],
    targets: Sequence[str],
    first_line: int = 1,
) -> list[float]:
    """Computes the negative log-probability per token of each target given its source. With a model that translates in
    the other direction, it is the mean of this and of the source given the target. It is NaN for a pair that is too
    long."""
    scores = [forward.score(sources, targets, first_line=first_line)]
    if backward is not None:
        scores.append(backward.score(targets, sources, first_line=first_line))
    means = [[-score.log_prob / max(len(score.tokens), 1) for score in direction] for direction in scores]
    return [sum(pair) / len(pair) for pair in zip(*means, strict=True)]


def _loaded(models: AlignmentModels, load: Loader) -> dict[Direction, Translator]:
    from nmt.translator.both_directions import BothDirections  # imported late, because torch takes a second

    forward = load()
    if models.reverse is None:
        return {"forward": forward}
    both = BothDirections(forward, models.reverse.load(), models.reverse.join)  # raises for two models of one run
    return {"forward": both.forward, "backward": both.backward}


# ------------------------------------------------------------------------------------------------- the choice of heads


def _choosing(
    translators: Mapping[Direction, Translator], by: Criterion, inputs: AlignmentInputs
) -> dict[Direction, Translator]:
    """Gives each model the heads that are best on the first pairs."""
    all_gold = gold_of(inputs) if by == "gold" else None
    forward = translators["forward"]
    with closing(windows(forward, inputs.source, inputs.target, description="choose heads")) as all_windows:
        _, sources, targets = next(all_windows)
    gold = None if all_gold is None else all_gold[: len(sources)]
    turned = None if gold is None else [links.turned() for links in gold]
    pairs = {"forward": (sources, targets, gold), "backward": (targets, sources, turned)}
    return {side: choose_heads(model, by, *pairs[side], text=inputs.text) for side, model in translators.items()}


def choose_heads(
    model: Translator, by: Criterion, sources: Sequence[str], targets: Sequence[str], gold: Sequence[Gold] | None, *,
    text: bool,
) -> Translator:  # fmt: skip
    """Gives the model the heads that are best on some pairs, and logs them. Raises InputError for a model without
    attention, and for sentences that cannot be aligned."""
    model.aligner.check_method("attention")
    if by == "entropy":
        sources, targets, gold = sources[:ENTROPY_PAIRS], targets[:ENTROPY_PAIRS], None
    elif gold is not None:
        # gold may judge the first pairs only, and the others would not change a rate
        gold = [links for links in gold if links.is_judged]
        sources, targets = sources[: len(gold)], targets[: len(gold)]
    found: list[tuple[float, str]] = []
    for pattern in candidates(model.trained.model.decoder.head_names):
        aligned = replace(model, heads=pattern).align(sources, targets, level="subword", text=text)
        if gold is None:
            sums = [uncertainty(pair.weights_TS) for pair in aligned if pair.source_words and pair.target_words]
            found.append((sum(total for total, _ in sums) / max(sum(count for _, count in sums), 1), pattern))
        else:
            scores = (score_pair(pair.links, pair_gold) for pair, pair_gold in zip(aligned, gold, strict=True))
            found.append((sum(scores, AlignmentScore()).aer, pattern))
    (value, best), all_heads = min(found, key=itemgetter(0)), found[0][0]
    criterion = "uncertainty" if gold is None else "AER"
    log.info(
        f"heads: {best} of {model.trained.checkpoint}, {criterion} {100 * value:.1f} % on {len(sources):,} pairs "
        f"(all heads {100 * all_heads:.1f} %)"
    )
    return replace(model, heads=best)


def expanded(requests: Sequence[AlignmentRequest], models: Mapping[Direction, Translator]) -> list[AlignmentRequest]:
    """Lists the views, each once; a view of ``each`` head is replaced by one view for every head. Raises InputError for
    a method or heads that a model does not have."""
    found: dict[AlignmentRequest, None] = {}
    for request in requests:
        viewed = [model for side, model in models.items() if request.direction in (None, side)]
        for model in viewed:
            model.aligner.check_method(request.method)
        heads = [] if request.heads is None else [_heads(request, model) for model in viewed]
        if request.each:
            common = [head for head in heads[0] if all(head in names for names in heads)]
            if len(common) == 1 and replace(request, heads=None, each=False) in found:
                continue  # the only head is the same as the view of attention
            if not common:
                raise InputError(
                    f"--view {request.name}: the two models have no such head in common; ask for those of one, "
                    f"forward:{request.name} or backward:{request.name}"
                )
            found |= dict.fromkeys(replace(request, heads=head, each=False) for head in common)
        else:
            found[request] = None
    return list(found)


def _heads(request: AlignmentRequest, model: Translator) -> list[str]:
    """Finds the heads of a model that match a view's pattern."""
    names = model.trained.model.decoder.head_names
    assert request.heads is not None
    found = [name for name in names if fnmatchcase(name, request.heads)]
    if not found:
        heads = ", ".join(names) if len(names) <= 8 else f"{names[0]} to {names[-1]}"
        raise InputError(f"--view {request.name}: fits no head of {model.trained.checkpoint}; it has {heads}")
    return found


# ---------------------------------------------------------------------------------------------- comparison of methods


@dataclass(frozen=True)
class Comparison:
    """The agreement of several methods on the same sentence pairs."""

    sentences: int
    methods: tuple[Method, ...]
    scores: Mapping[Method, AlignmentScore] | None
    """Scores of each method's links; None without gold links."""
    agreements: Mapping[tuple[Method, Method], Agreement]
    """Agreement of the soft alignments between words of each two methods."""
    erasures: Mapping[Method, Erasure]
    """Effect of leaving out source words, by the weights of each method."""
    distances: Sequence[float] | None
    """Distance of the output distribution with permuted attention for each target subword; None without attention."""
    shares: Sequence[float]
    """Share of the weights that the output depends on, for each target subword with attention."""

    def lines(self) -> list[str]:
        """Formats one or two tables, with error rates in per cent."""
        width = max(len(f"{one} - {other}") for one, other in self.agreements)
        lines = []
        if self.scores is not None:
            lines.append(f"{'links':{width}}    AER  precision  recall  F1 (sure)  number")
            for method, score in self.scores.items():
                rates = f"{100 * score.aer:5.1f}  {100 * score.precision:9.1f}  {100 * score.recall:6.1f}"
                lines.append(f"{method:{width}}  {rates}  {100 * score.f1:9.1f}  {score.predicted:6}")
            lines.append("")
        lines.append(f"{'rank correlation':{width}}  Spearman  Kendall  target words")
        for (one, other), each in self.agreements.items():
            figures = f"{_figure(each.spearman):>8}  {_figure(each.kendall):>7}  {each.rows:12}"
            lines.append(f"{f'{one} - {other}':{width}}  {figures}")
        lines += ["", f"{'fall without a source word':{width}}  highest weight  another  larger %  target words"]
        for method, (highest, another, larger, count) in self.erasures.items():
            share = None if larger is None else 100 * larger
            figures = f"{_figure(highest):>14}  {_figure(another):>7}  {_figure(share, 1):>8}"
            lines.append(f"{method:{width}}  {figures}  {count:12}")
        if self.distances is not None:
            lines += ["", f"{'permuted':{width}}  median distance  target subwords"]
            lines.append(f"{'attention':{width}}  {_figure(self._distance):>15}  {len(self.distances):15}")
            lines += ["", f"{'effective':{width}}  mean share  lowest  target subwords"]
            shares = f"{_figure(self._share):>10}  {_figure(min(self.shares, default=None)):>6}"
            lines.append(f"{'attention':{width}}  {shares}  {len(self.shares):15}")
        return lines

    @property
    def _distance(self) -> float | None:
        return median(self.distances) if self.distances else None

    @property
    def _share(self) -> float | None:
        return mean(self.shares) if self.shares else None

    def tree(self) -> dict[str, Any]:
        """Returns a tree for JSON, not rounded, with stable keys; an unknown figure is null."""
        has_attention, lowest = self.distances is not None, min(self.shares, default=None)
        permuted = {"median_distance": self._distance, "target_subwords": len(self.distances or ())}
        effective = {"mean_share": self._share, "lowest_share": lowest, "target_subwords": len(self.shares)}
        return {
            "sentences": self.sentences,
            "methods": {method: self.scores and self.scores[method].as_dict() for method in self.methods},
            "agreement": [
                {"methods": list(pair), "spearman": each.spearman, "kendall": each.kendall, "target_words": each.rows}
                for pair, each in self.agreements.items()
            ],
            "erasure": {method: each._asdict() for method, each in self.erasures.items()},
            "permuted": permuted if has_attention else None,
            "effective": effective if has_attention else None,
        }


def compare(inputs: AlignmentInputs, *, json: bool, load: Loader) -> Comparison:
    """Aligns the pairs of lines, or the source lines and their translations by the model, by every method that the
    model supports. Prints the agreement of the methods' soft alignments, the effect of leaving out the source words
    with the highest weights, the effect of permuted attention, the effective part of it and, with gold links, the error
    rates of their links.

    Raises InputError for files that cannot be read, do not have the same lines, or hold links outside their sentences.
    """
    # imported late, because torch takes a second
    from nmt.alignment.effective import effective_shares, reads_weights
    from nmt.alignment.permuted import permuted_distances

    check_readable(inputs.source, inputs.target, inputs.gold)
    translator = load()
    gold, trained = gold_of(inputs), translator.trained
    batch_tokens = trained.experiment.search.batch_tokens
    methods = translator.aligner.methods
    scores = dict.fromkeys(methods, AlignmentScore())
    agreements = dict.fromkeys(combinations(methods, 2), Agreement())
    sentences, random = 0, np.random.default_rng(1)
    erasures: dict[Method, list[tuple[float, float]]] = {method: [] for method in methods}
    distances: list[float] | None = [] if "attention" in methods else None
    shares: list[float] = []
    with closing(windows(translator, inputs.source, inputs.target)) as all_windows:
        for first, sources, targets in all_windows:
            requests = [AlignmentRequest(method) for method in methods]
            aligned = translator.aligner.align(requests, sources, targets, first_line=first + 1, text=inputs.text)
            found = {request.method: alignments for request, alignments in aligned.items()}
            sentences += len(sources)
            for method in methods:
                for alignment, links in zip(found[method], (gold or ())[first:], strict=False):
                    scores[method] += score_pair(alignment.links, links)
            for one, other in agreements:
                for alignment, another in zip(found[one], found[other], strict=True):
                    agreements[one, other] += agreement(alignment.weights_TS, another.weights_TS)
            pairs = trained.encode_pairs(sources, targets, first + 1, text=inputs.text)
            drops_of = word_probability_drops(translator.trained, pairs, text=inputs.text)
            for method in methods:
                for alignment, drop_IJ in zip(found[method], drops_of, strict=True):
                    erasures[method] += probability_drops(alignment.weights_TS, drop_IJ, random)
            if distances is not None:
                both = [(source, target) for source, target in pairs if source.ids and target.ids]
                source_ids = trained.prefixed((source.ids for source, _ in both), (source.text for source, _ in both))
                ids = source_ids, [target.ids for _, target in both]
                distances += permuted_distances(trained.model, *ids, trained.compute, batch_tokens=batch_tokens)
                if not reads_weights(trained.model):
                    shares += effective_shares(trained.model, *ids, trained.compute, batch_tokens=batch_tokens)
    by_method = {method: Erasure.of(each) for method, each in erasures.items()}
    by_links = None if gold is None else scores
    comparison = Comparison(sentences, methods, by_links, agreements, by_method, distances, shares)
    print(json_format.dumps(comparison.tree(), indent=1) if json else "\n".join(comparison.lines()))
    return comparison


def word_probability_drops(
    trained: TrainedModel, pairs: Sequence[tuple[EncodedWords, EncodedWords]], *, text: bool
) -> list[NDArray[np.float64]]:
    """Computes the fall of each target word's probability, under teacher forcing, without each source word, (I, J) for
    each pair, whose lines are ordinary or tokenised ``text``. The probability of a word is that of its subwords."""
    from nmt.evaluation.perplexity import token_log_probs

    versions = []
    for source, _ in pairs:
        line = source.text
        shorter = (" ".join((line[:begin] + line[end:]).split()) for begin, end in source.word_spans)
        versions.append([line, *(with_context_of(line, text) for text in shorter)])
    lines = [line for of_pair in versions for line in of_pair]
    targets = [target.text for (_, target), of_pair in zip(pairs, versions, strict=True) for _ in of_pair]
    encoded = trained.encode_pairs(lines, targets, 1, text=text)
    sources = trained.prefixed((source.ids for source, _ in encoded), lines)
    batch_tokens, ids = trained.experiment.search.batch_tokens, [target.ids for _, target in encoded]
    log_probs = iter(token_log_probs(trained.model, sources, ids, trained.compute, batch_tokens=batch_tokens))
    found = []
    for (_, target), of_pair in zip(pairs, versions, strict=True):
        log_p_KT = np.array([next(log_probs)[:-1] for _ in of_pair], np.float64).reshape(len(of_pair), -1)
        belongs_TI = np.equal.outer(np.array(target.word_of_piece, np.int64), np.arange(len(target.words)))
        p_KI = np.exp(log_p_KT @ belongs_TI)
        found.append((p_KI[:1] - p_KI[1:]).T)
    return found


def _figure(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
