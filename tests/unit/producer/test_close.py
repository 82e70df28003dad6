"""The end of a producer: closed, interrupted, forgotten, forked, or with its program; on a real socket."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import pytest

from harness.producer.model import Server
from harness.waiting import wait_until
from kclient.errors import ClientClosedError, ForkedClientError
from kclient.producer import KafkaProducer, kafka_producer
from kclient.protocol.api_keys import ApiKeys


def test_close_delivers_what_lingers(server: Server) -> None:
    producer = server.producer(linger_ms=60_000, delivery_timeout_ms=120_000)
    future = producer.send("t", b"v")
    producer.close()
    assert future.result(0).offset == 0


def test_close_0_delivers_nothing_more_and_is_quick(server: Server) -> None:
    producer = server.producer(linger_ms=60_000, delivery_timeout_ms=120_000)
    future = producer.send("t", b"v")
    started = time.monotonic()
    producer.close(timeout_ms=0)
    assert time.monotonic() - started < 20
    assert isinstance(future.exception(0), ClientClosedError)
    assert server.records() == []


def test_close_is_bounded_when_the_broker_does_not_answer(server: Server) -> None:
    producer = server.producer()
    producer.partitions_for("t")
    release = threading.Event()
    server.broker.on(ApiKeys.PRODUCE, lambda h, m: release.wait(30) and server.logs.produce(m))
    future = producer.send("t", b"v")
    started = time.monotonic()
    producer.close(timeout_ms=300)
    assert time.monotonic() - started < 20
    release.set()
    assert isinstance(future.exception(0), ClientClosedError)


def test_close_twice_is_fine_and_everything_else_says_closed(server: Server) -> None:
    producer = server.producer()
    producer.close()
    producer.close()
    with pytest.raises(ClientClosedError):
        producer.send("t", b"v")
    with pytest.raises(ClientClosedError):
        producer.partitions_for("t")


def test_close_waits_no_longer_than_told_for_a_callback_that_blocks(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    release = threading.Event()
    producer = server.producer()
    producer.send("t", b"v", on_delivery=lambda metadata, error: release.wait(60))
    wait_until(server.records)
    started = time.monotonic()
    producer.close(timeout_ms=100)
    assert time.monotonic() - started < 30
    assert "callback" in caplog.text
    release.set()
    producer._core.io_thread.join(10_000)


def test_an_interrupt_leaves_a_with_block_soon_and_tells_what_was_given_up(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert kafka_producer._INTERRUPTED_CLOSE_MS <= 5000
    monkeypatch.setattr(kafka_producer, "_INTERRUPTED_CLOSE_MS", 200)
    answer = threading.Event()
    server.broker.on(ApiKeys.PRODUCE, lambda h, m: answer.wait(30) and server.logs.produce(m))
    producer = server.producer()

    def use() -> None:
        with producer:
            futures.extend(producer.send("t", b"v", partition=partition) for partition in (0, 0, 1))
            raise KeyboardInterrupt

    futures: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        use()
    answer.set()
    assert not producer._core.io_thread.alive
    assert all(isinstance(future.exception(0), ClientClosedError) for future in futures)
    (told,) = [record.getMessage() for record in caplog.records if "given up" in record.getMessage()]
    for part in ("3 records", "2 of t-0", "1 of t-1"):
        assert part in told


def test_an_interrupt_of_a_with_block_still_delivers_what_can_be_delivered(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    def use() -> None:
        with server.producer(linger_ms=60_000) as producer:
            futures.append(producer.send("t", b"v"))
            raise KeyboardInterrupt

    futures: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        use()
    (future,) = futures
    assert future.exception(0) is None
    assert "given up" not in caplog.text


def test_the_error_of_a_with_block_is_not_masked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, timeout_ms: int | None = None) -> None:
        whole(self, timeout_ms)  # type: ignore[arg-type]
        raise RuntimeError("close failed")

    whole = KafkaProducer.close
    monkeypatch.setattr(KafkaProducer, "close", broken)
    with pytest.raises(KeyError), server.producer():
        raise KeyError("mine")


def test_a_producer_nobody_holds_warns_delivers_what_it_has_and_ends(server: Server) -> None:
    held = [server.producer()]
    future = held[0].send("t", b"v")
    core = held[0]._core
    with pytest.warns(ResourceWarning, match="never closed"):
        held.clear()
    assert future.result(10).offset == 0
    core.io_thread.join(10_000)
    assert not core.io_thread.alive


def test_no_thread_is_left_after_close(server: Server) -> None:
    before = threading.active_count()
    for _ in range(5):
        with server.producer() as producer:
            producer.send("t", b"v")
    wait_until(lambda: threading.active_count() <= before + 5)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("kclient-producer")]


def test_a_forked_child_is_told_at_once_and_leaves_the_parent_alone(server: Server) -> None:
    with server.producer() as producer:
        producer.send("t", b"before").result(10)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for call in (lambda: producer.send("t", b"child"), producer.flush, producer.metrics):
                    try:
                        call()
                    except ForkedClientError:
                        code = 0
                    else:
                        code = 2
                        break
                producer.close()
                del producer
                gc.collect()
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert producer.send("t", b"after").result(10).offset >= 0
    assert [record.value for record in server.records()] == [b"before", b"after"]


def run_program(server: Server, text: str) -> subprocess.CompletedProcess[str]:
    program = f"servers = {server.broker.bootstrap!r}\n" + textwrap.dedent(text)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


def test_the_end_of_the_program_delivers_what_was_sent(server: Server) -> None:
    done = run_program(
        server,
        """
        from kclient.producer import KafkaProducer
        producer = KafkaProducer(bootstrap_servers=servers, linger_ms=60_000, delivery_timeout_ms=100_000)
        for i in range(100):
            producer.send("t", b"%d" % i)
        """,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(server.records()) == 100


def test_the_end_of_the_program_is_not_held_up_and_tells_what_was_not_delivered(server: Server) -> None:
    server.broker.on(ApiKeys.PRODUCE, lambda h, m: time.sleep(3) or server.logs.produce(m))
    started = time.monotonic()
    done = run_program(
        server,
        """
        from kclient.producer import KafkaProducer
        producer = KafkaProducer(
            bootstrap_servers=servers, client_id="50%", linger_ms=0, request_timeout_ms=700, delivery_timeout_ms=800
        )
        for i in range(7):
            producer.send("t", b"%d" % i, partition=0)
        """,
    )
    assert time.monotonic() - started < 30
    assert done.returncode == 0
    assert "[Producer clientId=50%] The program ends with 7 records undelivered" in done.stderr
