"""Where there is no native Poller, native appends give way to the pure one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("kclient._accel.batch", reason="the native body is not built")


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


def test_without_a_native_poller_the_pure_one_and_its_hand_over_stand_in() -> None:
    run(
        """
from kclient._accel import poller
poller.AVAILABLE = False
from kclient._accel import native, pure
assert native.Poller is pure.Poller
assert native.hand_over is pure.hand_over
"""
    )


def test_an_append_calls_the_stand_in_and_not_too_often_also_after_a_fork() -> None:
    run(
        """
import os, time
from kclient._accel import batch, pure
calls = 0

def hand_over():
    global calls
    calls += 1

def appends():
    global calls
    calls = 0
    builder = batch.BatchBuilder("t", 0, 1 << 24, pure.BatchResult("t", 0, lambda *_: None, ""), 0)
    started = time.monotonic()
    while time.monotonic() - started < 0.05:
        builder.append(None, None, b"x", None)
    assert 1 <= calls <= (time.monotonic() - started) * 1000 + 2, calls
    assert builder.count > calls

batch.give_way_by(hand_over)
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
builder = batch.BatchBuilder("t", 0, 1 << 24, pure.BatchResult("t", 0, lambda *_: None, ""), 0)
time.sleep(0.005)
builder.append(None, None, b"x", None)
assert calls == before
"""
    )
