"""Scores of given translations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from nmt.alignment.formats import json_line
from nmt.core.files import refuse_overwriting
from nmt.translator.confidence import TranslationConfidence
from nmt.translator.scorer import PairScore
from nmt.translator.translator import Loader
from nmt.translator.windows import OutputFormat
from nmt.workflows.align import check_readable, windows
from nmt.workflows.output_files import text_file


def score(load: Loader, *, source: Path, target: Path, output: Path | None, format: OutputFormat) -> None:
    """Writes the score of each pair of lines under the model, one line for each, in order; None means stdout."""
    refuse_overwriting(output, source, target)
    check_readable(source, target)
    translator = load()
    with ExitStack() as stack:
        stream = stack.enter_context(text_file(output))
        for window in stack.enter_context(closing(windows(translator, source, target, description="score"))):
            first_line = window.first + 1
            scores = translator.score(window.sources, window.targets, first_line=first_line)
            confidences: Sequence[TranslationConfidence | None] = [None] * len(scores)
            if (estimator := translator.estimator) is not None:
                confidences = estimator.of_pairs(translator.trained, window.sources, window.targets, first_line)
            for number, (each, confidence) in enumerate(zip(scores, confidences, strict=True), first_line):
                line = _line(number, each, format, confidence)
                if estimator is not None and format != "jsonl":
                    line += "\t" if confidence is None else f"\t{confidence.right:.4f}"
                stream.write(line + "\n")


def _line(number: int, score: PairScore, format: OutputFormat, confidence: TranslationConfidence | None) -> str:
    is_blank = not score.tokens  # the pair is too long
    if format == "text":
        return "" if is_blank else f"{score.score:.6f}"
    if format == "tsv":
        return "\t\t" if is_blank else f"{score.score:.6f}\t{score.log_prob:.6f}\t{len(score.token_log_probs)}"
    figures = {name: None if is_blank else round(getattr(score, name), 6) for name in ("score", "log_prob")}
    log_probs = [round(each, 6) for each in score.token_log_probs]
    tree = {"line": number, **figures, "tokens": score.tokens, "token_log_probs": log_probs}
    return json_line(tree if confidence is None else {**tree, "confidence": confidence.tree()})
