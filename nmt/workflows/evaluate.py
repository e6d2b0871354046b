"""Scores of translations, and of the model that made them."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.config import CorpusConfig
from nmt.data.context import DocumentContext
from nmt.data.corpus import Faulty, read_blocks, read_lines
from nmt.evaluation.by_length import LengthScores, by_length
from nmt.evaluation.latency import WaitScore
from nmt.evaluation.report import Evaluation, RiskTable, TermRecall
from nmt.evaluation.translation import METRICS, MetricScore, metric, scores, warn_of_bleu
from nmt.workflows.align import corpus_of

if TYPE_CHECKING:
    from nmt.evaluation.perplexity import Prediction
    from nmt.models.feed import Feed
    from nmt.translator.translation import Translation
    from nmt.translator.translator import Loader, Translator

Plot: TypeAlias = Callable[[Mapping[str, Sequence[LengthScores]]], None]
"""Draws the scores by source length, one line for each corpus."""


@dataclass(frozen=True)
class Scoring:
    """Settings of the scores; see `nmt.evaluation.translation.scores` and `nmt.evaluation.by_length.by_length`."""

    lowercase: bool = False
    tokenize: str | None = None
    edges: Sequence[int] | None = None
    """The last number of source words of each bucket of lengths; None: no scores by length."""
    metrics: Sequence[str] = ()
    """Further metrics, of plug-ins."""
    wait_scores: Callable[[Translator, Sequence[str], Callable[[Sequence[str]], float]], list[WaitScore]] | None = None
    """Function that translates sources simultaneously and scores the texts by a function."""
    term_recall: Callable[[Sequence[str], Sequence[str]], TermRecall] | None = None
    """Function that counts the terms of a glossary in sources and translations."""
    risk_coverage: Callable[[Sequence[Translation], Sequence[str]], RiskTable] | None = None
    """Function that compares the confidence of translations with their quality."""

    def scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> tuple[MetricScore, ...]:
        """Scores translations."""
        metrics = tuple(dict.fromkeys((*METRICS, *self.metrics)))
        return scores(hypotheses, references, lowercase=self.lowercase, tokenize=self.tokenize, metrics=metrics)

    def evaluation(
        self, sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str],
        predictions: Mapping[str, Prediction], waits: Sequence[WaitScore] = (),
    ) -> Evaluation:  # fmt: skip
        """Computes all figures of translations; without ``sources``, not those by source length and of terms."""
        warn_of_bleu(references, tokenize=self.tokenize)
        texts, lengths, terms = (sources, hypotheses, references), None, None
        if sources and self.edges is not None:
            lengths = by_length(*texts, edges=self.edges, lowercase=self.lowercase, tokenize=self.tokenize)
        if sources and self.term_recall is not None:
            terms = self.term_recall(sources, hypotheses)
        return Evaluation(self.scores(hypotheses, references), predictions, lengths, waits, terms)


def evaluate(
    load: Loader, *, source: Path | None, reference: Path | None, hypothesis: Path | None, scoring: Scoring,
    plot: Plot | None, json: bool,
) -> None:  # fmt: skip
    """Prints BLEU, chrF and TER of a file of translations, or of the model's own translations, together with its
    perplexity and token accuracy on the references; without any file, it does so for each of ``data.test`` in the
    model's config. ``plot`` draws the scores by source length, one line for each corpus; a file of translations then
    needs its ``source``.

    Raises InputError for files that cannot be read or do not have the same lines.
    """
    # before minutes of translation: a tokenizer or metric that is unknown or cannot be used here
    for name in ("bleu", *scoring.metrics):
        metric(name, lowercase=scoring.lowercase, tokenize=scoring.tokenize or "13a")
    if hypothesis is not None:
        assert reference is not None
        evaluations = {"": _of_file(source, hypothesis, reference, scoring)}
    elif source is None or reference is None:
        evaluations = of_test_corpora(load(), scoring)
    else:
        lines = _sides(source, reference)
        if not lines[0]:
            raise InputError(f"{source}: holds no line to translate")
        evaluations = {"": of_model(load(), *lines, scoring)}
    if json:
        trees = {name: evaluation.tree() for name, evaluation in evaluations.items()}
        print(json_format.dumps(trees.get("", trees), indent=1, ensure_ascii=False))
    else:
        for name, evaluation in evaluations.items():
            print("\n".join([name] * bool(name) + evaluation.lines()))
    if plot is not None:
        plot({name: evaluation.lengths or () for name, evaluation in evaluations.items()})


def _of_file(source: Path | None, hypothesis: Path, reference: Path, scoring: Scoring) -> Evaluation:
    hypotheses = list(read_lines(hypothesis))
    sources, references = _sides(source, reference)
    _check_counts(hypothesis, hypotheses, reference, references)
    if not hypotheses:
        raise InputError(f"{hypothesis}: holds no line to evaluate, nor does {reference}")
    return scoring.evaluation(sources, hypotheses, references, {})


def of_model(translator: Translator, sources: Sequence[str], references: Sequence[str], scoring: Scoring) -> Evaluation:
    """Computes the scores of a model's translations, and its predictions of the references."""
    inputs = feeds()
    translator.trained.warn_of_language(sources)
    sources = DocumentContext().sentences(sources)  # a model may read previous sentences
    wait_scores = scoring.wait_scores or (lambda *_: [])
    waits = wait_scores(translator, sources, lambda texts: scoring.scores(texts, references)[0].value)
    with log.progress(total=(1 + len(inputs)) * len(sources), description="evaluate", unit="line") as bar:
        translations = translator.reporting(bar.update).translate(sources)
        predictions = {}
        for name, feed in inputs.items():
            predictions[name] = translator.predict(sources, references, feed)
            bar.update(len(sources))
    for warning in translator.cut_warnings(translations):
        log.warning(warning)
    hypotheses = [translation.text for translation in translations]
    evaluation = scoring.evaluation(sources, hypotheses, references, predictions, waits)
    if scoring.risk_coverage is None:
        return evaluation
    return replace(evaluation, risk=scoring.risk_coverage(translations, references))


