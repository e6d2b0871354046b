"""A configuration of OpenNMT-py 3 as one of ours (Klein et al. 2017, "OpenNMT")."""

from __future__ import annotations

import math

from nmt.config.yaml_source import Document, Tree, describe
from nmt.extras.convert.imported_config import ImportedConfig, run_named

SCORES = {"dot": "dot", "general": "general", "mlp": "additive"}
TELLING = ("save_model", "save_data", "src_vocab", "encoder_type", "decoder_type", "train_steps")
"""Keys that mark such a configuration; one is enough."""


def is_opennmt(document: Document) -> bool:
    """Tells if the corpora are named as OpenNMT-py names them."""
    tree = document.tree
    data = tree.get("data")
    corpora = data.values() if isinstance(data, dict) else ()
    has_corpus = any(isinstance(each, dict) and "path_src" in each for each in corpora)
    return "run" not in tree and has_corpus and any(key in tree for key in TELLING)


def from_opennmt(document: Document) -> ImportedConfig:
    """Converts the keys that have a counterpart. Raises InputError without a pair of files, and for another kind of
    model."""
    config = ImportedConfig("OpenNMT-py 3", document)
    if config.peek("save_model") is None:
        config.put("run", "runs/model", "save_model")
    else:
        config.put("run", run_named(config.text("save_model")), "save_model")
    config.above_zero("seed", "seed")
    _corpora(config)
    _subwords(config)
    _model(config)
    _training(config)
    config.copy("search.beam", "beam_size")
    config.copy("search.n_best", "n_best")
    return config


def _corpora(config: ImportedConfig) -> None:
    files = {
        name: {"source": config.text("data", name, "path_src"), "target": config.text("data", name, "path_tgt")}
        for name in config.peek("data")
    }
    training = [each for name, each in files.items() if name != "valid"]
    if not training:
        raise config.fault("has no corpus to train on beside valid; name one", "data")
    config.put("data.train", training, "data")
    for side, file in files.get("valid", {}).items():
        config.put(f"data.valid.{side}", file, "data", "valid")


def _subwords(config: ImportedConfig) -> None:
    transforms = {
        str(each)
        for name in config.peek("data")
        if isinstance(listed := config.peek("data", name, "transforms") or config.peek("transforms"), list)
        for each in listed
    }
    if not transforms & {"sentencepiece", "bpe", "onmt_tokenize"}:
        config.put("data.subwords.kind", "word", "transforms", note="tokens are what stands between white space")
    elif "bpe" in transforms:
        config.put("data.subwords.kind", "bpe", "transforms", note="learnt anew from the corpus")
    share, place = config.read("share_vocab", default=False), ("share_vocab",)
    config.put("data.subwords.joint", share, *place)
    sizes = [config.peek(f"{side}_vocab_size") for side in ("src", "tgt")]
    if sizes[0] == sizes[1]:
        config.read("tgt_vocab_size")
        config.copy("data.subwords.size", "src_vocab_size", default=32768, note="with special tokens")
    lengths = [config.peek(f"{side}_seq_length") for side in ("src", "tgt")]
    if lengths[0] == lengths[1] and "filtertoolong" in transforms:
        config.read("tgt_seq_length")
        config.copy("data.filters.max_length", "src_seq_length", default=192)


def _model(config: ImportedConfig) -> None:
    if config.read("model_task", default="seq2seq") != "seq2seq":
        raise config.fault("is not a translation; only seq2seq has a counterpart", "model_task")
    config.put("model.embedding.size", _embedding(config), "word_vec_size")
    _ties(config)
    encoder = _kind(config, "encoder", {"rnn": "rnn", "brnn": "rnn", "transformer": "transformer"})
    decoder = _kind(config, "decoder", {"rnn": "rnn", "transformer": "transformer"})
    for side, kind in (("encoder", encoder), ("decoder", decoder)):
        _stack(config, side, kind)
    if decoder == "rnn":
        config.put("model.decoder.query", "current", "global_attention")
        feeding = config.read("input_feed", default=1)
        config.put("model.decoder.input_feeding", bool(feeding), "input_feed")
        config.choose("model.attention.score", SCORES, "global_attention", default="general")
        functions = {"softmax": "softmax", "sparsemax": "sparsemax"}
        config.choose("model.attention.weights", functions, "global_attention_function", default="softmax")
    _dropout(config, transformer="transformer" in (encoder, decoder))


def _ties(config: ImportedConfig) -> None:
    shared, output = (config.peek(key) is True for key in ("share_embeddings", "share_decoder_embeddings"))
    if output or not shared:
        config.read("share_embeddings")
        config.read("share_decoder_embeddings")
        tie = "all" if shared and output else "output" if output else "none"
        config.put("model.embedding.tie", tie, "share_decoder_embeddings")


def _embedding(config: ImportedConfig) -> Tree:
    common = config.read("word_vec_size", default=-1)
    if common != -1:
        return common
    sides = [config.peek(f"{side}_word_vec_size") for side in ("src", "tgt")]
    if sides[0] == sides[1]:
        config.read("src_word_vec_size")
    return config.read("tgt_word_vec_size", default=500)


def _kind(config: ImportedConfig, side: str, kinds: dict[str, str]) -> str:
    kind = config.read(f"{side}_type", default="rnn")
    if not isinstance(kind, str) or kind not in kinds:
        raise config.fault(f"{describe(kind)} has no counterpart; {', '.join(kinds)} have", f"{side}_type")
    config.put(f"model.{side}.kind", kinds[kind], f"{side}_type")
    return kinds[kind]


