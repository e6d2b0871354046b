"""The sections of decoders that read the source by other means than attention."""

from __future__ import annotations

import pytest

from tests.models.configs import fault, read, sections_and_faults

FAULTS = """
decoder: {kind: glimpses, query: current} => decoder.query: text 'current' is not a choice; the choices are previous
decoder: {deviation: 2.0} => decoder.deviation: unknown key for kind 'rnn'; it belongs to kind 'glimpses'
decoder: {kind: glimpses, deviation: 0} => decoder.deviation: expected more than 0
"""


@pytest.mark.parametrize(("text", "why"), sections_and_faults(FAULTS))
def test_a_combination_that_makes_no_sense_says_why(text: str, why: str) -> None:
    assert why in fault(text)


def test_the_state_before_a_step_looks_at_the_source() -> None:
    """By default without input feeding; a glimpse is a head of the weights."""
    for kind, names in (("reencoding", ()), ("glimpses", ("glimpse1", "glimpse2", "glimpse3"))):
        config = read(f"decoder: {{kind: {kind}{', count: 3' * bool(names)}}}")
        assert (config.decoder.query, config.decoder.input_feeding, config.head_names) == ("previous", False, names)
        assert config.attention.is_none
