"""BatchIterator: which of the fetched batches are read, how far that comes, and what makes them corrupt."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from kclient._accel.reference.batch_iterator import BatchIterator
from kclient._accel.shared.records import records_of
from kclient.errors import CorruptRecordError, InvalidRecordError
from kclient.record import ControlRecordType, EndTransactionMarker, MemoryRecordsBuilder, RecordBatch

LARGEST = 2**63 - 1


def batch(base_offset: int, *values: bytes, **settings: Any) -> bytes:
    builder = MemoryRecordsBuilder(base_offset=base_offset, **settings)
    for value in values:
        builder.append(1000, b"k", value)
    return builder.close()


def transactional(base_offset: int, producer_id: int, *values: bytes) -> bytes:
    settings = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    return batch(base_offset, *values, **settings)


def marker(
    offset: int, producer_id: int, kind: ControlRecordType = ControlRecordType.ABORT, leader_epoch: int = 0
) -> bytes:
    return EndTransactionMarker(kind, 0).batch(offset, 1, leader_epoch, producer_id, 0)


def changed(data: bytes, at: int, form: str, number: int) -> bytes:
    """The batch with another number in its header, and the checksum for that."""
    found = bytearray(data)
    struct.pack_into(form, found, at, number)
    RecordBatch(memoryview(found)).update_checksum()
    return bytes(found)


def over(
    data: bytes,
    from_offset: int = 0,
    check_crc: bool = True,
    aborted: Sequence[tuple[int, int]] | None = None,
) -> BatchIterator:
    return BatchIterator(data, 0, len(data), "t", 3, from_offset, check_crc, 1 << 20, aborted)


def read(iterator: BatchIterator) -> list[bytes | None]:
    """The values of all batches that are read, as a reader goes through them."""
    found: list[bytes | None] = []
    while iterator._next_batch():
        assert iterator._portions is not None
        found += [record[4] for record in records_of(iterator._portions)]
        iterator.next_offset = iterator._batch_next
    return found


def test_batches_that_are_passed_count_as_read() -> None:
    data = marker(0, 1, ControlRecordType.COMMIT) + MemoryRecordsBuilder(base_offset=1).empty_batch(4, -1)
    iterator = over(data + batch(5, b"a"))
    assert iterator._next_batch()
    assert iterator.next_offset == 5
    assert iterator.bytes_read == len(data + batch(5, b"a"))


def test_a_batch_below_the_wanted_offset_is_not_even_taken_apart() -> None:
    below = bytearray(batch(0, b"a", b"b"))
    below[61:] = b"\xff" * (len(below) - 61)
    data = bytes(below) + batch(2, b"c")
    assert read(over(data, 2, check_crc=False)) == [b"c"]
    with pytest.raises(ValueError):
        read(over(data, 1, check_crc=False))


@pytest.mark.parametrize("left", [1, 11, 16])
def test_less_than_the_beginning_of_a_batch_is_the_end(left: int) -> None:
    iterator = over(batch(0, b"a") + b"\xff" * left)
    assert read(iterator) == [b"a"]
    assert (iterator.next_offset, iterator.bytes_read) == (1, len(batch(0, b"a")))


def test_a_leader_epoch_is_that_of_the_last_batch_and_none_if_it_has_none() -> None:
    iterator = over(
        batch(0, b"a", partition_leader_epoch=4)
        + batch(1, b"b", partition_leader_epoch=0)
        + batch(2, b"c")
        + batch(3, b"d", magic=1)
    )
    found = []
    while iterator._next_batch():
        found.append(iterator.leader_epoch)
        iterator.next_offset = iterator._batch_next
    assert found == [4, 0, None, None]


def left_out(kind: str, epoch: int) -> bytes:
    """A batch at offset 1 of which the application gets nothing."""
    match kind:
        case "marker":
            return marker(1, 7, ControlRecordType.COMMIT, epoch)
        case "aborted":
            settings = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
            return batch(1, b"x", partition_leader_epoch=epoch, **settings)
    return MemoryRecordsBuilder(base_offset=1, partition_leader_epoch=epoch).empty_batch(1, -1)


@pytest.mark.parametrize("kind", ["marker", "aborted", "compacted"])
@pytest.mark.parametrize(("epoch", "found"), [(6, 6), (-1, None)])
def test_a_leader_epoch_is_that_of_a_batch_that_is_passed_as_well(
    kind: str, epoch: int, found: int | None
) -> None:
    iterator = over(batch(0, b"a", partition_leader_epoch=4) + left_out(kind, epoch), aborted=[(1, 1)])
    assert read(iterator) == [b"a"]
    assert (iterator.next_offset, iterator.leader_epoch) == (2, found)


def test_a_leader_epoch_is_not_that_of_a_batch_before_the_wanted_offset() -> None:
    iterator = over(batch(0, b"a", partition_leader_epoch=4), 1)
    assert read(iterator) == []
    assert (iterator.next_offset, iterator.leader_epoch) == (1, None)


@pytest.mark.parametrize("magic", [3, 127, 255])
def test_a_magic_that_is_not_known_is_corrupt(magic: int) -> None:
    data = bytearray(batch(7, b"a"))
    data[16] = magic
    with pytest.raises(CorruptRecordError, match=f"t-3, offset 7: magic {magic} is not known"):
        read(over(bytes(data), 7))


def test_a_batch_that_has_no_room_for_its_header_is_corrupt() -> None:
    data = bytearray(batch(0, b"a")[:60])
    struct.pack_into(">i", data, 8, 48)
    with pytest.raises(CorruptRecordError, match="a batch of 60 bytes has no room for its header"):
        read(over(bytes(data)))


def test_a_checksum_is_looked_at_only_if_that_is_wanted() -> None:
    data = bytearray(batch(0, b"a"))
    data[17] ^= 1
    assert read(over(bytes(data), check_crc=False)) == [b"a"]
    with pytest.raises(CorruptRecordError, match="checksum"):
        read(over(bytes(data)))


def test_a_batch_may_end_just_before_the_largest_offset_and_no_further() -> None:
    # The next offset has to be one that can be asked for.
    assert read(over(changed(batch(0, b"a"), 0, ">q", LARGEST - 1), 5)) == [b"a"]
    with pytest.raises(CorruptRecordError, match=f"ends at offset {LARGEST + 1} cannot be"):
        read(over(changed(batch(0, b"a"), 0, ">q", LARGEST)))
    with pytest.raises(CorruptRecordError, match="cannot be"):
        read(over(batch(LARGEST, b"a", magic=1)))


def test_a_batch_whose_last_offset_is_below_its_first_is_read_all_the_same() -> None:
    iterator = over(changed(batch(9, b"a"), 23, ">i", -5), 5)
    assert iterator._next_batch()


def test_the_type_of_a_timestamp_and_the_time_of_the_log_are_the_batchs() -> None:
    appended = changed(changed(batch(0, b"a"), 21, ">h", 8), 35, ">q", 5555)
    iterator = over(appended + batch(1, b"b") + batch(2, b"c", magic=0))
    found = []
    while iterator._next_batch():
        found.append((iterator._timestamp_type, iterator._log_append_ts))
        iterator.next_offset = iterator._batch_next
    assert found == [(1, 5555), (0, None), (-1, None)]


def test_only_transactions_of_the_producer_that_aborted_are_left_out_from_their_first_offset_on() -> None:
    data = (
        transactional(0, 1, b"early")
        + transactional(1, 1, b"x")
        + transactional(2, 2, b"other")
        + marker(3, 1)
    )
    iterator = over(data, aborted=[(1, 1)])
    assert read(iterator) == [b"early", b"other"]
    assert iterator.next_offset == 4


def test_a_commit_does_not_end_an_aborted_transaction() -> None:
    data = transactional(0, 1, b"x") + marker(1, 1, ControlRecordType.COMMIT) + transactional(2, 1, b"x")
    assert read(over(data, aborted=[(1, 0)])) == []
    assert read(
        over(data.replace(marker(1, 1, ControlRecordType.COMMIT), marker(1, 1)), aborted=[(1, 0)])
    ) == [b"x"]


@pytest.mark.parametrize("key", [None, b"\0\0\0"])
def test_a_control_record_without_a_type_is_invalid_where_types_matter(key: bytes | None) -> None:
    builder = MemoryRecordsBuilder(
        base_offset=1, producer_id=1, producer_epoch=0, base_sequence=-1, is_transactional=True
    )
    builder.append(1, key, b"")
    data = transactional(0, 1, b"x") + changed(builder.close(), 21, ">h", 0x30)
    with pytest.raises(InvalidRecordError, match="t-3, offset 1: a control record has no type"):
        read(over(data, aborted=[(1, 0)]))
    assert read(over(data)) == [b"x"]
