"""The wish to stop: an event, a signal, and a second one."""

from __future__ import annotations

import signal
import threading

import pytest

from kclient.processing.stopping import Stop

SIGNALS = [signal.SIGTERM, signal.SIGINT]


def test_an_event_is_a_wish_to_stop() -> None:
    event = threading.Event()
    stop = Stop(event)
    assert not stop.wanted
    event.set()
    assert stop.wanted
    assert not Stop(None).wanted


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_is_a_wish_and_the_second_one_an_interrupt(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    stop = Stop(None)
    with stop.on_signals():
        signal.raise_signal(number)
        assert stop.wanted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert [signal.getsignal(each) for each in SIGNALS] == before


def test_on_other_threads_signals_are_left_alone() -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    seen: list[object] = []

    def inside() -> None:
        with Stop(None).on_signals():
            seen.extend(signal.getsignal(each) for each in SIGNALS)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == before
