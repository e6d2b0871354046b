"""Scores of translations, and of the model that made them."""

from __future__ import annotations

import json as json_format
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.config import DataConfig
from nmt.data.corpus import read_blocks, read_lines
from nmt.evaluation.by_length import EDGES, LengthScores, by_length
from nmt.evaluation.report import Evaluation
from nmt.evaluation.translation import Score, sacrebleu_metric, scores
from nmt.extras.inspect.score_plot import check_plot, plot_by_length

if TYPE_CHECKING:
    from nmt.translator.translator import Loader, Translator


@dataclass(frozen=True)
class Preparation:
    """What is done to text before it is compared; see `nmt.evaluation.translation.scores`."""

    lowercase: bool = False
    tokenize: str = "13a"


@dataclass(frozen=True)
class LengthAnalysis:
    """What is wanted of the scores by source length."""

    edges: tuple[int, ...] = EDGES
    """See `nmt.evaluation.by_length.by_length`."""
    picture: Path | None = None
    """Where to draw BLEU by length, one line for each corpus."""


def evaluate(
    model: str | None,
    overrides: Sequence[str],
    *,
    source: Path | None,
    reference: Path | None,
    hypothesis: Path | None,
    lengths: LengthAnalysis | None,
    preparation: Preparation,
    json: bool,
    device: str,
    precision: str,
    load: Loader,
) -> None:
    """Prints BLEU, chrF and TER of a file of translations, or of the model's own beside its perplexity and token
    accuracy on the references; without any file, of each of ``data.test`` in the model's config. With ``lengths`` also
    by source length: a file of translations then needs its ``source``.

    Raises InputError for files that cannot be read or do not have the same lines.
    """
    if lengths is not None and lengths.picture is not None:
        check_plot(lengths.picture)  # before minutes of translation
    # as early: a tokenizer that is unknown or cannot be used here
    sacrebleu_metric("bleu", lowercase=preparation.lowercase, tokenize=preparation.tokenize)
    if hypothesis is not None:
        assert reference is not None
        evaluations = {"": _of_file(source, hypothesis, reference, lengths, preparation)}
    else:
        given = None
        if source is not None and reference is not None:
            given = _read_together(source, reference)
            if not given[0]:
                raise InputError(f"{source}: holds no line to translate")
        translator = load(model, device=device, precision=precision, overrides=overrides)
        corpora = {"": given} if given is not None else _test_corpora(translator.trained.experiment.data)
        evaluations = {name: _of_model(translator, *lines, lengths, preparation) for name, lines in corpora.items()}
    _print(evaluations, json)
    if lengths is not None and lengths.picture is not None:
        plot_by_length({name: each.lengths or () for name, each in evaluations.items()}, lengths.picture)


def _of_file(
    source: Path | None, hypothesis: Path, reference: Path, lengths: LengthAnalysis | None, preparation: Preparation
) -> Evaluation:
    hypotheses, references = _read_together(hypothesis, reference)
    if not hypotheses:
        raise InputError(f"{hypothesis}: holds no line to evaluate, nor does {reference}")
    if lengths is None:
        return Evaluation(_scores(hypotheses, references, preparation))
    assert source is not None
    sources, _ = _read_together(source, reference)
    by_lengths = _lengths(lengths, sources, hypotheses, references, preparation)
    return Evaluation(_scores(hypotheses, references, preparation), lengths=by_lengths)


def _scores(hypotheses: Sequence[str], references: Sequence[str], preparation: Preparation) -> tuple[Score, ...]:
    return scores(hypotheses, references, lowercase=preparation.lowercase, tokenize=preparation.tokenize)


def _of_model(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    lengths: LengthAnalysis | None,
    preparation: Preparation,
) -> Evaluation:
    from nmt.evaluation.perplexity import FEEDS

    translations = translator.translate(sources)
    for warning in translator.cut_warnings(translations):
        log.warning(warning)
    hypotheses = [translation.text for translation in translations]
    predictions = {name: translator.predict(sources, references, feed) for name, feed in FEEDS.items()}
    by_lengths = None if lengths is None else _lengths(lengths, sources, hypotheses, references, preparation)
    return Evaluation(_scores(hypotheses, references, preparation), predictions, by_lengths)


def _lengths(
    wanted: LengthAnalysis,
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    preparation: Preparation,
) -> tuple[LengthScores, ...]:
    return by_length(
        sources,
        hypotheses,
        references,
        edges=wanted.edges,
        lowercase=preparation.lowercase,
        tokenize=preparation.tokenize,
    )


def _test_corpora(data: DataConfig) -> dict[str, tuple[list[str], list[str]]]:
    if not data.test_corpora:
        raise InputError("--source and --reference are missing, and the config has no data.test; give one or the other")
    corpora = {}
    for corpus in data.test_corpora:
        blocks = list(read_blocks(corpus))
        sources = [line for block in blocks for line in block.sources]
        corpora[corpus.name] = (sources, [line for block in blocks for line in block.targets])
    return corpora


def _read_together(a: Path, b: Path) -> tuple[list[str], list[str]]:
    """The lines of two text files. Raises InputError where one cannot be read or they do not have equally many."""
    a_lines, b_lines = list(read_lines(a)), list(read_lines(b))
    if len(a_lines) != len(b_lines):
        raise InputError(
            f"{a} has {len(a_lines)} lines, but {b} has {len(b_lines)}: they must go together line by line"
        )
    return a_lines, b_lines


def _print(evaluations: Mapping[str, Evaluation], json: bool) -> None:
    """Corpora without a name come without a heading."""
    if json:
        trees = {name: each.tree() for name, each in evaluations.items()}
        print(json_format.dumps(trees.get("", trees), indent=1, ensure_ascii=False))
        return
    for name, each in evaluations.items():
        print("\n".join([name] * bool(name) + each.lines()))
