"""Metadata: the picture of the cluster that the I/O thread fetches and every thread reads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from kclient.client.metadata_response import EpochMemory, Picture, read_response
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.client.metadata_snapshot import NO_LEADER, LeaderAndEpoch, MetadataSnapshot
from kclient.common.cluster import Cluster
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    ClientClosedError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationError,
)
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kclient.utils.log_context import LogContext
from kclient.utils.steps import Broadcast, Pause, Steps
from kclient.utils.time import SYSTEM_TIME, Time, Timer

MetadataListener = Callable[[Cluster], None]


@attrs.frozen
class MetadataRequestPlan:
    """A request to send, and what it was for, so that the answer is not taken for more than that."""

    build: Callable[[int], MetadataRequest]
    min_version: int | None
    request_version: int
    partial: bool


class Metadata:
    """The known brokers, topics and partitions, and whether they have to be fetched again. Thread-safe.

    `fetch` reads without a lock: the picture is immutable and replaced as a whole. Subclasses say which
    topics they want by overriding `topics_to_request` and `retain_topic`, which are called with the lock
    held.

    An older leader epoch never replaces a newer one (KIP-320), unless the topic's id changed: then it is
    another topic of the same name.
    """

    def __init__(
        self,
        schedule: MetadataSchedule,
        *,
        allow_auto_topic_creation: bool = False,
        time: Time = SYSTEM_TIME,
        log_context: LogContext | None = None,
    ) -> None:
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self._time = time
        self._log = (log_context or LogContext()).logger(__name__)
        self._schedule = schedule
        # Reentrant: a subclass may ask for an update from within one of its hooks.
        self._lock = threading.RLock()
        self._changed = Broadcast()
        self._snapshot = MetadataSnapshot.bootstrap(())
        self._memory = EpochMemory()
        self._listeners: list[MetadataListener] = []
        self._update_version = 0
        self._fatal: KafkaError | None = None
        self._refused: KafkaError | None = None
        self._topic_error: KafkaError | None = None
        self._last_error: KafkaError | None = None
        self._closed = False

    def fetch(self) -> Cluster:
        """The present picture. Never blocks."""
        return self._snapshot.cluster

    @property
    def snapshot(self) -> MetadataSnapshot:
        """The present picture by ids."""
        return self._snapshot

    @property
    def update_version(self) -> int:
        """Grows with every successful update; what `await_update` compares with."""
        return self._update_version

    def age_ms(self, now_ms: int) -> int | None:
        """Return the time since the last full update, None before the first."""
        return self._schedule.age_ms(now_ms)

    @property
    def last_error(self) -> KafkaError | None:
        """The error that made the last attempt to update fail; None after a success."""
        return self._last_error

    def leader_and_epoch(self, tp: TopicPartition) -> LeaderAndEpoch:
        """The leader of `tp` and the newest epoch seen; no leader while the picture is older than that."""
        found = self._snapshot.leader_and_epoch(tp)
        seen = self._memory.epochs.get(tp)
        if seen is None or (found.epoch is not None and found.epoch >= seen):
            return found
        return LeaderAndEpoch(None, seen) if found.epoch is not None or found is NO_LEADER else found

    def leader_epoch(self, tp: TopicPartition) -> int | None:
        """The newest leader epoch of `tp` that was ever seen."""
        return self._memory.epochs.get(tp)

    def topic_id(self, topic: str) -> Uuid | None:
        """The id of a topic, None if unknown."""
        return self._snapshot.topic_ids.get(topic)

    def topic_name(self, topic_id: Uuid) -> str | None:
        """The name of a topic, None if unknown."""
        return self._snapshot.cluster.topic_name(topic_id)

    def topics_to_request(self) -> list[str] | None:
        """The topics of a full update, to override; None is all topics, an empty list brokers only."""
        return None

    def new_topics_to_request(self) -> list[str] | None:
        """The topics of an update that only has to find new ones. To override."""
        return self.topics_to_request()

    def retain_topic(self, topic: str, is_internal: bool, now_ms: int) -> bool:
        """Return True to keep what an answer says of `topic`. To override."""
        del topic, is_internal, now_ms
        return True

    def on_missing_topics(self, topics: frozenset[str], now_ms: int) -> None:
        """An answer came; these topics do not exist. To override."""

    def bootstrap(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Begin with brokers known by (host, port) alone, and ask them."""
        with self._lock:
            self._snapshot = MetadataSnapshot.bootstrap(addresses)
            self._schedule.request_full(reset_backoff=True)
            self._update_version += 1

    def rebootstrap(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Forget the brokers and begin again with these addresses (KIP-1102); topics are kept."""
        with self._lock:
            nodes = MetadataSnapshot.bootstrap(addresses).nodes
            self._snapshot = attrs.evolve(self._snapshot, nodes=nodes, controller_id=-1)
            self._schedule.request_full(reset_backoff=True)
            self._schedule.at_once()

    @property
    def is_bootstrapping(self) -> bool:
        """True while no broker has answered since the start or the last rebootstrap."""
        return all(node_id < 0 for node_id in self._snapshot.nodes)

    def request_update(self, reset_backoff: bool = False) -> int:
        """Ask for a full update; returns the version that the next update will exceed.

        `reset_backoff` says that something really changed, so that equal answers of the past do not slow it
        down, and one that is on its way is none to it.
        """
        with self._lock:
            self._schedule.request_full(reset_backoff)
            return self._update_version

    def request_update_for_new_topics(self) -> int:
        """Ask at once, without backoff, for `new_topics_to_request` only; returns as `request_update`."""
        with self._lock:
            self._schedule.request_partial()
            return self._update_version

    @property
    def update_requested(self) -> bool:
        """True if somebody asked for an update that has not come yet."""
        return self._schedule.full_requested or self._schedule.partial_requested

    def time_to_next_update_ms(self, now_ms: int) -> int:
        """The time until the next update is due; 0 if it is now. Backoff holds for requested updates, too."""
        # Without the lock: a request of another thread is followed by a wakeup, which leads here again.
        return self._schedule.time_to_next_update_ms(now_ms)

    def plan_request(self) -> MetadataRequestPlan:
        """The request for the update that is due."""
        with self._lock:
            schedule = self._schedule
            partial = schedule.partial_requested and not schedule.full_requested and schedule.had_success
            topics = self.new_topics_to_request() if partial else self.topics_to_request()
            create = self.allow_auto_topic_creation
            request_version = schedule.request_version

        def build(version: int) -> MetadataRequest:
            # Version 0 says "all" by an empty list and cannot say "none".
            listed = [] if topics is None and version == 0 else topics
            return MetadataRequest(
                topics=None if listed is None else [MetadataRequestTopic(name=topic) for topic in listed],
                allow_auto_topic_creation=create,
            )

        # Before version 4 every broker that may create topics does so when it is asked about one.
        return MetadataRequestPlan(build, None if create or not topics else 4, request_version, partial)

    def update(
        self,
        response: MetadataResponse,
        now_ms: int,
        *,
        partial: bool = False,
        request_version: int | None = None,
    ) -> None:
        """Take over an answer, wake the waiters and tell the listeners.

        `partial` answers leave topics they do not speak of as they are. `request_version` is the plan's;
        what was asked for since then keeps the update requested, and its topics as they are. An answer that
        names no broker counts as a failure: the last known ones are never dropped.
        """
        if not response.brokers:
            self.failed_update(now_ms)
            return
        with self._lock:
            if self._closed:
                return
            before = self._snapshot
            picture = read_response(response, before, self._memory)
            known = self._schedule.request_version if request_version is None else request_version
            # One to an earlier request has no topics that are wanted since then, and which may be known.
            keeps = partial or known < self._schedule.request_version
            self._snapshot = after = self._merge(before, picture, now_ms, keeps)
            changed = _contents(before) != _contents(after)
            self._schedule.succeeded(now_ms, partial=partial, request_version=known, changed=changed)
            if picture.stale_topics:
                self._schedule.request_full(reset_backoff=False)
            self._last_error = self._refused = self._fatal = None
            self._topic_error = _topic_error(after)
            self._update_version += 1
            self._changed.notify_all()
            self._log_changes(before, picture)
            self.on_missing_topics(after.missing_topics, now_ms)
        self._tell_listeners(after.cluster)

    def failed_update(self, now_ms: int, error: KafkaError | None = None) -> None:
        """The attempt failed; another one is due after a backoff. `error` is taken by `record_error`."""
        with self._lock:
            self._schedule.failed(now_ms)
            if error is not None:
                self.record_error(error)

    def record_error(self, error: KafkaError) -> None:
        """Record the reason why no update comes now: the cause of time-outs; raised to a waiter if not retriable."""
        with self._lock:
            self._last_error = error
            if not error.retriable:
                self._refused = error
            # Also where that changes nothing for them: whoever has gone since is forgotten here.
            self._changed.notify_all()

    def fatal_error(self, error: KafkaError) -> None:
        """Nothing will help (wrong credentials): every waiter gets `error`, until there is an update all the same."""
        with self._lock:
            self._fatal = self._last_error = error
            self._changed.notify_all()

    def update_partition_leadership(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node] = ()
    ) -> set[TopicPartition]:
        """Take over (leader id, epoch) hints of produce and fetch answers (KIP-951); returns what changed.

        A hint counts if it is newer than what is known of the partition and the address of its leader is
        known.
        """
        changed = set()
        with self._lock:
            snapshot = self._snapshot
            known_nodes = {**snapshot.nodes, **{node.id: node for node in nodes}}
            partitions = dict(snapshot.partitions)
            for tp, (leader_id, epoch) in leaders.items():
                known = partitions.get(tp)
                if known is None or leader_id not in known_nodes:
                    continue
                newest = -1 if known.leader_epoch is None else known.leader_epoch
                if epoch <= max(newest, self._memory.epochs.get(tp, -1)):
                    continue
                partitions[tp] = attrs.evolve(known, leader_id=leader_id, leader_epoch=epoch)
                self._memory.epochs[tp] = epoch
                changed.add(tp)
            if not changed:
                return changed
            self._snapshot = attrs.evolve(snapshot, nodes=known_nodes, partitions=partitions)
            cluster = self._snapshot.cluster
        self._tell_listeners(cluster)
        return changed

    def update_last_seen_epoch_if_newer(self, tp: TopicPartition, epoch: int) -> bool:
        """An epoch was seen with records or offsets; returns whether it is news, which requests an update."""
        with self._lock:
            known = self._memory.epochs.get(tp)
            if known is not None and epoch <= known:
                return False
            self._memory.epochs[tp] = epoch
            if known is not None:
                self._schedule.request_full(reset_backoff=False)
            return True

    def await_update(self, last_version: int, timer: Timer) -> Steps[None]:
        """Wait until `update_version` exceeds `last_version`.

        Raises the error that a broker refused the update with, KafkaTimeoutError (caused by the last failure)
        when the timer is over, and ClientClosedError. Errors of single topics are left to
        `raise_error_for_topic`.
        """
        while True:
            with self._lock:
                self._raise_refused()
                if self._closed:
                    raise ClientClosedError("The client was closed while somebody waited for metadata")
                if self._update_version > last_version:
                    return
                if timer.is_expired():
                    reason = "" if self._last_error is None else f": {self._last_error}"
                    raise KafkaTimeoutError(
                        f"The metadata was not updated within {timer.timeout_ms} ms{reason}"
                    ).because_of(self._last_error)
                changed = self._changed.next()
            yield Pause(changed, timer)

    def raise_any_error(self) -> None:
        """Raise a fatal error, or, once each, what refused the last update or speaks against a topic."""
        if self._fatal is None and self._refused is None and self._topic_error is None:
            return
        with self._lock:
            self._raise_refused()
            topic_error, self._topic_error = self._topic_error, None
            if topic_error is not None:
                raise topic_error

    def raise_fatal_error(self) -> None:
        """Raise what nothing will help against (wrong credentials), until there is an update all the same."""
        with self._lock:
            self._raise_fatal()

    def raise_error_for_topic(self, topic: str) -> None:
        """Raise a fatal error, or what the last answer said against `topic` and no other one."""
        with self._lock:
            self._raise_fatal()
            if topic in self._snapshot.unauthorized_topics:
                raise TopicAuthorizationError(f"Not authorized to use topic {topic!r}")
            if topic in self._snapshot.invalid_topics:
                raise InvalidTopicError(f"The brokers refuse the topic name {topic!r}")

    def add_listener(self, listener: MetadataListener) -> None:
        """Call `listener(cluster)` after every change, on the thread that makes it, without the lock."""
        with self._lock:
            self._listeners.append(listener)

    def close(self) -> None:
        """Wake the waiters; nothing is taken over any more. A second call does nothing."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()

    def _raise_fatal(self) -> None:
        if self._fatal is not None:
            raise self._fatal

    def _raise_refused(self) -> None:
        """Raise a fatal error, or, once, what refused the last update."""
        self._raise_fatal()
        refused, self._refused = self._refused, None
        if refused is not None:
            raise refused

    def _merge(
        self, before: MetadataSnapshot, picture: Picture, now_ms: int, keeps: bool
    ) -> MetadataSnapshot:
        answer = picture.snapshot
        internal = answer.internal_topics | before.internal_topics
        # Asked once for each topic, not for each partition: the hook may be costly.
        wanted: dict[str, bool] = {}

        def retain(topic: str) -> bool:
            known = wanted.get(topic)
            if known is None:
                known = wanted[topic] = self.retain_topic(topic, topic in internal, now_ms)
            return known

        newer = attrs.evolve(
            answer,
            partitions={tp: p for tp, p in answer.partitions.items() if retain(tp.topic)},
            topic_ids={topic: i for topic, i in answer.topic_ids.items() if retain(topic)},
        )
        return before.merged_under(newer, picture.answered, retain) if keeps else newer

    def _log_changes(self, before: MetadataSnapshot, picture: Picture) -> None:
        for topic, error in picture.stale_topics.items():
            self._log.debug("Topic %s will be asked for again: %s", topic, error)
        new_id = picture.snapshot.cluster_id
        if new_id is None or new_id == before.cluster_id:
            return
        if before.cluster_id is None:
            self._log.info("Cluster ID: %s", new_id)
        else:
            self._log.warning(
                "The cluster id changed from %s to %s: bootstrap.servers names different clusters, or an address "
                "now leads to another one",
                before.cluster_id,
                new_id,
            )

    def _tell_listeners(self, cluster: Cluster) -> None:
        for listener in tuple(self._listeners):
            listener(cluster)


def _contents(snapshot: MetadataSnapshot) -> tuple[object, ...]:
    return snapshot.nodes, snapshot.partitions, snapshot.topic_ids


def _topic_error(snapshot: MetadataSnapshot) -> KafkaError | None:
    unauthorized, invalid = snapshot.unauthorized_topics, snapshot.invalid_topics
    if unauthorized:
        return TopicAuthorizationError(f"Not authorized to use: {', '.join(sorted(unauthorized))}")
    if invalid:
        return InvalidTopicError(f"The brokers refuse these topic names: {', '.join(sorted(invalid))}")
    return None
