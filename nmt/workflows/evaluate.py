"""Scores of translations, and of the model that made them."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.core.errors import InputError
from nmt.data.config import DataConfig
from nmt.data.corpus import read_blocks, read_lines
from nmt.evaluation.translation import Score, as_tree, scores

if TYPE_CHECKING:
    from nmt.evaluation.perplexity import Prediction
    from nmt.workflows.translator import Translator


def evaluate(
    model: str | None,
    overrides: Sequence[str],
    *,
    source: Path | None,
    reference: Path | None,
    hypothesis: Path | None,
    json: bool,
    device: str,
    precision: str,
) -> None:
    """Prints BLEU, chrF and TER of a file of translations, or of the model's own beside its perplexity and token
    accuracy on the references; without any file, of each of ``data.test`` in the model's config.

    Raises InputError for files that cannot be read or do not have the same lines.
    """
    if hypothesis is not None:
        assert reference is not None
        hypotheses, references = read_text(hypothesis), read_text(reference)
        _same_lines(hypothesis, hypotheses, reference, references)
        _print({"": Evaluation(scores(hypotheses, references), None)}, json)
        return
    given = None
    if source is not None and reference is not None:
        given = read_text(source), read_text(reference)
        _same_lines(source, given[0], reference, given[1])
        if not given[0]:
            raise InputError(f"{source}: holds no line to translate")
    from nmt.workflows.translator import load  # torch is not needed to score a file

    translator = load(model, device=device, precision=precision, overrides=overrides)
    corpora = {"": given} if given is not None else _test_corpora(translator.trained.experiment.data)
    _print({name: _of_model(translator, *lines) for name, lines in corpora.items()}, json)


@dataclass(frozen=True)
class Evaluation:
    """All figures of one corpus."""

    scores: tuple[Score, ...]
    prediction: Prediction | None
    """Under teacher forcing; None where there is no model."""

    def lines(self) -> list[str]:
        """For people."""
        lines = [score.line() for score in self.scores]
        if self.prediction is not None:
            lines.append(
                f"teacher forcing: perplexity {self.prediction.perplexity:.3f}, token accuracy "
                f"{self.prediction.accuracy:.1f}% of {self.prediction.tokens:,} tokens"
            )
        return lines

    def tree(self) -> dict[str, Any]:
        """For JSON, not rounded, with stable keys."""
        tree: dict[str, Any] = dict(as_tree(self.scores))
        if self.prediction is not None:
            tree["teacher_forcing"] = {
                "perplexity": self.prediction.perplexity,
                "token_accuracy": self.prediction.accuracy,
                "tokens": self.prediction.tokens,
            }
        return tree


def _of_model(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> Evaluation:
    translations = translator.translate(sources)
    translator.warn_of_cuts(translations)
    hypotheses = [translation.text for translation in translations]
    return Evaluation(scores(hypotheses, references), translator.predict(sources, references))


def _test_corpora(data: DataConfig) -> dict[str, tuple[list[str], list[str]]]:
    if not data.test_corpora:
        raise InputError("--source and --reference are missing, and the config has no data.test; give one or the other")
    corpora = {}
    for corpus in data.test_corpora:
        blocks = list(read_blocks(corpus))
        sources = [line for block in blocks for line in block.sources]
        corpora[corpus.name] = (sources, [line for block in blocks for line in block.targets])
    return corpora


def read_text(path: Path) -> list[str]:
    """The lines of a text file, split as everywhere. Raises InputError where it cannot be read or is not UTF-8."""
    return list(read_lines(path))


def _same_lines(a: Path, a_lines: Sequence[str], b: Path, b_lines: Sequence[str]) -> None:
    if len(a_lines) != len(b_lines):
        raise InputError(
            f"{a} has {len(a_lines)} lines, but {b} has {len(b_lines)}: they must go together line by line"
        )


def _print(evaluations: dict[str, Evaluation], json: bool) -> None:
    """Corpora without a name come without a heading."""
    if json:
        trees = {name: each.tree() for name, each in evaluations.items()}
        print(json_format.dumps(trees.get("", trees), indent=1, ensure_ascii=False))
        return
    for name, each in evaluations.items():
        print("\n".join([name] * bool(name) + each.lines()))
