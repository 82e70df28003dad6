"""A log opens with what is whole, whatever a crash left behind, and goes on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.broker.logs import LogHarness, read_all
from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_types import FetchIsolation
from kclient.broker.log.producer_state import AppendOrigin
from kclient.broker.log.unified_log import UnifiedLog
from kclient.errors import CorruptRecordError
from kclient.record import ControlRecordType, EndTransactionMarker, MemoryRecordsBuilder, iter_batches


def values(log: UnifiedLog) -> list[bytes | None]:
    return [record.value for record in read_all(log)]


def fill(harness: LogHarness, log: UnifiedLog, count: int, first: int = 0) -> list[bytes]:
    written = [b"%04d" % (first + i) + b"x" * 200 for i in range(count)]
    for value in written:
        harness.time.advance(1)
        log.append_as_leader(harness.batch([value]), 0)
    return written


def segment_file(harness: LogHarness, base: int, suffix: str = ".log") -> Path:
    return harness.directory / f"{base:020d}{suffix}"


def test_a_clean_restart_finds_everything(harness: LogHarness) -> None:
    log = harness.open(LogConfig(segment_bytes=2000, index_interval_bytes=300))
    written = fill(harness, log, 30)
    expected = log.offset_for_timestamp(-3)
    log.close()
    log = harness.open(LogConfig(segment_bytes=2000, index_interval_bytes=300), clean=True)
    assert (log.log_end_offset, log.flusher.recovery_point) == (30, 30)
    assert values(log) == written
    assert log.offset_for_timestamp(-3) == expected
    assert fill(harness, log, 1, 30)[0] == values(log)[-1]


def test_a_tail_torn_at_any_byte_is_cut_back_to_the_last_whole_batch(harness: LogHarness) -> None:
    log = harness.open(LogConfig(index_interval_bytes=0))
    written = fill(harness, log, 4)
    harness.crash(log)
    path = segment_file(harness, 0)
    whole = path.read_bytes()
    last = len(whole) // 4
    for kept in range(last * 3, last * 4):
        path.write_bytes(whole[:kept])
        log = harness.open(LogConfig(index_interval_bytes=0))
        assert log.log_end_offset == 3
        assert log.size == 3 * last
        info = log.append_as_leader(harness.batch([b"after"]), 1)
        assert info.first_offset == 3
        assert values(log) == [*written[:3], b"after"]
        harness.crash(log)


@pytest.mark.parametrize(
    "tail",
    [
        b"\0" * 61,
        b"\0" * 100_000,
        b"\xff" * 1000,
        os.urandom(5000),
        b"\0" * 8 + b"\x7f\xff\xff\xf0" + b"\x02" * 99,
    ],
    ids=["zeros", "many zeros", "ones", "noise", "huge length"],
)
def test_garbage_after_the_last_batch_is_cut_off(harness: LogHarness, tail: bytes) -> None:
    log = harness.open()
    written = fill(harness, log, 5)
    harness.crash(log)
    with segment_file(harness, 0).open("ab") as file:
        file.write(tail)
    log = harness.open()
    assert values(log) == written
    assert fill(harness, log, 2, 5) == values(log)[5:]


def test_a_repeated_batch_after_the_end_is_not_taken_for_new(harness: LogHarness) -> None:
    log = harness.open()
    written = fill(harness, log, 2)
    harness.crash(log)
    path = segment_file(harness, 0)
    path.write_bytes(path.read_bytes() * 2)
    assert values(harness.open()) == written


def test_a_flipped_bit_above_the_recovery_point_ends_the_log_there(harness: LogHarness) -> None:
    log = harness.open(LogConfig(segment_bytes=1000))
    written = fill(harness, log, 10)
    assert log.segment_base_offsets == [0, 3, 6, 9]
    harness.crash(log)
    path = segment_file(harness, 3)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4  # in the second of three batches
    path.write_bytes(data)
    log = harness.open(LogConfig(segment_bytes=1000))
    assert (log.log_end_offset, log.segment_base_offsets) == (4, [0, 3])
    assert values(log) == written[:4]
    assert fill(harness, log, 3, 4) == values(log)[4:]


def test_damage_below_the_recovery_point_is_shown_to_readers_and_not_cut(harness: LogHarness) -> None:
    log = harness.open(LogConfig(segment_bytes=1000))
    fill(harness, log, 10)
    log.close()
    path = segment_file(harness, 3)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    for options in ({"clean": True}, {"recovery_point": 9}):
        log = harness.open(LogConfig(segment_bytes=1000), **options)
        assert log.log_end_offset == 10
        batches = list(iter_batches(log.read(3, 1 << 20).records))
        assert [batch.is_valid for batch in batches] == [True, False, True]
        log.close()


def test_a_broken_length_below_the_recovery_point_is_an_error_and_not_a_skip(harness: LogHarness) -> None:
    log = harness.open(LogConfig(segment_bytes=1000))
    fill(harness, log, 10)
    log.close()
    path = segment_file(harness, 3)
    data = bytearray(path.read_bytes())
    data[8:12] = b"\0\0\0\1"
    path.write_bytes(data)
    log = harness.open(LogConfig(segment_bytes=1000), clean=True)
    with pytest.raises(CorruptRecordError):
        log.read(4, 1 << 20)
    assert log.read(6, 1 << 20).records


def damage_missing(path: Path) -> None:
    path.unlink()


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_garbage(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def damage_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def damage_zeros_after(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0" * 1200)


def damage_out_of_order(path: Path) -> None:
    data = path.read_bytes()
    width = 8 if path.suffix == ".index" else 12
    path.write_bytes(data[width : 2 * width] + data[:width] + data[2 * width :])


def damage_shifted(path: Path) -> None:
    """In order, yet every position or offset is wrong."""
    data = bytearray(path.read_bytes())
    width = 8 if path.suffix == ".index" else 12
    for at in range(width - 4, len(data), width):
        data[at : at + 4] = (int.from_bytes(data[at : at + 4], "big") + 7).to_bytes(4, "big")
    path.write_bytes(data)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize(
    "damage",
    [
        damage_missing,
        damage_empty,
        damage_garbage,
        damage_cut,
        damage_zeros_after,
        damage_out_of_order,
        damage_shifted,
    ],
)
def test_a_damaged_index_is_built_anew(harness: LogHarness, damage: object, suffix: str, clean: bool) -> None:
    config = LogConfig(segment_bytes=3000, index_interval_bytes=200)
    log = harness.open(config)
    written = fill(harness, log, 30)
    start = harness.time.wall_ms() - 29
    log.close()
    sound = {path: path.read_bytes() for path in harness.directory.glob("*" + suffix)}
    for path in sound:
        if path.stat().st_size:
            damage(path)  # type: ignore[operator]
    log = harness.open(config, clean=clean)
    for offset in range(30):
        batch = next(iter(iter_batches(log.read(offset, 1).records)))
        assert batch.base_offset == offset
        assert log.offset_for_timestamp(start + offset) == (start + offset, offset, 0)
    assert values(log) == written
    log.close()
    assert {path: path.read_bytes() for path in sound} == sound


def test_a_recovery_point_beyond_the_end_is_taken_back(harness: LogHarness) -> None:
    log = harness.open()
    written = fill(harness, log, 3)
    harness.crash(log)
    log = harness.open(recovery_point=1000)
    assert (log.log_end_offset, log.flusher.recovery_point) == (3, 3)
    assert values(log) == written


def test_a_log_that_lost_everything_begins_at_its_start_offset(harness: LogHarness) -> None:
    log = harness.open()
    fill(harness, log, 3)
    harness.crash(log)
    log = harness.open(log_start_offset=10, recovery_point=10)
    assert (log.log_start_offset, log.log_end_offset, log.segment_base_offsets) == (10, 10, [10])
    assert log.append_as_leader(harness.batch(), 0).first_offset == 10


def test_the_epochs_are_those_of_what_is_left(harness: LogHarness) -> None:
    log = harness.open()
    for epoch in range(4):
        log.append_as_leader(harness.batch(), epoch)
    harness.crash(log)
    path = segment_file(harness, 0)
    path.write_bytes(path.read_bytes()[:-1])
    for damage in (None, b"", b"garbage\n", b"0\n5\n0 0\n"):
        if damage is not None:
            (harness.directory / "leader-epoch-checkpoint").write_bytes(damage)
        log = harness.open()
        assert log.latest_epoch == 2
        assert log.end_offset_for_epoch(1) == (1, 2)
        harness.crash(log)


def test_a_producers_retry_after_a_crash_is_a_duplicate(harness: LogHarness) -> None:
    log = harness.open(LogConfig(segment_bytes=500))
    sent = [harness.batch([b"x" * 100], pid=1, seq=i) for i in range(10)]
    for batch in sent:
        log.append_as_leader(batch, 0)
    harness.crash(log)
    log = harness.open(LogConfig(segment_bytes=500))
    for offset in range(5, 10):
        info = log.append_as_leader(sent[offset], 0)
        assert (info.is_duplicate, info.first_offset) == (True, offset)
    assert log.append_as_leader(harness.batch(pid=1, seq=10), 0).first_offset == 10


@pytest.mark.parametrize("damage", [b"", b"\0" * 50, None])
def test_a_damaged_snapshot_is_made_up_for_from_the_log(harness: LogHarness, damage: bytes | None) -> None:
    log = harness.open(LogConfig(segment_bytes=500))
    sent = [harness.batch([b"x" * 100], pid=1, seq=i) for i in range(10)]
    for batch in sent:
        log.append_as_leader(batch, 0)
    log.close()
    for path in harness.directory.glob("*.snapshot"):
        if damage is None:
            data = bytearray(path.read_bytes())
            data[-1] ^= 1
            path.write_bytes(data)
        else:
            path.write_bytes(damage)
    log = harness.open(LogConfig(segment_bytes=500), clean=True)
    assert log.append_as_leader(sent[9], 0).is_duplicate
    assert log.append_as_leader(harness.batch(pid=1, seq=10), 0).first_offset == 10


def test_open_and_aborted_transactions_survive(harness: LogHarness) -> None:
    def play(log: UnifiedLog) -> None:
        log.append_as_leader(harness.batch([b"a"], pid=1, transactional=True), 0)
        abort = EndTransactionMarker(ControlRecordType.ABORT, 0).batch(0, harness.time.wall_ms(), 0, 1, 0)
        log.append_as_leader(abort, 0, origin=AppendOrigin.COORDINATOR)
        log.append_as_leader(harness.batch([b"b"], pid=2, transactional=True), 0)
        log.append_as_leader(harness.batch([b"c"]), 0)

    log = harness.open()
    play(log)
    harness.crash(log)
    for clean in (False, True):
        log = harness.open(clean=clean)
        assert (log.last_stable_offset, log.log_end_offset) == (2, 4)
        assert log.read(0, 1000, isolation=FetchIsolation.TXN_COMMITTED).aborted == [(1, 0)]
        log.close()


def clone(harness: LogHarness, source: int, target: str) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        path = segment_file(harness, source, suffix)
        if path.exists():
            shutil.copy(path, harness.directory / target.replace(".*", suffix))


def test_files_marked_as_deleted_and_half_written_ones_are_removed(harness: LogHarness) -> None:
    log = harness.open(LogConfig(segment_bytes=1000))
    written = fill(harness, log, 6)
    harness.crash(log)
    clone(harness, 0, f"{0:020d}.*.deleted")
    clone(harness, 0, f"{0:020d}.*.cleaned")
    (harness.directory / "leader-epoch-checkpoint.tmp").write_bytes(b"0\n1")
    (harness.directory / f"{77:020d}.index").write_bytes(b"12345678")
    log = harness.open(LogConfig(segment_bytes=1000))
    assert values(log) == written
    names = {path.name for path in harness.directory.iterdir()}
    assert not any(name.endswith((".deleted", ".cleaned", ".tmp")) for name in names)
    assert f"{77:020d}.index" not in names


def compacted(harness: LogHarness, log_values: list[bytes], offsets: list[int]) -> bytes:
    builder = MemoryRecordsBuilder(base_offset=offsets[0])
    for offset in offsets:
        builder.append(harness.time.wall_ms(), None, log_values[offset], offset=offset)
    return builder.close()


def test_a_finished_compaction_takes_the_place_of_the_segments_it_was_made_from(harness: LogHarness) -> None:
    config = LogConfig(segment_bytes=1000)
    log = harness.open(config)
    written = fill(harness, log, 10)
    assert log.segment_base_offsets == [0, 3, 6, 9]
    harness.crash(log)
    # Segments 0 and 3 became one with the records 1 and 5; the crash came before the old ones were deleted.
    segment_file(harness, 0, ".log.swap").write_bytes(compacted(harness, written, [1, 5]))
    log = harness.open(config)
    assert log.segment_base_offsets == [0, 6, 9]
    assert values(log) == [written[1], written[5], *written[6:]]
    assert not list(harness.directory.glob("*.swap"))


def test_a_compaction_that_was_still_being_renamed_is_given_up(harness: LogHarness) -> None:
    config = LogConfig(segment_bytes=1000)
    log = harness.open(config)
    written = fill(harness, log, 10)
    harness.crash(log)
    segment_file(harness, 3, ".log.swap").write_bytes(compacted(harness, written, [3]))
    segment_file(harness, 0, ".log.cleaned").write_bytes(compacted(harness, written, [0]))
    log = harness.open(config)
    assert values(log) == written


def test_a_crash_while_swapping_indexes_is_finished(harness: LogHarness) -> None:
    config = LogConfig(segment_bytes=1000, index_interval_bytes=0)
    log = harness.open(config)
    written = fill(harness, log, 10)
    harness.crash(log)
    # The log was renamed already, its index not yet, and an index of the old segment is still there.
    segment_file(harness, 3).write_bytes(compacted(harness, written, [4]))
    segment_file(harness, 3, ".index.swap").write_bytes(b"")
    log = harness.open(config)
    assert values(log) == [*written[:3], written[4], *written[6:]]


def test_a_crash_right_after_a_roll_is_harmless(harness: LogHarness) -> None:
    log = harness.open()
    written = fill(harness, log, 3)
    harness.crash(log)
    segment_file(harness, 3).write_bytes(b"")
    log = harness.open()
    assert (log.log_end_offset, log.segment_base_offsets) == (3, [0, 3])
    assert values(log) == written
    assert fill(harness, log, 1, 3)[0] == values(log)[3]


def test_a_truncation_is_not_undone_by_entries_that_an_index_still_had_in_its_file(
    harness: LogHarness,
) -> None:
    config = LogConfig(index_interval_bytes=0)
    log = harness.open(config)
    fill(harness, log, 10)
    log.flusher.flush()
    log.truncate_to(4)
    fill(harness, log, 3, 100)
    harness.crash(log)
    log = harness.open(config, recovery_point=4)
    for offset in range(7):
        assert next(iter(iter_batches(log.read(offset, 1).records))).base_offset == offset


@pytest.mark.parametrize("damage", [b"", b"short", b"\0\1" + b"\0" * 32])
def test_a_damaged_transaction_index_is_built_anew(harness: LogHarness, damage: bytes) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch([b"a"], pid=1, transactional=True), 0)
    abort = EndTransactionMarker(ControlRecordType.ABORT, 0).batch(0, harness.time.wall_ms(), 0, 1, 0)
    log.append_as_leader(abort, 0, origin=AppendOrigin.COORDINATOR)
    log.append_as_leader(harness.batch([b"b"]), 0)
    log.roll()
    log.append_as_leader(harness.batch([b"c"]), 0)
    log.close()
    path = segment_file(harness, 0, ".txnindex")
    sound = path.read_bytes()
    path.write_bytes(damage)
    log = harness.open(clean=bool(damage))  # an empty file is a sound one: only recovery finds it out
    assert log.read(0, 1000, isolation=FetchIsolation.TXN_COMMITTED).aborted == [(1, 0)]
    assert path.read_bytes() == sound
    assert values(log)[-2:] == [b"b", b"c"]


def test_a_damaged_transaction_index_before_the_recovery_point_is_built_anew_too(harness: LogHarness) -> None:
    log = harness.open()
    log.append_as_leader(harness.batch([b"a"], pid=1, transactional=True), 0)
    abort = EndTransactionMarker(ControlRecordType.ABORT, 0).batch(0, harness.time.wall_ms(), 0, 1, 0)
    log.append_as_leader(abort, 0, origin=AppendOrigin.COORDINATOR)
    log.roll()
    written = fill(harness, log, 2, 2)
    harness.crash(log)
    path = segment_file(harness, 0, ".txnindex")
    sound = path.read_bytes()
    path.write_bytes(sound[:-1])
    log = harness.open(recovery_point=2)
    assert log.read(0, 1000, isolation=FetchIsolation.TXN_COMMITTED).aborted == [(1, 0)]
    assert path.read_bytes() == sound
    assert values(log)[-2:] == written


def test_a_damaged_end_of_the_active_segment_is_cut_even_after_a_clean_shutdown(harness: LogHarness) -> None:
    log = harness.open()
    written = fill(harness, log, 3)
    log.close()
    with segment_file(harness, 0).open("ab") as file:
        file.write(b"\xff" * 100)
    assert values(harness.open(clean=True)) == written


def test_a_second_crash_costs_no_more_reading_than_the_last_segments(
    harness: LogHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = LogConfig(segment_bytes=100_000)
    log = harness.open(config)
    for number in range(100):
        log.append_as_leader(harness.batch([bytes(9000)], pid=1, seq=number), 0)
    size = log.size
    harness.crash(log)
    log = harness.open(config)  # all of it is read
    log.flusher.flush()
    recovery_point = log.segment_base_offsets[-1]
    harness.crash(log)
    read = []
    real = os.pread

    def count(fd: int, length: int, position: int) -> bytes:
        data = real(fd, length, position)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", count)
    log = harness.open(config, recovery_point=recovery_point)
    assert log.producer_states()[0].last_offset == 99
    assert sum(read) < size / 5
