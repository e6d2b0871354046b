"""Scores of translations, and of the model that made them."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.core.errors import InputError
from nmt.data.corpus import read_lines
from nmt.evaluation.translation import Score, scores


def evaluate(
    model: str | None,
    overrides: Sequence[str],
    *,
    source: Path | None,
    reference: Path,
    hypothesis: Path | None,
    json: bool,
    device: str,
    precision: str,
    beam: int | None,
    length_penalty: float | None,
    max_length_ratio: float | None,
    batch_tokens: int | None,
) -> None:
    """Prints BLEU, chrF and TER of a file of translations, or of the model's own beside its perplexity and token
    accuracy on the references. Raises InputError for files that cannot be read or do not have the same lines."""
    references = read_text(reference)
    if hypothesis is not None:
        hypotheses = read_text(hypothesis)
        _same_lines(hypothesis, hypotheses, reference, references)
        _print(scores(hypotheses, references), {}, json)
        return
    assert source is not None
    sources = read_text(source)
    _same_lines(source, sources, reference, references)
    if not sources:
        raise InputError(f"{source}: holds no line to translate")
    from nmt.workflows.translator import load_with_search  # torch is not needed to score a file

    translator = load_with_search(
        model,
        overrides,
        device=device,
        precision=precision,
        beam=beam,
        length_penalty=length_penalty,
        max_length_ratio=max_length_ratio,
        batch_tokens=batch_tokens,
    )
    translations = [translation.text for translation in translator.translate(sources)]
    prediction = translator.predict(sources, references)
    _print(
        scores(translations, references),
        {"perplexity": prediction.perplexity, "token_accuracy": prediction.accuracy, "tokens": prediction.tokens},
        json,
    )


def read_text(path: Path) -> list[str]:
    """The lines of a text file, split as everywhere. Raises InputError where it cannot be read or is not UTF-8."""
    return list(read_lines(path))


def _same_lines(a: Path, a_lines: Sequence[str], b: Path, b_lines: Sequence[str]) -> None:
    if len(a_lines) != len(b_lines):
        raise InputError(
            f"{a} has {len(a_lines)} lines, but {b} has {len(b_lines)}: they must go together line by line"
        )


def _print(translation: Sequence[Score], forced: dict[str, float], json: bool) -> None:
    if json:
        tree: dict[str, Any] = {
            score.name: {"value": score.value, "signature": score.signature, "detail": score.detail}
            for score in translation
        }
        if forced:
            tree["teacher_forcing"] = forced
        print(json_format.dumps(tree, indent=1))
        return
    for score in translation:
        print(score.line())
    if forced:
        print(
            f"teacher forcing: perplexity {forced['perplexity']:.3f}, token accuracy {forced['token_accuracy']:.1f}% "
            f"of {forced['tokens']:,} tokens"
        )
