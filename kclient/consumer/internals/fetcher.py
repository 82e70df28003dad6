"""Keeps fetches under way to every broker that leads, or holds near by, a partition with room in the buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from kclient.client.kafka_client import KafkaClient
from kclient.client.metadata import Metadata
from kclient.client.request_sender import NEVER, RequestSender
from kclient.client.requests import ClientRequest, ClientResponse
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.internals.assigned_partitions import AssignedPartitions
from kclient.consumer.internals.completed_fetch import CompletedFetch, DecodeSettings
from kclient.consumer.internals.fetch_buffer import FetchBuffer
from kclient.consumer.internals.fetch_plan import FetchPlan, NodePlan
from kclient.consumer.internals.fetch_position import FetchPosition
from kclient.consumer.internals.fetch_session import (
    FetchSession,
    SessionFetch,
    WantedPartition,
)
from kclient.consumer.internals.metrics import ConsumerMetrics
from kclient.consumer.internals.too_large import TooLargeAnswers
from kclient.consumer.internals.topic_partition_state import TopicPartitionState
from kclient.errors import (
    Errors,
    FetchSessionTopicIdError,
    InvalidReceiveError,
    KafkaError,
    OffsetOutOfRangeError,
    TopicAuthorizationError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import Logger, RepeatedWarning

_OTHER_LEADER = frozenset(
    {
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.REPLICA_NOT_AVAILABLE,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.FENCED_LEADER_EPOCH,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.UNKNOWN_TOPIC_ID,
        Errors.INCONSISTENT_TOPIC_ID,
        Errors.LEADER_NOT_AVAILABLE,
    }
)


_FOLLOWED_MS = 1000
"""The time between two looks if a follower is still to be fetched from."""


@attrs.define(eq=False)
class _Flight:
    """A fetch under way: what it asks for, and whether its answer is of any use."""

    node: Node
    wanted: Mapping[TopicPartition, WantedPartition]
    useful: bool
    max_wait_ms: int = 0


@attrs.define(kw_only=True, eq=False, repr=False)
class Fetcher:
    """Sends Fetch requests and puts what comes back into the buffer, undecoded. Belongs to the I/O thread.

    One fetch a broker is under way. A partition is fetched on behind what is buffered of it, until the buffer has
    enough, so the application finds the next data there when it is through with the last.
    """

    _config: ConsumerConfig
    _decode: DecodeSettings
    _sender: RequestSender
    _metadata: Metadata
    _assigned: AssignedPartitions
    _buffer: FetchBuffer
    _on_change: Callable[[], None]
    _backoff: ExponentialBackoff
    _metrics: ConsumerMetrics
    _client: KafkaClient = attrs.field(init=False)
    _log: Logger = attrs.field(init=False)
    _warning: RepeatedWarning = attrs.field(init=False)
    _sessions: dict[int, FetchSession] = attrs.field(factory=dict, init=False)
    _flights: dict[int, _Flight] = attrs.field(factory=dict, init=False)  # by node id
    # node id -> (failures in a row, retry at)
    _node_failures: dict[int, tuple[int, int]] = attrs.field(factory=dict, init=False)
    _retry_ms: dict[TopicPartition, int] = attrs.field(factory=dict, init=False)
    _plan: FetchPlan = attrs.field(factory=FetchPlan, init=False)
    _leaderless: set[TopicPartition] = attrs.field(factory=set, init=False)
    # Fetched from a follower, until its time is over.
    _followed: set[TopicPartition] = attrs.field(factory=set, init=False)
    _followed_ms: int = attrs.field(default=0, init=False)
    _held_since_ms: dict[int, int] = attrs.field(factory=dict, init=False)  # by node id
    _too_large: TooLargeAnswers = attrs.field(factory=TooLargeAnswers, init=False)

    def __attrs_post_init__(self) -> None:
        self._client = self._sender.client
        self._log = self._config.log_context().logger(__name__)
        self._warning = RepeatedWarning(self._log)

    def poll(self, now_ms: int) -> int:
        """Send a fetch to each broker that can take one and has something to give."""
        changed = self._buffer.begin_round()
        changed |= self._assigned.take_changed()
        changed.update(self._retry_ms, self._leaderless)
        if self._followed and now_ms >= self._followed_ms:
            self._followed_ms = now_ms + _FOLLOWED_MS
            changed |= self._followed
        wait_ms = NEVER
        for tp in changed:
            wait_ms = min(wait_ms, self._place(tp, now_ms))
        idle = list(self._plan.without(self._flights))
        self._buffer.end_round(room_wanted=any(plan.full for plan in idle))
        if self._held_since_ms:
            held_back = {plan.node.id for plan in idle if plan.wanted and plan.full}
            for node_id in self._held_since_ms.keys() - held_back:
                del self._held_since_ms[node_id]
        for plan in idle:
            if plan.wanted:
                held_ms = self._hold_back(plan.node.id, now_ms) if plan.full else 0
                wait_ms = min(wait_ms, held_ms or self._try_send(plan, now_ms))
        return wait_ms

    def _place(self, tp: TopicPartition, now_ms: int) -> int:
        """Find out anew if, how and from which broker to fetch `tp`; returns the time for which not to, if for some."""
        state = self._assigned.by_partition.get(tp)
        position = None if state is None else state.fetch_position()
        self._leaderless.discard(tp)
        self._followed.discard(tp)
        if state is None or position is None:
            if state is None:
                self._retry_ms.pop(tp, None)
            self._plan.remove(tp)
            return NEVER
        retry_ms = self._retry_ms.get(tp, 0)
        if now_ms < retry_ms:
            self._plan.remove(tp)
            return retry_ms - now_ms
        node = position.leader.leader
        if state.preferred_replica is not None or node is None:
            node = self._node_for(state, position, now_ms)
            self._followed.add(tp)
        if node is None:
            self._leaderless.add(tp)
            self._plan.remove(tp)
            self._metadata.request_update()
            return NEVER
        offset = self._buffer.next_fetch_offset(tp, position.offset)
        self._plan.put(tp, node, None if offset is None else self._wanted(tp, position, offset))
        return NEVER

    def _hold_back(self, node_id: int, now_ms: int) -> int:
        """The time for which not to fetch from a broker, some of whose partitions are not to be fetched for now.

        The others may have nothing new, and the broker would keep the fetch for fetch.max.wait.ms. What is buffered is
        used up meanwhile, and nothing could be fetched behind it. An application that takes its time is not waited
        for, though: those partitions would get no turn.
        """
        left_ms = self._held_since_ms.setdefault(node_id, now_ms) + self._config.fetch_max_wait_ms - now_ms
        if left_ms <= 0:
            del self._held_since_ms[node_id]
        return max(left_ms, 0)

    def close(self, now_ms: int) -> None:
        """Tell the brokers that the sessions are over; they would keep them in memory for a while otherwise."""
        for node_id, session in self._sessions.items():
            node = self._metadata.fetch().node_by_id(node_id)
            if session.is_open and node is not None and self._client.is_ready(node, now_ms):
                self._send(_Flight(node, {}, useful=False), session.build_close(), now_ms)

    # Sending.

    def _node_for(self, state: TopicPartitionState, position: FetchPosition, now_ms: int) -> Node | None:
        tp = state.tp
        leader = position.leader.leader or self._metadata.leader_and_epoch(tp).leader
        replica_id = state.replica_to_read(now_ms)
        if replica_id is None or leader is None:
            return leader
        info = self._metadata.fetch().partition(tp)
        offline = () if info is None else info.offline_replicas
        replica = self._metadata.fetch().node_by_id(replica_id)
        if replica is None or any(node.id == replica_id for node in offline):
            self._log.debug("Replica %d of %s is gone; going back to the leader", replica_id, tp)
            state.clear_preferred_replica()
            self._metadata.request_update()
            return leader
        return replica

    def _wanted(self, tp: TopicPartition, position: FetchPosition, offset: int) -> WantedPartition:
        # Of the topic that the position belongs to, which metadata may not have any more.
        topic_id = self._assigned.topic_id(tp.topic) or Uuid.ZERO
        return WantedPartition(
            offset, topic_id, self._config.max_partition_fetch_bytes, position.leader.epoch
        )

    def _try_send(self, plan: NodePlan, now_ms: int) -> int:
        node = plan.node
        retry_ms = self._node_failures.get(node.id, (0, 0))[1]
        if now_ms < retry_ms:
            return retry_ms - now_ms
        if not self._client.ready(node, now_ms):
            if self._client.connections.is_disconnected(node.id):
                return self._unreachable(node, plan.wanted, now_ms)
            return self._client.connections.poll_delay_ms(node.id, now_ms)
        session = self._sessions.get(node.id)
        if session is None:
            session = self._sessions[node.id] = FetchSession(node.id, self._config.log_context())
        partitions, hurry = self._too_large.choose(plan.wanted)
        fetch = self._build(session, plan, partitions)
        flight = _Flight(
            node, session.partitions, useful=True, max_wait_ms=0 if hurry else self._config.fetch_max_wait_ms
        )
        self._send(flight, fetch, now_ms)
        return NEVER

    def _build(
        self, session: FetchSession, plan: NodePlan, partitions: dict[TopicPartition, WantedPartition]
    ) -> SessionFetch:
        in_turn = self._assigned.in_turn
        if plan.changed is None or partitions is not plan.wanted or session.is_new:
            fetch = session.build({tp: partitions[tp] for tp in in_turn(partitions)})
        else:
            fetch = session.build(partitions, in_turn(plan.changed))
        plan.fetched(partitions)
        return fetch

    def _unreachable(
        self, node: Node, partitions: Mapping[TopicPartition, WantedPartition], now_ms: int
    ) -> int:
        wait_ms = self._back_off(node, now_ms)
        error = self._client.connections.authentication_error(node.id)
        if error is not None:
            self._buffer.add(
                CompletedFetch.failed(tp, wanted.fetch_offset, error) for tp, wanted in partitions.items()
            )
            return wait_ms
        self._go_back_to_leaders(partitions)  # which may be reachable
        self._warning.warn(f"node {node.id}", f"Broker {node} cannot be reached for fetches", now_ms)
        return wait_ms

    def _send(self, flight: _Flight, fetch: SessionFetch, now_ms: int) -> None:
        self._flights[flight.node.id] = flight
        self._client.send(self._new_request(flight, fetch), now_ms)
        for tp in fetch.to_send:
            self._assigned.move_to_end(tp)

    def _new_request(self, flight: _Flight, fetch: SessionFetch) -> ClientRequest:
        config = self._config

        def build(version: int) -> FetchRequest:
            request = FetchRequest(
                max_wait_ms=flight.max_wait_ms,
                min_bytes=config.fetch_min_bytes,
                max_bytes=config.fetch_max_bytes,
                isolation_level=int(self._decode.read_committed),
                rack_id=config.client_rack,
            )
            return fetch.fill(request, version)

        return self._client.new_request(
            flight.node.id,
            build,
            api_key=ApiKeys.FETCH,
            on_complete=lambda response: self._on_complete(flight, response),
            max_version=fetch.max_version,
        )

    # Receiving.

    def _on_complete(self, flight: _Flight, response: ClientResponse) -> None:
        self._flights.pop(flight.node.id, None)  # closing, one more is under way
        if flight.useful:
            self._on_response(flight.node, flight.wanted, response)

    def _on_response(
        self, node: Node, partitions: Mapping[TopicPartition, WantedPartition], response: ClientResponse
    ) -> None:
        session = self._sessions[node.id]
        failure = response.failure()
        if failure is not None:
            session.start_over()
            self._on_failure(node, partitions, failure, response.received_ms)
            return
        message: FetchResponse = response.message
        found = session.on_response(message, response.version)
        if found is None:
            self._metrics.fetched(response.latency_ms, message.throttle_time_ms, ())
            if message.error_code not in (Errors.NONE, Errors.FETCH_SESSION_ID_NOT_FOUND):
                self._back_off(node, response.received_ms)
            if message.error_code == FetchSessionTopicIdError.code:
                self._metadata.request_update()
            return
        self._too_large.cleared(partitions)
        if self._node_failures.pop(node.id, None) is not None:
            self._warning.clear(f"node {node.id}")
        completed = []
        hints: dict[TopicPartition, tuple[int, int]] = {}
        for tp, data in found.items():
            fetch = self._take(node, tp, partitions[tp], data, hints, response.received_ms)
            if fetch is not None:
                completed.append(fetch)
        if hints:
            endpoints = [Node(end.node_id, end.host, end.port, end.rack) for end in message.node_endpoints]
            self._metadata.update_partition_leadership(hints, endpoints)
        if completed:
            self._buffer.add(completed)
        sizes = [(fetch.tp.topic, size) for fetch in completed if (size := fetch.size)]
        self._metrics.fetched(response.latency_ms, message.throttle_time_ms, sizes)

    def _on_failure(
        self, node: Node, partitions: Mapping[TopicPartition, WantedPartition], error: KafkaError, now_ms: int
    ) -> None:
        if isinstance(error.__cause__, InvalidReceiveError):
            blamed = self._too_large.refused(partitions, error.__cause__)
            if blamed is not None and self._current(blamed.tp, partitions[blamed.tp]) is not None:
                self._buffer.add((blamed,))
            return
        self._back_off(node, now_ms)
        self._go_back_to_leaders(partitions)
        if error.retriable:
            self._warning.warn(f"node {node.id}", f"A fetch from broker {node} failed: {error}", now_ms)
            self._metadata.request_update()
            return
        self._buffer.add(
            CompletedFetch.failed(tp, wanted.fetch_offset, error)
            for tp, wanted in partitions.items()
            if self._current(tp, wanted) is not None
        )

    def _go_back_to_leaders(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            state = self._assigned.by_partition.get(tp)
            if state is not None:
                state.clear_preferred_replica()

    def _back_off(self, node: Node, now_ms: int) -> int:
        """Leave `node` alone for longer with every failure in a row (KIP-580); returns for how long."""
        failures = self._node_failures.get(node.id, (0, 0))[0]
        wait_ms = self._backoff.backoff_ms(failures)
        self._node_failures[node.id] = failures + 1, now_ms + wait_ms
        return wait_ms

    def _current(self, tp: TopicPartition, wanted: WantedPartition) -> TopicPartitionState | None:
        """The partition, if the fetched data is still what comes next, after the position or the buffered data."""
        if wanted.topic_id not in (self._assigned.topic_id(tp.topic), Uuid.ZERO):
            return None  # of a topic that was deleted
        state = self._assigned.by_partition.get(tp)
        position = None if state is None else state.valid_position()
        if position is None or self._buffer.next_fetch_offset(tp, position.offset) != wanted.fetch_offset:
            return None
        return state

    def _take(
        self,
        node: Node,
        tp: TopicPartition,
        wanted: WantedPartition,
        data: PartitionData,
        hints: dict[TopicPartition, tuple[int, int]],
        now_ms: int,
    ) -> CompletedFetch | None:
        state = self._current(tp, wanted)
        if state is None:
            return None
        if data.error_code:
            return self._take_error(node, state, wanted, data, hints, now_ms)
        self._retry_ms.pop(tp, None)
        state.update_log_ends(data.high_watermark, data.last_stable_offset, data.log_start_offset)
        if data.preferred_read_replica >= 0:
            self._log.debug("Fetching %s from replica %d", tp, data.preferred_read_replica)
            until_ms = now_ms + self._config.metadata_max_age_ms
            state.prefer_replica(data.preferred_read_replica, until_ms)
        if not data.records:
            return None
        aborted: list[tuple[int, int]] | None = None
        if self._decode.read_committed:
            aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
        records = memoryview(data.records)
        return CompletedFetch(tp, wanted.fetch_offset, records, aborted, self._decode)

    def _take_error(
        self,
        node: Node,
        state: TopicPartitionState,
        wanted: WantedPartition,
        data: PartitionData,
        hints: dict[TopicPartition, tuple[int, int]],
        now_ms: int,
    ) -> CompletedFetch | None:
        tp = state.tp
        code = data.error_code
        self._retry_ms[tp] = now_ms + self._backoff.backoff_ms(0)
        self._log.debug("Fetch of %s at %d: %s", tp, wanted.fetch_offset, Errors.name_of(code))
        if code == Errors.OFFSET_OUT_OF_RANGE:
            self._out_of_range(node, state, wanted)
            return None
        was_follower = state.clear_preferred_replica()
        if code in _OTHER_LEADER:
            leader = data.current_leader
            if leader.leader_id >= 0 and leader.leader_epoch >= 0:
                hints[tp] = leader.leader_id, leader.leader_epoch
            self._metadata.request_update()
            return None
        if code in (Errors.UNKNOWN_LEADER_EPOCH, Errors.OFFSET_NOT_AVAILABLE) or was_follower is not None:
            return None
        error = Errors.for_code(
            code, f"{tp} cannot be fetched at offset {wanted.fetch_offset}: {Errors.name_of(code)}"
        )
        assert error is not None
        if code == Errors.TOPIC_AUTHORIZATION_FAILED:
            error = TopicAuthorizationError(f"Not authorized to read topic {tp.topic!r}")
        elif error.retriable and code != Errors.CORRUPT_MESSAGE:
            return None
        return CompletedFetch.failed(tp, wanted.fetch_offset, error)

    def _out_of_range(self, node: Node, state: TopicPartitionState, wanted: WantedPartition) -> None:
        tp = state.tp
        replica_id = state.clear_preferred_replica()
        if replica_id is not None and replica_id == node.id:
            self._log.debug("%s: replica %d does not have offset %d", tp, replica_id, wanted.fetch_offset)
            self._retry_ms.pop(tp, None)
            return  # a follower lags behind; the leader decides
        position = state.valid_position()
        if position is None or position.offset != wanted.fetch_offset:
            return  # there is data before it to be read first
        error = OffsetOutOfRangeError(
            f"Offset {wanted.fetch_offset} of {tp} is out of range, and auto.offset.reset is none; "
            "seek() to an offset that exists",
        )
        self._log.info("Offset %d of %s is out of range", wanted.fetch_offset, tp)
        if state.refuse_position(position, self._assigned.default_reset, error):
            self._on_change()
