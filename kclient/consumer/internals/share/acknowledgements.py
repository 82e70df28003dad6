"""Acknowledgements of records of one partition, as they go to its broker: runs of offsets."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, Protocol, TypeVar

import attrs

from kclient.common.topic_id_partition import TopicIdPartition
from kclient.consumer.acknowledge import AcknowledgeType
from kclient.consumer.internals.requests import Request
from kclient.errors import KafkaError

RENEW: Final = AcknowledgeType.RENEW.value

Results = dict[TopicIdPartition, KafkaError | None]


class WireBatch(Protocol):
    """The acknowledgement batch of ShareFetch or of ShareAcknowledge, which are alike."""

    def __init__(self, *, first_offset: int, last_offset: int, acknowledge_types: list[int]) -> None: ...


B = TypeVar("B", bound=WireBatch)


class AcknowledgeRequest(Request[Results]):
    """A commit that the application waits for: done when every partition's acknowledgements have their outcome."""

    __slots__ = ("_left", "results")

    def __init__(self, deadline_ms: int, acknowledgements: Iterable[Acknowledgements]) -> None:
        super().__init__(deadline_ms)
        self.results: Results = {}
        self._left = 0
        for each in acknowledgements:
            each.request = self
            self._left += 1

    def settle(self, partition: TopicIdPartition, error: KafkaError | None) -> None:
        """One of the acknowledgements of `partition` has its outcome. For the I/O thread."""
        self.results[partition] = self.results.get(partition) or error
        self._left -= 1
        if not self._left:
            self.complete(self.results)


@attrs.frozen
class Run:
    """Offsets that follow each other without a hole, and what is said of each. Immutable.

    `types` has a byte for each offset: an AcknowledgeType, or 0 for an offset at which there is no record.
    """

    first: int
    types: bytes

    @property
    def last(self) -> int:
        """The last offset."""
        return self.first + len(self.types) - 1

    def on_wire(self, batch_type: type[B]) -> B:
        """The run as a batch of a request; one type stands for all of them if they are alike."""
        types = self.types
        alike = types.count(types[0]) == len(types)
        return batch_type(
            first_offset=self.first,
            last_offset=self.last,
            acknowledge_types=[types[0]] if alike else list(types),
        )


@attrs.define(eq=False)
class Acknowledgements:
    """The word of the application on some records of one partition, on its way to the broker that delivered them.

    Made by the application's thread, settled by the I/O thread, and then the application's again.
    """

    node_id: int
    partition: TopicIdPartition
    runs: tuple[Run, ...]
    """In the order of offsets."""
    request: AcknowledgeRequest | None = attrs.field(default=None, init=False)
    error: KafkaError | None = attrs.field(default=None, init=False)
    """The reason why the broker has not taken them; None if it has."""
    lock_timeout_ms: int | None = attrs.field(default=None, init=False)
    """The time for which renewed locks hold now."""
    renews: bool = attrs.field(init=False)
    count: int = attrs.field(init=False)
    """The number of offsets."""

    def __attrs_post_init__(self) -> None:
        self.renews = any(RENEW in run.types for run in self.runs)
        self.count = sum(len(run.types) for run in self.runs)

    def offsets(self) -> frozenset[int]:
        """All offsets that something is said of."""
        return frozenset(offset for run in self.runs for offset in range(run.first, run.last + 1))

    def renewed_offsets(self) -> list[int]:
        """The offsets whose locks are to begin anew."""
        return [
            offset
            for run in self.runs
            if RENEW in run.types
            for offset, type_ in enumerate(run.types, run.first)
            if type_ == RENEW
        ]


def merged(
    several: Iterable[Acknowledgements],
) -> tuple[dict[TopicIdPartition, list[Run]], list[Acknowledgements]]:
    """The runs of each partition, in order, and the acknowledgements that have to go by another request.

    A broker takes no batches that overlap. They do if the lock of a record was lost and it was delivered here again.
    """
    runs: dict[TopicIdPartition, list[Run]] = {}
    later: list[Acknowledgements] = []
    for each in several:
        both = sorted([*runs.get(each.partition, ()), *each.runs], key=lambda run: run.first)
        if any(after.first <= before.last for before, after in pairwise(both)):
            later.append(each)
        else:
            runs[each.partition] = both
    return runs, later
