from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import pytest

from harness.producer.model import ProducerModel
from harness.waiting import wait_until
from kclient.errors import BufferExhaustedError, ClientClosedError, RecordTooLargeError
from kclient.utils.steps import run


def model(topics: dict[str, int] | None = None, **settings: object) -> ProducerModel:
    made = ProducerModel(**{"linger_ms": 1000, "enable_idempotence": False, **settings})
    made.know(topics or {"t": 1})
    return made


def batches(m: ProducerModel, partition: int = 0) -> list[int]:
    """The numbers of records in a partition's batches."""
    return [batch.builder.count for batch in m.accumulator.topic("t").queue(partition).batches]


def refused_send(m: ProducerModel) -> Callable[[], BaseException]:
    """Let another thread send until it waits for memory; what is returned waits for the error that this ends with."""
    errors: list[BaseException] = []

    def send() -> None:
        try:
            m.send(b"x" * 500)
        except BaseException as error:
            errors.append(error)

    def refused() -> BaseException:
        thread.join(10)
        (error,) = errors
        return error

    thread = threading.Thread(target=send)
    thread.start()
    wait_until(lambda: m.accumulator.pool.waiting == 1)
    return refused


def test_records_share_a_batch_until_it_is_full() -> None:
    m = model(batch_size=300)
    for _ in range(10):
        m.send(b"x" * 40)
    assert batches(m) == [5, 5]


def test_batch_size_0_sends_every_record_alone() -> None:
    m = model(batch_size=0)
    for _ in range(3):
        m.send(b"x")
    assert batches(m) == [1, 1, 1]


def test_a_record_larger_than_batch_size_gets_a_batch_of_its_own() -> None:
    m = model(batch_size=100)
    m.send(b"x" * 500)
    m.send(b"x")
    assert batches(m) == [1, 1]


@pytest.mark.parametrize(("length", "fits"), [(915, True), (916, False)])
def test_a_record_is_refused_at_the_exact_edge_of_max_request_size(length: int, fits: bool) -> None:
    # 61 of the batch, 21 for the record's own fields, key and headers 1 each, the length of the value 2.
    m = model(max_request_size=61 + 21 + 1 + 1 + 2 + 915)
    if fits:
        m.send(b"x" * length)
        return
    with pytest.raises(RecordTooLargeError, match=r"max\.request\.size"):
        m.send(b"x" * length)


def test_a_record_larger_than_all_memory_is_refused() -> None:
    with pytest.raises(RecordTooLargeError, match=r"buffer\.memory"):
        model(buffer_memory=1000).send(b"x" * 1000)


def test_memory_is_full_until_max_block_is_over_then_send_raises() -> None:
    m = model(buffer_memory=1000, batch_size=600, max_block_ms=500)
    m.send(b"x" * 500)
    refused = refused_send(m)
    m.time.advance(499)
    assert m.accumulator.pool.waiting == 1
    m.time.advance(1)
    error = refused()
    assert isinstance(error, BufferExhaustedError)
    assert "max.block.ms" in str(error)
    assert m.accumulator.pool.waiting == 0


def test_a_callback_never_waits_for_memory() -> None:
    m = model(buffer_memory=1000, batch_size=600, max_block_ms=60_000)
    m.send(b"x" * 500)
    m.accumulator.io_thread_id = threading.get_ident()
    with pytest.raises(BufferExhaustedError):
        m.send(b"x" * 500)


def test_a_record_that_waits_for_memory_goes_on_when_a_batch_is_answered() -> None:
    m = model(buffer_memory=1000, batch_size=600, max_block_ms=60_000)
    first = m.send(b"x" * 500)
    thread = threading.Thread(target=lambda: m.send(b"y" * 500))
    thread.start()
    wait_until(lambda: m.accumulator.pool.waiting == 1)
    m.run()
    m.answer()
    thread.join(10)
    assert first.done()
    m.settle()
    assert m.broker.log("t").values == [b"x" * 500, b"y" * 500]
    assert m.accumulator.pool.available == m.accumulator.pool.total


def test_the_open_batch_grows_while_others_wait_before_it() -> None:
    m = model(batch_size=200)
    for _ in range(30):
        m.send(b"x" * 100)
    counts = batches(m)
    assert counts[0] == 1
    assert counts[1] == 29
    m.settle()
    assert m.accumulator.pool.available == m.accumulator.pool.total


def test_batches_of_a_partition_that_had_to_be_split_do_not_grow() -> None:
    m = model(batch_size=200)
    m.accumulator.topic("t").queue(0).may_grow = False
    for _ in range(4):
        m.send(b"x" * 100)
    assert batches(m) == [1, 1, 1, 1]


def test_batches_keep_to_batch_size_where_that_is_asked_for() -> None:
    m = model(batch_size=200, kclient_adaptive_batching="false")
    for _ in range(4):
        m.send(b"x" * 100)
    assert batches(m) == [1, 1, 1, 1]


