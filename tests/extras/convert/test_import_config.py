"""Configurations of other toolkits as ours: what each key becomes, and that none is lost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.config.yaml_source import parse_document
from nmt.experiment import Experiment, load
from tests.workflows.runs import Command, Done, in_process

JOEY_RECURRENT = """\
name: toy
joeynmt_version: "2.0.0"
data:
    train: "toy/train"
    dev: "toy/dev"
    test: "toy/test"
    sample_train_subset: -1
    src: {lang: de, max_length: 30, lowercase: False, level: bpe, voc_limit: 4000, voc_file: toy/vocab.txt}
    trg: {lang: en, max_length: 30, lowercase: True, level: bpe, voc_limit: 4000, voc_file: toy/vocab.txt}
testing:
    beam_size: 4
    beam_alpha: 0.6
    max_output_length: -1
    sacrebleu_cfg: {tokenize: 13a}
training:
    random_seed: 7
    optimizer: adam
    learning_rate: 0.005
    learning_rate_min: 0.0001
    clip_grad_norm: 2.5
    batch_size: 10
    batch_type: sentence
    batch_multiplier: 2
    scheduling: plateau
    patience: 5
    decrease_factor: 0.5
    epochs: 3
    validation_freq: 100
    early_stopping_metric: bleu
    model_dir: models/toy_model
    shuffle: True
model:
    tied_softmax: False
    encoder:
        type: recurrent
        rnn_type: gru
        embeddings: {embedding_dim: 16, scale: False}
        hidden_size: 30
        bidirectional: True
        dropout: 0.2
        num_layers: 3
    decoder:
        type: recurrent
        rnn_type: gru
        embeddings: {embedding_dim: 16, scale: False}
        hidden_size: 40
        dropout: 0.2
        hidden_dropout: 0.2
        num_layers: 2
        input_feeding: False
        init_hidden: last
        attention: luong
"""

JOEY_TRANSFORMER = """\
name: my_trans
data:
    train: toy/train
    src: {lang: de, level: word}
    trg: {lang: en, level: word}
testing: {max_output_length: 90, min_output_length: 2, no_repeat_ngram_size: 4}
training:
    optimizer: adam
    adam_betas: [0.9, 0.98]
    learning_rate_factor: 0.5
    learning_rate_warmup: 1000
    scheduling: noam
    normalization: tokens
    batch_size: 2500
    batch_type: token
    updates: 5000
    label_smoothing: 0.1
model:
    tied_embeddings: True
    tied_softmax: True
    encoder: {type: transformer, num_layers: 3, num_heads: 4, hidden_size: 64, ff_size: 128, dropout: 0.1,
              layer_norm: post, embeddings: {embedding_dim: 64, dropout: 0.05, scale: True}}
    decoder: {type: transformer, num_layers: 2, num_heads: 4, hidden_size: 64, ff_size: 128, dropout: 0.1,
              layer_norm: post, embeddings: {embedding_dim: 64, dropout: 0.05, scale: True}}
"""

OPEN_TRANSFORMER = """\
save_data: run/example
data:
    europarl-v7.de-en: {path_src: a.en, path_tgt: a.de, transforms: [sentencepiece, filtertoolong], weight: 19}
    news: {path_src: b.en, path_tgt: b.de, transforms: [sentencepiece, filtertoolong], weight: 3}
    valid: {path_src: v.en, path_tgt: v.de, transforms: [sentencepiece]}
