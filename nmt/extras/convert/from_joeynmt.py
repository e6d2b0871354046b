"""A configuration of JoeyNMT 2 as one of ours (Kreutzer et al. 2019, "Joey NMT")."""

from __future__ import annotations

import math

from nmt.config.yaml_source import Document, describe
from nmt.extras.convert.imported_config import ImportedConfig, run_named

CELLS = {"lstm": "lstm", "gru": "gru"}
SCORES = {"bahdanau": "additive", "luong": "general"}
METRICS = {"loss": "loss", "ppl": "loss", "bleu": "bleu", "chrf": "chrf"}
ACTIVATIONS = {"relu": "relu", "gelu": "gelu"}


def is_joeynmt(document: Document) -> bool:
    """Tells if the sections are those of JoeyNMT."""
    tree = document.tree
    sections = [tree.get(name) for name in ("data", "training", "model")]
    return all(isinstance(section, dict) for section in sections) and "run" not in tree


def from_joeynmt(document: Document) -> ImportedConfig:
    """Converts the keys that have a counterpart. Raises InputError without a plain corpus, and for an encoder of
    another kind."""
    config = ImportedConfig("JoeyNMT 2", document)
    config.read("joeynmt_version")
    _names(config)
    _corpora(config)
    _subwords(config)
    _model(config)
    _training(config)
    _search(config)
    return config


def _names(config: ImportedConfig) -> None:
    folder = config.read("training", "model_dir")
    if folder is None:
        config.put("run", run_named(config.text("name")), "name")
    else:
        config.put("run", run_named(config.text("training", "model_dir")), "training", "model_dir")
    config.copy("seed", "training", "random_seed", default=42)


def _corpora(config: ImportedConfig) -> None:
    kind = config.read("data", "dataset_type", default="plain")
    if kind != "plain":
        raise config.fault(
            f"{kind!r} is read here in another form; write plain files, and set it to plain", "data", "dataset_type"
        )
    ends = {ours: config.text("data", theirs, "lang") for ours, theirs in (("source", "src"), ("target", "trg"))}
    config.text("data", "train")
    for part, name in (("train", "train"), ("valid", "dev"), ("test", "test")):
        if config.peek("data", name) is not None:
            prefix = config.text("data", name)
            for side, end in ends.items():
                config.put(f"data.{part}.{side}", f"{prefix}.{end}", "data", name)


def _subwords(config: ImportedConfig) -> None:
    source, target = (config.peek("data", side) for side in ("src", "trg"))
    level = source.get("level")
    kinds = {"word": "word", "char": "char", "bpe": "bpe"}
    if isinstance(level, str) and level in kinds:
        config.read("data", "src", "level")
        if target.get("level") == level:
            config.read("data", "trg", "level")
        sentencepiece = source.get("tokenizer_type") == "sentencepiece"
        if level == "bpe" and sentencepiece:
            config.read("data", "src", "tokenizer_type")
            kinds["bpe"] = config.read("data", "src", "tokenizer_cfg", "model_type", default="unigram")
        config.put("data.subwords.kind", kinds[level], "data", "src", "level", note="learnt anew from the corpus")
    shared = source.get("voc_file") is not None and source.get("voc_file") == target.get("voc_file")
    tied = config.peek("model", "tied_embeddings") is True
    config.put(
        "data.subwords.joint", shared or tied, "data", "src", "voc_file", note="one vocabulary, or one for each side"
    )
    if source.get("voc_limit") is not None and source.get("voc_limit") == target.get("voc_limit"):
        config.read("data", "trg", "voc_limit")
        config.copy("data.subwords.size", "data", "src", "voc_limit", note="with special tokens")
    if source.get("max_length") == target.get("max_length") != -1:
        config.read("data", "trg", "max_length")
        config.above_zero("data.filters.max_length", "data", "src", "max_length")


