"""A summary of a run in words and counts, and of the parts of its model."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from platform import platform, python_version
from typing import Any

from nmt.config.structure import dump
from nmt.core import cpu
from nmt.core.errors import InputError
from nmt.core.version import VERSION
from nmt.data.tokenizer import TokenizerPair
from nmt.experiment import FILE, Experiment
from nmt.extras.pages.report.record import ModelPart, Origin
from nmt.models.config import AnyDecoder, AnyEncoder, EmbeddingsEncoderConfig, ModelConfig
from nmt.models.names import part_of
from nmt.models.rnn.config import RNNEncoderConfig
from nmt.models.rnn.readers_config import ContextSourceConfig
from nmt.training import run_directory
from nmt.training.validation import deciding_metric, rank


def facts_of(experiment: Experiment, parts: Sequence[ModelPart], lines: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Lists the facts of a run and its progress, by their names."""
    data = experiment.data
    corpora = {"corpus": "; ".join(corpus.name for corpus in data.train_corpora)}
    facts = corpora if data.imported is None else {"imported": data.imported.name}
    directions = dict.fromkeys(corpus.languages for corpus in data.train_corpora)
    directions = {data.language_names: None} if None in directions else directions
    if languages := ", ".join(" → ".join(each) for each in directions if each is not None):
        facts["languages"] = languages
    facts["model"] = model_in_words(experiment.model)
    counts = [part.parameters for part in parts if part.parameters is not None]
    if counts:
        facts["parameters"] = f"{sum(counts):,}"
    if lines:  # an imported model has no corpus
        facts["updates"] = f"{max(line['update'] for line in lines):,}"
    if (best := _best(experiment, lines)) is not None:
        facts["best in training"] = best
    return facts


def model_in_words(model: ModelConfig) -> str:
    """Describes encoder and decoder of a model on one line."""
    encoder, decoder = (
        f"{side.kind.capitalize()} {name}" if side.kind != "rnn" else f"{side.cell.upper()} {name}"
        for name, side in (("encoder", model.encoder), ("decoder", model.decoder))
    )
    if model.attention.is_none:
        reader = model.decoder.kind if isinstance(model.decoder, ContextSourceConfig) else "no attention"
        return f"{encoder}, {decoder}, {reader}"
    return f"{encoder}, {decoder}, {model.attention.score.kind} attention by {model.attention.weights.kind}"


def parts_of(experiment: Experiment, run: Path) -> tuple[ModelPart, ...]:
    """Lists the parts of a run's model, with the numbers of their parameters if its vocabulary exists."""
    model = experiment.model
    counts: Mapping[str, int] = {}
    vocabularies: tuple[str, ...] = ("", "")
    with suppress(InputError):
        tokenizers = TokenizerPair.load(run)
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
    return tuple(ModelPart(name, words, counts[name] if counts else None) for name, words in details.items() if words)


def _counts(experiment: Experiment, tokenizers: TokenizerPair) -> Mapping[str, int]:
    """Counts the parameters of a model without allocating them; a shared one counts once, where it occurs first."""
    from nmt.core.meta_init import on_meta_device
    from nmt.translator.loading import build_model

    with on_meta_device():
        model = build_model(experiment.model, tokenizers)
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        part = part_of(name)
        if part == "embedding":
            part = "source embedding" if name.startswith("encoder.") else "target embedding"
        counts[part] += parameter.numel()
    return counts


def _sizes(side: AnyEncoder | AnyDecoder) -> tuple[str, ...]:
    if isinstance(side, EmbeddingsEncoderConfig):
        return (side.words,)
    layers = f"{side.layers} layer{'s' if side.layers > 1 else ''}"
    if side.kind == "transformer":
        return ("Transformer", f"{layers}, width {side.size}", f"{side.heads} heads, feed-forward {side.feed_forward}")
    kind = "Elman" if side.cell == "elman" else side.cell.upper()
    if isinstance(side, RNNEncoderConfig):
        directions = "both directions" if side.bidirectional else "one direction"
        return (f"{kind}, {directions}", f"{layers}, width {side.size}")
    feeding = "input feeding" if side.input_feeding else "no input feeding"
    start = (f"start {side.start}",) if side.start != "projected" else ()
    context = (f"context {side.context.enters}",) if side.context.enters != "nothing" else ()
    return (f"{kind}, {feeding}", f"{layers}, width {side.size}", *start, *context)


