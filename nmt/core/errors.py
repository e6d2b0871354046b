"""The one error that is the user's to mend."""

from __future__ import annotations

import re

LONGEST = 1000
"""Characters of a message; what is cut out is in its middle, for the place stands first and the advice last."""

_ENDS = re.compile(r"\s*[\r\n]\s*")


class InputError(Exception):
    """A fault of the input, the command line or the configuration.

    The message is one plain line that names the file, line or key and says what to do, whatever characters the input
    has put into it. The command line prints it without a traceback and exits with code 2; a library user may catch it
    like any exception.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_plain(message))


def _plain(message: str) -> str:
    """Without what would end the line, or steer the terminal that shows it."""
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"
    if message.isprintable():
        return message
    message = _ENDS.sub(" ", message)
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in message)
