"""The training section of a configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from nmt.config.file_path import FilePath
from nmt.config.structure import Structure
from nmt.data.batching import BatchingConfig
from nmt.training.feed import AnyFeed, TeacherForcingConfig
from nmt.training.schedule import AnySchedule, Constant

Count = Annotated[int, Field(gt=0)]
Positive = Annotated[float, Field(gt=0.0)]
Momentum = Annotated[float, Field(ge=0.0, lt=1.0)]


class OptimizerConfig(Structure):
    """Adam (Kingma & Ba 2015), or with decoupled weight decay AdamW (Loshchilov & Hutter 2019); or Muon (Jordan et al.
    2024) for the matrices of the layers, and AdamW for embeddings, output layer and vectors."""

    kind: Literal["adam", "adamw", "muon"] = "adamw"
    learning_rate: Positive = 1e-3
    """Peak of the learning rate; the schedule multiplies it."""
    beta1: Momentum = 0.9
    """Decay of the gradient's moving average (Kingma & Ba 2015, algorithm 1)."""
    beta2: Momentum = 0.98
    """Decay of the squared gradient's moving average; 0.98 as in Vaswani et al. 2017, section 5.3."""
    epsilon: Positive = 1e-9
    """Number that is added to the square root of the squared gradient's average, by which an update is divided."""
    momentum: Momentum = 0.95
    """Decay of the gradient's moving average in Muon."""
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    """Weight decay of matrices; it does not apply to biases and other vectors."""
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Factor of the learning rate from each layer to the one below it, in encoder and decoder, with the embeddings
    below the bottom layer (discriminative fine-tuning, Howard & Ruder 2018, section 3.2, who use 1 / 2.6)."""


class StoppingConfig(Structure):
    """The end of training: the first limit that is reached."""

    updates: Count | None = None
    """Steps of the optimizer; null means no limit."""
    epochs: Count | None = None
    """Passes over the training corpora; null means no limit."""
    minutes: Positive | None = None
    """Minutes of training, over all starts and including validations."""
    patience: Count | None = None
    """Validations in a row without a better ``training.validation.metric``; a validation that equals the best, with a
    lower loss, is not counted."""

    @model_validator(mode="after")
    def _ends(self) -> StoppingConfig:
        if self.updates is None and self.epochs is None and self.minutes is None and self.patience is None:
            raise ValueError("one of updates, epochs, minutes or patience must be given, or training never ends")
        return self


class ValidationConfig(Structure):
    """Measurements on the valid corpus."""

    every: Count = 500
    """Updates between validations; the last update has one too."""
    first: Annotated[int, Field(ge=0)] | None = None
    """One more validation after this update, to see early that a model learns; 0 means before the first update, to
    measure the model that training starts from."""
    metric: Literal["loss", "bleu", "chrf"] = "bleu"
    """The metric of the best checkpoint: the lowest loss, or the highest BLEU or chrF. If several are equal, the lower
    loss decides. As long as BLEU is 0, which is always so for lines of fewer than four words, chrF is compared."""
    bleu: bool = True
    """Translate the valid corpus."""
    beam: Count = 1
    """Beam of that translation."""

    @model_validator(mode="after")
    def _metric_is_measured(self) -> ValidationConfig:
        if self.metric != "loss" and not self.bleu:
            raise ValueError(f"metric: {self.metric} needs bleu: true; or use metric: loss")
        return self


class RiskConfig(Structure):
    """Minimum risk training (Shen et al. 2016): minimises the expected cost of the model's own hypotheses."""

    samples: Annotated[int, Field(ge=2)] = 8
    """Hypotheses drawn for each sentence and update; the paper draws 100."""
    temperature: Positive = 1.0
    """Number that the logits of the draws are divided by. Below 1, hypotheses are closer to the most probable one and
    more alike."""
    alpha: Positive = 0.005
    """Sharpness with which Q prefers the more probable hypotheses; the default is the paper's value. The gradient is
    proportional to it."""
    reward: Literal["bleu", "chrf"] = "bleu"
    """The reward of a hypothesis against the reference, from 0 to 1: smoothed sentence BLEU, or chrF."""
    include_reference: bool = True
    """Count the reference among the hypotheses, as in the paper."""
    max_length_ratio: Positive = 2.0
    """A hypothesis has at most this many tokens for each source token, and ten more, as in translation."""
    cross_entropy: Annotated[float, Field(ge=0.0)] = 0.0
    """Weight of the usual loss, added to the risk (Edunov et al. 2018, section 3). It is 0 by default, because the
    reference among the hypotheses already keeps the model close to it. The gradient of the risk is proportional to
    alpha, so a larger weight dominates the risk."""


