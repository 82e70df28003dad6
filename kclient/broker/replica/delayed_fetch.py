"""DelayedFetch: a fetch that waits for enough bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from kclient.broker.purgatory import DelayedOperation
from kclient.broker.replica.fetching import FetchParams, PartitionFetch
from kclient.broker.replica.partition import Partition


@attrs.define(eq=False)
class DelayedFetch(DelayedOperation):
    """Completes when `missing_bytes` more have been appended to what it reads, when a partition went away or was cut
    below its offset, or when the time is over. `on_enough` then reads again.

    Bytes are counted as they are appended, so that looking costs no I/O however often an append makes it look.
    """

    _params: FetchParams
    _fetches: Sequence[tuple[Partition, PartitionFetch]]
    _appended_before: Mapping[Partition, int]
    _missing_bytes: int
    _is_current: Callable[[Partition], bool]
    _on_enough: Callable[[], None]

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
