"""Asks brokers for records of the share group: ShareFetch, with acknowledgements that go along."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

import attrs

from kclient.client.kafka_client import KafkaClient
from kclient.client.metadata import Metadata
from kclient.client.request_sender import NEVER
from kclient.client.requests import ClientResponse
from kclient.common.node import Node
from kclient.common.topic_id_partition import TopicIdPartition
from kclient.consumer.internals.completed_fetch import DecodeSettings
from kclient.consumer.internals.share.acknowledgements import Acknowledgements, merged
from kclient.consumer.internals.share.acknowledger import SESSION_LOST, Acknowledger
from kclient.consumer.internals.share.acquired_fetch import AcquiredFetch
from kclient.consumer.internals.share.assignment import ShareAssignment
from kclient.consumer.internals.share.fetch_buffer import ShareFetchBuffer
from kclient.consumer.internals.share.leader_hints import LeaderHints
from kclient.consumer.internals.share.metrics import ShareMetrics
from kclient.consumer.internals.share.session import by_partition
from kclient.consumer.internals.share.session_nodes import SessionNodes
from kclient.consumer.internals.share.settled import Settled
from kclient.consumer.share_config import ShareConsumerConfig
from kclient.errors import (
    Errors,
    InvalidShareSessionEpochError,
    KafkaError,
    TopicAuthorizationError,
    UnknownServerError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.share_fetch import PartitionData, ShareFetchRequest, ShareFetchResponse
from kclient.utils.log_context import Logger, RepeatedWarning

_ACQUIRE_MODES: Final = {"batch_optimized": 0, "record_limit": 1}
_FIRST_VERSION_WITH_RECORD_LIMIT: Final = 2
_PASSING = frozenset({Errors.UNKNOWN_LEADER_EPOCH, Errors.OFFSET_NOT_AVAILABLE, Errors.UNKNOWN_SERVER_ERROR})

Partitions = frozenset[TopicIdPartition]


@attrs.define(eq=False)
class _Flight:
    node: Node
    wanted: Partitions
    acknowledgements: list[Acknowledgements]


@attrs.define(kw_only=True, eq=False, repr=False)
class ShareFetcher:
    """Keeps a fetch under way to the leader of every assigned partition while records are wanted. For the I/O thread.

    They are wanted from the moment at which the application has none until a broker has locked some: records that wait
    here are kept from the other consumers of the group, and their locks run out.
    """

    _config: ShareConsumerConfig
    _group_id: str
    _member_id: str
    _decode: DecodeSettings
    _client: KafkaClient
    _metadata: Metadata
    _assignment: ShareAssignment
    _nodes: SessionNodes
    _acknowledger: Acknowledger
    _settled: Settled
    _buffer: ShareFetchBuffer
    _on_error: Callable[[KafkaError], None]
    _metrics: ShareMetrics
    _log: Logger = attrs.field(init=False)
    _warning: RepeatedWarning = attrs.field(init=False)
    _wanted: bool = attrs.field(default=False, init=False)
    _along: dict[int, list[Acknowledgements]] = attrs.field(factory=dict, init=False)  # by node id
    _flights: dict[int, _Flight] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._config.log_context().logger(__name__)
        self._warning = RepeatedWarning(self._log)

    def fetch(self, acknowledgements: Iterable[Acknowledgements], deadline_ms: int) -> None:
        """Ask for records; the acknowledgements go along where a fetch goes, and by themselves elsewhere."""
        self._wanted = True
        assigned = self._assignment.partitions
        for each in acknowledgements:
            if each.partition not in assigned or each.node_id in self._nodes.busy:
                self._acknowledger.add((each,), deadline_ms)
            elif not self._acknowledger.fail_if_moved(each):
                self._along.setdefault(each.node_id, []).append(each)

    def stop(self, deadline_ms: int) -> None:
        """Ask for nothing more; what was to go along goes by itself."""
        self._wanted = False
        for acknowledgements in self._along.values():
            self._acknowledger.add(acknowledgements, deadline_ms)
        self._along.clear()

    def poll(self, now_ms: int) -> int:
        """Send a fetch to each leader that has none yet."""
        if not self._wanted:
            return NEVER
        by_node: dict[int, set[TopicIdPartition]] = {}
        nodes: dict[int, Node] = {}
        if self._assignment.unresolved:
            self._metadata.request_update()
        for partition in self._assignment.partitions:
            leader = self._metadata.leader_and_epoch(partition.topic_partition).leader
            if leader is None:
                self._metadata.request_update()
                continue
            if leader.id not in self._nodes.busy:
                nodes[leader.id] = leader
                by_node.setdefault(leader.id, set()).add(partition)
        wait_ms = NEVER
        for node_id, partitions in by_node.items():
            wait_ms = min(wait_ms, self._try_send(nodes[node_id], frozenset(partitions), now_ms))
        # A leader may have changed meanwhile, so that no fetch goes there.
        for node_id in [each for each in self._along if each not in by_node and each not in self._nodes.busy]:
            self._acknowledger.add(self._along.pop(node_id), now_ms + self._config.default_api_timeout_ms)
            wait_ms = 0
        return wait_ms

    def _try_send(self, node: Node, partitions: Partitions, now_ms: int) -> int:
        wait_ms = self._nodes.wait_ms(node, now_ms)
        if wait_ms is None:
            self._nodes.session(node.id).start_over()
            cause = self._client.connection_failure(node.id)
            error = self._client.connections.authentication_error(node.id)
            if error is not None:
                self._on_error(error)
            self._settle(self._along.pop(node.id, ()), error or cause or UnknownServerError())
            self._warning.warn(
                f"node {node.id}", f"Broker {node} cannot be reached for share fetches", now_ms
            )
            self._metadata.request_update()
            return self._nodes.back_off(node.id, now_ms)
        if wait_ms:
            return wait_ms
        self._send(node, partitions, now_ms)
        return NEVER

    def _send(self, node: Node, partitions: Partitions, now_ms: int) -> None:
        session = self._nodes.session(node.id)
        along = self._along.pop(node.id, [])
        if not session.is_open and along:
            # The session that had locked the records is gone, and so are the locks.
            self._settle(
                along,
                InvalidShareSessionEpochError(f"The share session with broker {node.id} has ended meanwhile"),
            )
            along = []
        runs, later = merged(along)
        flight = _Flight(node, partitions, [each for each in along if each not in later])
        self._acknowledger.add(later, now_ms + self._config.default_api_timeout_ms)
        config = self._config
        record_limit = config.share_acquire_mode.lower() == "record_limit"

        def build(version: int) -> ShareFetchRequest:
            request = ShareFetchRequest(
                group_id=self._group_id,
                member_id=self._member_id,
                max_wait_ms=config.fetch_max_wait_ms,
                min_bytes=config.fetch_min_bytes,
                max_bytes=config.fetch_max_bytes,
                max_records=config.max_poll_records,
                batch_size=config.max_poll_records,
            )
            if version >= _FIRST_VERSION_WITH_RECORD_LIMIT:
                request.share_acquire_mode = _ACQUIRE_MODES[config.share_acquire_mode.lower()]
            session.fill_fetch(request, partitions, runs)
            return request

        self._nodes.busy.add(node.id)
        self._flights[node.id] = flight
        self._client.send(
            self._client.new_request(
                node.id,
                build,
                api_key=ApiKeys.SHARE_FETCH,
                on_complete=partial(self._on_complete, flight),
                min_version=_FIRST_VERSION_WITH_RECORD_LIMIT if record_limit else None,
            ),
            now_ms,
        )

    def end(self, error: KafkaError) -> None:
        """Nothing more is sent, and no answer comes."""
        for flight in self._flights.values():
            self._settle(flight.acknowledgements, error)
        for along in self._along.values():
            self._settle(along, error)
        self._flights.clear()
        self._along.clear()

    # Answers.

    def _on_complete(self, flight: _Flight, response: ClientResponse) -> None:
        node = flight.node
        self._nodes.busy.discard(node.id)
        if self._flights.pop(node.id, None) is None:
            return  # given up
        session = self._nodes.session(node.id)
        failure = response.failure()
        now_ms = response.received_ms
        if failure is not None:
            if response.disconnected:
                session.start_over()
            self._failed(flight, failure, now_ms)
            return
        message: ShareFetchResponse = response.message
        error = Errors.for_code(message.error_code, message.error_message)
        if error is not None:
            if message.error_code in SESSION_LOST:
                session.start_over()
            else:
                session.answered()
            self._metrics.fetched(response.latency_ms, message.throttle_time_ms, ())
            self._failed(flight, error, now_ms)
            return
        session.fetched(flight.wanted)
        self._take_answer(flight, message, now_ms)
        sizes = [
            len(partition.records or b"") for topic in message.responses for partition in topic.partitions
        ]
        self._metrics.fetched(response.latency_ms, message.throttle_time_ms, sizes)

    def _failed(self, flight: _Flight, error: KafkaError, now_ms: int) -> None:
        node = flight.node
        self._settle(flight.acknowledgements, error)
        self._nodes.back_off(node.id, now_ms)
        if isinstance(error, UnsupportedVersionError):
            error = UnsupportedVersionError(
                f"Broker {node} cannot be asked for records of a share group in the way that "
                f"share.acquire.mode={self._config.share_acquire_mode} needs: {error}"
            )
        if error.retriable:
            if error.code not in SESSION_LOST:
                self._metadata.request_update()
            self._warning.warn(f"node {node.id}", f"A share fetch from broker {node} failed: {error}", now_ms)
        else:
            self._wanted = False  # until the application asks again
            self._on_error(error)

    def _take_answer(self, flight: _Flight, message: ShareFetchResponse, now_ms: int) -> None:
        answers = by_partition(
            ((topic.topic_id, topic.partitions) for topic in message.responses), flight.wanted
        )
        for each in flight.acknowledgements:
            answer = answers.get(each.partition)
            if answer is None:
                error: KafkaError | None = UnknownServerError(
                    f"{each.partition}: the broker was told what became of records and did not answer that"
                )
            else:
                error = Errors.for_code(answer.acknowledge_error_code, answer.acknowledge_error_message)
            self._settled.settle(each, error)
        hints = LeaderHints(self._metadata, message.node_endpoints)
        failed = False
        completed = []
        for partition, data in answers.items():
            if data.error_code:
                failed = True
                if not hints.add(partition, data.error_code, data.current_leader):
                    self._refused(partition, data, now_ms)
            elif data.acquired_records:
                try:
                    completed.append(self._acquired(flight.node, partition, data, message))
                except KafkaError as error:
                    failed = True
                    self._on_error(error)
        hints.tell()
        if failed:
            self._nodes.back_off(flight.node.id, now_ms)
        else:
            self._nodes.succeeded(flight.node.id)
            self._warning.clear(f"node {flight.node.id}")
        if completed:
            self._wanted = False
            self._buffer.add(completed)

    def _acquired(
        self, node: Node, partition: TopicIdPartition, data: PartitionData, message: ShareFetchResponse
    ) -> AcquiredFetch:
        return AcquiredFetch(
            node.id,
            partition,
            memoryview(data.records or b""),
            data.acquired_records,
            message.acquisition_lock_timeout_ms or None,
            self._decode,
        )

    def _refused(self, partition: TopicIdPartition, data: PartitionData, now_ms: int) -> None:
        error = Errors.for_code(data.error_code, data.error_message)
        assert error is not None
        if isinstance(error, TopicAuthorizationError):
            self._on_error(TopicAuthorizationError(f"Not authorized to read topic {partition.topic!r}"))
        elif data.error_code in _PASSING or error.retriable:
            self._warning.warn(str(partition), f"{partition} could not be fetched for now: {error}", now_ms)
        else:
            self._on_error(error.reworded(f"{partition}: {error}"))

    def _settle(self, several: Iterable[Acknowledgements], error: KafkaError) -> None:
        for each in several:
            self._settled.settle(each, error)