src_subword_model: wmt.model
tgt_subword_model: wmt.model
src_seq_length: 150
tgt_seq_length: 150
src_vocab: run/vocab
src_vocab_size: 32000
tgt_vocab_size: 32000
share_vocab: True
save_model: run/model
seed: 1234
keep_checkpoint: 50
train_steps: 50000
valid_steps: 2000
early_stopping: 4
average_decay: 0.0005
batch_type: "tokens"
batch_size: 4096
accum_count: [3]
accum_steps: [0]
optim: "adam"
learning_rate: 2
warmup_steps: 6000
decay_method: "noam"
adam_beta2: 0.998
max_grad_norm: 0
label_smoothing: 0.1
normalization: "tokens"
encoder_type: transformer
decoder_type: transformer
enc_layers: 6
dec_layers: 5
heads: 8
hidden_size: 512
word_vec_size: 512
transformer_ff: 2048
dropout_steps: [0]
dropout: [0.1]
attention_dropout: [0.2]
share_decoder_embeddings: true
share_embeddings: true
position_encoding: true
"""

OPEN_RECURRENT = """\
data:
    corpus_1: {path_src: a.en, path_tgt: a.de}
save_model: run/rnn
encoder_type: brnn
decoder_type: rnn
layers: 1
hidden_size: 600
rnn_type: GRU
global_attention: mlp
global_attention_function: sparsemax
optim: adagrad
learning_rate: 0.15
batch_size: 32
train_steps: 100
"""

ALL = {
    "joey-recurrent": JOEY_RECURRENT,
    "joey-transformer": JOEY_TRANSFORMER,
    "open-transformer": OPEN_TRANSFORMER,
    "open-recurrent": OPEN_RECURRENT,
}


@pytest.fixture
def nmt(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`nmt import` with the toolkit that the file is of, JoeyNMT where nothing shows it."""
    monkeypatch.chdir(tmp_path)

    def run(file: str | Path, *options: str | Path) -> Done:
        is_opennmt = Path(file).is_file() and "path_src" in Path(file).read_text(encoding="utf-8")
        return in_process(capsys, "import", "opennmt" if is_opennmt else "joeynmt")(file, *options)

    return run


def imported(nmt: Command, text: str) -> tuple[Experiment, str]:
    """What is made of a configuration, and what is said on stderr."""
    Path("theirs.yaml").write_text(text, encoding="utf-8")
    done = nmt("theirs.yaml", "-o", "ours.yaml")
    assert (done.code, done.stdout) == (0, ""), done.stderr
    return load(Path("ours.yaml")), done.stderr


def values(experiment: Experiment, tree: dict[str, Any]) -> None:
    """Compares the keys of the tree, dotted, with the experiment."""
    for key, value in tree.items():
        found: Any = experiment
        for step in key.split("."):
            found = getattr(found, step)
        assert found == value, key


def test_a_recurrent_model_of_joeynmt(nmt: Command) -> None:
    experiment, _ = imported(nmt, JOEY_RECURRENT)
    values(
        experiment,
        {
            "run": "runs/toy_model", "seed": 7,
            "data.train.source": Path("toy/train.de"), "data.train.target": Path("toy/train.en"),
            "data.valid.source": Path("toy/dev.de"), "data.test.target": Path("toy/test.en"),
            "data.subwords.kind": "bpe", "data.subwords.size": 4000, "data.subwords.joint": True,
            "data.filters.max_length": 30,
            "model.embedding.size": 16, "model.embedding.tie": "none",
            "model.encoder.kind": "rnn", "model.encoder.cell": "gru", "model.encoder.size": 30,
            "model.encoder.layers": 3, "model.encoder.bidirectional": True,
            "model.decoder.cell": "gru", "model.decoder.size": 40, "model.decoder.layers": 2,
            "model.decoder.query": "current", "model.decoder.input_feeding": False,
            "model.attention.score.kind": "general",
            "model.dropout.embedding": 0.2, "model.dropout.layers": 0.2,
            "training.optimizer.kind": "adam", "training.optimizer.learning_rate": 0.005,
            "training.optimizer.beta2": 0.999, "training.optimizer.epsilon": 1e-8,
            "training.schedule.kind": "plateau", "training.schedule.decay": 0.5, "training.schedule.patience": 6,
            "training.clip_norm": 2.5, "training.label_smoothing": 0.0, "training.normalization": "sentences",
            "training.batching.max_sentences": 10, "training.batching.batch_tokens": 310, "training.accumulate": 2,
            "training.stopping.epochs": 3, "training.stopping.updates": None, "training.stopping.patience": None,
            "training.validation.every": 100, "training.validation.metric": "bleu",
            "search.beam": 4, "search.length_penalty": 0.6, "search.max_length": None,
        },
    )  # fmt: skip


