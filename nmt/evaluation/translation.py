"""Scores of a translation: BLEU, chrF and TER as sacreBLEU computes them, each with the signature that reproduces it.

The figures are those of the `sacrebleu` command with its own defaults (Post 2018, "A Call for Clarity in Reporting BLEU
Scores"): same preparation of the lines, same settings, same signature. Nothing is computed here.

    BLEU  modified n-gram precision up to 4 with a brevity penalty, Papineni et al. 2002; higher is better, 0 to 100
    chrF2 character n-gram F-score up to 6, beta 2, Popović 2015; higher is better, 0 to 100
    TER   edits (with shifts of word blocks) per 100 reference words, Snover et al. 2006; lower is better, may pass 100
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from nmt import plugins
from nmt.core import log
from nmt.core.errors import InputError
from nmt.data.bleu_tokenizer import bleu_tokenizer, sentence_bleu

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

METRICS = ("bleu", "chrf", "ter")
"""The metrics by name, in the order in which they are reported."""


@dataclass(frozen=True)
class MetricScore:
    """A corpus-level figure.

    `name` is sacreBLEU's ("BLEU", "chrF2", "TER"), `value` is not rounded, `signature` names every setting and the
    version, and `detail` is what sacreBLEU prints after the figure (n-gram precisions and lengths for BLEU, else "").
    """

    name: str
    value: float
    signature: str
    detail: str = ""

    def line(self, decimals: int = 1) -> str:
        """Formats the line that `sacrebleu --format text` prints for this score (before it pads names to one width)."""
        return f"{self.name}|{self.signature} = {self.value:.{decimals}f} {self.detail}".rstrip()


Score: TypeAlias = MetricScore
"""The name that plug-ins may import."""

ScoreFunction: TypeAlias = Callable[[Sequence[str], Sequence[Sequence[str]]], MetricScore]
"""A function of hypotheses and sets of references."""


def scores(
    hypotheses: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]], *, lowercase: bool = False,
    tokenize: str | None = None, metrics: Sequence[str] = METRICS,
) -> tuple[MetricScore, ...]:  # fmt: skip
    """Scores translations against one reference each, or against several sets of references.

    `references` holds one string per hypothesis, or several such lists, one per set of references. White space at the
    end of a line does not count, as in the command, so lines that still end in CR LF score the same.

    `lowercase` makes BLEU and chrF ignore case (`sacrebleu --lowercase --chrf-lowercase`); TER ignores it always, as
    its reference implementation does. `tokenize` is BLEU's tokenizer; None means the one for the script of the
    references (see `nmt.data.bleu_tokenizer`). If that is one of Chinese or Japanese, TER counts characters as well,
    whatever `tokenize` is. The scores come in the order of `metrics`.

    Raises InputError when the numbers of lines differ or are 0, or when a metric or tokenizer is unknown
    or cannot be used here.
    """
    lines = prepare(hypotheses, references)
    usual = bleu_tokenizer(lines.references)
    tokenizers = dict.fromkeys(metrics, tokenize or usual) | {"ter": usual}
    return tuple(metric(name, lowercase=lowercase, tokenize=tokenizers[name])(*lines) for name in metrics)


def as_tree(results: Sequence[MetricScore]) -> dict[str, dict[str, float | str]]:
    """Returns a tree for JSON: for each metric name its `value` (not rounded), `signature` and `detail`."""
    return {each.name: {"value": each.value, "signature": each.signature, "detail": each.detail} for each in results}


def as_json(results: Sequence[MetricScore]) -> str:
    """Formats `as_tree` as one JSON object on one line."""
    return json.dumps(as_tree(results), ensure_ascii=False)


class Lines(NamedTuple):
    """Translations and references in the form that sacreBLEU's metrics take."""

    hypotheses: list[str]
    references: list[list[str]]
    """References, with one list for each set of references."""


