"""Futures in coroutines and as futures of the standard library: those of operations, records and many records."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kclient._accel import reference
from kclient.errors import KafkaError, KafkaTimeoutError
from kclient.producer.bulk import BulkFuture, Part, RecordRange
from kclient.record import BatchBuilder, BatchResult
from kclient.utils.futures import CompletableFuture

Made = tuple[Any, Callable[[], object], Callable[[BaseException], object], Any]


def operation() -> Made:
    future: CompletableFuture[int] = CompletableFuture()
    return future, lambda: future.complete(7), future.fail, 7


def record(builder: Any = BatchBuilder) -> Made:
    result = BatchResult("t", 1)
    future = builder("t", 1, 1000, result, 0).append(5, None, b"abc", None)
    return (
        future,
        lambda: result.complete(7),
        lambda error: result.complete(-1, -1, error),
        ("t", 1, 7, 5, -1, 3),
    )


def pure_record() -> Made:
    return record(reference.BatchBuilder)


def many() -> Made:
    whole, first, second = (BatchResult("t", 1) for _ in range(3))
    future = BulkFuture([Part(whole, 0, range(4))])
    whole.replace_with([(0, first), (2, second)])

    def finish(error: BaseException | None = None) -> None:
        for offset, result in ((7, first), (9, second)):
            result.complete(offset, -1, error)

    ranges = [RecordRange("t", 1, 7, range(2)), RecordRange("t", 1, 9, range(2, 4))]
    return future, finish, finish, ranges


@pytest.fixture(params=[operation, record, pure_record, many])
def made(request: pytest.FixtureRequest) -> Made:
    found: Made = request.param()
    return found


def test_a_coroutine_waits_without_stopping_its_loop(made: Made) -> None:
    future, complete, _, expected = made

    async def run() -> Any:
        waiting = asyncio.ensure_future(future)
        for _ in range(3):
            await asyncio.sleep(0)
        assert not waiting.done()
        threading.Thread(target=complete).start()
        assert await asyncio.wait_for(waiting, 20) == expected
        return await future  # which is done by now

    assert inspect.isawaitable(future)
    assert asyncio.run(run()) == expected


def test_a_coroutine_gets_the_error(made: Made) -> None:
    future, _, fail, _ = made

    async def run() -> None:
        threading.Thread(target=fail, args=(KafkaError("no"),)).start()
        for _ in range(2):
            with pytest.raises(KafkaError, match="no"):
                await future

    asyncio.run(run())


def test_a_task_that_is_cancelled_leaves_the_operation_going_on(made: Made) -> None:
    future, complete, _, expected = made

    async def wait() -> Any:
        return await future

    async def run() -> None:
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(task, 0.01)
        assert task.cancelled()
        assert not future.done()
        complete()
        await asyncio.sleep(0)
        assert await future == expected

    asyncio.run(run())


def test_a_loop_that_is_closed_meanwhile_is_no_error(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    future, complete, _, expected = made

    async def run() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(future, 0.01)

    asyncio.run(run())
    complete()
    assert future.result(0) == expected
    assert not caplog.records


def test_many_are_gathered(made: Made) -> None:
    future, complete, _, expected = made

    async def run() -> list[Any]:
        threading.Thread(target=complete).start()
        return await asyncio.gather(future, future)

    assert asyncio.run(run()) == [expected, expected]


def test_without_a_loop_there_is_nothing_to_wait_in(made: Made) -> None:
    with pytest.raises(RuntimeError, match="running event loop"):
        next(made[0].__await__())


def test_the_standard_library_waits_for_it(made: Made) -> None:
    future, complete, _, expected = made
    concurrent_ = future.as_concurrent()
    assert isinstance(concurrent_, concurrent.futures.Future)
    assert not concurrent_.cancel()
    assert not concurrent.futures.wait([concurrent_], 0).done
    thread = threading.Thread(target=complete)
    thread.start()
    assert [each.result() for each in concurrent.futures.as_completed([concurrent_], 20)] == [expected]
    assert future.as_concurrent().result(0) == expected
    thread.join()

    async def run() -> Any:
        return await asyncio.wrap_future(future.as_concurrent())

    assert asyncio.run(run()) == expected


def test_the_standard_librarys_future_has_the_error(made: Made) -> None:
    future, _, fail, _ = made
    concurrent_ = future.as_concurrent()
    error = KafkaTimeoutError("late")
    fail(error)
    assert concurrent_.exception(0) is error
    assert future.as_concurrent().exception(0) is error


def test_repr_tells_how_it_stands(made: Made) -> None:
    future, complete, _, _ = made
    assert "not done" in repr(future)
    complete()
    assert "7" in repr(future) or "0 not done, 0 failed" in repr(future)


def test_repr_tells_the_error(made: Made) -> None:
    future, _, fail, _ = made
    fail(KafkaError("mine"))
    assert "mine" in repr(future) or "4 failed" in repr(future)


def test_the_future_of_a_record_tells_its_partition_and_has_no_room_for_more_than_it_needs() -> None:
    for make in (record, pure_record):
        future = make()[0]
        assert "t-1" in repr(future)
        assert not hasattr(future, "__dict__")
        assert sys.getsizeof(future) <= 56
