"""Configurations derived from the user's: with source and target exchanged, and with additional training corpora."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.config.structure import AnyStructure, dump
from nmt.core.errors import InputError
from nmt.core.files import whole_file
from nmt.data.config import CorpusConfig, TrainingCorpusConfig
from nmt.data.corpus import read_blocks
from nmt.experiment import Experiment

MAX_WEIGHT = 1000.0


def _with(structure: AnyStructure, **changes: object) -> AnyStructure:
    return structure.model_copy(update=changes)


def exchanged(experiment: Experiment, run: Path, rewrite: Callable[[Path], Path]) -> Experiment:
    """Creates the experiment of the other direction. ``rewrite`` returns a copy of a file of pairs with its sides
    exchanged.

    Settings of this direction are left out: weights to start from, and links with the attention that they guide. Raises
    InputError if existing subwords are not the same for both sides.
    """
    data, training, embedding = experiment.data, experiment.training, experiment.model.embedding
    if data.subwords.model is not None and not data.subwords.joint:
        raise InputError(
            "data.subwords.model: has a vocabulary for each side; give a model of the other direction with --reverse"
        )

    def turned(corpus: CorpusConfig) -> CorpusConfig:
        languages = None if corpus.languages is None else corpus.languages[::-1]
        if corpus.pairs is not None:
            return _with(corpus, pairs=rewrite(corpus.pairs), languages=languages)
        return _with(corpus, source=corpus.target, target=corpus.source, languages=languages)

    if (vectors := embedding.pretrained) is not None:
        vectors = _with(vectors, source=vectors.target, target=vectors.source)
    train = tuple(_with(turned(corpus), links=None) for corpus in data.train_corpora)
    valid, test = (tuple(map(turned, corpora)) for corpora in (data.valid_corpora, data.test_corpora))
    data = _with(data, prepared=None, train=train, valid=valid, test=test)
    model = _with(experiment.model, embedding=_with(embedding, pretrained=vectors))
    training = _with(training, start_from=None, guided_attention=None)
    search = _with(experiment.search, to=None)
    return _with(experiment, run=str(run), data=data, model=model, training=training, search=search)


@dataclass(frozen=True)
class Synthetic:
    """A synthetic corpus: its name, its two files, and its number of pairs."""

    name: str
    source: Path
    target: Path
    pairs: int


@dataclass(frozen=True)
class Mixture:
    """The mixture of real and synthetic pairs in an epoch.

    Attributes:
        real: The factor of the weights of the real corpora.
        updates: The factor of the number of updates by which real pairs are seen as often as without the made ones.
    """

    real: float
    updates: float


def mixture(experiment: Experiment, corpora: Sequence[Synthetic], share: float) -> Mixture:
    """Computes the mixture of an epoch in which real pairs have at least this share; none of them is left out."""
    data = experiment.data
    real = sum(each.weight * sum(len(block.sources) for block in read_blocks(each)) for each in data.train_corpora)
    made = sum(corpus.pairs for corpus in corpora)
    highest = max(corpus.weight for corpus in data.train_corpora)
    factor = max(1.0, min(share / (1 - share) * made / real, MAX_WEIGHT / highest))
    return Mixture(factor, 1 + made / (factor * real))


def augmented(experiment: Experiment, run: Path, corpora: Sequence[Synthetic], mixed: Mixture) -> Experiment:
    """Creates the experiment with additional training corpora, the weights of its own corpora multiplied, and more
    updates."""
    data, training = experiment.data, experiment.training
    real = [_with(corpus, weight=float(f"{corpus.weight * mixed.real:.5g}")) for corpus in data.train_corpora]
    languages = data.train_corpora[0].languages
    made = [TrainingCorpusConfig(source=made.source, target=made.target, languages=languages) for made in corpora]
    filters = data.filters
    if any(corpus.name == "copies" for corpus in corpora):
        filters = _with(filters, identical=False)
    stopping = training.stopping
    if stopping.updates is not None:
        stopping = _with(stopping, updates=round(stopping.updates * mixed.updates))
    data = _with(data, prepared=None, train=(*real, *made), filters=filters)
    return _with(experiment, run=str(run), data=data, training=_with(training, stopping=stopping))


def write(experiment: Experiment, path: Path, comments: Sequence[str], notes: Mapping[str, str]) -> None:
    """Writes a complete configuration: ``comments`` above it, and ``notes`` after the lines that their keys end."""
    lines = dump(experiment).splitlines()
    for end, note in notes.items():
        lines = [f"{line}  # {note}" if line.endswith(end) else line for line in lines]
    with whole_file(path) as partial:
        partial.write_text("".join(f"{line}\n" for line in [*(f"# {each}" for each in comments), *lines]), "utf-8")
