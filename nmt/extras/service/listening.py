"""Checks before a server starts, and its socket. The module has quick imports only, so that a port in use is noticed at
once."""

from __future__ import annotations

import errno
import os
import re
import resource
import socket
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from nmt.core import log
from nmt.core.errors import InputError
from nmt.core.files import read_whole, reading
from nmt.core.installation import missing


def check_installed() -> None:
    """Raises InputError if a package of the server is not installed."""
    if not all(find_spec(name) for name in ("babel", "fastapi", "prometheus_client", "python_multipart", "uvicorn")):
        raise missing("nmt serve: Babel, FastAPI, prometheus-client, python-multipart or uvicorn is", "serve")


def bind(host: str, port: int) -> socket.socket:
    """Opens a listening socket. Raises InputError for a port that is in use, or a host that is not this machine."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, dualstack_ipv6=both)
    except socket.gaierror as error:
        raise InputError(f"--host {host}: {error.strerror}; 127.0.0.1 is this machine, 0.0.0.0 all it has") from None
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"--host {host}: is not an address of this machine; 0.0.0.0 is all it has") from None
        what = f"cannot be had on {host}: {os.strerror(error.errno or 0)}"
        raise InputError(f"--port {port}: {what}; choose another one, or 0 for any that is free") from None


def connections_at_most(wanted: int) -> int:
    """Lowers a number of connections to the limit of open files, minus the model's files and connections that are
    accepted only to be refused."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] % (1 << 31)  # -1: no limit
    return min(wanted, max(files // 2, files - 128))


def host_names(host: str, allowed: Sequence[str]) -> frozenset[str]:
    """Collects localhost, the machine's name, the name in `--host` and those in `--allowed-hosts`. Raises
    InputError."""
    names = [name.strip().lower() for names in allowed for name in names.split(",")]
    for name in names:
        if not re.fullmatch(r"\*|[\w.-]+", name):
            raise InputError(f"--allowed-hosts {name}: must be a name such as nmt.example.org, without a port, or *")
    return frozenset({"localhost", socket.gethostname().lower(), host.lower(), *names})


def api_key(file: Path | None) -> bytes | None:
    """Reads the API key from a file, or else from the environment. Raises InputError."""
    if file is None and "NMT_API_KEY" not in os.environ:
        return None
    source = "NMT_API_KEY" if file is None else f"--api-key-file {file}"
    if file is None:
        key = os.fsencode(os.environ["NMT_API_KEY"])
    else:
        with reading(source):
            key = read_whole(file, most=1 << 10)
            if file.stat().st_mode & 0o004:
                log.warning(f"{source}: everyone on this machine can read it; chmod 600 keeps it to yourself")
    if not re.fullmatch(rb"[!-~]+", key := key.strip()):
        what = "must be one line of ASCII without spaces" if key else "is empty"
        raise InputError(f"{source}: {what}; `openssl rand -hex 32` makes a key")
    return key


def url(listening: socket.socket) -> str:
    """Formats the address for a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
