"""key_partitions of the reference body: the partitions of a column of keys."""

from __future__ import annotations

from array import array

import pytest

from kclient._accel.reference.hashing import murmur2
from kclient._accel.reference.partitions import key_partitions
from kclient._accel.shared.batch_input import Column

KEYS = [b"21", b"foobar", b"", b"abc"]


def column(*keys: bytes, validity: bytes | None = None) -> Column:
    ends = [0]
    for key in keys:
        ends.append(ends[-1] + len(key))
    return memoryview(array("i", ends)), b"".join(keys), validity, 0


def test_a_negative_hash_counts_without_its_sign() -> None:
    assert [murmur2(key) < 0 for key in KEYS] == [True, True, False, False]
    found = key_partitions(column(*KEYS), 0, 4, 7)
    assert found.format == "i"
    assert list(found) == [(murmur2(key) & 0x7FFFFFFF) % 7 for key in KEYS]
    assert all(0 <= partition < 7 for partition in found)


def test_a_null_has_no_partition_and_an_empty_key_has_one() -> None:
    assert list(key_partitions(column(b"", b"", validity=b"\1"), 0, 2, 1)) == [0, -1]


def test_only_the_keys_that_were_asked_for_are_looked_at() -> None:
    offsets, data, _, _ = column(*KEYS)
    broken: Column = (memoryview(array("i", [99, *offsets[1:]])), data, None, 0)  # type: ignore[misc]
    assert list(key_partitions(broken, 1, 3, 1000)) == list(key_partitions(column(*KEYS), 0, 4, 1000))[1:3]
    with pytest.raises(ValueError, match="row 0 of keys"):
        key_partitions(broken, 0, 1, 1000)
    assert list(key_partitions(broken, 2, 2, 1000)) == []


@pytest.mark.parametrize("count", [0, -1])
def test_without_partitions_there_is_nowhere_to_go(count: int) -> None:
    with pytest.raises(ValueError, match=f"spread over {count} partitions"):
        key_partitions(column(*KEYS), 0, 4, count)


def test_what_is_no_column_is_refused() -> None:
    with pytest.raises(TypeError, match="the offsets of keys"):
        key_partitions((b"????????", b"", None, 0), 0, 1, 3)
    with pytest.raises(ValueError, match="there are 4 keys"):
        key_partitions(column(*KEYS), 0, 5, 3)