def test_a_transformer_of_joeynmt(nmt: Command) -> None:
    experiment, _ = imported(nmt, JOEY_TRANSFORMER)
    values(
        experiment,
        {
            "run": "runs/my_trans", "seed": 42, "data.valid": None,
            "data.subwords.kind": "word", "data.subwords.joint": True, "model.embedding.tie": "all",
            "model.encoder.kind": "transformer", "model.encoder.layers": 3, "model.encoder.heads": 4,
            "model.encoder.size": 64, "model.encoder.feed_forward": 128, "model.encoder.norm": "post",
            "model.encoder.scale_embedding": True, "model.decoder.scale_embedding": True,
            "model.decoder.layers": 2, "model.dropout.embedding": 0.05, "model.dropout.attention": 0.1,
            "model.dropout.feed_forward": 0.1, "training.clip_norm": None, "training.batching.batch_tokens": 2500,
            "training.normalization": "tokens", "training.optimizer.beta2": 0.98, "training.schedule.warmup": 1000,
            "search.beam": 1, "search.length_penalty": 0.0,
            "search.max_length": 90, "search.min_length": 2, "search.no_repeat": 4,
        },
    )  # fmt: skip
    for step in (1, 500, 1000, 5000):  # Vaswani et al. 2017, equation 3, times the factor
        rate = 0.5 * 64**-0.5 * min(step**-0.5, step * 1000**-1.5)
        training = experiment.training
        ours = training.optimizer.learning_rate * training.schedule.factor(step, last=5000, plateaus=0)
        assert math.isclose(ours, rate, rel_tol=1e-9)


def test_what_a_transformer_of_joeynmt_has_by_default(nmt: Command) -> None:
    """As joeynmt 2.3.0: builders pass no layer_norm and no scale."""
    text = JOEY_TRANSFORMER.replace("layer_norm: post, ", "").replace(", scale: True", "")
    experiment, _ = imported(nmt, text.replace("    learning_rate_warmup: 1000\n", ""))
    values(experiment, {"training.schedule.warmup": 4000})
    for side, norm in (("encoder", "pre"), ("decoder", "post")):
        values(experiment, {f"model.{side}.norm": norm, f"model.{side}.scale_embedding": False})


def test_no_positions_of_opennmt_are_told(nmt: Command) -> None:
    _, said = imported(nmt, OPEN_TRANSFORMER.replace("position_encoding: true\n", ""))
    assert "position_encoding (no positions, the default of OpenNMT-py" in said


def test_a_transformer_of_opennmt(nmt: Command) -> None:
    experiment, _ = imported(nmt, OPEN_TRANSFORMER)
    assert [each.source for each in experiment.data.train_corpora] == [Path("a.en"), Path("b.en")]
    values(
        experiment,
        {
            "run": "runs/model", "seed": 1234, "data.valid.target": Path("v.de"),
            "data.subwords.size": 32000, "data.subwords.joint": True, "data.filters.max_length": 150,
            "model.encoder.kind": "transformer", "model.encoder.layers": 6, "model.decoder.layers": 5,
            "model.decoder.size": 512, "model.decoder.heads": 8, "model.decoder.feed_forward": 2048,
            "model.embedding.size": 512, "model.embedding.tie": "all", "model.dropout.layers": 0.1,
            "model.dropout.attention": 0.2, "training.batching.batch_tokens": 4096, "training.accumulate": 3,
            "training.optimizer.kind": "adam", "training.optimizer.beta2": 0.998, "training.clip_norm": None,
            "training.schedule.kind": "inverse_sqrt", "training.schedule.warmup": 6000,
            "training.normalization": "tokens", "training.ema": 0.9995, "training.keep": 50,
            "training.stopping.updates": 50000, "training.stopping.patience": 4, "training.validation.every": 2000,
        },
    )  # fmt: skip
    assert math.isclose(experiment.training.optimizer.learning_rate, 2 * 512**-0.5 * 6000**-0.5, rel_tol=1e-9)