class WaitConfig(Structure):
    """Training for simultaneous translation (Elbayad et al. 2020): the first subword of target word t is predicted from
    the first k + t - 1 source words, with another k for each sentence and update."""

    least: Count = 1
    """Smallest k."""
    most: Count | None = None
    """Largest k; null means the number of source words, with which the whole sentence is read first."""

    @model_validator(mode="after")
    def _most_is_more(self) -> WaitConfig:
        if self.most is not None and self.most < self.least:
            raise ValueError(f"most: {self.most} is below least: {self.least}; exchange them")
        return self


class GuidedAttentionConfig(Structure):
    """Attention that is also trained on given links (Garg et al. 2019). See ``nmt.models.guidance``."""

    weight: Positive = 0.05
    """Weight of the attention loss, which is the mean over the target subwords that have links; the paper's lambda."""
    heads: str = "*"
    """Pattern of the guided heads, as in ``alignment``; their mean is trained on the links."""


class LowRankConfig(Structure):
    """Low-rank adapters (Hu et al. 2021): matrices W become W + alpha / rank · B A, and only A and B are trained."""

    rank: Count = 8
    """Rows of A and columns of B."""
    alpha: Positive = 128.0
    """alpha, which divided by ``rank`` is the factor of B A."""
    rate: Positive = 4.0
    """Factor of the learning rate: adapters need a higher one than the weights themselves."""
    on: tuple[str, ...] = ("*embedding*", "*attention.*", "*feed_forward.*")
    """Matrices that get adapters: shell patterns over names of weights."""


