"""The model section: combinations that make no sense are errors of one line that say why."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.config.structure import dump
from nmt.models.config import ModelConfig
from nmt.models.transformer.config import TransformerDecoderConfig
from tests.models.configs import cases, fault, read, sections_and_faults
from tests.workflows.runs import in_process

FAULTS = """
attention: {score: none, weights: hard} => score: none leaves weights: hard nothing to weigh; leave weights out
attention: {score: none}, decoder: {query: previous}
    => decoder.query: previous needs attention, and its score is none; leave it out
attention: {score: none}, decoder: {query_embedding: true}
    => decoder.query_embedding has no query to widen with attention.score: none; leave it out
attention: {score: none}, decoder: {start: zeros}
    => decoder.start: zeros, decoder.context: nothing and attention.score: none leave the decoder nothing of the
    source; change one of them
decoder: {kind: transformer, start: raw}
    => decoder.start: unknown key for kind 'transformer'; it belongs to kind 'glimpses' or 'reencoding' or 'rnn'
encoder: {size: 30}, decoder: {size: 50, start: raw}
    => decoder.start: raw (context: initial_state) needs decoder.size (50) to equal the width of an encoder state (60);
    change a size, or use projected
attention: {score: none}, context: {kind: initial_state}, encoder: {size: 30}, decoder: {size: 50}
    => decoder.start: raw (context: initial_state) needs decoder.size (50) to equal the width of an encoder state (60);
    change a size, or use projected
attention: {score: none}, context: {kind: initial_state}, encoder: {size: 30, bidirectional: false}, decoder: {size:
    60}
    => (context: initial_state) needs decoder.size (60) to equal the width of an encoder state (30)
attention: {weights: {kind: hard, training: marginal}}
    => attention.weights: hard sums over all positions of a step, so no later step may depend on it: set decoder.query:
    current and decoder.input_feeding: false, or training: reinforce
attention: {weights: {kind: hard, training: marginal}}, decoder: {query: previous, input_feeding: false}
    => attention.weights: hard sums over all positions of a step
embedding: {tie: output, size: 8}, decoder: {readout_size: 7}
    => embedding.tie: output needs decoder.readout_size (7) to equal embedding.size (8): change one, or leave
    readout_size out
encoder: {kind: transformer, size: 10, heads: 4} => encoder: heads: 4 must divide size (10)
decoder: {kind: transformer, size: 12, heads: 4, positions: rotary}
    => decoder: positions: rotary needs an even size / heads, not 3
encoder: {kind: transformer, positions: rotary, score: additive}
    => positions: rotary shows in the inner product of query and key, and score: additive sees more of them; use a
    score of dot, scaled_dot, cosine, gaussian, or positions: sinusoidal
encoder: {kind: transformer, positions: rotary, score: general} => and score: general sees more of them
encoder: {kind: transformer, max_positions: 100}
    => encoder: max_positions is for positions: learned alone, not sinusoidal; leave it out
decoder: {kind: transformer, max_positions: 100, positions: rotary}
    => decoder: max_positions is for positions: learned alone, not rotary; leave it out
decoder: transformer, attention: {key_size: 8}
    => attention.key_size is for decoder.kind: rnn; a Transformer projects keys apart from values in each head anyway;
    leave it out
embedding: {size: 30}, encoder: embeddings, attention: {score: none}, context: initial_state, decoder: {size: 50}
    => decoder.start: raw (context: initial_state) needs decoder.size (50) to equal the width of an encoder state
decoder: transformer, attention: {score: none}
    => decoder.kind: transformer sees the source by attention alone, which attention.score: none takes away; name
    another score, or use decoder.kind: rnn
decoder: {context_gate: true, readout_context: false, query: previous}
    => decoder: context_gate has nothing to weigh with readout_context: false; leave one of them out
attention: {score: none}, decoder: {context_gate: true}
    => decoder.context_gate has no context to weigh with attention.score: none; leave it out
attention: {weights: {kind: hard, training: marginal}}, decoder: {context_gate: true, query: current, input_feeding:
    false}
    => with training: marginal reads one position at a time; leave decoder.context_gate out
decoder: {query: bottom} => decoder: query: bottom asks from below other layers: set layers, or use query: previous
attention: {heads: 3}, encoder: {size: 16}
    => attention.heads: 3 must divide the size of an encoder state, 32
decoder: transformer, attention: {heads: 4}
    => attention.heads is for decoder.kind: rnn; a Transformer has decoder.heads
attention: {heads: 2, weights: hard} => heads: weights: hard learns one position a step
attention: {heads: 2, key_size: 8}
    => key_size: several heads project the keys to widths of their own; leave key_size out
attention: {heads: 2, score: none}, decoder: {input_feeding: false}
    => heads: score: none leaves them nothing to weigh; leave heads out
attention: {weights: {kind: hard, training: marginal}}, decoder: {self_attention: dot, query: current, input_feeding:
    false}
    => leave decoder.self_attention out
encoder: {kind: transformer, score: coverage}
    => encoder: score: coverage reads the weights of the step before, and self-attention computes all steps at once
decoder: transformer, attention: {weights: monotonic}
    => attention: monotonic reads the weights of the step before, and a Transformer computes all steps at once