def test_a_recurrent_model_of_opennmt(nmt: Command) -> None:
    experiment, said = imported(nmt, OPEN_RECURRENT)
    values(
        experiment,
        {
            "run": "runs/rnn", "data.subwords.kind": "word", "model.encoder.size": 300,
            "model.encoder.bidirectional": True, "model.encoder.layers": 1, "model.decoder.size": 600,
            "model.decoder.cell": "gru", "model.decoder.input_feeding": True, "model.attention.score.kind": "additive",
            "model.attention.weights.kind": "sparsemax", "model.embedding.size": 500, "model.dropout.layers": 0.3,
            "training.batching.max_sentences": 32, "training.batching.batch_tokens": 32 * (200 + 1),
            "training.clip_norm": 5,
            "training.optimizer.learning_rate": 1e-3,
        },
    )  # fmt: skip
    # The rate of another optimizer means nothing to ours.
    assert 'theirs.yaml:11: optim ("adagrad") has no counterpart and is left out' in said
    assert "theirs.yaml:12: learning_rate (0.15) has no counterpart and is left out" in said


@pytest.mark.parametrize("text", ALL.values(), ids=ALL)
def test_no_key_is_lost(nmt: Command, text: str) -> None:
    """Each key of theirs stands in a comment: beside what it became, or among what has no counterpart, which is what
    stderr says as well."""
    _, said = imported(nmt, text)
    ours = Path("ours.yaml").read_text(encoding="utf-8")
    became, _, lacking = ours.partition("# Without a counterpart here:\n")
    named = {line.partition("   # ")[2].partition(": ")[0] for line in became.splitlines()}
    left = {line.removeprefix("#   ").partition(": ")[0] for line in lacking.splitlines()}
    assert named & left <= {"data.src.voc_file"}  # two of the same file are one vocabulary, which is not read
    warned = {line.split(": ")[2].split(" (")[0] for line in said.splitlines() if line.startswith("warning: ")}
    assert warned == left
    implied = {
        "joeynmt_version", "model.encoder.dropout", "model.decoder.hidden_dropout", "model.encoder.embeddings.dropout",
        "model.encoder.embeddings.embedding_dim", "data.trg.level", "data.trg.voc_limit", "data.trg.max_length",
        "data.src.lang", "data.trg.lang", "training.batch_type", "model.tied_embeddings",
        "training.learning_rate_factor",
        "batch_type", "tgt_vocab_size", "tgt_seq_length", "warmup_steps", "share_embeddings",
    }  # fmt: skip
    for key in leaves(yaml.safe_load(text)):
        assert key in named | left | implied or (key.startswith("data.") and ".path_" in key), key


def leaves(tree: dict[str, Any], above: str = "") -> list[str]:
    found = []
    for key, value in tree.items():
        found += leaves(value, f"{above}{key}.") if isinstance(value, dict) else [f"{above}{key}"]
    return found