def _attention(model: ModelConfig) -> tuple[str, ...]:
    heads = len(model.head_names)
    head_count = f"{heads} head{'s' if heads > 1 else ''}"
    if isinstance(model.decoder, ContextSourceConfig):
        return (model.decoder.kind, head_count) if heads else (model.decoder.kind,)
    if model.attention.is_none:
        return ()
    return (f"score {model.attention.score.kind}", f"weights {model.attention.weights.kind}", head_count)


def _best(experiment: Experiment, metrics: Sequence[Mapping[str, Any]]) -> str | None:
    """Finds the best validation by the metric that chooses the best checkpoint; returns None without validation."""
    config = experiment.training.validation
    measured = [row for row in metrics if row["kind"] != "train" and isinstance(row.get(config.metric), int | float)]
    if not measured:
        return None
    best = max(measured, key=lambda line: rank(line, config.metric))
    metric = deciding_metric(best, config.metric)
    name, decimals = {"bleu": ("BLEU", 1), "chrf": ("chrF", 1)}.get(metric, (metric, 3))
    made = f"average of {best['checkpoints']} at" if best["kind"] == "average" and "checkpoints" in best else "at"
    search = f" ({search_in_words(config.beam)})" if metric != "loss" else ""
    return f"{name} {best[metric]:.{decimals}f}{search} {made} update {best['update']:,}"


def search_in_words(beam: int) -> str:
    """Describes the width of a search."""
    return "greedy" if beam == 1 else f"beam {beam}"


def _training(checkpoint: Path) -> dict[str, str]:
    """Describes the date, duration and machine of the training until a checkpoint."""
    state = run_directory.read_state(checkpoint)
    position = state.get("position")
    seconds = position.get("seconds") if isinstance(position, dict) else None
    duration = f", {seconds / 60:.1f} min in all" if isinstance(seconds, (int, float)) else ""
    written = datetime.fromtimestamp((checkpoint / run_directory.STATE).stat().st_mtime)
    details = {"trained until": f"{written:%Y-%m-%d %H:%M}{duration}"}
    if "machine" in state:  # runs of older releases do not have it
        details["trained on"] = str(state["machine"])
    return {**details, "written by": f"nmt {state.get('nmt', 'of an older release')}"}


def origin_of(experiment: Experiment, folder: Path, checkpoint: Path | None) -> Origin:
    """Collects the date, duration, machine and command of a run's training, and the system on which the report is
    written."""
    details = {"seed": str(experiment.seed), "command": f"nmt train {shlex.quote(str(folder / FILE))}"}
    if experiment.data.imported is not None:
        details = {"command": f"nmt import hf, of {experiment.data.imported.name}"}
    if (newest := run_directory.latest_checkpoint(folder)) is not None:
        with suppress(InputError):  # the figures of a damaged checkpoint are shown nevertheless
            details |= _training(newest)
    if checkpoint is not None:
        details["checkpoint"] = checkpoint.resolve().name
    packages = ", ".join(f"{name} {version(name)}" for name in ("torch", "sentencepiece", "sacrebleu"))
    details["report"] = f"{datetime.now():%Y-%m-%d %H:%M} by nmt {VERSION}, {packages}, Python {python_version()}"
    details["report on"] = f"{platform()}, {cpu.name()}"
    search = experiment.search
    words = "sampling" if search.sampling or search.consensus else search_in_words(search.beam)
    heads = sum(fnmatchcase(name, experiment.alignment.heads) for name in experiment.model.head_names)
    links = experiment.alignment.explanation(heads)
    return Origin(details, dump(experiment), words, links, experiment.training.label_smoothing)