def prepare(hypotheses: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]]) -> Lines:
    """Prepares the lines that `scores` scores, without white space at their ends.

    Raises InputError when the numbers of lines differ or are 0.
    """
    single = not references or isinstance(references[0], str)
    streams: list[Sequence[str]] = [references] if single else list(references)  # type: ignore[list-item]
    for number, stream in enumerate(streams, 1):
        if len(stream) != len(hypotheses):
            which = "references" if len(streams) == 1 else f"references in set {number}"
            raise InputError(f"{len(hypotheses)} hypotheses but {len(stream)} {which}: give one line for each")
    if not hypotheses:
        raise InputError("there are no hypotheses to score: the hypothesis and reference files are empty")
    return Lines([line.rstrip() for line in hypotheses], [[line.rstrip() for line in stream] for stream in streams])


def warn_of_bleu(references: Sequence[str], *, tokenize: str | None = None) -> None:
    """Warns of references for which BLEU says little: more than a fifth of their text is in lines with fewer than the
    four words that BLEU needs, or in lines that its tokenizer does not split into words, so that "words" are longer
    than in any language with spaces. `tokenize` is the argument of `scores`."""
    usual = bleu_tokenizer([references])
    name, other = (usual, "char") if tokenize in (None, usual) else (tokenize, usual)
    words = [len(sentence_bleu(name).tokenizer(line.rstrip()).split()) for line in references]
    bad = [line for line, number in zip(references, words, strict=True) if number < 4 or len(line) > 16 * number]
    if sum(map(len, bad)) > 0.2 * sum(map(len, references)):
        lines = f"in {len(bad):,} of {len(references):,} references its tokenizer {name} finds fewer or none"
        log.warning(f"BLEU counts runs of four words, and {lines}: rely on chrF2, or try --tokenize {other}")


def metric(name: str, *, lowercase: bool = False, tokenize: str = "13a") -> ScoreFunction:
    """The function of hypotheses and sets of references that is one of `METRICS`, with the options of `scores`, or the
    metric of a plug-in. Raises InputError for a metric or tokenizer that is unknown or cannot be used here."""
    if name not in METRICS and plugins.has("metrics", name):
        score: ScoreFunction = plugins.find("metrics", name, "--metric")
        return score
    return partial(_score, sacrebleu_metric(name, lowercase=lowercase, tokenize=tokenize))


def sacrebleu_metric(name: str, *, lowercase: bool = False, tokenize: str = "13a") -> Metric:
    """Creates sacreBLEU's own object for one of `METRICS`; the options are those of `scores`.

    Raises InputError for a metric or tokenizer that is unknown or cannot be used here.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    match name:
        case "bleu":
            if tokenize not in BLEU.TOKENIZERS:
                names = ", ".join(sorted(BLEU.TOKENIZERS))
                raise InputError(f"--tokenize {tokenize}: is not a tokenizer for BLEU; choose one of {names}")
            try:
                return BLEU(lowercase=lowercase, tokenize=tokenize)
            except (ImportError, RuntimeError, OSError, AssertionError) as error:
                # some tokenizers need an extra package or download a model, and sacreBLEU says so over several lines
                reason = " ".join(str(error).split())
                raise InputError(f"BLEU tokenizer {tokenize!r} cannot be used here: {reason}") from error
        case "chrf":
            return CHRF(lowercase=lowercase)
        case "ter":
            # otherwise whole clauses are words to it, as to BLEU
            is_asian = tokenize in ("zh", "ja-mecab", "char")
            return TER(normalized=is_asian, asian_support=is_asian)
    raise InputError(f"unknown metric {name!r}: choose from {', '.join([*METRICS, *plugins.entries('metrics')])}")


def _score(metric: Metric, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> MetricScore:
    result = metric.corpus_score(hypotheses, references)
    # "BLEU = 33.1 64.3/41.0/27.5/18.9 (BP = ...)": the detail follows the figure.
    detail = result.format(width=1).partition(" = ")[2].partition(" ")[2]
    return MetricScore(result.name, float(result.score), metric.get_signature().format(), detail)
