"""Protocols of other servers, for programs that speak them: a module each, with ``ROUTES`` and, if its clients expect
other errors than nmt's, ``error``. The key, the limits and the queue are those of nmt's own ``POST /translate``."""
