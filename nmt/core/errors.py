"""The error for faults of the input."""

from __future__ import annotations

import re

LONGEST = 1000
"""Maximum number of characters in a message; a longer one is cut in its middle, between the place and the advice."""

_LINE_END = re.compile(r"(?<!\s)[^\S\r\n]*+[\r\n]\s*")


class InputError(Exception):
    """A fault of the input, the command line or the configuration.

    Each message is one plain line that names the file, line or key and says what to do; several are faults of one file.
    Line ends and control characters that a message quotes from the input are replaced. The command line prints each on
    a line, without a traceback, and exits with ``exit_code``; a library user may catch the error like any exception.
    """

    def __init__(self, *messages: str, exit_code: int = 2) -> None:
        self.exit_code = exit_code
        self.messages = [_printable(message) for message in messages]
        super().__init__(*self.messages)

    def __str__(self) -> str:
        return "; ".join(self.messages)


def _printable(message: str) -> str:
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"
    if not message.isprintable():
        message = _LINE_END.sub(" ", message)
        message = "".join(char if char.isprintable() else repr(char)[1:-1] for char in message)
    return message
