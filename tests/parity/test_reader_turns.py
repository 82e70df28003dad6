"""Turns of other threads while either record reader goes through an answer."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from harness.consumer.fetched_batches import batch, marker, transactional
from harness.waiting import wait_until
from kclient._accel.reference import reader as reference_reader
from kclient.compress import CompressionType
from kclient.consumer.types import ConsumerRecord
from kclient.record import ControlRecordType, MemoryRecordsBuilder

native = pytest.importorskip("kclient._accel.native.reader", reason="the native body is not built")

COUNT = 50_000


def one_batch(count: int = COUNT, base_offset: int = 0) -> bytes:
    """So many records without anything in them."""
    builder = MemoryRecordsBuilder(base_offset=base_offset)
    for _ in range(count):
        builder.append(1000, None, None)
    return builder.close()


def old_messages(count: int) -> bytes:
    builder = MemoryRecordsBuilder(magic=1, compression=CompressionType.GZIP)
    for _ in range(count):
        builder.append(1000, b"k", None)
    return builder.close()


def many_headers(count: int) -> bytes:
    builder = MemoryRecordsBuilder()
    builder.append(1000, None, None, [("", None)] * count)
    return builder.close()


def overlapping(count: int) -> tuple[bytes, list[tuple[int, int]]]:
    """Aborted transactions that all began before any of them ends, of which some do, and what the broker says of
    them.
    """
    markers = (
        marker(producer_id, count + 1 + producer_id, ControlRecordType.ABORT)
        for producer_id in range(count // 5)
    )
    data = transactional(0, count, 1) + b"".join(markers)
    return data, [(producer_id, producer_id) for producer_id in range(count)]


def reader(body: Any, data: bytes, from_offset: int = 0, aborted: Any = None) -> Any:
    return body.RecordReader(data, 0, len(data), "t", 3, from_offset, True, ConsumerRecord, aborted=aborted)


def records(source: Any) -> int:
    return len(source.read(1 << 30))


def columns(source: Any) -> int:
    found = source.read_columns(None, False)
    return 0 if found is None else found.count


@pytest.mark.parametrize("read", [records, columns])
@pytest.mark.parametrize(
    ("data", "from_offset", "found", "fewest"),
    [
        (one_batch(), 0, COUNT, 12),
        (one_batch(), COUNT - 1, 1, 12),
        (batch(0, 1) * 12_500, 1, 0, 3),
        (old_messages(12_500), 0, 12_500, 9),
        (many_headers(12_500), 0, 1, 12),
        (one_batch(3000), 0, 3000, 0),
    ],
    ids=["records", "skipped records", "skipped batches", "old messages", "headers", "few records"],
)
def test_the_native_reader_gives_a_turn_after_every_few_thousand_steps(
    monkeypatch: pytest.MonkeyPatch,
    read: Callable[[Any], int],
    data: bytes,
    from_offset: int,
    found: int,
    fewest: int,
) -> None:
    turns: list[None] = []
    monkeypatch.setattr(native, "give_turn", lambda: turns.append(None))
    assert read(reader(native, data, from_offset)) == found
    assert fewest <= len(turns) <= 2 * fewest


def test_where_many_batches_end_is_looked_for_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[None] = []
    monkeypatch.setattr(native, "give_turn", lambda: turns.append(None))
    header = bytes(8) + (15).to_bytes(4, "big") + bytes(15)  # the smallest that is looked at
    assert native.end_of_batches(header * 200_000) == 1
    assert len(turns) == 3


def test_another_thread_runs_while_a_long_batch_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = one_batch(8 * COUNT)
    done = 0
    stop = threading.Event()
    seen: list[int] = []
    turn = native.give_turn

    def work() -> None:
        nonlocal done
        while not stop.is_set():
            done += 1

    def watched() -> None:
        turn()
        seen.append(done)

    def ran_beside() -> bool:
        seen.clear()
        columns(reader(native, data))
        return len(set(seen)) > 1

    monkeypatch.setattr(native, "give_turn", watched)
    before = sys.getswitchinterval()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        sys.setswitchinterval(1e-4)
        wait_until(ran_beside, 30, "a turn of another thread")
    finally:
        sys.setswitchinterval(before)
        stop.set()
        thread.join()


@pytest.mark.parametrize("read", [records, columns])
def test_an_interrupt_at_any_turn_loses_and_repeats_nothing(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[Any], int]
) -> None:
    left_out, aborted = overlapping(100)
    data = left_out + transactional(1, 200, 2) + transactional(30, 202, 1) + one_batch(30_000, 203)
    calls = at = 0

    def interrupted() -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt

    monkeypatch.setattr(native, "give_turn", interrupted)
    while calls >= at:
        at += 1
        calls = 0
        source = reader(native, data, aborted=aborted)
        try:
            found = read(source)
        except KeyboardInterrupt:
            assert (source.next_offset, source.bytes_read) == (0, 0)
            found = read(source)
        assert found == 2 + 30_000
    assert at > 5


@pytest.mark.parametrize("body", [reference_reader, native], ids=["python", "c"])
def test_a_list_of_aborted_transactions_costs_linear_time(body: Any) -> None:
    def took_s(count: int) -> float:
        data, aborted = overlapping(count)
        best = float("inf")
        for _ in range(5):
            before = time.thread_time()
            assert reader(body, data, aborted=aborted).read(10) == []
            best = min(best, time.thread_time() - before)
        return best

    assert took_s(16_000) < 8 * took_s(4000)
