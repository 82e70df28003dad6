"""The instruments: clocks, the check of what is read, the rhythm of a busy sender, percentiles."""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

from benchmarks.case import Job, Measured

BUSY_RECORDS_PER_S = 100_000
SAMPLED_EVERY = 50  # enough latencies for percentiles, too few to slow the sender
WARM_UP_ROUND_TRIPS = 200
_STALLED_S = 60.0


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


@attrs.define
class Reading:
    """Counts what a consumer reads. The clock starts with the first records, so that joining the group is left out."""

    records: int
    _known: frozenset[bytes]
    _watch: Stopwatch = attrs.Factory(Stopwatch)
    _first: int = 0
    _seen: int = 0
    _bytes: int = 0
    _last_s: float = attrs.Factory(time.monotonic)

    @classmethod
    def of(cls, job: Job) -> Reading:
        """For what `job` is to read."""
        return cls(job.records, frozenset(job.case.values()))

    def take(self, count: int, size: int, last: bytes | None) -> None:
        """The records of one poll, the bytes of their values, and the last value.

        Raises TimeoutError if none come for long, ValueError for a value that nobody wrote.
        """
        if not count:
            if time.monotonic() - self._last_s > _STALLED_S:
                raise TimeoutError(f"nothing came for {_STALLED_S:.0f} s after {self._seen} records")
            return
        if last not in self._known:
            raise ValueError(f"{last!r} was read, which nobody wrote")
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
        """True if everything has been read."""
        return self._seen >= self.records

    def measured(self, job: Job) -> Measured:
        """The result; raises ValueError if what was read is not what was written, or came in one piece."""
        if self._bytes != self._seen * job.case.size:
            raise ValueError(f"{self._seen} records have {self._bytes} bytes")
        if self._seen == self._first:
            raise ValueError(f"all {self._seen} records came at once; read more of them")
        return Measured(self._seen - self._first, self._watch.seconds, self._watch.cpu_seconds)


def busy_turns(records: int) -> Iterator[int]:
    """The numbers of `records` records, each when its turn has come at BUSY_RECORDS_PER_S.

    Computes in between and never sleeps, as an application does that has better things to do than to send.
    """
    clock = time.perf_counter
    started_s = clock()
    state = 1
    for number in range(records):
        due_s = started_s + number / BUSY_RECORDS_PER_S
        while clock() < due_s:
            state = state * 31 & 0xFFFF
        yield number


def round_trips(job: Job, send_and_wait: Callable[[bytes], object]) -> Measured:
    """One record after the other, each sent when the one before is acknowledged."""
    values = job.case.values()
    for number in range(WARM_UP_ROUND_TRIPS):
        send_and_wait(values[number % len(values)])
    clock = time.perf_counter
    taken_s = []
    with Stopwatch() as watch:
        for number in range(job.records):
            started_s = clock()
            send_and_wait(values[number % len(values)])
            taken_s.append(clock() - started_s)
    return with_latencies(job.records, watch, taken_s)


def with_latencies(records: int, watch: Stopwatch, latencies_s: Sequence[float]) -> Measured:
    """Return the measurement of `watch`, with the percentiles of `latencies_s`."""
    ordered = sorted(latencies_s)
    p50_ms, p99_ms = (ordered[max(math.ceil(len(ordered) * part) - 1, 0)] * 1000 for part in (0.5, 0.99))
    return Measured(records, watch.seconds, watch.cpu_seconds, p50_ms=p50_ms, p99_ms=p99_ms)


def peak_rss_bytes(pid: int | None = None) -> int:
    """The most memory that a process has had; this one, or (on Linux) that of `pid`. 0 if the system does not say."""
    try:
        status = Path(f"/proc/{pid or 'self'}/status").read_text(encoding="ascii")
    except OSError:
        # What getrusage says counts the parent in on Linux, until the child is another program.
        usage = 0 if pid else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return usage if sys.platform == "darwin" else usage * 1024
    for line in status.splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
