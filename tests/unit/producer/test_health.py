"""Health of a producer: its memory, and the records that it has."""

from __future__ import annotations

import pytest

from harness.mock_client import MockClient
from harness.mock_time import MockTime
from kclient.errors import BufferExhaustedError
from kclient.producer.config import ProducerConfig
from kclient.producer.health import ProducerHealth, health_of
from kclient.producer.internals.assembly import ProducerCore, build_producer
from kclient.producer.internals.buffer_pool import Claim
from kclient.producer.internals.producer_batch import BatchState
from kclient.utils.steps import run


class Model:
    """A producer whose I/O thread passes for running, and does nothing."""

    def __init__(self) -> None:
        self.time = MockTime()
        settings = {"bootstrap_servers": "mock:9092", "buffer_memory": 1000, "max_block_ms": 100}
        self.core: ProducerCore = build_producer(
            ProducerConfig.parse(None, {**settings, "batch_size": 200, "linger_ms": 5}),
            time=self.time,
            client=MockClient(self.time),
            start=False,
        )
        self.core.io_thread._thread.is_alive = lambda: True  # type: ignore[method-assign]

    def health(self) -> ProducerHealth:
        return health_of(self.core)

    def add(self, count: int) -> None:
        accumulator = self.core.accumulator
        for _ in range(count):
            run(accumulator.append(accumulator.topic("t"), 0, None, None, b"v", (), None), self.time)


@pytest.fixture
def model() -> Model:
    return Model()


def test_an_idle_producer_has_all_its_memory_and_no_records(model: Model) -> None:
    health = model.health()
    assert health.healthy
    assert (health.buffer_available_bytes, health.buffer_total_bytes, health.waiting_threads) == (
        1000,
        1000,
        0,
    )
    assert (health.records_queued, health.records_in_flight, health.oldest_batch_age_ms) == (0, 0, None)


def test_records_are_queued_or_in_flight_and_the_oldest_batch_has_an_age(model: Model) -> None:
    model.add(3)
    model.time.advance(40)
    health = model.health()
    assert (health.records_queued, health.records_in_flight, health.oldest_batch_age_ms) == (3, 0, 40)
    (batch,) = model.core.accumulator.queued.incomplete.snapshot()
    batch.transition_to(BatchState.IN_FLIGHT)
    health = model.health()
    assert (health.records_queued, health.records_in_flight) == (0, 3)


def test_memory_is_a_reason_when_none_came_free_for_max_block_and_until_some_does(model: Model) -> None:
    pool = model.core.accumulator.pool
    taken = Claim()
    assert pool.try_allocate(taken, 900)
    with pytest.raises(BufferExhaustedError):
        run(pool.allocate(Claim(), 200, model.time.timer(0)), model.time)
    model.time.advance(100)
    assert model.health().healthy
    model.time.advance(1)
    (reason,) = model.health().reasons
    assert "No memory came free for 101 ms (max.block.ms): 100 of 1000 bytes (buffer.memory)" in reason
    pool.release(1)
    assert model.health().healthy


def test_a_producer_that_lost_its_thread_is_not_healthy(model: Model) -> None:
    model.core.io_thread._thread.is_alive = lambda: False  # type: ignore[method-assign]
    assert "I/O thread has ended" in model.health().reasons[0]
