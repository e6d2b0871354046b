"""Messages and bars go to stderr, as much of them as was asked for."""

from __future__ import annotations

import pytest

from nmt.core import log
from nmt.core.log import Verbosity


@pytest.mark.parametrize(
    ("verbosity", "said"),
    [
        (Verbosity.QUIET, "warning: c\n"),
        (Verbosity.NORMAL, "b\nwarning: c\n"),
        (Verbosity.VERBOSE, "a\nb\nwarning: c\n"),
    ],
)
def test_verbosity(verbosity: Verbosity, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    log.set_verbosity(verbosity)
    log.detail("a")
    log.info("b")
    log.warning("c")
    assert capsys.readouterr() == ("", said)


def test_no_bar_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(log.progress([1, 2, 3], description="counting")) == [1, 2, 3]
    with log.progress(total=3) as bar:
        bar.update(3)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_sees_the_bar_and_whole_messages(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.delenv("CI", raising=False)
    with log.progress(total=3, description="counting") as bar:
        bar.update(2)
        bar.refresh()
        log.info("halfway")
    out, err = capsys.readouterr()
    assert out == ""
    assert "counting: 2/3, " in err
    assert "\rhalfway\n" in err  # the line was cleared before the message, so that it stands alone

    log.set_verbosity(Verbosity.QUIET)
    assert list(log.progress([1])) == [1]
    assert capsys.readouterr() == ("", "")
