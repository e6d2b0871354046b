"""The sections of a recurrent encoder and decoder."""

from __future__ import annotations

import pytest

from tests.models.configs import fault, read, sections_and_faults

FAULTS = """
decoder: {context: {enters: every_step, placeholder: zeros}}
    => decoder.context: placeholder: zeros is for enters: first_step, not every_step; leave it out
context: every_step, decoder: {start: raw}
    => context: every_step stands for decoder.start: zeros and decoder.context: every_step, but decoder.start is set to
    something else; set these keys instead of context
context: first_step, decoder: {context: {enters: first_step, placeholder: zeros}}
    => but decoder.context is set to something else; set these keys instead of context
context: {kind: initial_state, summary: last}, decoder: {summary: mean}
    => but decoder.summary is set to something else; set these keys instead of context
decoder: {context: every} => decoder.context.enters: text 'every' is not a choice; did you mean 'every_step'?
encoder: {residual: true}
    => residual: true adds what a layer reads to what it gives, from layer 2 on; set layers
decoder: {residual: true, layers: 1}
    => residual: true adds what a layer reads to what it gives, from layer 2 on; set layers
decoder: {start: zeros, start_layers: 2} => decoder: start_layers is for start: projected, not zeros; leave it out
decoder: {readout_context: false, query: current}
    => decoder: readout_context: false leaves no use of what attention finds
decoder: {query: between, layers: 2, residual: true}
    => decoder: residual: true has no place for the second cell of query: between
decoder: {self_attention: coverage}
    => decoder: self_attention: coverage has a state for each of a fixed number of words
"""


@pytest.mark.parametrize(("text", "why"), sections_and_faults(FAULTS))
def test_a_combination_that_makes_no_sense_says_why(text: str, why: str) -> None:
    assert why in fault(text)


def test_an_unknown_cell_or_context_lists_the_choices() -> None:
    for cell in ("elman", "gru", "lstm"):
        assert cell in fault("decoder: {cell: tanh}")
    message = fault("attention: {score: none}\ncontext: {kind: every}")
    for kind in ("every_step", "first_step", "initial_state", "projected_initial_state"):
        assert kind in message


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
