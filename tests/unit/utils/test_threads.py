"""KafkaThread: its death, its end, and who waits for it."""

from __future__ import annotations

import gc
import os
import threading
import weakref

import pytest

from harness.interrupts import Storm
from kclient.utils.threads import KafkaThread


def test_a_thread_that_dies_logs_it_and_hands_the_error_over(caplog: pytest.LogCaptureFixture) -> None:
    deaths: list[BaseException] = []

    def body() -> None:
        raise RuntimeError("gone")

    thread = KafkaThread("kclient-test", body, deaths.append)
    thread.start()
    thread.join(10)
    assert [str(error) for error in deaths] == ["gone"]
    assert "kclient-test died" in caplog.text
    assert thread.daemon


def test_a_thread_lives_until_it_ends_however_often_waiting_for_it_is_interrupted() -> None:
    over = threading.Event()

    def wait_until_over() -> None:
        over.wait()

    thread = KafkaThread("kclient-test", wait_until_over)
    assert not thread.is_alive()
    thread.start()
    with Storm(KafkaThread.join) as storm:
        while storm.raised < 20:
            with pytest.raises(KeyboardInterrupt):
                thread.join()
            assert thread.is_alive()
    thread.join(0)
    assert thread.is_alive()
    over.set()
    thread.join()
    assert not thread.is_alive()
    assert thread not in threading.enumerate()


def test_a_finished_thread_does_not_keep_its_client_alive() -> None:
    class Client:
        def run(self) -> None:
            pass

        def died(self, error: BaseException) -> None:
            pass

    client = Client()
    alive = weakref.ref(client)
    thread = KafkaThread("kclient-test", client.run, client.died)
    thread.start()
    thread.join(10)
    del client
    gc.collect()
    assert alive() is None


def test_a_thread_does_not_wait_for_itself() -> None:
    told: list[BaseException] = []

    def join_itself() -> None:
        thread.join(10)

    thread = KafkaThread("kclient-test", join_itself, told.append)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert isinstance(told[0], RuntimeError)


def test_waiting_for_a_thread_that_never_began_is_refused() -> None:
    thread = KafkaThread("kclient-test", lambda: None)
    with pytest.raises(RuntimeError, match="before it is started"):
        thread.join(0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_is_told_of_a_death_may_fail_without_hanging_those_who_wait() -> None:
    def fail() -> None:
        raise ValueError("first")

    def fail_again(error: BaseException) -> None:
        raise RuntimeError("second") from error

    thread = KafkaThread("kclient-test", fail, fail_again)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.heavy
def test_a_thread_of_the_parent_is_not_alive_in_a_child() -> None:
    over = threading.Event()

    def wait_until_over() -> None:
        over.wait()

    thread = KafkaThread("kclient-test", wait_until_over)
    thread.start()
    child = os.fork()
    if child == 0:
        os._exit(thread.is_alive())
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert thread.is_alive()
    over.set()
    thread.join(10)
