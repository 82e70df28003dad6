"""Segments whose files have their full size at once: what is read, kept and cut of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.broker.logs import LogHarness
from kclient.broker.log.config import LogConfig
from kclient.broker.log.unified_log import UnifiedLog
from kclient.record import iter_batches

SIZE = 4096
CONFIG = LogConfig(segment_bytes=SIZE, preallocate=True)


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[LogHarness]:
    made = LogHarness(tmp_path)
    yield made
    made.close()


def bytes_of(harness: LogHarness, base: int = 0) -> int:
    return (harness.directory / f"{base:020d}.log").stat().st_size


def values(log: UnifiedLog) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < log.log_end_offset:
        info = log.read(len(found), 1 << 20)
        found += [record.value for each in iter_batches(info.records) for record in each.records()]
    return found


def write(harness: LogHarness, log: UnifiedLog, *records: bytes) -> None:
    for record in records:
        log.append_as_leader(harness.batch([record]), 0)
    log.advance_high_watermark(log.log_end)


def test_a_new_file_has_its_full_size_and_the_log_only_what_was_written(harness: LogHarness) -> None:
    log = harness.open(CONFIG)
    assert (bytes_of(harness), log.size) == (SIZE, 0)
    assert values(log) == []
    write(harness, log, b"a", b"b")
    assert values(log) == [b"a", b"b"]
    assert bytes_of(harness) == SIZE
    assert 0 < log.size < SIZE
    info = log.read(0, 1 << 20)
    assert len(info.records) == log.size, "a reader is given zeros"


def test_a_segment_that_is_followed_by_another_is_cut_to_what_it_holds(harness: LogHarness) -> None:
    log = harness.open(CONFIG)
    write(harness, log, b"a")
    size = log.size
    log.roll()
    assert (bytes_of(harness), bytes_of(harness, 1)) == (size, SIZE)
    write(harness, log, b"b")
    assert values(log) == [b"a", b"b"]


def test_a_clean_shutdown_leaves_no_zeros_behind(harness: LogHarness) -> None:
    log = harness.open(CONFIG)
    write(harness, log, b"a")
    size = log.size
    log.close()
    assert bytes_of(harness) == size
    log = harness.open(CONFIG, clean=True)
    write(harness, log, b"b")
    assert values(log) == [b"a", b"b"]


@pytest.mark.parametrize("records", [(), (b"a", b"b")], ids=["nothing", "some"])
def test_a_crash_costs_the_zeros_and_no_record(harness: LogHarness, records: tuple[bytes, ...]) -> None:
    log = harness.open(CONFIG)
    write(harness, log, *records)
    size = log.size
    harness.crash(log)
    assert bytes_of(harness) == SIZE
    log = harness.open(CONFIG)
    assert values(log) == list(records)
    assert log.size == size
    write(harness, log, b"c")
    assert values(log) == [*records, b"c"]
