"""The configuration of a run as one frozen tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from nmt.alignment.extract import Extraction, Grow
from nmt.attention.reinforce import HardAttention, ReinforceOptions
from nmt.config.file_path import expand
from nmt.config.structure import Structure, differences, dump, load_document, validate
from nmt.config.yaml_source import write
from nmt.core.errors import InputError
from nmt.core.files import replace_file
from nmt.data.config import DataConfig
from nmt.models.config import ModelConfig
from nmt.models.names import matching
from nmt.search.config import SearchConfig
from nmt.training.config import TrainingConfig

FILE = "config.yaml"
"""The resolved configuration in a run directory."""

HORIZON = "training.stopping.updates"

_MAY_CHANGE = (
    "run",
    "search",
    "alignment",
    "data.prepared",
    "data.workers",
    "training.stopping",
    "training.average",
    "training.recompute",
    "training.keep",
    "training.save_every",
    "training.log_every",
    "training.snapshots",
    "training.tensorboard",
)
"""Keys that may change when a run is resumed, because the training of the weights does not depend on them."""


class Experiment(Structure):
    """One run: its corpora, its model, its training and its search for translations."""

    run: Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$"), AfterValidator(lambda run: str(expand(Path(run))))]
    """The run directory."""
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    """Seed of all random draws: initial weights, the order of pairs, dropout, subwords."""
    data: DataConfig
    """Corpora and their preparation."""
    model: ModelConfig = ModelConfig()
    """Encoder, decoder and the attention between them."""
    training: TrainingConfig = TrainingConfig()
    """Objective, optimizer, schedule and end of the training."""
    search: SearchConfig = SearchConfig()
    """Search for translations."""
    alignment: Extraction = Grow()
    """Extraction of word links from a soft alignment."""

    @property
    def language_names(self) -> tuple[str, str] | None:
        """Source and target language of the first training corpus into ``search.to``; None if they are unknown."""
        corpora = [each for each in self.data.train_corpora if each.target_language == self.search.to]
        return corpora[0].language_names if corpora else self.data.language_names

    @model_validator(mode="after")
    def _sections_agree(self) -> Experiment:
        if self.model.embedding.tie == "all" and not self.data.subwords.joint:
            raise ValueError("model.embedding.tie: all needs one vocabulary for both: set data.subwords.joint: true")
        if self.model.copying is not None:
            self._check_copying()
        stopping, schedule = self.training.stopping, self.training.schedule
        if not self.data.valid_corpora and self.data.imported is None:
            if stopping.updates is None and stopping.epochs is None and stopping.minutes is None:
                raise ValueError("without data.valid, training.stopping needs updates, epochs or minutes")
            if schedule.kind == "plateau":
                raise ValueError("without data.valid there is no metric for training.schedule: plateau to follow")
        if self.data.old_domain is not None and not (self.data.valid_corpora and self.training.validation.bleu):
            raise ValueError("data.old_domain is for validations: set data.valid and training.validation.bleu")
        weights, feed = self.model.attention.weights, self.training.feed
        if weights.marginalizes and self.training.r_drop > 0.0:
            raise ValueError(
                f"training.r_drop compares two readouts of a word, where model.attention.weights: {weights.kind} with "
                "training: marginal has one for each position; leave it out"
            )
        if weights.marginalizes and feed.kind != "teacher_forcing":
            raise ValueError(
                f"training.feed: {feed.kind} needs a guess at each step, where model.attention.weights: {weights.kind} "
                "with training: marginal has one for each position; use training.feed: teacher_forcing"
            )
        self._check_taught_attention()
        if self.training.wait is not None:
            self._check_wait()
        if self.training.snapshots and not (self.data.valid_corpora and self.model.head_names):
            lacking = "there is none" if not self.data.valid_corpora else "model.attention.score: none has none"
            raise ValueError(f"training.snapshots shows attention to data.valid, and {lacking}; leave it out")
        if self.training.risk is not None and (weights.marginalizes or self._draws is not None):
            drawn = self._draws or f"model.attention.weights: {weights.kind}"
            raise ValueError(f"training.risk reads hypotheses, and {drawn} gold words; leave training.risk out")
        return self

    def _check_copying(self) -> None:
        """Raise ValueError where source tokens cannot be copied."""
        if not self.data.subwords.joint:
            raise ValueError("model.copying needs one vocabulary for both sides; set data.subwords.joint: true")
        for key, is_set in (("r_drop", self.training.r_drop > 0.0), ("risk", self.training.risk is not None)):
            if is_set:
                raise ValueError(
                    f"training.{key} learns from the output layer, which model.copying mixes; leave one of them out"
                )

    def _check_wait(self) -> None:
        """Raise ValueError where a prediction can see source words that training hides."""
        encoder, decoder = self.model.encoder, self.model.decoder
        if self.model.attention.is_none or self.model.attention.weights.kind == "glimpse":
            what = "model.attention.score: none" if self.model.attention.is_none else "model.attention.weights: glimpse"
            raise ValueError(f"training.wait hides words from attention, which {what} does not allow; use another")
        needed = {
            "encoder.bidirectional": (getattr(encoder, "bidirectional", False), "false"),
            "encoder.causal": (not getattr(encoder, "causal", True), "true"),
            "decoder.start": (getattr(decoder, "start", "zeros") != "zeros", "zeros"),
            "decoder.context": (
                getattr(getattr(decoder, "context", None), "enters", "nothing") != "nothing",
                "nothing",
            ),
        }
        for key, (sees_all, value) in needed.items():
            if sees_all:
                raise ValueError(f"training.wait hides later words, which model.{key} would show; set it to {value}")

    @property
    def _draws(self) -> str | None:
        """Returns the setting by which training draws positions and rewards them, or None."""
        decoder, weights = self.model.decoder, self.model.attention.weights
        if isinstance(decoder, ReinforceOptions):
            return f"model.decoder.kind: {decoder.kind}"
        return f"model.attention.weights: {weights.kind}" if isinstance(weights, HardAttention) else None

    def _check_taught_attention(self) -> None:
        """Raise ValueError if attention cannot learn from links, or from a penalty on its weights."""
        guided, attention = self.training.guided_attention, self.model.attention
        if guided is None and self.training.coverage_loss == 0.0:
            return
        key = "coverage_loss" if guided is None else "guided_attention"
        if not self.model.head_names:
            raise ValueError(f"training.{key} teaches attention, and model.attention.score is none; leave {key} out")
        if attention.weights.chooses or self._draws is not None:
            drawn = self._draws or f"model.attention.weights: {attention.weights.kind}"
            raise ValueError(f"training.{key} teaches weights of all positions, and {drawn} draws one; leave {key} out")
        if guided is None:
            return
        try:
            matching(self.model.head_names, guided.heads)
        except ValueError as error:
            raise ValueError(f"training.guided_attention.heads: {error}") from None
        if all(corpus.links is None for corpus in self.data.train_corpora):
            raise ValueError(
                "training.guided_attention learns from links, and no corpus of data.train has any; give one a file of "
                "them, links: FILE, or leave guided_attention out"
            )

    @property
    def folder(self) -> Path:
        """Path of the run directory."""
        return Path(self.run)

    def to(self, language: str | None) -> Experiment:
        """Returns the experiment with another target language, which is named as in ``data`` or, as on the cards of
        OPUS-MT's models, ``>>fra<<``; None means the current one."""
        if language is None:
            return self
        bare = language.removeprefix(">>").removesuffix("<<")
        known = bare if language == f">>{bare}<<" and bare in self.data.target_languages else language
        return self.model_copy(update={"search": self.search.model_copy(update={"to": known})})


