"""Aborted transactions of a segment: their file, what is refused of it, and which of them a read touches."""

from __future__ import annotations

import struct
import threading
from pathlib import Path

import pytest

from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.transaction_index import AbortedTxn, TransactionIndex
from kclient.errors import IllegalStateError

FIRST, SECOND = AbortedTxn(1, 0, 10, 11), AbortedTxn(2, 5, 20, 21)


def packed(pid: int, first: int, last: int, stable: int, version: int = 0) -> bytes:
    return struct.pack(">hqqqq", version, pid, first, last, stable)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "0.txnindex"


def test_a_segment_without_aborts_has_no_file(path: Path) -> None:
    index = TransactionIndex(path)
    assert (index.entries, index.collect(0, 100)) == ([], ([], False))
    index.flush()
    index.reset()
    index.delete()
    index.rename(path.with_suffix(".deleted"))
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(packed(1, 0, 10, 11)[:-1], id="cut off"),
        pytest.param(packed(1, 0, 10, 11) + b"\0", id="something behind"),
        pytest.param(packed(1, 0, 10, 11, version=1), id="unknown version"),
        pytest.param(packed(1, 11, 10, 11), id="ends before it begins"),
        pytest.param(packed(1, 0, 10, 11) + packed(2, 5, 10, 11), id="two with one marker"),
        pytest.param(packed(2, 5, 20, 21) + packed(1, 0, 10, 11), id="out of order"),
    ],
)
def test_a_file_that_cannot_be_right_is_recognised_and_left_until_it_is_reset(
    path: Path, data: bytes
) -> None:
    path.write_bytes(data)
    index = TransactionIndex(path)
    for _ in range(2):
        with pytest.raises(CorruptIndexError):
            index.collect(0, 100)
    with pytest.raises(CorruptIndexError):
        index.append(AbortedTxn(3, 30, 40, 41))
    assert path.read_bytes() == data
    index.reset()
    assert (index.entries, path.exists()) == ([], False)


def test_a_transaction_of_its_marker_alone_is_sound(path: Path) -> None:
    path.write_bytes(packed(1, 10, 10, 11))
    assert TransactionIndex(path).entries == [AbortedTxn(1, 10, 10, 11)]


def test_entries_are_added_behind_those_of_the_file(path: Path) -> None:
    TransactionIndex(path).append(FIRST)
    TransactionIndex(path).append(SECOND)
    assert path.read_bytes() == packed(1, 0, 10, 11) + packed(2, 5, 20, 21)


def test_an_entry_that_is_not_behind_the_last_one_changes_nothing(path: Path) -> None:
    index = TransactionIndex(path)
    index.append(SECOND)
    for last in (20, 19):
        with pytest.raises(IllegalStateError, match="ending at"):
            index.append(AbortedTxn(3, 0, last, 30))
    assert (index.entries, path.read_bytes()) == ([SECOND], packed(2, 5, 20, 21))


def test_an_entry_that_could_not_be_written_is_not_there(path: Path) -> None:
    index = TransactionIndex(path)
    assert index.entries == []
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        index.append(FIRST)
    path.rmdir()
    assert index.entries == []
    index.append(FIRST)
    assert TransactionIndex(path).entries == [FIRST]


def test_a_reader_goes_on_with_the_entries_that_it_had(path: Path) -> None:
    index = TransactionIndex(path)
    index.append(FIRST)
    seen = index.entries
    index.append(SECOND)
    assert (seen, index.entries) == ([FIRST], [FIRST, SECOND])


def test_a_first_look_at_the_file_does_not_undo_what_was_added_meanwhile(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = TransactionIndex(path)
    reading, added = threading.Event(), threading.Event()
    read_bytes = Path.read_bytes

    def read_slowly(self: Path) -> bytes:
        try:
            return read_bytes(self)
        finally:
            if threading.current_thread() is reader:
                reading.set()
                added.wait(0.2)  # the other thread may not get there before this one is done

    monkeypatch.setattr(Path, "read_bytes", read_slowly)
    reader = threading.Thread(target=lambda: index.entries)
    reader.start()
    assert reading.wait(10)
    index.append(FIRST)
    added.set()
    reader.join()
    assert index.entries == [FIRST]


def test_a_range_includes_its_first_offset_and_not_its_last(path: Path) -> None:
    index = TransactionIndex(path)
    index.append(AbortedTxn(1, 5, 10, 0))
    found = [bool(index.collect(*bounds)[0]) for bounds in ((10, 20), (11, 20), (0, 5), (0, 6))]
    assert found == [True, False, False, True]


def test_no_later_segment_is_asked_once_all_of_the_range_was_stable(path: Path) -> None:
    index = TransactionIndex(path)
    index.append(AbortedTxn(1, 0, 40, 30))
    assert [index.collect(0, upper)[1] for upper in (29, 30, 31)] == [True, True, False]


def test_a_renamed_file_is_still_read_and_written(path: Path) -> None:
    TransactionIndex(path).append(FIRST)
    index = TransactionIndex(path)
    index.rename(path.with_suffix(".swap"))
    assert index.entries == [FIRST]
    index.append(SECOND)
    assert not path.exists()
    assert TransactionIndex(path.with_suffix(".swap")).entries == [FIRST, SECOND]
    index.delete()
    assert list(path.parent.iterdir()) == []


def test_aborted_transactions_that_touch_a_range_are_found(tmp_path: Path) -> None:
    index = TransactionIndex(tmp_path / "0.txnindex")
    txns = [AbortedTxn(1, 0, 10, 11), AbortedTxn(2, 5, 20, 12), AbortedTxn(3, 30, 40, 41)]
    for txn in txns:
        index.append(txn)
    assert index.path.read_bytes() == b"".join(
        struct.pack(">hqqqq", 0, txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset)
        for txn in txns
    )
    again = TransactionIndex(index.path)
    assert again.collect(0, 100) == (txns, False)
    assert again.collect(11, 25) == ([txns[1]], True)
    assert again.collect(0, 5) == ([txns[0]], True)
    assert again.collect(41, 50) == ([], False)
    with pytest.raises(IllegalStateError):
        again.append(AbortedTxn(4, 1, 40, 50))
    again.reset()
    assert not index.path.exists()


def test_truncation_drops_the_transactions_whose_marker_is_at_or_above_an_offset(path: Path) -> None:
    index = TransactionIndex(path)
    index.append(FIRST)
    index.append(SECOND)
    index.truncate_to(21)
    assert index.entries == [FIRST, SECOND]
    index.truncate_to(20)
    assert index.entries == TransactionIndex(path).entries == [FIRST]
    index.append(SECOND)
    assert TransactionIndex(path).entries == [FIRST, SECOND]
