"""The one error that is the user's to mend."""

from __future__ import annotations


class InputError(Exception):
    """A fault of the input, the command line or the configuration.

    The message is one plain line that names the file, line or key and says what to do. The command line prints it
    without a traceback and exits with code 2; a library user may catch it like any exception.
    """
