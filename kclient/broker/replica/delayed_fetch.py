"""DelayedFetch: a fetch that waits for enough bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kclient.broker.purgatory import DelayedOperation
from kclient.broker.replica.fetching import FetchParams, PartitionFetch
from kclient.broker.replica.partition import Partition


class DelayedFetch(DelayedOperation):
    """Completes when `missing_bytes` more have been appended to what it reads, when a partition went away or was cut
    below its offset, or when the time is over. `on_enough` then reads again.

    Bytes are counted as they are appended, so that looking costs no I/O however often an append makes it look.
    """

    __slots__ = ("_appended_before", "_fetches", "_is_current", "_missing_bytes", "_on_enough", "_params")

    def __init__(
        self,
        params: FetchParams,
        fetches: Sequence[tuple[Partition, PartitionFetch]],
        appended_before: Mapping[Partition, int],
        *,
        delay_ms: int,
        missing_bytes: int,
        is_current: Callable[[Partition], bool],
        on_enough: Callable[[], None],
    ) -> None:
        super().__init__(delay_ms)
        self._params = params
        self._fetches = fetches
        self._appended_before = appended_before
        self._missing_bytes = missing_bytes
        self._is_current = is_current
        self._on_enough = on_enough

    def try_complete(self) -> bool:
        available = 0
        for partition, fetch in self._fetches:
            end = partition.log.readable_end(self._params.isolation)
            if end < fetch.offset or not self._is_current(partition):
                return self.force_complete()
            if end > fetch.offset:
                appended = partition.appended_bytes - self._appended_before[partition]
                available += min(appended, fetch.max_bytes)
        return available >= self._missing_bytes and self.force_complete()

    def on_complete(self) -> None:
        self._on_enough()
