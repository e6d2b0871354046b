"""The socket of a server, and the names, the key and the number of connections that it is given."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from nmt.core.errors import InputError
from nmt.extras.service.listening import api_key, bind, connections_at_most, host_names, url


def test_what_cannot_be_listened_at_is_told() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert url(taken) == f"http://127.0.0.1:{port}"
        used = rf"^--port {port}: cannot be had on 127\.0\.0\.1: Address already in use; choose another one"
        with pytest.raises(InputError, match=used):
            bind("127.0.0.1", port)
    message = "^--host 203.0.113.7: is not an address of this machine; 0.0.0.0 is all it has$"
    with pytest.raises(InputError, match=message):
        bind("203.0.113.7", 0)


def test_an_address_of_ipv6_is_written_as_browsers_want_it() -> None:
    try:
        listening = bind("::1", 0)
    except InputError:
        pytest.skip("no IPv6 here")
    with listening:
        assert listening.family == socket.AF_INET6
        assert url(listening) == f"http://[::1]:{listening.getsockname()[1]}"
    with bind("::", 0) as every, socket.create_connection(("127.0.0.1", every.getsockname()[1]), timeout=20):
        pass  # by IPv4, too


def test_connections_are_no_more_than_the_files_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for files, most in ((200, 100), (1024, 896), (65536, 1000), (resource.RLIM_INFINITY, 1000)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, files=files: (files, files))
        assert connections_at_most(1000) == most
        assert connections_at_most(10) == 10


def test_the_names_of_a_server_are_local_or_given() -> None:
    own = {"localhost", socket.gethostname().lower(), "nmt.lan"}
    assert host_names("NMT.lan", []) == own
    assert host_names("nmt.lan", ["A.example, b.example", "*"]) == own | {"a.example", "b.example", "*"}
    for wrong in ("http://a.example", "a.example:80", "a.example,", "*.example"):
        with pytest.raises(InputError, match=r"^--allowed-hosts .*: must be a name such as"):
            host_names("localhost", [wrong])


def test_a_key_is_read_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NMT_API_KEY", raising=False)
    file = tmp_path / "key"
    file.write_text("from-file\n")
    file.chmod(0o600)
    assert api_key(None) is None
    assert api_key(file) == b"from-file"
    monkeypatch.setenv("NMT_API_KEY", "from-environment")
    assert api_key(None) == b"from-environment"
    assert api_key(file) == b"from-file"
    assert capsys.readouterr().err == ""
    file.chmod(0o604)
    assert api_key(file) == b"from-file"
    warning = f"warning: --api-key-file {file}: everyone on this machine can read it; chmod 600 keeps it to yourself\n"
    assert capsys.readouterr().err == warning


@pytest.mark.parametrize(
    ("content", "message"),
    [("", "is empty;"), (" \n", "is empty;"), ("a b", "must be one line of ASCII without spaces;"),
     ("a\nb", "must be one line"), ("schlüssel", "must be one line"), (None, "no such file")],
)  # fmt: skip
def test_a_key_that_is_none_is_told(
    content: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content, encoding="utf-8")
        monkeypatch.setenv("NMT_API_KEY", content)
        with pytest.raises(InputError, match=f"^NMT_API_KEY: {message}"):
            api_key(None)
    with pytest.raises(InputError, match=f"^--api-key-file .*key: {message}"):
        api_key(file)
