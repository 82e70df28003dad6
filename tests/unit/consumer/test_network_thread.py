"""Tasks that the application has done on the I/O thread, and what becomes of them when the thread ends."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.consumer.internals.requests import Request
from kclient.errors import ClientClosedError, KafkaError


def fail(error: Exception) -> Any:
    def task(_now_ms: int) -> None:
        raise error

    return task


@pytest.mark.parametrize("error", [KafkaError("no"), ValueError("no")])
def test_a_task_that_fails_fails_its_request_and_no_other_one(rig: Any, error: Exception) -> None:
    network, times = rig.network, []
    request = Request[None](0)
    rig._submit(fail(error), request)
    rig._submit(fail(error))
    rig._submit(times.append)
    network.run_once()
    assert request.exception(0) is error
    assert times == [rig.time.monotonic_ms()]


def test_at_the_end_of_the_thread_requests_fail(rig: Any) -> None:
    before, after = Request[None](0), Request[None](0)
    rig._submit(before.complete, before)
    rig.network._ended = True
    rig._submit(after.complete, after)
    for request in (before, after):
        assert isinstance(request.exception(0), ClientClosedError)
    rig._submit(lambda _: None)
    assert not rig.network._tasks
    rig.network._ended = False
