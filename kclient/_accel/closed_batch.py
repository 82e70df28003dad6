"""The records of a batch that is closed, when they are needed once more: rare, and the same for both bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kclient._accel.hooks import hooks
from kclient._accel.pure_records import decode_records

if TYPE_CHECKING:
    from kclient._accel.pure_batch import BatchBuilder
    from kclient._accel.pure_future import BatchResult, Future

Record = tuple[int, "bytes | None", "bytes | None", tuple[tuple[str, "bytes | None"], ...], "Future"]


def decompressed(batch: BatchBuilder, codec: int, compressed: memoryview, size: int) -> memoryview:
    """The `size` bytes of records that were `compressed`; raises the codec's error, a corrupt one for another size."""
    found, error = hooks.decompress(codec, compressed, size)
    if error is not None:
        raise error
    if len(found) != size:
        raise hooks.corrupt_error(
            f"{batch.topic}-{batch.partition}: {size} bytes of records were compressed, and {len(found)} come back"
        )
    return memoryview(found)


def records_of(batch: BatchBuilder, base_ts: int, future: type[Future]) -> Iterator[Record]:
    """Timestamp, key, value, headers and a future of every record; `base_ts` is the first one's timestamp."""
    for _, delta, index, key, value, headers in decode_records(bytes(batch.body()), batch.count):
        timestamp_ms = base_ts + delta
        key_size = -1 if key is None else len(key)
        value_size = -1 if value is None else len(value)
        about = (timestamp_ms, key_size, value_size)
        yield timestamp_ms, key, value, headers, future(batch.result, index, about)


def _fits(
    batch: BatchBuilder,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
) -> bool:
    """Append the record, unless it is too large, or too far in time from the first one, which was another before."""
    try:
        return batch.append(timestamp_ms, key, value, headers) is not None
    except ValueError:
        return False


def spread(batch: BatchBuilder, limit: int, new_result: Callable[[], BatchResult]) -> list[BatchBuilder]:
    """The records in batches of at most `limit` bytes each, whose results take the place of the batch's."""
    batches: list[BatchBuilder] = []
    starts: list[tuple[int, BatchResult]] = []
    for index, (timestamp_ms, key, value, headers, _) in enumerate(batch.records()):
        if not batches or not _fits(batches[-1], timestamp_ms, key, value, headers):
            part = type(batch)(batch.topic, batch.partition, limit, new_result(), batch.created_ms)
            part.append(timestamp_ms, key, value, headers)
            batches.append(part)
            starts.append((index, part.result))
    batch.result.hand_over(starts)
    return batches