def _model(config: ImportedConfig) -> None:
    sizes = [config.peek("model", side, "embeddings", "embedding_dim") for side in ("encoder", "decoder")]
    if sizes[0] == sizes[1]:
        config.read("model", "encoder", "embeddings", "embedding_dim")
    config.copy("model.embedding.size", "model", "decoder", "embeddings", "embedding_dim", default=64)
    _ties(config)
    kinds = [_stack(config, side) for side in ("encoder", "decoder")]
    _dropout(config, transformer="transformer" in kinds)
    if kinds[1] == "rnn":
        # The state that the cell has just made asks, whatever the attention is called after.
        config.put("model.decoder.query", "current", "model", "decoder", "attention")
        config.copy("model.decoder.input_feeding", "model", "decoder", "input_feeding", default=True)
        config.choose("model.attention.score", SCORES, "model", "decoder", "attention", default="bahdanau")


def _ties(config: ImportedConfig) -> None:
    embeddings, softmax = (config.peek("model", key) is True for key in ("tied_embeddings", "tied_softmax"))
    if softmax:
        config.read("model", "tied_embeddings")
        config.read("model", "tied_softmax")
        config.put("model.embedding.tie", "all" if embeddings else "output", "model", "tied_softmax")
    elif not embeddings:
        config.read("model", "tied_embeddings")
        config.read("model", "tied_softmax")
        config.put("model.embedding.tie", "none", "model", "tied_softmax")


def _stack(config: ImportedConfig, side: str) -> str:
    """The kind of an encoder or decoder, of which all but dropout is set."""
    theirs, ours = ("model", side), f"model.{side}"
    kind = config.read(*theirs, "type", default="recurrent")
    kinds = {"recurrent": "rnn", "transformer": "transformer"}
    if not isinstance(kind, str) or kind not in kinds:
        raise config.fault(f"{describe(kind)} has no counterpart; recurrent and transformer have", *theirs, "type")
    config.put(f"{ours}.kind", kinds[kind], *theirs, "type")
    if kind == "recurrent":
        config.choose(f"{ours}.cell", CELLS, *theirs, "rnn_type", default="lstm")
        config.copy(f"{ours}.layers", *theirs, "num_layers", default=1)
        config.copy(f"{ours}.size", *theirs, "hidden_size")
        if side == "encoder":
            config.copy(f"{ours}.bidirectional", *theirs, "bidirectional", default=True)
        return "rnn"
    config.copy(f"{ours}.layers", *theirs, "num_layers")
    config.copy(f"{ours}.size", *theirs, "hidden_size")
    config.copy(f"{ours}.heads", *theirs, "num_heads")
    config.copy(f"{ours}.feed_forward", *theirs, "ff_size")
    config.copy(f"{ours}.norm", *theirs, "layer_norm", default="pre" if side == "encoder" else "post")
    config.copy(f"{ours}.scale_embedding", *theirs, "embeddings", "scale", default=False)
    if config.peek(*theirs, "activation") is not None:
        config.choose(f"{ours}.activation", ACTIVATIONS, *theirs, "activation")
    return "transformer"


def _dropout(config: ImportedConfig, *, transformer: bool) -> None:
    """The decoder's; where the encoder has another, that is not read."""
    place = ("model", "decoder", "dropout")
    rate = config.read(*place, default=0.0)
    for part in ("dropout", "embeddings.dropout"):
        inner = part.split(".")
        if config.peek("model", "encoder", *inner) == config.peek("model", "decoder", *inner):
            config.read("model", "encoder", *inner)
    if config.peek("model", "decoder", "embeddings", "dropout") is not None:
        config.copy("model.dropout.embedding", "model", "decoder", "embeddings", "dropout")
    else:
        config.put("model.dropout.embedding", rate, *place)
    config.put("model.dropout.layers", rate, *place)
    if transformer:
        config.put("model.dropout.attention", rate, *place)
        config.put("model.dropout.feed_forward", rate, *place)
    elif config.peek("model", "decoder", "hidden_dropout") == rate:
        config.read("model", "decoder", "hidden_dropout")


def _training(config: ImportedConfig) -> None:
    _batches(config)
    _optimizer(config)
    config.read("training", "clip_grad_norm")
    config.put("training.clip_norm", config.peek("training", "clip_grad_norm"), "training", "clip_grad_norm")
    config.copy("training.label_smoothing", "training", "label_smoothing", default=0.0)
    config.above_zero("training.stopping.epochs", "training", "epochs")
    config.above_zero("training.stopping.updates", "training", "updates")
    if config.peek("data", "dev") is not None:
        config.copy("training.validation.every", "training", "validation_freq", default=1000)
        config.choose("training.validation.metric", METRICS, "training", "early_stopping_metric", default="ppl")
    config.copy("training.log_every", "training", "logging_freq", default=100)
    config.above_zero("training.keep", "training", "keep_last_ckpts")


