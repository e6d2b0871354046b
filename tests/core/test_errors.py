"""Messages of faults are plain lines."""

from __future__ import annotations

from nmt.core.errors import LONGEST, InputError


def test_a_message_is_one_plain_line_whatever_the_input_puts_into_it() -> None:
    message = str(InputError("a\x1b[31m\r\nb\u2028\x00" + "é" * 5000 + " mend it"))
    assert message.startswith("a\\x1b[31m b\\u2028\\x00é")
    assert message.endswith("é mend it")
    assert message.isprintable()
    assert len(message) < LONGEST + 50


def test_several_messages_are_kept_apart_and_shown_as_one() -> None:
    error = InputError("one \n\n two", "three\r", exit_code=3)
    assert (error.messages, str(error), error.exit_code) == (["one two", "three "], "one two; three ", 3)
    assert InputError("x" * LONGEST).messages == ["x" * LONGEST]
