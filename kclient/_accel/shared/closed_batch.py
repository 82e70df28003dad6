"""The records of a batch that is closed, when they are needed once more: rare, and the same for both bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias, TypeVar

from kclient._accel.shared.batch_result import BatchResult
from kclient._accel.shared.hooks import hooks
from kclient._accel.shared.records import decode_records
from kclient._accel.shared.types import Headers

F = TypeVar("F")
B = TypeVar("B", bound="Batch")
Record: TypeAlias = "tuple[int, bytes | None, bytes | None, Headers, F]"
"""Timestamp, key, value, headers and a future."""


class Batch(Protocol):
    """The part of a batch's builder that is needed here."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def created_ms(self) -> int: ...
    @property
    def result(self) -> BatchResult: ...
    def freeze(self) -> memoryview: ...
    def append(
        self, timestamp_ms: int | None, key: bytes | None, value: bytes | None, headers: Headers, /
    ) -> object | None: ...
    def records(self) -> Iterator[Record[Any]]: ...


def decompressed(batch: Batch, codec: int, compressed: memoryview, size: int) -> memoryview:
    """The `size` bytes of records that were `compressed`; raises the codec's error, a corrupt one for another size."""
    found, error = hooks.decompress(codec, compressed, size)
    if error is not None:
        raise error
    if len(found) != size:
        raise hooks.corrupt_error(
            f"{batch.topic}-{batch.partition}: {size} bytes of records were compressed, and {len(found)} come back"
        )
    return memoryview(found)


def records_of(
    batch: Batch, base_ts: int, future: Callable[[BatchResult, int, tuple[int, int, int]], F]
) -> Iterator[Record[F]]:
    """Timestamp, key, value, headers and a future of every record; `base_ts` is the first one's timestamp."""
    for _, delta, index, key, value, headers in decode_records(bytes(batch.freeze()), batch.count):
        timestamp_ms = base_ts + delta
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        about = (timestamp_ms, key_size, value_size)
        yield timestamp_ms, key, value, headers, future(batch.result, index, about)


def _fits(
    batch: Batch,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
) -> bool:
    """Append the record, unless it is too large, or too far in time from the first one, which was another before."""
    try:
        return batch.append(timestamp_ms, key, value, headers) is not None
    except ValueError:
        return False


def spread(
    batch: B,
    limit: int,
    new_result: Callable[[], BatchResult],
    new_batch: Callable[[str, int, int, BatchResult, int], B],
) -> list[B]:
    """The records in batches of at most `limit` bytes each, whose results take the place of the batch's."""
    batches: list[B] = []
    starts: list[tuple[int, BatchResult]] = []
    for index, (timestamp_ms, key, value, headers, _) in enumerate(batch.records()):
        if not batches or not _fits(batches[-1], timestamp_ms, key, value, headers):
            part = new_batch(batch.topic, batch.partition, limit, new_result(), batch.created_ms)
            part.append(timestamp_ms, key, value, headers)
            batches.append(part)
            starts.append((index, part.result))
    batch.result.replace_with(starts)
    return batches