def _batches(config: ImportedConfig) -> None:
    place = ("training", "batch_size")
    if config.read("training", "batch_type", default="sentence") == "token":
        config.copy("training.batching.batch_tokens", *place, note="target tokens here, with padding")
    elif config.peek(*place) is not None:
        count = config.number(*place, default=1)
        longest = config.peek("data", "trg", "max_length")
        longest = longest if isinstance(longest, int) and longest > 0 else 200
        config.put("training.batching.max_sentences", count, *place)
        tokens = math.ceil(count) * (longest + 1)
        config.put("training.batching.batch_tokens", tokens, *place, note="sentences of the greatest length")
    config.copy("training.accumulate", "training", "batch_multiplier", default=1)
    config.choose(
        "training.normalization",
        {"batch": "sentences", "tokens": "tokens"},
        "training",
        "normalization",
        default="batch",
    )


def _optimizer(config: ImportedConfig) -> None:
    """Leaves other optimizers out with their learning rate, which would mean something else here."""
    kind = config.peek("training", "optimizer")
    if kind not in ("adam", "adamw"):
        if kind is None:
            config.lack("sgd", "training", "optimizer")
        return
    config.copy("training.optimizer.kind", "training", "optimizer")
    config.copy("training.optimizer.weight_decay", "training", "weight_decay", default=0.0)
    betas = config.read("training", "adam_betas", default=[0.9, 0.999])
    if not isinstance(betas, list) or len(betas) != 2:
        raise config.fault("expected a list of two numbers, such as [0.9, 0.999]", "training", "adam_betas")
    for key, beta in zip(("beta1", "beta2"), betas, strict=True):
        config.put(f"training.optimizer.{key}", beta, "training", "adam_betas")
    config.put("training.optimizer.epsilon", 1e-8, "training", "optimizer", note="PyTorch's default")
    _schedule(config)


def _schedule(config: ImportedConfig) -> None:
    rate, place = "training.optimizer.learning_rate", ("training", "scheduling")
    kind = config.peek(*place)
    if kind == "noam":
        warmup = config.number("training", "learning_rate_warmup", default=4000)
        factor = config.number("training", "learning_rate_factor", default=1)
        size = config.number("model", "encoder", "hidden_size", default=512)
        note = "learning_rate_factor / sqrt(hidden_size x learning_rate_warmup), the peak"
        config.put(rate, factor / math.sqrt(size * warmup), *place, note=note)
    else:
        config.copy(rate, "training", "learning_rate", default=3e-4)
    if kind in ("noam", "warmupinversesquareroot"):
        config.read(*place)
        config.put("training.schedule.kind", "inverse_sqrt", *place)
        config.copy("training.schedule.warmup", "training", "learning_rate_warmup", default=4000)
    elif kind == "plateau" and config.peek("data", "dev") is not None:
        config.read(*place)
        config.put("training.schedule.kind", "plateau", *place)
        config.copy("training.schedule.decay", "training", "decrease_factor", default=0.1)
        patience = int(config.number("training", "patience", default=10))
        note = "there the rate falls after one more"
        config.put("training.schedule.patience", patience + 1, "training", "patience", note=note)


def _search(config: ImportedConfig) -> None:
    config.copy("search.beam", "testing", "beam_size", default=1)
    config.copy("search.n_best", "testing", "n_best")
    name = "alpha" if config.peek("testing", "beam_alpha") is None else "beam_alpha"
    alpha = config.read("testing", name, default=-1)
    config.put("search.length_penalty", 0.0 if alpha == -1 else alpha, "testing", name)
    config.above_zero("search.max_length", "testing", "max_output_length")
    config.above_zero("search.min_length", "testing", "min_output_length")
    config.above_zero("search.no_repeat", "testing", "no_repeat_ngram_size")