def _stack(config: ImportedConfig, side: str, kind: str) -> None:
    ours, short = f"model.{side}", side[:3]
    _either(config, f"{ours}.layers", "layers", f"{short}_layers", 2)
    both = config.peek("encoder_type") == "brnn" and side == "encoder"
    place = "hidden_size" if config.peek("hidden_size") not in (None, -1) else f"{short}_hid_size"
    config.read("hidden_size")
    size = int(config.number(place, default=500))
    if kind == "rnn":
        config.put(f"{ours}.size", size // 2 if both else size, place, note="both directions together" if both else "")
        config.choose(f"{ours}.cell", {"lstm": "lstm", "gru": "gru"}, "rnn_type", default="lstm")
        if side == "encoder":
            config.put(f"{ours}.bidirectional", both, "encoder_type")
        return
    config.put(f"{ours}.size", size, place)
    config.copy(f"{ours}.heads", "heads", default=8)
    config.copy(f"{ours}.feed_forward", "transformer_ff", default=2048)
    config.choose(f"{ours}.activation", {"relu": "relu", "gelu": "gelu"}, "pos_ffn_activation_fn", default="relu")
    if config.peek("max_relative_positions") == -1:
        config.read("max_relative_positions")
        config.put(f"{ours}.positions", "rotary", "max_relative_positions")
    elif config.peek("position_encoding") is True:
        config.read("position_encoding")
        config.put(f"{ours}.positions", "sinusoidal", "position_encoding")
    else:
        config.lack("no positions", "position_encoding")


def _either(config: ImportedConfig, key: str, common: str, own: str, default: Tree) -> None:
    """A size that both sides share where it is given, not -1, and that each has for itself where it is not."""
    if config.read(common, default=-1) != -1:
        config.copy(key, common)
    else:
        config.copy(key, own, default=default)


def _one(config: ImportedConfig, place: str, default: Tree) -> Tree:
    """The only entry of a list that may change in training; None, and unread, where it does."""
    found = config.peek(place)
    if found is None or not isinstance(found, list):
        return config.read(place, default=default)
    return config.read(place)[0] if len(found) == 1 else None


def _dropout(config: ImportedConfig, *, transformer: bool) -> None:
    rate = _one(config, "dropout", 0.3)
    if rate is not None:
        config.put("model.dropout.embedding", rate if transformer else 0.0, "dropout")
        config.put("model.dropout.layers", rate, "dropout")
    if transformer:
        if rate is not None:
            config.put("model.dropout.feed_forward", rate, "dropout")
        attention = _one(config, "attention_dropout", 0.1)
        if attention is not None:
            config.put("model.dropout.attention", attention, "attention_dropout")


def _training(config: ImportedConfig) -> None:
    _batches(config)
    _optimizer(config)
    norm = config.read("max_grad_norm", default=5)
    config.put("training.clip_norm", None if norm == 0 else norm, "max_grad_norm")
    config.copy("training.label_smoothing", "label_smoothing", default=0.0)
    if config.peek("average_decay") not in (None, 0):
        decay = config.number("average_decay", default=0)
        config.put("training.ema", 1 - decay, "average_decay", note="1 - average_decay")
    else:
        config.read("average_decay")
    config.copy("training.stopping.updates", "train_steps", default=100_000)
    config.above_zero("training.stopping.patience", "early_stopping")
    if config.peek("data", "valid") is not None:
        config.copy("training.validation.every", "valid_steps", default=10_000)
    config.above_zero("training.keep", "keep_checkpoint")
    config.copy("training.save_every", "save_checkpoint_steps", default=5000)
    config.copy("training.log_every", "report_every", default=50)


def _batches(config: ImportedConfig) -> None:
    if config.read("batch_type", default="sents") == "tokens":
        config.copy("training.batching.batch_tokens", "batch_size", default=64, note="target tokens here, with padding")
    else:
        count = int(config.number("batch_size", default=64))
        longest = config.peek("tgt_seq_length")
        longest = longest if isinstance(longest, int) and longest > 0 else 200
        config.put("training.batching.max_sentences", count, "batch_size")
        tokens = count * (longest + 1)
        config.put("training.batching.batch_tokens", tokens, "batch_size", note="sentences of the greatest length")
    count = _one(config, "accum_count", 1)
    if count is not None:
        config.put("training.accumulate", count, "accum_count")
    config.choose(
        "training.normalization", {"sents": "sentences", "tokens": "tokens"}, "normalization", default="sents"
    )


def _optimizer(config: ImportedConfig) -> None:
    """Leaves other optimizers out with their learning rate, which would mean something else here."""
    kind = config.peek("optim")
    if kind not in ("adam", "adamw"):
        if kind is None:
            config.lack("sgd", "optim")
        return
    config.copy("training.optimizer.kind", "optim")
    _schedule(config)
    config.copy("training.optimizer.beta1", "adam_beta1", default=0.9)
    config.copy("training.optimizer.beta2", "adam_beta2", default=0.999)
    config.copy("training.optimizer.weight_decay", "weight_decay", default=0.0)


def _schedule(config: ImportedConfig) -> None:
    rate, key = config.number("learning_rate", default=1.0), "training.optimizer.learning_rate"
    if config.peek("decay_method") == "noam":
        config.read("decay_method")
        warmup = config.number("warmup_steps", default=4000)
        sizes = ("hidden_size", "dec_hid_size")
        place = next((each for each in sizes if config.peek(each) not in (None, -1)), sizes[-1])
        size = config.number(place, default=500)
        config.put(key, rate / math.sqrt(size * warmup), "learning_rate", note="/ sqrt(hidden_size x warmup), the peak")
        config.put("training.schedule.kind", "inverse_sqrt", "decay_method")
        config.copy("training.schedule.warmup", "warmup_steps", default=4000)
    else:
        config.put(key, rate, "learning_rate")
