"""Callbacks of the application: what they may raise, in what order they come, and what their futures say meanwhile."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from harness.producer.model import Server
from kclient.errors import ClientClosedError, IllegalStateError, KafkaError, KafkaTimeoutError
from kclient.producer import ProducerRecord, RecordMetadata
from kclient.producer.internals.produce_response import ProduceResponseHandler
from kclient.producer.internals.sender import Sender

# What ends a program where it is raised by the main thread.
ENDS = [SystemExit("mine"), KeyboardInterrupt("mine"), pytest.fail.Exception("mine")]
ENDS_IDS = ["exit", "interrupt", "fail"]


class Raising:
    """Raises `error` wherever a producer calls it."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.closed = 0

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None) -> None:
        raise self.error

    def partition(
        self, topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, cluster: Any
    ) -> int:
        return 0

    def __call__(self, value: Any) -> Any:
        return value

    def close(self) -> None:
        self.closed += 1
        raise self.error


@pytest.mark.parametrize("error", ENDS, ids=ENDS_IDS)
def test_what_would_end_a_program_is_logged_when_a_callback_raises_it_and_all_others_run(
    server: Server, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    seen: list[Any] = []

    def raising(*args: object) -> None:
        seen.append(args)
        raise error

    interceptor = Raising(error)
    with server.producer(linger_ms=60_000, interceptor_classes=[interceptor]) as producer:
        futures = [producer.send("t", b"v", partition=0, on_delivery=raising) for _ in range(3)]
        many = producer.send_many("t", [b"w"], partition=0)
        for future in (*futures, many):
            future.add_done_callback(raising)
        producer.flush(20_000)
        assert len(seen) == 7
        later = producer.send("t", b"later", partition=0)
        producer.flush(20_000)
        assert later.exception(0) is None
        assert producer._core.io_thread.alive
        interceptor.error = RuntimeError()  # close() is called by this thread
    told = [record for record in caplog.records if record.exc_info is not None]
    raised = [record.exc_info[1] for record in told if record.exc_info]
    # An interceptor for five records, all callbacks, and the end.
    assert raised == [error] * (5 + 7) + [interceptor.error]


def test_a_future_is_not_done_while_its_callback_runs(server: Server) -> None:
    entered, leave = threading.Event(), threading.Event()
    seen: list[Any] = []

    def deliver(metadata: RecordMetadata, _: KafkaError | None) -> None:
        seen.append((futures[0].done(), futures[0].result() == metadata, many.done(), many.result()[0].count))
        entered.set()
        leave.wait(20)

    with server.producer(linger_ms=60_000) as producer:
        futures = [producer.send("t", b"v", partition=0, on_delivery=deliver)]
        many = producer.send_many("t", [b"w"] * 3, partition=0)
        in_thread = threading.Thread(target=producer.flush)
        in_thread.start()
        assert entered.wait(20)
        assert not futures[0].done()
        assert not many.done()
        with pytest.raises(KafkaTimeoutError):
            many.result(0)
        leave.set()
        assert futures[0].result(20).offset == 0
        assert futures[0].done()
        assert many.done()
        in_thread.join(20)
    assert seen == [(False, True, False, 3)]


def test_what_interrupts_the_producer_in_a_step_is_refused_instead_of_waiting_for_itself(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with server.producer(linger_ms=60_000) as producer:
        producer.partitions_for("t")
        accumulator = producer._core.accumulator
        for lock in (accumulator._lock, accumulator.pool.lock, accumulator.queued.incomplete.lock):
            with lock:  # as where a signal's handler or a __del__ interrupts what holds it
                for use in (lambda: producer.send("t", b"v"), producer.flush):
                    with pytest.raises(IllegalStateError, match="__del__"):
                        use()
        future = producer.send("t", b"v")
        with accumulator._lock:
            producer.close()
            assert "in the background" in caplog.text
            assert not future.done()
    assert future.exception(0) is None


@pytest.mark.parametrize("error", ENDS, ids=ENDS_IDS)
def test_everything_is_closed_whatever_is_raised_meanwhile(
    server: Server, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    parts = [Raising(error) for _ in range(4)]
    interceptor, partitioner, key_serializer, value_serializer = parts
    producer = server.producer(
        interceptor_classes=[interceptor],
        partitioner_class=partitioner,
        key_serializer=key_serializer,
        value_serializer=value_serializer,
    )
    raised: list[BaseException] = []

    def close() -> None:
        try:
            producer.close()
        except BaseException as caught:
            raised.append(caught)

    thread = threading.Thread(target=close)
    thread.start()
    thread.join(20)
    producer.close()
    assert [part.closed for part in parts] == [1, 1, 1, 1]
    assert caplog.text.count("could not be closed") == 4
    assert not raised


def test_what_a_signal_may_have_raised_leaves_close_when_everything_is_closed(server: Server) -> None:
    parts = [Raising(KeyboardInterrupt()) for _ in range(2)]
    producer = server.producer(key_serializer=parts[0], value_serializer=parts[1])
    with pytest.raises(KeyboardInterrupt):
        producer.close()
    producer.close()
    assert [part.closed for part in parts] == [1, 1]


def test_flush_raises_when_the_io_thread_is_dead(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = server.producer(linger_ms=60_000)
    future = producer.send("t", b"v")
    waiting = threading.Event()
    errors: list[BaseException] = []

    def flush() -> None:
        waiting.set()
        try:
            producer.flush()
        except KafkaError as error:
            errors.append(error)

    def die() -> None:
        waiting.wait(20)
        raise SystemExit("out")

    monkeypatch.setattr(Sender, "_guarded_run_once", staticmethod(die))
    monkeypatch.setattr(Sender, "_abort", lambda *_: None)
    producer._core.client.wakeup()
    thread = threading.Thread(target=flush)
    thread.start()
    thread.join(20)
    with pytest.raises(KafkaError, match="I/O thread"):
        producer.flush()
    (error,) = errors
    assert isinstance(error.__cause__, SystemExit)
    assert not future.done()  # which is why nobody may wait for it
    producer.close()


def test_when_the_io_thread_dies_all_records_fail_with_the_cause(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = server.producer(linger_ms=60_000)
    future = producer.send("t", b"v")

    def die(*_: object) -> None:
        raise SystemExit("out")

    monkeypatch.setattr(ProduceResponseHandler, "end", die)
    monkeypatch.setattr(Sender, "_guarded_run_once", staticmethod(die))
    producer._core.client.wakeup()
    with pytest.raises(ClientClosedError, match=r"SystemExit\('out'\)"):
        future.result(20)
    assert producer._core.io_thread.join(20_000)
    with pytest.raises(KafkaError, match="I/O thread"):
        producer.flush()
    with pytest.raises(ClientClosedError):
        producer.send("t", b"v")
    producer.close()