def feeds() -> dict[str, Feed]:
    """Returns the inputs of the decoder for which the perplexity is reported, by their names in JSON. The last one
    tosses a fair coin for each word."""
    from nmt.models.feed import FreeRunning, TeacherForcing  # imported late, because torch takes a second
    from nmt.models.scheduled_sampling import ScheduledSampling

    sampling = ScheduledSampling(0.5, unit="token", guess="argmax")
    return {"teacher_forcing": TeacherForcing(), "free_running": FreeRunning(), "scheduled_sampling": sampling}


def of_test_corpora(translator: Translator, scoring: Scoring) -> dict[str, Evaluation]:
    """Computes the scores of each corpus of ``data.test``, translated into its own language; with ``search.to`` only of
    those into that language."""
    experiment = translator.trained.experiment
    corpora = experiment.data.test_corpora
    if not corpora:
        raise InputError("--source and --reference are missing, and the config has no data.test; give one or the other")
    to = experiment.search.to
    if to is not None and not (corpora := tuple(corpus for corpus in corpora if corpus.target_language == to)):
        raise InputError(f"--to {to}: no corpus of data.test is into it; give --source and --reference")
    lines = {}
    for corpus in corpora:  # all corpora are read before minutes of translation
        direction = "" if corpus.languages is None else f"{'-'.join(corpus.languages)} "
        own = translator.to(target_language=corpus.target_language)
        try:
            lines[f"{direction}{corpus.name}"] = (own, *_lines(corpus, experiment.data.faulty))
        except InputError as error:
            raise InputError(f"{error} (data.test of the model; --source and --reference name others)") from None
    return {name: of_model(*of_corpus, scoring) for name, of_corpus in lines.items()}


def _sides(source: Path | None, reference: Path) -> tuple[list[str], list[str]]:
    """Reads the lines of two text files, or of one that holds both sides; without a source it reads only the
    references. Raises InputError if a file cannot be read or their numbers of lines differ."""
    if source is reference:
        return _lines(corpus_of(source, reference))
    references = list(read_lines(reference))
    if source is None:
        return [], references
    sources = list(read_lines(source))
    _check_counts(source, sources, reference, references)
    return sources, references


def _check_counts(a: Path, a_lines: Sequence[str], b: Path, b_lines: Sequence[str]) -> None:
    if len(a_lines) != len(b_lines):
        raise InputError(f"{a} has {len(a_lines)} lines, but {b} has {len(b_lines)}: they must agree line by line")


def _lines(corpus: CorpusConfig, faulty: Faulty = "drop") -> tuple[list[str], list[str]]:
    blocks = list(read_blocks(corpus, faulty=faulty))
    return [line for block in blocks for line in block.sources], [line for block in blocks for line in block.targets]
