import concurrent.futures
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Self, TypeAlias, final

from kclient._accel.reference.batch import encode_record as encode_record
from kclient._accel.reference.batch_end import end_of_batches as end_of_batches
from kclient._accel.reference.check import largest_timestamp as largest_timestamp
from kclient._accel.reference.open_batches import Serializer
from kclient._accel.reference.poller import FrameMemory as FrameMemory
from kclient._accel.reference.poller import Poller as Poller
from kclient._accel.reference.reader import RecordReader as RecordReader
from kclient._accel.reference.record_cursor import RecordCursor as RecordCursor
from kclient._accel.reference.record_cursor import RecordIterator as RecordIterator
from kclient._accel.shared.batch_input import Column
from kclient._accel.shared.batch_result import BatchResult as BatchResult
from kclient._accel.shared.batch_result import MetadataFactory
from kclient._accel.shared.types import Buffer

__all__ = [
    "BatchBuilder",
    "BatchResult",
    "FrameMemory",
    "Future",
    "OpenBatches",
    "Poller",
    "RecordCursor",
    "RecordIterator",
    "RecordReader",
    "crc32c",
    "encode_record",
    "end_of_batches",
    "key_partitions",
    "largest_timestamp",
    "metadata_factory",
    "murmur2",
    "yield_gil",
]

_Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
_Contents: TypeAlias = list[bytes | None] | tuple[bytes | None, ...]

def crc32c(buf: Buffer, crc: int = 0) -> int: ...
def metadata_factory(kind: type, function: MetadataFactory) -> MetadataFactory: ...
def murmur2(data: Buffer) -> int: ...
def yield_gil() -> None: ...
def key_partitions(keys: Column, start: int, stop: int, partition_count: int) -> memoryview: ...

@final
class Future:
    def __init__(self, result: BatchResult, index: int, about: tuple[int, int, int]) -> None: ...
    def done(self) -> bool: ...
    def result(self, timeout: float | None = None) -> Any: ...
    def exception(self, timeout: float | None = None) -> BaseException | None: ...
    def add_done_callback(self, callback: Callable[[Any], object]) -> None: ...
    def as_concurrent(self) -> concurrent.futures.Future[Any]: ...
    def __await__(self) -> Generator[Any, None, Any]: ...
    def metadata(self) -> Any: ...
    def resolve(self) -> tuple[BatchResult, int]: ...
    def resolved_error(self) -> BaseException | None: ...

@final
class BatchBuilder:
    def __new__(
        cls, topic: str, partition: int, limit: int, result: BatchResult, created_ms: int
    ) -> Self: ...
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def limit(self) -> int: ...
    @property
    def result(self) -> BatchResult: ...
    @property
    def created_ms(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def closed(self) -> bool: ...
    @property
    def entered(self) -> bool: ...
    @property
    def size(self) -> int: ...
    @property
    def uncompressed_size(self) -> int: ...
    @property
    def max_timestamp_ms(self) -> int: ...
    def append(
        self,
        timestamp_ms: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: _Headers | None,
        callback: Callable[[Any, BaseException | None], object] | None = None,
    ) -> Future | None: ...
    def append_many(
        self, timestamp_ms: int | None, keys: _Contents | None, values: _Contents, start: int, stop: int
    ) -> tuple[int, int]: ...
    def append_columns(
        self, timestamps: Buffer | None, keys: Column | None, values: Column | None, start: int, stop: int
    ) -> tuple[int, int]: ...
    def grow_limit(self, limit: int) -> None: ...
    def freeze(self) -> memoryview: ...
    def close(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        attributes: int,
        compressed: Buffer | None = None,
    ) -> None: ...
    def restamp(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None: ...
    def views(self) -> list[memoryview]: ...
    def records(
        self,
    ) -> Iterator[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], Future]]: ...
    def split(self, limit: int, new_result: Callable[[], BatchResult]) -> list[BatchBuilder]: ...
    def release(self) -> None: ...

class OpenBatches:
    topic: str
    ignores_keys: bool
    partition_count: int
    queues: dict[int, Any]
    sticky_queue: Any
    def __init__(
        self, topic: str, ignores_keys: bool, key_serializer: Serializer, value_serializer: Serializer
    ) -> None: ...
    def try_append(
        self,
        key: Any,
        value: Any,
        headers: Sequence[Any] | None,
        timestamp_ms: object,
        partition: object,
        callback: Any,
    ) -> Future | tuple[bytes | None, bytes | None] | None: ...