def test_growing_is_bounded_by_max_request_size_and_a_share_of_the_memory() -> None:
    m = model(batch_size=1000, max_request_size=3000, buffer_memory=1_000_000)
    for _ in range(100):
        m.send(b"x" * 100)
    assert max(batch.builder.size for batch in m.accumulator.topic("t").queue(0).batches) <= 3000


def test_growing_ends_at_half_a_megabyte_and_a_larger_batch_size_is_kept() -> None:
    grown = model(batch_size=1000, buffer_memory=64_000_000)
    large = model(batch_size=800_000, buffer_memory=64_000_000)
    for m in (grown, large):
        for _ in range(100):
            m.send(b"x" * 20_000)
    sizes = [batch.builder.size for batch in grown.accumulator.topic("t").queue(0).batches]
    assert 450_000 < max(sizes) <= 500_000
    assert 750_000 < max(b.builder.size for b in large.accumulator.topic("t").queue(0).batches) <= 800_000


def test_records_without_key_stay_with_a_partition_for_a_batch_then_move() -> None:
    m = model({"t": 4}, batch_size=500)
    futures = [m.send(b"x" * 90, partition=None) for _ in range(400)]
    m.run()
    m.settle()
    partitions = [future.result(0).partition for future in futures]
    runs = 1 + sum(before != after for before, after in itertools.pairwise(partitions))
    assert set(partitions) == {0, 1, 2, 3}
    assert 400 / runs >= 4


def test_records_without_key_leave_a_partition_that_is_gone() -> None:
    m = model({"t": 4})
    m.send(b"x", partition=None)
    m.know({"t": 1})
    assert m.send(b"x", partition=None).resolve()[0].partition == 0


def test_a_compressed_batch_holds_more_once_the_ratio_is_known() -> None:
    m = model(batch_size=1000, compression_type="gzip", linger_ms=0)
    for _ in range(80):
        m.send(b"x" * 500)
        m.send(b"x" * 450)
        m.run()
        m.settle()
    assert m.accumulator.queued.compressor.uncompressed_limit("t", 1000, 100_000) > 1200


def test_nothing_is_accepted_after_close() -> None:
    m = model()
    m.send(b"x")
    m.accumulator.close()
    m.accumulator.topic("t").queue(0).open = None
    with pytest.raises(ClientClosedError):
        m.send(b"x")


def test_closing_wakes_those_who_wait_for_memory() -> None:
    m = model(buffer_memory=1000, batch_size=600, max_block_ms=60_000)
    m.send(b"x" * 500)
    refused = refused_send(m)
    m.accumulator.close()
    assert isinstance(refused(), ClientClosedError)


def test_the_io_thread_is_woken_for_the_first_batch_and_not_for_each_record() -> None:
    m = model(linger_ms=5)
    m.accumulator._wakeup.sleep(m.time.monotonic_ms() + 100_000, frozenset())
    before = m.client.wakeups
    for _ in range(100):
        m.send(b"x")
    assert m.client.wakeups == before + 1


def test_the_io_thread_is_not_woken_for_a_broker_that_takes_no_more() -> None:
    m = model(linger_ms=0)
    m.accumulator._wakeup.sleep(m.time.monotonic_ms() + 100_000, frozenset({0}))
    before = m.client.wakeups
    m.send(b"x")
    assert m.client.wakeups == before


def test_flush_waits_for_what_was_added_before_and_not_for_later_records() -> None:
    m = model(linger_ms=60_000)
    m.send(b"a")
    done = threading.Event()

    def flush() -> None:
        m.accumulator.begin_flush()
        run(m.accumulator.queued.incomplete.await_all_until_now(None), m.time)
        m.accumulator.end_flush()
        done.set()

    thread = threading.Thread(target=flush)
    thread.start()
    wait_until(lambda: m.accumulator.queued.must_send_all)
    m.run()
    m.send(b"b")
    assert not done.is_set()
    m.answer()
    thread.join(10)
    assert done.is_set()
    assert len(m.accumulator.queued.incomplete) == 1


def test_records_of_many_threads_all_arrive_once_and_in_each_threads_order() -> None:
    m = model({"t": 2}, linger_ms=0, batch_size=500, buffer_memory=100_000, max_request_size=5000)
    stop = threading.Event()

    def io() -> None:
        while not stop.is_set() or m.accumulator.queued.incomplete:
            m.run()
            if m.waiting:
                m.answer()

    def send(who: int) -> None:
        for i in range(2000):
            m.send(b"%d:%d" % (who, i), partition=who % 2)

    worker = threading.Thread(target=io)
    senders = [threading.Thread(target=send, args=(who,)) for who in range(8)]
    for thread in (worker, *senders):
        thread.start()
    for thread in senders:
        thread.join(60)
    stop.set()
    worker.join(60)
    for partition in (0, 1):
        values = m.broker.log("t", partition).values
        for who in range(partition, 8, 2):
            mine = [value for value in values if value is not None and value.startswith(b"%d:" % who)]
            assert mine == [b"%d:%d" % (who, i) for i in range(2000)]
    assert m.accumulator.pool.available == m.accumulator.pool.total
