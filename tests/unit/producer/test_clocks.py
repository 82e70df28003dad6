"""A producer whose wall clock jumps, and one that has nothing to do for a day."""

from __future__ import annotations

import pytest

from harness.producer.model import ready_producer
from kclient.errors import KafkaTimeoutError
from kclient.protocol.messages.metadata import MetadataRequest

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS])
def test_a_wall_clock_that_jumps_moves_no_deadline(jump_ms: int) -> None:
    m = ready_producer(linger_ms=100, request_timeout_ms=1000, delivery_timeout_ms=2000)
    future = m.send(b"a")
    m.time.set_wall_ms(m.time.wall_ms() + jump_ms)
    m.run()
    assert not m.waiting, "it lingers by another clock"
    m.run(advance_ms=101)
    assert len(m.waiting) == 1
    m.time.set_wall_ms(m.time.wall_ms() + jump_ms)
    m.run(3)
    assert len(m.waiting) == 1
    assert not future.done()
    m.answer()
    assert future.result(0).offset == 0
    late = m.send(b"b")
    m.time.set_wall_ms(m.time.wall_ms() - jump_ms)
    m.run(3, advance_ms=1999)
    assert not late.done()
    m.run(3, advance_ms=2)
    assert isinstance(late.exception(0), KafkaTimeoutError)


def test_after_a_day_without_records_the_first_one_is_sent_at_once() -> None:
    m = ready_producer()
    m.send(b"a")
    m.settle()
    sent = len(m.client.sent)
    until_ms = m.time.monotonic_ms() + DAY_MS
    while m.time.monotonic_ms() < until_ms:
        m.run(advance_ms=60_000)
    idle = [type(each.message) for each in m.client.sent[sent:]]
    assert set(idle) <= {MetadataRequest}
    assert len(idle) <= DAY_MS // 300_000
    assert m.accumulator.pool.available == m.accumulator.pool.total
    m.know({"t": 1})  # a topic that is not used is forgotten after metadata.max.idle.ms
    future = m.send(b"b")
    m.run()
    m.answer()
    assert future.result(0).offset == 1
