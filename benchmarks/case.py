"""The cases that are measured, and the results of a measurement."""

from __future__ import annotations

import random

import attrs

LINGER_MS = 5
IN_FLIGHT = 5
FETCH_BYTES = 52_428_800
PARTITION_FETCH_BYTES = 1_048_576
POLL_RECORDS = 500  # what Java hands out by default
POLL_MS = 1000
_DISTINCT = 1000


class UnavailableError(Exception):
    """Something asked for is not there: a package is not installed, or this build lacks a part."""


@attrs.frozen
class Case:
    """Records of `size` bytes, without key, in batches of up to `batch_bytes`, and a topic of `partitions`."""

    size: int = 100
    codec: str = "none"
    partitions: int = 1
    batch_bytes: int = 16_384

    @property
    def name(self) -> str:
        """Short and unique, for tables and files."""
        return f"{self.size} B, {self.codec}, {self.partitions} p, {self.batch_bytes / 1024:g} KiB"

    def values(self) -> list[bytes]:
        """Payloads of which about half can be compressed; the same ones in every process."""
        source = random.Random(7)
        words = [b"%08x" % source.getrandbits(32) for _ in range(200)]
        return [b"".join(source.choices(words, k=self.size // 8 + 1))[: self.size] for _ in range(_DISTINCT)]


@attrs.frozen
class Job:
    """Task of a child process: `operation` with `records` records of `case`.

    Before them come `warm_up` records that do not count. With `authority`, a file, the servers speak TLS and have
    certificates that it signed; `certificate` is such a one, with its key.
    """

    operation: str
    bootstrap_servers: str
    topic: str
    records: int
    case: Case
    poll_records: int = POLL_RECORDS
    warm_up: int = 0
    authority: str = ""
    certificate: str = ""


@attrs.frozen
class Measured:
    """The result of one run of one client. The latencies are None where none are measured."""

    records: int
    seconds: float
    cpu_seconds: float
    rss_bytes: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None

    @property
    def records_per_s(self) -> float:
        """Throughput."""
        return self.records / self.seconds

    @property
    def cpu_us_per_record(self) -> float:
        """CPU of the client's process for one record."""
        return self.cpu_seconds / self.records * 1e6
