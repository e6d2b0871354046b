"""A summary of a run in words and counts, and of the parts of its model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.core.errors import InputError
from nmt.data.tokenizer import TokenizerPair
from nmt.experiment import Experiment
from nmt.extras.inspect.report.record import Part
from nmt.models.config import ModelConfig
from nmt.models.names import part_of
from nmt.models.rnn.config import RNNDecoderConfig, RNNEncoderConfig
from nmt.models.transformer.config import TransformerDecoderConfig, TransformerEncoderConfig


def facts_of(experiment: Experiment, parts: Sequence[Part], metrics: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Lists the facts of a run and its progress, by their names."""
    data = experiment.data
    facts = {"corpus": "; ".join(corpus.name for corpus in data.train_corpora)}
    if (languages := data.train_corpora[0].languages) is not None:
        facts["languages"] = " → ".join(languages)
    facts["model"] = model_in_words(experiment.model)
    counts = [part.parameters for part in parts if part.parameters is not None]
    if counts:
        facts["parameters"] = f"{sum(counts):,} parameters"
    facts["updates"] = f"{max(line['update'] for line in metrics):,} updates"
    if (best := _best(experiment, metrics)) is not None:
        facts["best in training"] = best
    return facts


def model_in_words(model: ModelConfig) -> str:
    """In a line."""
    encoder, decoder = (
        f"Transformer {name}" if side.kind == "transformer" else f"{side.cell.upper()} {name}"
        for name, side in (("encoder", model.encoder), ("decoder", model.decoder))
    )
    if model.attention.is_none:
        return f"{encoder}, {decoder}, no attention"
    return f"{encoder}, {decoder}, {model.attention.score.kind} attention by {model.attention.weights.kind}"


def parts_of(experiment: Experiment, run: Path) -> tuple[Part, ...]:
    """The parts of a run's model, those that it has, with their parameters where its vocabulary is there."""
    model = experiment.model
    counts: Mapping[str, int] | None
    vocabularies: tuple[str, ...] = ("", "")
    try:
        tokenizers = TokenizerPair.load(run)
    except InputError:
        counts = None
    else:
        counts = _counts(experiment, tokenizers)
        vocabularies = tuple(f"{each.size:,} subwords, " for each in (tokenizers.source, tokenizers.target))
    width = model.embedding.size
    shared = ("the source's, shared",) if model.embedding.tie == "all" else (f"{vocabularies[1]}width {width}",)
    tied = "the embedding's weights" if model.embedding.tie != "none" else "weights of its own"
    details = {
        "source embedding": (f"{vocabularies[0]}width {width}",),
        "encoder": _sizes(model.encoder),
        "attention": _attention(model),
        "target embedding": shared,
        "decoder": _sizes(model.decoder),
        "output": (tied,),
    }
    return tuple(
        Part(name, words, None if counts is None else counts[name]) for name, words in details.items() if words
    )


def _counts(experiment: Experiment, tokenizers: TokenizerPair) -> Mapping[str, int]:
    """Counts parameters of a model without memory; shared ones count once, where they come first."""
    from nmt.core.meta_init import on_meta_device
    from nmt.translator.loading import build_model

    with on_meta_device():
        model = build_model(experiment, tokenizers)
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        part = part_of(name)
        if part == "embedding":
            part = "source embedding" if name.startswith("encoder.") else "target embedding"
        counts[part] += parameter.numel()
    return counts


def _sizes(
    side: RNNEncoderConfig | RNNDecoderConfig | TransformerEncoderConfig | TransformerDecoderConfig,
) -> tuple[str, ...]:
    layers = f"{side.layers} layer{'s' if side.layers > 1 else ''}"
    if side.kind == "transformer":
        return ("Transformer", f"{layers}, width {side.size}", f"{side.heads} heads, feed-forward {side.feed_forward}")
    kind = "Elman" if side.cell == "elman" else side.cell.upper()
    if isinstance(side, RNNEncoderConfig):
        return (
            f"{kind}, {'both directions' if side.bidirectional else 'one direction'}",
            f"{layers}, width {side.size}",
        )
    feeding = "input feeding" if side.input_feeding else "no input feeding"
    return (f"{kind}, {feeding}", f"{layers}, width {side.size}")


def _attention(model: ModelConfig) -> tuple[str, ...]:
    if model.attention.is_none:
        return ()
    heads = len(model.head_names)
    head_count = f"{heads} head{'s' if heads > 1 else ''}"
    return (f"score {model.attention.score.kind}", f"weights {model.attention.weights.kind}", head_count)


def _best(experiment: Experiment, metrics: Sequence[Mapping[str, Any]]) -> str | None:
    """Finds the best validation by the metric that chooses the best checkpoint; None without validation."""
    config = experiment.training.validation
    best: Mapping[str, Any] | None = None
    for line in metrics:
        value = line.get(config.metric)
        if line["kind"] in ("valid", "average") and isinstance(value, (int, float)):
            best = line if best is None or config.is_better(value, best[config.metric]) else best
    if best is None:
        return None
    name, decimals = ("BLEU", 1) if config.metric == "bleu" else (config.metric, 3)
    made = f"average of {best['checkpoints']} at" if best["kind"] == "average" and "checkpoints" in best else "at"
    return f"{name} {best[config.metric]:.{decimals}f} {made} update {best['update']:,}"
