"""Metrics of the controller, the group coordinator, fetch sessions and requests that wait."""

from __future__ import annotations

from collections import Counter

from kclient.broker.broker_context import BrokerContext
from kclient.broker.group.group import GroupState
from kclient.broker.metrics.readout import Readout

_GROUPS = "coordinator.group.GroupMetadataManager"
_CONTROLLER = "controller.KafkaController"
_SESSIONS = "server.FetchSessionCache"
_PURGATORY = "server.DelayedOperationPurgatory"
_RUNNING = 3  # BrokerState of Kafka


def read_broker(out: Readout, broker: BrokerContext) -> None:
    """Read all of it out. For any thread."""
    out.gauge("server.KafkaServer", "BrokerState", _RUNNING, "3: the broker runs")
    topics = broker.controller.cache.topics()
    partitions = sum(topic.partition_count for topic in topics)
    out.gauge(_CONTROLLER, "ActiveControllerCount", 1, "1 if this broker is the controller")
    out.gauge(_CONTROLLER, "GlobalTopicCount", len(topics), "Topics of the cluster")
    out.gauge(_CONTROLLER, "GlobalPartitionCount", partitions, "Partitions of the cluster")
    offline = broker.replicas.offline_count
    out.gauge(_CONTROLLER, "OfflinePartitionsCount", offline, "Partitions without a leader")
    _read_groups(out, broker)
    sessions = broker.fetch_sessions
    out.gauge(_SESSIONS, "NumIncrementalFetchSessions", len(sessions), "Fetch sessions")
    count = sessions.partition_count
    out.gauge(_SESSIONS, "NumIncrementalFetchPartitionsCached", count, "Partitions of fetch sessions")
    evictions = sessions.evictions
    out.counter(
        _SESSIONS, "IncrementalFetchSessionEvictionsPerSec", evictions, "Sessions that made room for others"
    )
    purgatories = {**broker.replicas.purgatories, "Rebalance": broker.groups.rebalancer.purgatory}
    for kind, purgatory in purgatories.items():
        watched, delayed = purgatory.watched, purgatory.delayed
        out.gauge(_PURGATORY, "PurgatorySize", watched, "Entries of watch lists", delayedOperation=kind)
        out.gauge(_PURGATORY, "NumDelayedOperations", delayed, "Requests that wait", delayedOperation=kind)


def _read_groups(out: Readout, broker: BrokerContext) -> None:
    groups = broker.groups.all_groups()
    states = Counter(group.state for group in groups)
    out.gauge(_GROUPS, "NumGroups", len(groups), "Groups")
    out.gauge(_GROUPS, "NumOffsets", sum(len(group.offsets) for group in groups), "Committed offsets")
    for state in GroupState:
        out.gauge(_GROUPS, f"NumGroups{state.value}", states[state], f"Groups in the state {state.value}")