def load(path: Path, overrides: Sequence[str] = (), *, with_corpora: bool = False) -> Experiment:
    """Load an experiment from a YAML file and ``dotted.key=value`` overrides. Raises InputError with the place.

    With ``with_corpora``, files of ``data`` are searched beside the YAML file, too, and a missing one is an
    InputError."""
    from nmt.data.corpus_paths import find_beside, refuse_missing

    document = load_document(path, overrides)
    if with_corpora:
        find_beside(document, path)
    experiment = validate(Experiment, document)
    if with_corpora:
        refuse_missing(document)
    return experiment.to(experiment.search.to)


def save(experiment: Experiment, path: Path) -> None:
    """Write the complete configuration, so that ``load`` gives the same experiment."""
    replace_file(path, dump(experiment))


def is_complete(path: Path) -> bool:
    """Returns True for a configuration that `save` has written, possibly in another release."""
    try:
        tree = load_document(path).tree
    except InputError:
        return False
    return tree.keys() >= Experiment.model_fields.keys() and write(tree) == path.read_text(encoding="utf-8")


def decides(key: str) -> bool:
    """False for a key of the model on which learning depends, but not what trained weights compute."""
    return not {"dropout", "pretrained", "entropy", *ReinforceOptions.model_fields} & {*key.split(".")}


def conflicts(old: Experiment, new: Experiment, *, extend: bool = False) -> list[str]:
    """Returns the changed keys, dotted, because of which ``new`` cannot resume a run of ``old``. If a schedule depends
    on the number of updates, the number may change only with ``extend``."""
    fixed = () if extend or not new.training.schedule.needs_horizon else (HORIZON,)
    return [
        key
        for key in differences(old, new)
        if key in fixed or not any(key == name or key.startswith(f"{name}.") for name in _MAY_CHANGE)
    ]
