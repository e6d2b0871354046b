"""The model section: combinations that make no sense are errors of one line that say why."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.config.structure import dump, parse_document, validate
from nmt.core.errors import InputError
from nmt.models.config import ModelConfig
from nmt.models.transformer.config import TransformerDecoderConfig

ROOT = Path(__file__).resolve().parents[2]


def read(text: str) -> ModelConfig:
    return validate(ModelConfig, parse_document(text, "config.yaml"))


def fault(text: str) -> str:
    with pytest.raises(InputError) as caught:
        read(text)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("config.yaml")
    return message


FAULTS = {
    "no attention, but weights": (
        "attention: {score: none, weights: hard}",
        "score: none leaves weights: hard nothing to weigh; leave weights out",
    ),
    "no attention, but a query": (
        "attention: {score: none}\ndecoder: {query: previous}",
        "decoder.query: previous has no attention to ask with attention.score: none; leave it out",
    ),
    "no attention, but a word in the query": (
        "attention: {score: none}\ndecoder: {query_embedding: true}",
        "decoder.query_embedding has no query to widen with attention.score: none; leave it out",
    ),
    "nothing of the source": (
        "attention: {score: none}\ndecoder: {start: zeros}",
        (
            "decoder.start: zeros, decoder.context: nothing and attention.score: none leave the decoder nothing of the "
            "source; change one of them"
        ),
    ),
    "a placeholder without a place": (
        "decoder: {context: {enters: every_step, placeholder: zeros}}",
        "decoder.context: placeholder: zeros is for enters: first_step, not every_step; leave it out",
    ),
    "a shorthand and another start": (
        "context: every_step\ndecoder: {start: raw}",
        (
            "context: every_step stands for decoder.start: zeros and decoder.context: every_step, but decoder.start is "
            "set to something else; set these keys instead of context"
        ),
    ),
    "a shorthand and another placeholder": (
        "context: first_step\ndecoder: {context: {enters: first_step, placeholder: zeros}}",
        "but decoder.context is set to something else; set these keys instead of context",
    ),
    "a shorthand and another summary": (
        "context: {kind: initial_state, summary: last}\ndecoder: {summary: mean}",
        "but decoder.summary is set to something else; set these keys instead of context",
    ),
    "a context of no name": (
        "decoder: {context: every}",
        "decoder.context.enters: text 'every' is not a choice; did you mean 'every_step'?",
    ),
    "a start in a Transformer": (
        "decoder: {kind: transformer, start: raw}",
        "decoder.start: unknown key for kind 'transformer'; it belongs to kind 'glimpses' or 'reencoding' or 'rnn'",
    ),
    "a raw start of another width, with attention": (
        "encoder: {size: 30}\ndecoder: {size: 50, start: raw}",
        (
            "decoder.start: raw (context: initial_state) needs decoder.size (50) to equal the width of an encoder "
            "state (60); change a size, or use projected"
        ),
    ),
    "an initial state of another width": (
        "attention: {score: none}\ncontext: {kind: initial_state}\nencoder: {size: 30}\ndecoder: {size: 50}",
        (
            "decoder.start: raw (context: initial_state) needs decoder.size (50) to equal the width of an encoder "
            "state (60); change a size, or use projected"
        ),
    ),
    "an initial state of another width, one direction": (
        (
            "attention: {score: none}\ncontext: {kind: initial_state}\nencoder: {size: 30, bidirectional: false}\n"
            "decoder: {size: 60}"
        ),
        "(context: initial_state) needs decoder.size (60) to equal the width of an encoder state (30)",
    ),
    "an exact sum with input feeding": (
        "attention: {weights: {kind: hard, training: marginal}}",
        (
            "attention.weights: hard sums over all positions of a step, so no later step may depend on it: set "
            "decoder.query: current and decoder.input_feeding: false, or training: reinforce"
        ),
    ),
    "an exact sum with the previous query": (
        "attention: {weights: {kind: hard, training: marginal}}\ndecoder: {query: previous, input_feeding: false}",
        "attention.weights: hard sums over all positions of a step",
    ),
    "a residual encoder of one layer": (
        "encoder: {residual: true}",
        "residual: true adds what a layer reads to what it gives, from the second layer on; set layers",
    ),
    "a residual decoder of one layer": (
        "decoder: {residual: true, layers: 1}",
        "residual: true adds what a layer reads to what it gives, from the second layer on; set layers",
    ),
    "a tied output of another width": (
        "embedding: {tie: output, size: 8}\ndecoder: {readout_size: 7}",
        (
            "embedding.tie: output needs decoder.readout_size (7) to equal embedding.size (8): change one, or leave "
            "readout_size out"
        ),
    ),
    "heads that do not divide the width": (
        "encoder: {kind: transformer, size: 10, heads: 4}",
        "encoder: heads: 4 must divide size (10)",
    ),
    "rotary positions in heads of odd width": (
        "decoder: {kind: transformer, size: 12, heads: 4, positions: rotary}",
        "decoder: positions: rotary turns pairs, so size / heads (3) must be even",
    ),
    "rotary positions that no inner product shows": (
        "encoder: {kind: transformer, positions: rotary, score: additive}",
        (
            "positions: rotary shows in the inner product of query and key, and score: additive sees more of them; "
            "use a score of dot, scaled_dot, cosine, gaussian, or positions: sinusoidal"
        ),
    ),
    "rotary positions with a matrix between query and key": (
        "encoder: {kind: transformer, positions: rotary, score: general}",
        "and score: general sees more of them",
    ),
    "a number of positions that are not learned": (
        "encoder: {kind: transformer, max_positions: 100}",
        "encoder: max_positions is for positions: learned alone, not sinusoidal; leave it out",
    ),
    "a number of rotary positions": (
        "decoder: {kind: transformer, max_positions: 100, positions: rotary}",
        "decoder: max_positions is for positions: learned alone, not rotary; leave it out",
    ),
    "keys that a Transformer projects anyway": (
        "decoder: transformer\nattention: {key_size: 8}",
        (
            "attention.key_size is for decoder.kind: rnn; a Transformer projects keys apart from values in each head "
            "anyway; leave it out"
        ),
    ),
    "an initial state of another width than an embedding": (
        (
            "embedding: {size: 30}\nencoder: embeddings\nattention: {score: none}\ncontext: initial_state\n"
            "decoder: {size: 50}"
        ),
        "decoder.start: raw (context: initial_state) needs decoder.size (50) to equal the width of an encoder state",
    ),
    "a Transformer decoder without attention": (
        "decoder: transformer\nattention: {score: none}",
        (
            "decoder.kind: transformer sees the source by attention alone, which attention.score: none takes away; "
            "name another score, or use decoder.kind: rnn"
        ),
    ),
    "layers of a start without a network": (
        "decoder: {start: zeros, start_layers: 2}",
        "decoder: start_layers is for start: projected, not zeros; leave it out",
    ),
    "a context without use": (
        "decoder: {readout_context: false, query: current}",
        "decoder: readout_context: false leaves no use of what attention finds",
    ),
    "a gate of a context that is not read": (
        "decoder: {context_gate: true, readout_context: false, query: previous}",
        "decoder: context_gate has nothing to weigh with readout_context: false; leave one of them out",
    ),
    "a gate without attention": (
        "attention: {score: none}\ndecoder: {context_gate: true}",
        "decoder.context_gate has no context to weigh with attention.score: none; leave it out",
    ),
    "a gate of an exact sum": (
        (
            "attention: {weights: {kind: hard, training: marginal}}\n"
            "decoder: {context_gate: true, query: current, input_feeding: false}"
        ),
        "with training: marginal reads one position at a time; leave decoder.context_gate out",
    ),
    "a bottom layer that is the top one": (
        "decoder: {query: bottom}",
        "decoder: query: bottom asks from below other layers: set layers, or use query: previous",
    ),
    "heads that do not divide an encoder state": (
        "attention: {heads: 3}\nencoder: {size: 16}",
        "attention.heads: 3 must divide the width of an encoder state (32); change one",
    ),
    "heads of a transformer in the wrong place": (
        "decoder: transformer\nattention: {heads: 4}",
        "attention.heads is for decoder.kind: rnn; a Transformer has decoder.heads",
    ),
    "heads of draws": (
        "attention: {heads: 2, weights: hard}",
        "heads: 2 with weights: hard, which learns one position a step",
    ),
    "heads with keys apart": (
        "attention: {heads: 2, key_size: 8}",
        "key_size: several heads project the keys to widths of their own; leave key_size out",
    ),
    "heads without a score": (
        "attention: {heads: 2, score: none}\ndecoder: {input_feeding: false}",
        "heads: score: none leaves them nothing to weigh; leave heads out",
    ),
    "residual layers around two cells": (
        "decoder: {query: between, layers: 2, residual: true}",
        "decoder: residual: true has no place for the second cell of query: between",
    ),
    "self-attention of a recurrent decoder that remembers": (
        "decoder: {self_attention: coverage}",
        "decoder: self_attention: coverage has a state for each of a fixed number of words",
    ),
    "an exact sum with self-attention": (
        (
            "attention: {weights: {kind: hard, training: marginal}}\n"
            "decoder: {self_attention: dot, query: current, input_feeding: false}"
        ),
        "leave decoder.self_attention out",
    ),
    "self-attention that remembers": (
        "encoder: {kind: transformer, score: coverage}",
        "encoder: score: coverage reads the weights of the step before, and self-attention computes all steps at once",
    ),
    "a transformer whose attention remembers": (
        "decoder: transformer\nattention: {weights: monotonic}",
        "attention: monotonic reads the weights of the step before, and a Transformer computes all steps at once",
    ),
    "an exact sum over steps that depend on each other": (
        (
            "attention: {score: coverage, weights: {kind: hard, training: marginal}}\n"
            "decoder: {query: current, input_feeding: false}"
        ),
        "with training: marginal computes all steps at once, and score: coverage reads the weights of the step before",
    ),
    "self-attention without a score": (
        "encoder: {kind: transformer, score: none}",
        "encoder.score: text 'none' is not a choice",
    ),
    "an exact sum over many attentions": (
        "decoder: transformer\nattention: {weights: {kind: hard, training: marginal}}",
        (
            "attention.weights: hard with training: marginal sums over all positions of one attention, and a "
            "Transformer decoder has one in each layer and head; use training: reinforce, or decoder.kind: rnn"
        ),
    ),
    "variational dropout in a Transformer encoder": (
        "encoder: transformer\ndropout: {variational: true}",
        (
            "dropout.variational: true is for recurrent encoders and decoders, and encoder.kind is transformer; "
            "leave it out"
        ),
    ),
    "variational dropout in a Transformer decoder": (
        "decoder: transformer\ndropout: {variational: true}",
        "and decoder.kind is transformer; leave it out",
    ),
    "dropout in feed-forward blocks that are not there": (
        "dropout: {feed_forward: 0.1}",
        "dropout.feed_forward is for a Transformer, and neither encoder nor decoder is one; leave it out",
    ),
    "dropout of weights that are not there": (
        "attention: {score: none}\ndropout: {attention: 0.1}",
        "dropout.attention has no weights to drop with attention.score: none; leave it out",
    ),
    "a score beside a decoder that reads the source again": (
        "decoder: reencoding\nattention: {score: dot}",
        "decoder.kind: reencoding needs attention.score: none, not dot",
    ),
    "a score by weights beside glimpses": (
        "decoder: {kind: glimpses}\nattention: {weights: hard}",
        "score: none leaves weights: hard nothing to weigh; leave weights out",
    ),
    "the query of this step beside glimpses": (
        "decoder: {kind: glimpses, query: current}",
        "decoder.query: text 'current' is not a choice; the choices are previous",
    ),
    "a key of glimpses without them": (
        "decoder: {deviation: 2.0}",
        "decoder.deviation: unknown key for kind 'rnn'; it belongs to kind 'glimpses'",
    ),
    "no deviation": ("decoder: {kind: glimpses, deviation: 0}", "decoder.deviation: expected more than 0"),
    "a context with a Transformer decoder": (
        "decoder: transformer\ncontext: every_step",
        "context: every_step is for decoder.kind: rnn; leave it out",
    ),
    "a misspelt key without a kind": ("encoder: {laeyrs: 2}", "encoder.laeyrs: unknown key; did you mean 'layers'?"),
    "a misspelt key with a kind": (
        "decoder: {kind: transformer, feed_froward: 2}",
        "decoder.feed_froward: unknown key; did you mean 'feed_forward'?",
    ),
    "a Transformer's key without a kind": (
        "decoder: {heads: 2}",
        "decoder.heads: unknown key for kind 'rnn'; it belongs to kind 'transformer'",
    ),
    "an RNN's key in a Transformer": (
        "encoder: {kind: transformer, cell: lstm}",
        "encoder.cell: unknown key for kind 'transformer'; it belongs to kind 'rnn'",
    ),
    "a misspelt kind by itself": (
        "encoder: transfomer",
        "'transfomer' is not a choice; did you mean 'transformer'? the choices are rnn, transformer, embeddings",
    ),
    "a misspelt kind with settings": (
        "encoder: {kind: transfomer, layers: 2}",
        "encoder.kind: text 'transfomer' is not a choice; did you mean 'transformer'? the choices are rnn, transformer",
    ),
    "a kind of nothing": ("decoder: {kind: null}", "decoder.kind: nothing is not a choice"),
}


@pytest.mark.parametrize(("text", "why"), FAULTS.values(), ids=FAULTS)
def test_a_combination_that_makes_no_sense_says_why(text: str, why: str) -> None:
    assert why in fault(text)


def test_a_fault_names_the_section_that_it_is_in() -> None:
    assert fault("decoder:\n  cell: gru\n  residual: true\n").startswith("config.yaml:1: decoder: residual: true adds")
    assert fault("attention:\n  score: none\n  weights: hard\n").startswith("config.yaml:1: attention: score: none")


SOUND = {
    "an initial state of the encoder's width": (
        "attention: {score: none}\ncontext: {kind: initial_state}\nencoder: {size: 30}\ndecoder: {size: 60}"
    ),
    "an initial state of one direction's width": (
        "attention: {score: none}\ncontext: {kind: initial_state}\nencoder: {size: 30, bidirectional: false}\n"
        "decoder: {size: 30}"
    ),
    "a raw start and a context with attention": (
        "encoder: {size: 30}\ndecoder: {size: 60, start: raw, summary: mean, query_embedding: true, "
        "context: {enters: first_step, placeholder: zeros}}"
    ),
    "a raw start and a context without attention": (
        "encoder: {size: 30}\nattention: {score: none}\ndecoder: {size: 60, start: raw, context: every_step}"
    ),
    "no attention and no more said": "attention: {score: none}",
    "no attention and its query left as it was": "attention: {score: none}\ndecoder: {query: current}",
    "an exact sum": "attention: {weights: {kind: hard, training: marginal}}\ndecoder: {input_feeding: false}",
    "draws with input feeding": "attention: {weights: hard}\ndecoder: {query: previous}",
    "residual layers": "encoder: {layers: 2, residual: true}\ndecoder: {layers: 3, residual: true}",
    "a tied output": "embedding: {tie: output, size: 8}\ndecoder: {size: 7}",
    "a decoder that reads the source again by name": "decoder: reencoding",
    "glimpses with all of their settings": (
        "decoder: {kind: glimpses, cell: gru, layers: 2, count: 3, scales: 1, deviation: 0.5, discount: 1.0, "
        "expected: 0.0, variance_normalization: true}\nattention: {score: none}\ncontext: every_step"
    ),
    "a Transformer by name": "encoder: transformer\ndecoder: transformer",
    "a Transformer with all of its settings": (
        "encoder: {kind: transformer, layers: 2, size: 12, heads: 3, feed_forward: 5, activation: swiglu, norm: post, "
        "positions: rotary, score: {kind: gaussian, bandwidth: 2.0}}\n"
        "decoder: {kind: transformer, positions: learned, max_positions: 9, score: location}\n"
        "attention: {score: additive, weights: {kind: glimpse, scales: 2}}\nembedding: {tie: all}\n"
        "dropout: {feed_forward: 0.1, attention: 0.2}"
    ),
    "a Transformer encoder alone": "encoder: transformer\ndropout: {feed_forward: 0.1}",
    "a Transformer encoder before a decoder without attention": (
        "encoder: transformer\nattention: {score: none}\ndropout: {attention: 0.1}"
    ),
    "a Transformer decoder alone": "decoder: transformer\ndropout: {feed_forward: 0.1}",
    "draws in a Transformer": "decoder: transformer\nattention: {weights: hard}",
    "a tied output of another width than a Transformer's": (
        "embedding: {tie: output, size: 8}\ndecoder: {kind: transformer, size: 16}"
    ),
    "heads of odd width": "encoder: {kind: transformer, size: 12, heads: 4}",
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_a_combination_that_makes_sense_is_taken_and_written_as_it_is(text: str) -> None:
    config = read(text)
    assert read(dump(config)) == config


def test_a_side_whose_kind_is_left_out_is_recurrent() -> None:
    for text in ("context: null", "encoder: {layers: 2}\ndecoder: {size: 30}", "encoder: rnn\ndecoder: {kind: rnn}"):
        config = read(text)
        assert (config.encoder.kind, config.decoder.kind) == ("rnn", "rnn")
        assert config.attention.score.kind == "additive"
    assert read("encoder: rnn\ndecoder: {kind: rnn}") == ModelConfig()
    mixed = read("encoder: {kind: transformer}\ndecoder: {layers: 2}")
    assert (mixed.encoder.kind, mixed.decoder.kind) == ("transformer", "rnn")
    assert mixed.attention.score.kind == "additive"


def test_a_transformer_decoder_asks_by_scaled_dot_products_where_no_score_is_named() -> None:
    for text in (
        "decoder: transformer",
        "decoder: {kind: transformer}",
        "decoder: {kind: transformer, layers: 2}\nattention: {}",
        "decoder: transformer\nattention: {weights: sparsemax}",
        "attention: {weights: sparsemax}\ndecoder: transformer",
    ):
        assert read(text).attention.score.kind == "scaled_dot", text
    assert read("decoder: transformer\nattention: {weights: sparsemax}").attention.weights.kind == "sparsemax"
    assert read("decoder: transformer\nattention: {score: additive}").attention.score.kind == "additive"
    assert read("decoder: transformer\nattention: {score: {kind: dot}}").attention.score.kind == "dot"
    assert ModelConfig(decoder=TransformerDecoderConfig()).attention.score.kind == "scaled_dot"


def test_a_transformer_by_name_is_one_with_nothing_set() -> None:
    assert read("encoder: transformer\ndecoder: transformer") == read(
        "encoder: {kind: transformer}\ndecoder: {kind: transformer}"
    )


@pytest.mark.parametrize("score", ["none", "additive"])
@pytest.mark.parametrize(
    ("shorthand", "keys"),
    [
        ("every_step", "start: zeros, context: every_step"),
        ("first_step", "start: zeros, context: {enters: first_step, placeholder: learnt}"),
        ("initial_state", "start: raw, context: nothing"),
        ("projected_initial_state", "start: projected, context: {enters: nothing}"),
    ],
)
def test_a_shorthand_is_what_it_stands_for(shorthand: str, keys: str, score: str) -> None:
    """A shorthand may be a name, have settings, and be given beside the keys with the same meaning."""
    rest = f"attention: {{score: {score}}}\nencoder: {{size: 6}}\n"
    for summary in ("last", "mean"):
        expected = read(f"{rest}decoder: {{size: 12, {keys}, summary: {summary}}}")
        assert expected.context is None
        for text in (
            f"decoder: {{size: 12}}\ncontext: {{kind: {shorthand}, summary: {summary}}}",
            f"decoder: {{size: 12, summary: {summary}}}\ncontext: {shorthand}",
            f"decoder: {{size: 12, {keys}}}\ncontext: {{kind: {shorthand}, summary: {summary}}}",
        ):
            assert read(rest + text) == expected


def test_the_words_of_a_decoder_name_what_is_not_usual() -> None:
    assert read("context: null").decoder.words == "LSTM, 1 layer of 512, query current, input feeding"
    text = "decoder: {start: raw, context: every_step, query_embedding: true, input_feeding: false}"
    assert read(text).decoder.words.endswith("query current with the last word, start raw, context every_step")


def test_an_unknown_cell_or_context_lists_the_choices() -> None:
    for cell in ("elman", "gru", "lstm"):
        assert cell in fault("decoder: {cell: tanh}")
    message = fault("attention: {score: none}\ncontext: {kind: every}")
    for kind in ("every_step", "first_step", "initial_state", "projected_initial_state"):
        assert kind in message


def test_the_command_line_suggests_the_score_that_was_meant(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("1 2 3\n", encoding="utf-8")
    (tmp_path / "config.yaml").write_text(
        "run: run\ndata: {train: {source: a, target: b}, valid: {source: a, target: b}}\n", encoding="utf-8"
    )
    done = subprocess.run(
        [sys.executable, "-m", "nmt", "train", "config.yaml", "--set", "model.attention.score=consine"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: --set model.attention.score=consine: ")
    assert "text 'consine' is not a choice; did you mean 'cosine'?" in line
    assert "the choices are none, additive, concat, cosine" in line
    assert not (tmp_path / "run").exists()
