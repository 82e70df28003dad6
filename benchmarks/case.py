"""What is measured, and what a measurement gives."""

from __future__ import annotations

import random
import time
from types import TracebackType
from typing import Self

import attrs

BATCH_BYTES = 16_384
LINGER_MS = 5
IN_FLIGHT = 5
FETCH_BYTES = 52_428_800
PARTITION_FETCH_BYTES = 1_048_576
POLL_RECORDS = 500  # what Java hands out by default
POLL_MS = 1000
STALLED_S = 60.0
_DISTINCT = 1000


@attrs.frozen
class Case:
    """One line of the comparison: records of `size` bytes, without key, to and from a topic of `partitions`."""

    size: int = 100
    codec: str = "none"
    partitions: int = 1

    @property
    def name(self) -> str:
        """Short and unique, for tables and files."""
        return f"{self.size} B, {self.codec}, {self.partitions} partition{'s' * (self.partitions > 1)}"

    def values(self) -> list[bytes]:
        """Payloads of which about half can be compressed; the same ones in every process."""
        source = random.Random(7)
        words = [b"%08x" % source.getrandbits(32) for _ in range(200)]
        return [b"".join(source.choices(words, k=self.size // 8 + 1))[: self.size] for _ in range(_DISTINCT)]


CASES = [Case()]


@attrs.frozen
class Job:
    """What a child process does: produce or consume `records` records of `case`."""

    operation: str
    bootstrap_servers: str
    topic: str
    records: int
    case: Case


@attrs.define
class Stopwatch:
    """Wall clock and the process's own CPU, all threads, over a `with` block."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __enter__(self) -> Self:
        self.cpu_seconds = -time.process_time()
        self.seconds = -time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds += time.perf_counter()
        self.cpu_seconds += time.process_time()


@attrs.frozen
class Measured:
    """What one run of one client gave."""

    records: int
    seconds: float
    cpu_seconds: float

    @property
    def records_per_s(self) -> float:
        """Throughput."""
        return self.records / self.seconds

    @property
    def cpu_us_per_record(self) -> float:
        """CPU of the client's process for one record."""
        return self.cpu_seconds / self.records * 1e6


@attrs.define
class Reading:
    """Counts what a consumer reads. The clock starts with the first records, so that joining the group is left out."""

    records: int
    _watch: Stopwatch = attrs.Factory(Stopwatch)
    _first: int = 0
    _seen: int = 0
    _bytes: int = 0
    _last_s: float = attrs.Factory(time.monotonic)

    def take(self, count: int, size: int) -> None:
        """The records of one poll, and the bytes of their values; raises TimeoutError if none come for long."""
        if not count:
            if time.monotonic() - self._last_s > STALLED_S:
                raise TimeoutError(f"nothing came for {STALLED_S:.0f} s after {self._seen} records")
            return
        self._last_s = time.monotonic()
        if not self._seen:
            self._first = count
            self._watch.__enter__()
        self._seen += count
        self._bytes += size
        if self.done:
            self._watch.__exit__(None, None, None)

    @property
    def done(self) -> bool:
        """Whether everything has been read."""
        return self._seen >= self.records

    def measured(self, case: Case) -> Measured:
        """The result; raises ValueError if what was read is not what the case wrote."""
        if self._bytes != self._seen * case.size:
            raise ValueError(f"{self._seen} records have {self._bytes} bytes")
        return Measured(self._seen - self._first, self._watch.seconds, self._watch.cpu_seconds)