attention: {score: coverage, weights: {kind: hard, training: marginal}}, decoder: {query: current, input_feeding:
    false}
    => with training: marginal computes all steps at once, and score: coverage reads the weights of the step before
encoder: {kind: transformer, score: none} => encoder.score: text 'none' is not a choice
decoder: transformer, attention: {weights: {kind: hard, training: marginal}}
    => attention.weights: hard with training: marginal sums over all positions of one attention, and a Transformer
    decoder has one in each layer and head; use training: reinforce, or decoder.kind: rnn
encoder: transformer, dropout: {variational: true}
    => dropout.variational is for recurrent layers, not for encoder; leave it out
decoder: transformer, dropout: {variational: true} => not for decoder; leave it out
dropout: {feed_forward: 0.1}
    => dropout.feed_forward is for an encoder or decoder that is a Transformer; leave it out
attention: {score: none}, dropout: {attention: 0.1}
    => dropout.attention has no weights to drop with attention.score: none; leave it out
decoder: reencoding, attention: {score: dot} => decoder.kind: reencoding needs attention.score: none
decoder: {kind: glimpses}, attention: {weights: hard}
    => score: none leaves weights: hard nothing to weigh; leave weights out
decoder: transformer, context: every_step => context: every_step is for decoder.kind: rnn; leave it out
encoder: {laeyrs: 2} => encoder.laeyrs: unknown key; did you mean 'layers'?
decoder: {kind: transformer, feed_froward: 2} => decoder.feed_froward: unknown key; did you mean 'feed_forward'?
decoder: {heads: 2} => decoder.heads: unknown key for kind 'rnn'; it belongs to kind 'transformer'
encoder: {kind: transformer, cell: lstm} => encoder.cell: unknown key for kind 'transformer'; it belongs to kind 'rnn'
encoder: transfomer
    => 'transfomer' is not a choice; did you mean 'transformer'? the choices are rnn, transformer, embeddings
encoder: {kind: transfomer, layers: 2}
    => encoder.kind: text 'transfomer' is not a choice; did you mean 'transformer'? the choices are rnn, transformer
decoder: {kind: null} => decoder.kind: nothing is not a choice
"""


@pytest.mark.parametrize(("text", "why"), sections_and_faults(FAULTS))
def test_a_combination_that_makes_no_sense_says_why(text: str, why: str) -> None:
    assert why in fault(text)


def test_a_fault_names_the_section_that_it_is_in() -> None:
    assert fault("decoder:\n  cell: gru\n  residual: true\n").startswith("config.yaml:1: decoder: residual: true adds")
    assert fault("attention:\n  score: none\n  weights: hard\n").startswith("config.yaml:1: attention: score: none")


SOUND = """
attention: {score: none}, context: {kind: initial_state}, encoder: {size: 30}, decoder: {size: 60}
attention: {score: none}, context: {kind: initial_state}, encoder: {size: 30, bidirectional: false}, decoder: {size:
    30}
encoder: {size: 30}, decoder: {size: 60, start: raw, summary: mean, query_embedding: true, context: {enters:
    first_step, placeholder: zeros}}
encoder: {size: 30}, attention: {score: none}, decoder: {size: 60, start: raw, context: every_step}
attention: {score: none}
attention: {score: none}, decoder: {query: current}
attention: {weights: {kind: hard, training: marginal}}, decoder: {input_feeding: false}
attention: {weights: hard}, decoder: {query: previous}
encoder: {layers: 2, residual: true}, decoder: {layers: 3, residual: true}
embedding: {tie: output, size: 8}, decoder: {size: 7}
decoder: reencoding
decoder: {kind: glimpses, cell: gru, layers: 2, count: 3, scales: 1, deviation: 0.5, discount: 1.0, expected: 0.0,
    variance_normalization: true}, attention: {score: none}, context: every_step
encoder: transformer, decoder: transformer
encoder: {kind: transformer, layers: 2, size: 12, heads: 3, feed_forward: 5, activation: swiglu, norm: post, positions:
    rotary, score: {kind: gaussian, bandwidth: 2.0}}, decoder: {kind: transformer, positions: learned, max_positions:
    9, score: location}, attention: {score: additive, weights: {kind: glimpse, scales: 2}}, embedding: {tie: all},
    dropout: {feed_forward: 0.1, attention: 0.2}
encoder: transformer, dropout: {feed_forward: 0.1}
encoder: transformer, attention: {score: none}, dropout: {attention: 0.1}
decoder: transformer, dropout: {feed_forward: 0.1}
decoder: transformer, attention: {weights: hard}
embedding: {tie: output, size: 8}, decoder: {kind: transformer, size: 16}
encoder: {kind: transformer, size: 12, heads: 4}
"""


@pytest.mark.parametrize("text", cases(SOUND))
def test_a_combination_that_makes_sense_is_taken_and_written_as_it_is(text: str) -> None:
    config = read(f"{{{text}}}")
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


def test_the_command_line_suggests_the_score_that_was_meant(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = in_process(capsys)("train", "config.yaml", "--set", "model.attention.score=consine")
    assert done.stderr.count("\n") == 1
    assert done.error.startswith("--set model.attention.score=consine: ")
    assert "text 'consine' is not a choice; did you mean 'cosine'?" in done.error
    assert "the choices are none, additive, concat, cosine" in done.error
    assert not (here / "run").exists()
