"""DelayedProduce: a produce request that waits until its records count as replicated."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from kclient.broker.purgatory import DelayedOperation
from kclient.broker.replica.partition import Partition
from kclient.errors import KafkaError, KafkaTimeoutError


@attrs.define(eq=False)
class ProduceOutcome:
    """The result of a produce request for one partition."""

    error: KafkaError | None = None
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    last_offset: int = -1

    def fail(self, error: KafkaError) -> None:
        """It has turned out that the records are not there as they should be."""
        self.error = error
        self.base_offset = self.log_append_time_ms = self.log_start_offset = -1


@attrs.define(eq=False)
class DelayedProduce(DelayedOperation):
    """Completes when the high watermark of every partition has passed what was appended to it."""

    _outcomes: Mapping[Partition, ProduceOutcome]
    _answer: Callable[[], None]
    _waiting: set[Partition] = attrs.field(init=False)

    @_waiting.default
    def _those_that_wait(self) -> set[Partition]:
        return {partition for partition, outcome in self._outcomes.items() if outcome.error is None}

    def try_complete(self) -> bool:
        done = {
            partition
            for partition in self._waiting
            if partition.log.high_watermark > self._outcomes[partition].last_offset
        }
        # A new set: the timer may complete the operation at this moment and walk over the old one.
        self._waiting = self._waiting - done
        return not self._waiting and self.force_complete()

    def on_complete(self) -> None:
        for partition in self._waiting:
            self._outcomes[partition].error = KafkaTimeoutError(
                f"The records for {partition.tp} were not acknowledged within the timeout of the request"
            )
        self._answer()
