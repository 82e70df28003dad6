"""A producer and a group on three real brokers that are killed, stopped and moved; the checker judges what they saw."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.real_kafka.cluster import RealCluster
from harness.scenarios.faults import UnderFault
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.errors import TopicExistsError

_HEALING_S = 60
_REQUEST_MS = 2000


def kill(cluster: RealCluster, admin: KafkaAdminClient, running: UnderFault) -> None:
    """kill -9 of the coordinator's broker, which leads a third of the partitions as well, and a start afterwards."""
    broker = _coordinator(cluster, admin, running)
    cluster.brokers[broker].kill()
    running.wait_for_progress()
    cluster.brokers[broker].start()


def stop(cluster: RealCluster, admin: KafkaAdminClient, running: UnderFault) -> None:
    """SIGSTOP of the same one for two request timeouts: late answers meet no newer request."""
    broker = cluster.brokers[_coordinator(cluster, admin, running)]
    ends = time.monotonic() + 2 * _REQUEST_MS / 1000
    broker.pause()
    try:
        running.wait_for_progress()
        wait_until(lambda: time.monotonic() > ends, what="two request timeouts")
    finally:
        broker.resume()


def move(cluster: RealCluster, admin: KafkaAdminClient, running: UnderFault) -> None:
    """Leaders of all partitions, and with them the coordinator, are others; the old ones go on running."""
    before = running.turns()
    for _ in range(2):
        cluster.move_leaders(admin)
        running.wait_for_progress()
    assert running.turns() == before, "a member's partitions were taken for it"


def controller(cluster: RealCluster, admin: KafkaAdminClient, running: UnderFault) -> None:
    """kill -9 of the active controller: another one takes over, and a topic is created all the same."""
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "request.timeout.ms": _REQUEST_MS}
    topic = f"{running.topic}-created"
    active = cluster.active_controller()
    active.kill()
    try:
        # What the killed one has done cannot be told any more, and the next one refuses it.
        with KafkaAdminClient(settings) as client, contextlib.suppress(TopicExistsError):
            client.create_topics([NewTopic(topic, 1, 3)])
        running.until(lambda: topic in admin.list_topics(), "the topic")
        running.wait_for_progress()
        assert cluster.active_controller() is not active
    finally:
        active.start()
    admin.delete_topics([topic])


def _coordinator(cluster: RealCluster, admin: KafkaAdminClient, running: UnderFault) -> int:
    node = admin.describe_consumer_groups([running.group])[running.group].coordinator
    return [broker.node_id for broker in cluster.brokers].index(node.id)


FAULTS: Mapping[str, Callable[[RealCluster, KafkaAdminClient, UnderFault], None]] = {
    each.__name__: each for each in (kill, stop, move, controller)
}


@pytest.mark.timeout(300)  # also the one that starts the brokers
@pytest.mark.parametrize(
    "protocol", ["classic", pytest.param("consumer", marks=[pytest.mark.soak, pytest.mark.long])]
)
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_lost_doubled_or_owned_twice(
    kafka_cluster: RealCluster, tmp_path: Path, fault: str, protocol: str
) -> None:
    topic = f"{fault}-{uuid.uuid4().hex[:8]}"
    with KafkaAdminClient(bootstrap_servers=kafka_cluster.direct_servers) as admin:
        kafka_cluster.create_topic(admin, topic, 3)
        servers = kafka_cluster.bootstrap_servers
        settings = {"request.timeout.ms": _REQUEST_MS, "group.protocol": protocol}
        with UnderFault(tmp_path, servers, topic, direct=kafka_cluster.direct_servers, **settings) as running:
            FAULTS[fault](kafka_cluster, admin, running)
            running.wait_for_progress()
            wait_until(lambda: not kafka_cluster.out_of_sync(admin), _HEALING_S, "every replica in sync")
        admin.delete_topics([topic])
