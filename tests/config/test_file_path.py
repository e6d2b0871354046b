"""Variables and the home folder in paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from nmt.config.file_path import expand


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SET", "value"), ("EMPTY", ""), ("HOME", "/home/someone")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UNSET", raising=False)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/${SET}/b", "a/value/b"),
        ("${SET:-other}/b", "value/b"),
        ("${UNSET:-../shared/x}/b", "../shared/x/b"),
        ("${EMPTY:-other}/b", "other/b"),
        ("a/${EMPTY}b", "a/b"),
        ("~/b", "/home/someone/b"),
        ("a~/$SET/{b}", "a~/$SET/{b}"),
    ],
)
def test_paths_are_expanded(path: str, expected: str) -> None:
    assert expand(Path(path)) == Path(expected)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("${UNSET}/a", r"UNSET is not set; set it or write \$\{UNSET:-default\}"),
        ("a\0b", r"cannot hold the character U\+0000"),
        ("~nobody-of-that-name/b", "no home folder is known for '~'; write the path in full"),
    ],
)
def test_what_cannot_be_expanded_is_an_error(path: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        expand(Path(path))