class TrainingConfig(Structure):
    """The training of a model."""

    start_from: FilePath | None = None
    """Run directory, checkpoint folder or config whose weights a new run starts from, for fine-tuning; null means
    random weights. The optimizer starts anew. With another vocabulary, pieces with the same spelling keep their
    rows."""
    freeze: tuple[str, ...] = ()
    """Weights that are not trained: shell patterns of their names, such as ``encoder.*``."""
    lora: LowRankConfig | None = None
    """Train low-rank adapters instead of the weights; null means that the weights are trained."""
    batching: BatchingConfig = BatchingConfig()
    """Grouping of the pairs into batches."""
    accumulate: Count = 1
    """Number of batches in an update; their gradients are added."""
    normalization: Literal["tokens", "sentences"] = "tokens"
    """Unit that the loss of an update is a mean over: its target tokens, or its sentences, each with the sum over its
    tokens."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """The optimizer."""
    schedule: AnySchedule = Constant()
    """Schedule of the learning rate: the factor of the peak at each update."""
    clip_norm: Positive | None = 1.0
    """Largest norm of the gradient (Pascanu et al. 2013); null means no limit."""
    feed: AnyFeed = TeacherForcingConfig()
    """Token that the decoder reads as the previous word."""
    label_smoothing: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1
    """Share of the target probability that is spread over all subwords instead of the gold one (Szegedy et al. 2016,
    section 7)."""
    recompute: bool = False
    """Gradient checkpointing: compute the activations inside a layer again in the backward pass, which takes less
    memory and more time."""
    r_drop: Annotated[float, Field(ge=0.0)] = 0.0
    """Weight of the divergence between two passes with different dropout (alpha of Liang et al. 2021, who use 5); 0:
    one pass. See ``nmt.models.r_drop``."""
    guided_attention: GuidedAttentionConfig | None = None
    """Train attention on the links of data.train as well; null means that it is not."""
    coverage_loss: Annotated[float, Field(ge=0.0)] = 0.0
    """Weight of the penalty for attending twice to a source word (lambda of See et al. 2017, who use 1, for the last
    updates of training); 0: none. With guided_attention it is on the guided heads. See ``nmt.models.coverage_loss``."""
    wait: WaitConfig | None = None
    """Train for simultaneous translation; null means that each word is predicted from the whole source sentence, as
    validations do in any case."""
    risk: RiskConfig | None = None
    """Minimum risk training instead of the usual loss, for a trained model; null means the usual loss."""
    ema: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    """Decay of an exponential moving average of the weights, which is validated and used; null means no average."""
    stopping: StoppingConfig = StoppingConfig(patience=10)
    """The end of training."""
    validation: ValidationConfig = ValidationConfig()
    """Measurements of the model while it is trained."""
    average: Annotated[int, Field(ge=2)] | None = None
    """At the end, average the checkpoints of this many last validations; the average becomes the best checkpoint if its
    metric is best. null means no average."""
    keep: Count = 3
    """Number of newest checkpoints to keep, in addition to the best one."""
    save_every: Count = 500
    """Updates between checkpoints; each validation also writes one."""
    log_every: Count = 20
    """Updates between lines of metrics.jsonl."""
    snapshots: Annotated[int, Field(ge=0, le=1000)] = 0
    """Number of first pairs of the valid corpus whose attention each validation saves; 0 means none. See
    ``nmt.training.run_directory``."""
    tensorboard: bool = False
    """Write TensorBoard events beside metrics.jsonl (needs the extra ``tensorboard``)."""

    @model_validator(mode="after")
    def _keys_agree(self) -> TrainingConfig:
        if self.schedule.needs_horizon and self.stopping.updates is None:
            raise ValueError(f"schedule: {self.schedule.kind} falls until the last update: set stopping.updates, too")
        if self.lora is not None and self.start_from is None:
            raise ValueError("lora adapts a model that is trained: name it with start_from, or leave lora out")
        if self.lora is not None and (self.freeze or self.ema is not None):
            key = "freeze" if self.freeze else "ema"
            raise ValueError(f"lora trains its adapters alone, and does not go with {key}; leave one of them out")
        if self.risk is not None and self.feed.kind != "teacher_forcing":
            raise ValueError(
                f"feed: {self.feed.kind} says what is read in place of a gold word, where risk reads whole hypotheses; "
                "use feed: teacher_forcing, or leave risk out"
            )
        if self.risk is not None and self.r_drop > 0.0:
            raise ValueError("r_drop compares readouts of a gold word, and risk hypotheses; leave one of them out")
        if self.risk is not None and self.guided_attention is not None:
            raise ValueError("guided_attention has links for gold words, and risk reads hypotheses; leave one out")
        if self.risk is not None and self.coverage_loss > 0.0:
            raise ValueError("coverage_loss reads attention to gold words, and risk hypotheses; leave one out")
        if self.wait is not None:
            refused = {"risk": self.risk is not None, "r_drop": self.r_drop > 0.0}
            refused |= {"guided_attention": self.guided_attention is not None}
            refused |= {f"feed: {self.feed.kind}": self.feed.kind != "teacher_forcing"}
            for key, is_set in refused.items():
                if is_set:
                    raise ValueError(f"{key} needs whole sentences, of which wait hides parts; leave one of them out")
        if self.average is not None and self.keep < self.average:
            raise ValueError(f"average: {self.average} needs keep of {self.average} or more, and it is {self.keep}")
        return self
