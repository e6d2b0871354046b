from __future__ import annotations

import pytest

from nmt.alignment.request import AlignmentRequest, parse_request
from nmt.core.errors import InputError


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("attention", AlignmentRequest("attention")),
        ("input-x-gradient", AlignmentRequest("input-x-gradient")),
        ("attention:layer3.*", AlignmentRequest("attention", "layer3.*")),
        ("each:layer?.head1", AlignmentRequest("attention", "layer?.head1", each=True)),
        ("forward:gradient", AlignmentRequest("gradient", direction="forward")),
        ("backward:attention:*", AlignmentRequest("attention", "*", direction="backward")),
        ("backward:each:*", AlignmentRequest("attention", "*", each=True, direction="backward")),
    ],
)
def test_a_view_is_read_and_named_as_it_is_written(text: str, parsed: AlignmentRequest) -> None:
    assert parse_request(text) == parsed
    assert parsed.name == text


CHOICES = "choose one of attention, shifted-attention, gradient, input-x-gradient, trained, or each:HEADS"
HEADS = "heads are those of attention, which gradient does not look at; leave them out"
WRITE = "write METHOD or METHOD:HEADS, such as attention:layer3.*"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("atention", f"--view atention: 'atention' is not a method; {CHOICES}"),
        ("layer3.*", f"--view layer3.*: 'layer3.*' is not a method; {CHOICES}"),
        ("", f"--view : '' is not a method; {CHOICES}"),
        ("forward", f"--view forward: '' is not a method; {CHOICES}"),
        ("attention:", f"--view attention:: {WRITE}"),
        ("attention:layer1:head2", f"--view attention:layer1:head2: {WRITE}"),
        ("each", "--view each: name heads, such as each:layer3.* or each:*"),
        ("gradient:layer1.*", f"--view gradient:layer1.*: {HEADS}"),
    ],
)
def test_what_is_no_view_is_said(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_request(text)
    assert str(caught.value) == message
