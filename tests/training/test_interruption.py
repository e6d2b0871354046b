"""Signals as requests to stop."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from nmt.training.interruption import Stopped, end, interruptible, terminated_as_interrupted


@pytest.mark.parametrize(("number", "ends"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
def test_the_first_signal_is_a_request_and_the_second_ends(number: int, ends: type[BaseException]) -> None:
    before = signal.getsignal(number)
    with interruptible() as interruption:
        assert interruption.signal == 0
        os.kill(os.getpid(), number)
        assert interruption.signal == number
        with pytest.raises(Stopped), interruption.at_once():
            pytest.fail("it has arrived")
        with pytest.raises(ends):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) == before


def test_a_signal_stops_at_once_what_may_be_left() -> None:
    with interruptible() as interruption, pytest.raises(Stopped), interruption.at_once():
        os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        end(signal.SIGTERM)
    assert ended.value.code == 143


def test_sigterm_may_be_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        os.kill(os.getpid(), signal.SIGTERM)


def test_other_threads_leave_the_handlers_alone() -> None:
    before, seen = signal.getsignal(signal.SIGTERM), list[object]()

    def work() -> None:
        with interruptible(), terminated_as_interrupted():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