def test_without_output_it_goes_to_stdout(nmt: Command) -> None:
    Path("theirs.yaml").write_text(JOEY_RECURRENT, encoding="utf-8")
    done = nmt("theirs.yaml")
    assert done.code == 0
    assert parse_document(done.stdout, "stdout").tree["run"] == "runs/toy_model"
    assert "next:" not in done.stderr
    assert nmt("theirs.yaml", "-o", "it's.yaml").stderr.endswith("""next: nmt train 'it'"'"'s.yaml'\n""")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: 1\n", "theirs.yaml: is not of JoeyNMT, which has sections data, training, model"),
        ("run: runs/x\ndata: {}\n", "theirs.yaml: has the key run, as configurations of nmt have; use it as it is"),
        ("- a\n", "theirs.yaml:1: expected 'key: value' lines"),
        ("data: [\n", "theirs.yaml:2: not valid YAML"),
        (JOEY_RECURRENT.replace("lang: de, ", ""), "theirs.yaml:8: data.src.lang: is missing; a configuration of"),
        (JOEY_RECURRENT.replace("dev:", "dataset_type: huggingface\n    dev:"), "theirs.yaml:5: data.dataset_type: "),
        (JOEY_RECURRENT.replace("hidden_size: 30", "hidden_size: '30'"), "theirs.yaml:38: model.encoder.size: "),
        (JOEY_RECURRENT.replace("type: recurrent", "type: [1]", 1), "theirs.yaml:35: model.encoder.type: a list of 1"),
        (JOEY_RECURRENT.replace("level: bpe", "level: [1]"), None),
        (JOEY_RECURRENT.replace("max_length: 30", "max_length: {a: 1}"), "data.filters.max_length: "),
        (JOEY_RECURRENT.replace("patience: 5", "patience: often"), "theirs.yaml:25: training.patience: expected"),
        (JOEY_TRANSFORMER.replace("[0.9, 0.98]", "0.9"), "training.adam_betas: expected a list of two numbers"),
        (OPEN_TRANSFORMER.replace("heads: 8", "heads: 7"), "heads: 7 must divide size (512)"),
        (OPEN_RECURRENT.replace("brnn", "cnn"), "theirs.yaml:4: encoder_type: text 'cnn' has no counterpart"),
        (OPEN_RECURRENT.replace("corpus_1", "valid"), "theirs.yaml:1: data: has no corpus to train on beside valid"),
        (OPEN_RECURRENT.replace("path_tgt: a.de", "path_tgt: 3"), "data.corpus_1.path_tgt: expected text, found 3"),
        ('"\\u0085\\a": 1\n' + OPEN_RECURRENT.replace("rnn_type", '"rnn\\n\\x85: ["'), None),
        (OPEN_RECURRENT.replace("hidden_size: 600", "hidden_size: .inf"), "hidden_size: expected a number above 0"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(nmt: Command, text: str, error: str | None) -> None:
    Path("theirs.yaml").write_text(text, encoding="utf-8")
    done = nmt("theirs.yaml", "-o", "ours.yaml")
    if error is None:
        assert done.code == 0
        return
    assert error in done.error
    assert not Path("ours.yaml").exists()


def test_nothing_is_overwritten(nmt: Command) -> None:
    Path("theirs.yaml").write_text(JOEY_RECURRENT, encoding="utf-8")
    assert nmt("theirs.yaml", "-o", "theirs.yaml").error == (
        "--output theirs.yaml: is there already; give another name, or delete it"
    )
    assert nmt("theirs.yaml", "-o", "no/ours.yaml").error.startswith("--output no/ours.yaml: cannot be written: ")
    assert nmt("nothing.yaml").error == "nothing.yaml: no such file"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["theirs.yaml"], "theirs.yaml: is not a format; use nmt import hf FOLDER, nmt import"),
        (["hf"], "nmt import hf: name the folder of a model"),
        (["opennmt", "theirs.yaml"], "theirs.yaml: is not of OpenNMT-py, which has data with path_src"),
        (["hf", ".", "-o", "x.yaml"], "--output x.yaml: is for configurations"),
        (["joeynmt", "theirs.yaml", "--run", "runs/x"], "--run runs/x: is for hf"),
    ],
)
def test_the_toolkit_is_named(
    arguments: list[str],
    error: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("theirs.yaml").write_text(JOEY_RECURRENT, encoding="utf-8")
    done = in_process(capsys, "import")(*arguments)
    assert (done.code, error in done.stderr) == (2, True)
