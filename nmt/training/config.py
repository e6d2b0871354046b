"""The training section of a configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nmt.config.structure import Structure
from nmt.data.batching import BatchingConfig
from nmt.data.config import FilePath
from nmt.training.feed import AnyFeed, TeacherForcingConfig
from nmt.training.schedule import AnySchedule, Constant

Count = Annotated[int, Field(gt=0)]
Positive = Annotated[float, Field(gt=0.0)]
Momentum = Annotated[float, Field(ge=0.0, lt=1.0)]

HIGHER_IS_BETTER = ("accuracy", "bleu", "chrf")
"""Of what a validation measures; the rest is better the lower it is."""


class OptimizerConfig(Structure):
    """Adam (Kingma & Ba 2015), or with decoupled weight decay AdamW (Loshchilov & Hutter 2019)."""

    kind: Literal["adam", "adamw"] = "adamw"
    learning_rate: Positive = 1e-3
    """The peak: the schedule multiplies it."""
    beta1: Momentum = 0.9
    """Decay of the gradient's moving average (Kingma & Ba 2015, algorithm 1)."""
    beta2: Momentum = 0.98
    """Decay of the squared gradient's moving average; 0.98 as in Vaswani et al. 2017, section 5.3."""
    epsilon: Positive = 1e-9
    """Is added to the root of the squared gradient's average, which an update is divided by."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    """On matrices; biases and other vectors have none."""
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """The rate of a layer is that of the layer above it times this (discriminative fine-tuning, Howard & Ruder 2018,
    section 3.2, who take 1 / 2.6), encoder and decoder each from its top; embeddings are below the bottom layer."""


class StoppingConfig(Structure):
    """When training ends: at the first of these that is reached."""

    updates: Count | None = None
    """Steps of the optimizer; null: no limit."""
    epochs: Count | None = None
    """Passes over the training corpora; null: no limit."""
    minutes: Positive | None = None
    """Of training, all starts and validations together."""
    patience: Count | None = None
    """Validations in a row without a better ``training.validation.metric``."""

    @model_validator(mode="after")
    def _ends(self) -> StoppingConfig:
        if self.updates is None and self.epochs is None and self.minutes is None and self.patience is None:
            raise ValueError("one of updates, epochs, minutes or patience must be given, or training never ends")
        return self


class ValidationConfig(Structure):
    """What is measured on the valid corpus."""

    every: Count = 500
    """Updates between validations; the last update has one too."""
    metric: Literal["loss", "bleu"] = "bleu"
    """What decides which checkpoint is the best: the lowest loss, or the highest BLEU."""
    bleu: bool = True
    """Whether to translate the valid corpus."""
    beam: Count = 1
    """Beam of that translation."""

    @model_validator(mode="after")
    def _metric_is_measured(self) -> ValidationConfig:
        if self.metric == "bleu" and not self.bleu:
            raise ValueError("metric: bleu needs bleu: true; or use metric: loss")
        return self

    def is_better(self, value: float, than: float) -> bool:
        """Whether one value of the metric is better than another."""
        return value > than if self.metric in HIGHER_IS_BETTER else value < than


class RiskConfig(Structure):
    """Minimum risk training (Shen et al. 2016): what is minimised is the expected cost of hypotheses that the model
    itself makes. See ``nmt.training.more.risk``."""

    samples: Annotated[int, Field(ge=2)] = 8
    """Hypotheses drawn for each sentence and update; the paper draws 100."""
    temperature: Positive = 1.0
    """Of the draws: logits are divided by it. Below 1 hypotheses are nearer to the most probable one and more alike."""
    alpha: Positive = 0.005
    """How sharply Q prefers the more probable of the hypotheses; the paper's value. The gradient is in proportion to
    it."""
    reward: Literal["bleu", "chrf"] = "bleu"
    """What a hypothesis earns against the reference, from 0 to 1: smoothed sentence BLEU, or chrF."""
    include_reference: bool = True
    """Whether the reference is one of the hypotheses, as in the paper."""
    max_length_ratio: Positive = 2.0
    """A hypothesis has at most this many tokens for each source token, and ten more, as in translation."""
    cross_entropy: Annotated[float, Field(ge=0.0)] = 0.0
    """Weight of the usual loss, added to the risk (Edunov et al. 2018, section 3). None unless it is asked for: the
    reference among the hypotheses already holds the model to it; and since the risk's gradient has the size of alpha,
    a weight that is not as small leaves little of the risk."""


class GuidedAttentionConfig(Structure):
    """Attention that learns from given links as well (Garg et al. 2019). See ``nmt.models.guidance``."""

    weight: Positive = 0.05
    """Of its loss, the mean over the target subwords that have links; the paper's lambda."""
    heads: str = "*"
    """The heads that learn, a shell pattern over their names, as in ``alignment``; their mean is what the links say."""


