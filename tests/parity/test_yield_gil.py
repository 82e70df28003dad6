"""Appends give way to the I/O thread: to the native Poller by its own word, where there is none to the pure one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from harness.waiting import wait_until
from kclient._accel import BatchResult

pytest.importorskip("kclient._accel.native.batch", reason="the native body is not built")
native_poller = pytest.importorskip("kclient._accel.native.poller", reason="the native body is not built")


def run(program: str) -> None:
    environment = {**os.environ, "KCLIENT_IMPL": "python"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment,
    )
    assert done.returncode == 0, done.stderr


def test_without_a_native_poller_the_pure_one_and_its_yield_gil_stand_in() -> None:
    run(
        """
import importlib
from kclient._accel import native
from kclient._accel import reference
native.poller.AVAILABLE = False
native = importlib.reload(native)
assert native.Poller is reference.Poller
assert native.yield_gil is reference.yield_gil
"""
    )


def test_an_append_calls_the_stand_in_and_not_too_often_also_after_a_fork() -> None:
    run(
        """
import os, time
from kclient._accel import BatchResult
from kclient._accel.native import batch
calls = 0

def yield_gil():
    global calls
    calls += 1

def appends():
    global calls
    calls = 0
    builder = batch.BatchBuilder("t", 0, 1 << 24, BatchResult("t", 0, lambda *_: None, ""), 0)
    started = time.monotonic()
    while time.monotonic() - started < 0.05:
        builder.append(None, None, b"x", None)
    assert 1 <= calls <= (time.monotonic() - started) * 1000 + 2, calls
    assert builder.count > calls

batch.give_way_by(yield_gil)
appends()
child = os.fork()
if child == 0:
    try:
        appends()
        os._exit(0)
    except BaseException:
        os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
batch.give_way_by(None)
before = calls
builder = batch.BatchBuilder("t", 0, 1 << 24, BatchResult("t", 0, lambda *_: None, ""), 0)
time.sleep(0.005)
builder.append(None, None, b"x", None)
assert calls == before
"""
    )


@pytest.fixture
def nobody_is_made_to_give_way() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(30)
    yield
    sys.setswitchinterval(before)


@pytest.mark.skipif(not native_poller.AVAILABLE, reason="the pure Poller is given way to by time")
@pytest.mark.parametrize("how", ["append", "append_many", "append_columns"])
@pytest.mark.usefixtures("nobody_is_made_to_give_way")
def test_a_thread_that_appends_all_the_time_lets_an_io_thread_run(how: str) -> None:
    from kclient._accel import native

    poller = native.Poller()
    ran = []

    def work() -> None:
        poller.poll(20_000)
        ran.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: poller.polling, what="the thread in its poll")
    batch = native.BatchBuilder("t", 0, 1 << 30, BatchResult("t", 0), 0)
    step: Callable[[], object] = {
        "append": lambda: batch.append(None, None, b"v", None),
        "append_many": lambda: batch.append_many(None, None, [b"v"], 0, 1),
        "append_columns": lambda: batch.append_columns(None, None, None, 0, 1),
    }[how]
    poller.wake()
    woken = time.monotonic()
    while not ran and time.monotonic() < woken + 10:
        step()
    thread.join()
    poller.close()
    assert ran[0] < woken + 5
