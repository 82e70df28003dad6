"""One future for many records: what it says while they travel, when batches are cut up, fail or never begin."""

from __future__ import annotations

from typing import Any

import pytest

from harness.producer.model import ProducerModel
from kclient.errors import (
    BufferExhaustedError,
    ErrorCode,
    KafkaTimeoutError,
    RecordTooLargeError,
    TopicAuthorizationError,
)
from kclient.producer.bulk import BulkFuture
from kclient.producer.internals.placement import Placement
from kclient.producer.internals.send_many import send_many
from kclient.utils.steps import run


def model(partitions: int = 1, **settings: object) -> ProducerModel:
    m = ProducerModel(**{"linger_ms": 0, "batch_size": 1000} | settings)
    m.know({"t": partitions})
    return m.initialized()


def send(m: ProducerModel, values: list[Any], keys: list[Any] | None = None) -> BulkFuture:
    return run(send_many(m.core, Placement(m.core), "t", values, keys, None), m.time)


def test_it_is_done_when_the_last_batch_is() -> None:
    m = model()
    told: list[object] = []
    future = send(m, [b"%d" % i * 100 for i in range(20)])
    future.add_done_callback(told.append)
    assert not future.done()
    assert future.ranges() == []
    with pytest.raises(KafkaTimeoutError, match="not all of 20 records"):
        future.result(0)
    m.run()
    m.answer()
    first = future.ranges()
    assert 0 < sum(part.count for part in first) < 20
    assert not future.done()
    assert not told
    m.settle()
    assert future.done()
    assert told == [future]
    parts = future.result(0)
    assert [index for part in parts for index in part.indexes] == list(range(20))
    assert [part.base_offset for part in parts] == [part.indexes[0] for part in parts]
    future.add_done_callback(told.append)
    assert told == [future, future]


def test_the_records_of_one_batch_are_one_range() -> None:
    m = model()
    future = send(m, [b"a"] * 10)
    m.run()
    m.settle()
    (part,) = future.result(0)
    assert part.indexes == range(10)


def test_a_batch_that_is_cut_up_tells_where_its_parts_went() -> None:
    m = model()
    told: list[object] = []
    future = send(m, [b"%d" % i * 50 for i in range(8)])
    future.add_done_callback(told.append)
    m.run()
    m.broker.fail("t", ErrorCode.MESSAGE_TOO_LARGE)
    m.answer()
    m.settle()
    parts = future.result(0)
    assert len(parts) > 1
    assert [index for part in parts for index in part.indexes] == list(range(8))
    assert [part.base_offset for part in parts] == [part.indexes[0] for part in parts]
    assert told == [future]


def test_what_failed_says_so_and_what_did_not_says_where_it_is() -> None:
    m = model(max_in_flight_requests_per_connection=1, kclient_adaptive_batching=False)
    future = send(m, [b"%d" % i * 100 for i in range(20)])
    m.run()
    m.broker.fail("t", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    m.answer()
    m.settle()
    with pytest.raises(TopicAuthorizationError):
        future.result(0)
    parts = future.ranges()
    assert isinstance(parts[0].error, TopicAuthorizationError)
    assert parts[0].base_offset == -1
    assert all(part.error is None for part in parts[1:])
    assert sum(part.count for part in parts) == 20


def test_when_memory_runs_out_half_way_the_rest_has_failed_and_the_beginning_is_sent() -> None:
    m = model(buffer_memory=3000, max_block_ms=0, max_request_size=2000)
    future = send(m, [b"%d" % (i % 10) * 400 for i in range(20)])
    m.run()
    m.settle()
    assert isinstance(future.exception(0), BufferExhaustedError)
    *written, rest = future.ranges()
    assert written
    assert all(part.error is None for part in written)
    assert isinstance(rest.error, BufferExhaustedError)
    assert rest.indexes[-1] == 19
    assert len(m.broker.log("t").values) == rest.indexes[0]
    assert m.accumulator.pool.available == m.accumulator.pool.total


def test_a_record_that_no_request_can_hold_is_refused_before_the_others_are_sent() -> None:
    m = model(max_request_size=2000)
    with pytest.raises(RecordTooLargeError, match=r"max.request.size"):
        send(m, [b"a", b"x" * 1990])
    assert not m.accumulator.queued.incomplete


def test_a_callback_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    m = model()
    future = send(m, [b"a"])

    def odd(_: object) -> None:
        raise RuntimeError("odd")

    future.add_done_callback(odd)
    m.run()
    m.settle()
    assert "odd" in caplog.text