class TrainingConfig(Structure):
    """How a model is trained."""

    start_from: FilePath | None = None
    """Fine-tuning: a run directory, checkpoint folder or config whose weights a new run begins with; null: random ones.
    The optimizer begins afresh."""
    batching: BatchingConfig = BatchingConfig()
    """How pairs are put together."""
    accumulate: Count = 1
    """Batches for each update, whose gradients are added up."""
    normalization: Literal["tokens", "sentences"] = "tokens"
    """What the loss of an update is the mean over: all its target tokens, or all its sentences, of which each then
    counts with the sum over its tokens."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """What makes a step of a gradient."""
    schedule: AnySchedule = Constant()
    """What the peak learning rate is multiplied by at each update."""
    clip_norm: Positive | None = 1.0
    """The gradient's norm is at most this (Pascanu et al. 2013); null: no limit."""
    feed: AnyFeed = TeacherForcingConfig()
    """What the decoder reads as the last word."""
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1
    """Share of the probability that is asked for all subwords alike instead of the gold one (Szegedy et al. 2016,
    section 7)."""
    recompute: bool = False
    """Gradient checkpointing: what a layer holds inside is computed anew in the backward pass, which takes less memory
    and more time."""
    r_drop: Annotated[float, Field(ge=0.0)] = 0.0
    """Weight of the disagreement between two passes under two draws of dropout (alpha of Liang et al. 2021, who take
    5); 0: one pass. See ``nmt.models.likelihood``."""
    guided_attention: GuidedAttentionConfig | None = None
    """Attention that learns from the links of ``data.train`` as well; null: it does not."""
    risk: RiskConfig | None = None
    """Minimum risk training in place of the usual loss; null: none. For a model that has been trained already."""
    ema: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """Decay of an exponential moving average of the weights, which is what is validated and used; null: none."""
    stopping: StoppingConfig = StoppingConfig(patience=10)
    """When training ends."""
    validation: ValidationConfig = ValidationConfig()
    """How the model is measured while it is trained."""
    average: Annotated[int, Field(ge=2)] | None = None
    """At the end, the checkpoints of this many last validations are averaged, and the average becomes the best if its
    metric is; null: none."""
    keep: Count = 3
    """Newest checkpoints that stay, beside the best one."""
    save_every: Count = 500
    """Updates between checkpoints; there is one at each validation as well."""
    log_every: Count = 20
    """Updates between lines of metrics.jsonl."""
    snapshots: Annotated[int, Field(ge=0, le=1000)] = 0
    """Pairs of the valid corpus, its first ones, of which each validation notes the attention; 0: none. See
    ``nmt.training.folders``."""
    tensorboard: bool = False
    """Whether to write TensorBoard events beside metrics.jsonl (needs the extra ``tensorboard``)."""

    @model_validator(mode="after")
    def _keys_agree(self) -> TrainingConfig:
        if self.schedule.needs_horizon and self.stopping.updates is None:
            raise ValueError(
                f"schedule: {self.schedule.kind} falls until the last update: set stopping.updates as well"
            )
        if self.risk is not None and self.feed.kind != "teacher_forcing":
            raise ValueError(
                f"feed: {self.feed.kind} says what is read in place of a gold word, where risk reads whole hypotheses; "
                "use feed: teacher_forcing, or leave risk out"
            )
        if self.risk is not None and self.r_drop > 0.0:
            raise ValueError(
                "r_drop compares two readouts of a gold word, where risk compares hypotheses; leave one of them out"
            )
        if self.risk is not None and self.guided_attention is not None:
            raise ValueError(
                "guided_attention has links for gold words, where risk learns from hypotheses; leave one of them out"
            )
        if self.average is not None and self.keep < self.average:
            raise ValueError(f"average: {self.average} needs keep of {self.average} or more, and it is {self.keep}")
        return self
