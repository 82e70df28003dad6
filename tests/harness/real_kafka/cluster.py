"""A cluster of real Apache Kafka brokers, each behind a proxy that can spoil what clients and it say to each other.

Controllers are processes of their own, so that any broker, or all of them, may be killed, stopped and paused at will.
"""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Self

from harness.broker.wire import Wire
from harness.network.ports import free_port
from harness.network.proxy import FaultProxy
from harness.real_kafka.node import KafkaNode, new_id
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic, TopicDescription
from kclient.common.topic_partition import TopicPartition
from kclient.errors import AdminError, Errors, UnknownTopicOrPartitionError
from kclient.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kclient.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from kclient.protocol.messages.elect_leaders import ElectLeadersRequest
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

INTERNAL = ("__consumer_offsets", "__transaction_state")
"""The topics whose leaders are the coordinators of groups and transactions."""
_PREFERRED = 0
_CONTROLLER = 100  # the number of the first
_PROTOCOLS = "CONTROLLER:PLAINTEXT,CLIENTS:PLAINTEXT,DIRECT:PLAINTEXT"
# A broker that is gone or paused loses its leaderships within seconds, and those it should have come back soon.
_CONTROLLING = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "leader.imbalance.check.interval.seconds": "5",
    "leader.imbalance.per.broker.percentage": "0",
}
_BROKING = {
    "replica.lag.time.max.ms": "5000",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.num.partitions": "5",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    "auto.create.topics.enable": "false",
}


class ClusterBroker(KafkaNode):
    """One broker. Clients are told the address of its `proxy`; it and `direct` lead to the same broker."""

    def __init__(
        self, node_id: int, directory: Path, controllers: Sequence[int], settings: dict[str, str], heap: str
    ) -> None:
        self.node_id = node_id
        clients, self._direct_port = free_port(), free_port()
        self.proxy = FaultProxy(("127.0.0.1", clients))
        self.proxy.start()
        properties = {
            "process.roles": "broker",
            "node.id": str(node_id),
            "listeners": f"CLIENTS://127.0.0.1:{clients},DIRECT://127.0.0.1:{self._direct_port}",
            "advertised.listeners": f"CLIENTS://{self.proxy.bootstrap},DIRECT://{self.direct}",
            "inter.broker.listener.name": "DIRECT",
            **_quorum(controllers),
            **_CONTROLLING,
            **_BROKING,
            **settings,
        }
        super().__init__(directory, properties, port=clients, heap=heap)

    @property
    def direct(self) -> str:
        """host:port without the proxy; clients that begin there meet no proxy at all."""
        return f"127.0.0.1:{self._direct_port}"

    def join(self, cluster_id: str) -> None:
        """Prepare the data directory: what StorageTool writes for a broker, without a JVM for it."""
        self.log_dir.mkdir()
        meta = {"version": 1, "cluster.id": cluster_id, "node.id": self.node_id, "directory.id": new_id()}
        text = "".join(f"{key}={value}\n" for key, value in meta.items())
        (self.log_dir / "meta.properties").write_text(text)

    def move(self) -> FaultProxy:
        """Have clients be told another address from the next start on; return the proxy at the old one."""
        old, self.proxy = self.proxy, FaultProxy(self.proxy.target)
        self.proxy.start()
        text = self.config.read_text()
        self.config.write_text(
            text.replace(f"CLIENTS://{old.bootstrap}", f"CLIENTS://{self.proxy.bootstrap}")
        )
        return old

    def pause(self) -> None:
        """SIGSTOP: connections stay, nothing answers."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.signal(signal.SIGCONT)


class RealCluster:
    """Brokers 1 to `brokers`, replication 3, min.insync.replicas 2, and controllers, of which one is active.

    `settings` overrides lines of the brokers' server.properties. Use as a context manager.
    """

    def __init__(
        self,
        *,
        brokers: int = 3,
        controllers: int = 1,
        heap: str = "384m",
        settings: dict[str, str] | None = None,
    ) -> None:
        self._dir = Path(tempfile.mkdtemp(prefix="kclient-cluster-"))
        ports = [free_port() for _ in range(controllers)]
        kinds = "default", "offsets.topic", "transaction.state.log", "share.coordinator.state.topic"
        copies = {f"{kind}.replication.factor": "3" for kind in kinds} | {"min.insync.replicas": "2"}
        properties = {"process.roles": "controller", **_quorum(ports), **_CONTROLLING, **copies}
        self._controllers = {
            number: KafkaNode(
                self._dir / f"controller-{number}",
                {**properties, "node.id": str(number), "listeners": f"CONTROLLER://127.0.0.1:{port}"},
                port=port,
                heap="256m",
            )
            for number, port in enumerate(ports, _CONTROLLER)
        }
        self.brokers = [
            ClusterBroker(number, self._dir / f"broker-{number}", ports, {**copies, **(settings or {})}, heap)
            for number in range(1, brokers + 1)
        ]

    @property
    def bootstrap_servers(self) -> str:
        """The proxies' addresses."""
        return ",".join(broker.proxy.bootstrap for broker in self.brokers)

    @property
    def direct_servers(self) -> str:
        """The brokers' own addresses, for what no fault may touch."""
        return ",".join(broker.direct for broker in self.brokers)

    def start(self, timeout_s: float = 90.0) -> Self:
        """Start the controller and all brokers, and wait until the brokers are in the cluster."""
        cluster_id = new_id()
        first, *others = self._controllers.items()
        first[1].format(cluster_id)
        for number, controller in others:
            # What StorageTool writes, without a JVM for it.
            shutil.copytree(first[1].log_dir, controller.log_dir)
            meta = controller.log_dir / "meta.properties"
            text = meta.read_text().replace(f"node.id={first[0]}", f"node.id={number}")
            meta.write_text(re.sub("(?m)^directory.id=.*$", f"directory.id={new_id()}", text))
        for broker in self.brokers:
            broker.join(cluster_id)
        nodes = [*self._controllers.values(), *self.brokers]
        for node in nodes:
            node.spawn()
        for node in nodes:
            node.wait(timeout_s)
        with KafkaAdminClient(bootstrap_servers=self.direct_servers) as admin:
            wait_until(
                lambda: len(admin.describe_cluster().nodes) == len(self.brokers), timeout_s, "all brokers"
            )
        return self

    def active_controller(self) -> KafkaNode:
        """The controller that the others follow. Waits until there is one."""
        found: list[KafkaNode] = []

        def look() -> bool:
            partitions = [DescribeQuorumRequestPartitionData(partition_index=0)]
            topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=partitions)
            with Wire(self.brokers[0].direct) as wire:
                answer = wire.ask(DescribeQuorumRequest(topics=[topic]), 1)
            if not answer.error_code:
                (partition,) = answer.topics[0].partitions
                leader = self._controllers.get(partition.leader_id)
                if leader is not None and leader.running:
                    found.append(leader)
            return bool(found)

        wait_until(look, 60, "an active controller")
        return found[0]

    def create_topic(self, admin: KafkaAdminClient, name: str, partitions: int) -> None:
        """Create a topic with three replicas, and wait until every broker knows it with its leaders."""
        admin.create_topics([NewTopic(name, partitions, 3)])
        for broker in self.brokers:
            wait_until(lambda: _knows(broker, name, partitions), 60, f"{name} at broker {broker.node_id}")  # noqa: B023

    def out_of_sync(self, admin: KafkaAdminClient) -> list[str]:
        """The partitions, of all topics, that lack a leader or a replica in sync."""
        return [
            f"{topic}-{info.partition}: leader {info.leader and info.leader.id}, "
            f"in sync {[node.id for node in info.in_sync_replicas]}"
            for topic, described in self._described(admin).items()
            for info in described.partitions
            if info.leader is None or len(info.in_sync_replicas) < len(info.replicas)
        ]

    def leaders(self, admin: KafkaAdminClient, topics: Collection[str]) -> dict[TopicPartition, int]:
        """Partition -> node id of its leader, of those of the topics that are there, where there is one."""
        return {
            TopicPartition(topic, info.partition): info.leader.id
            for topic, described in self._described(admin).items()
            if topic in topics
            for info in described.partitions
            if info.leader is not None
        }

    def _described(self, admin: KafkaAdminClient) -> dict[str, TopicDescription]:
        """All topics. One that is new, or deleted, may be known to the broker that lists it and not to the other."""
        found: list[dict[str, TopicDescription]] = []

        def describe() -> bool:
            try:
                found.append(admin.describe_topics(list(admin.list_topics(include_internal=True))))
            except (AdminError, UnknownTopicOrPartitionError) as error:
                errors = error.errors.values() if isinstance(error, AdminError) else [error]
                if not all(isinstance(each, UnknownTopicOrPartitionError) for each in errors):
                    raise
            return bool(found)

        wait_until(describe, 60, "topics that all brokers know")
        return found[0]

    def move_leaders(self, admin: KafkaAdminClient) -> None:
        """Have every partition, of all topics, led by the next of its replicas, as an operator would.

        The replicas are put into another order, and the first one is elected. Raises KafkaError.
        """
        topics: list[ReassignableTopic] = []
        for topic, described in self._described(admin).items():
            found: list[ReassignablePartition] = []
            for info in described.partitions:
                first, *others = (node.id for node in info.replicas)
                found.append(ReassignablePartition(partition_index=info.partition, replicas=[*others, first]))
            topics.append(ReassignableTopic(name=topic, partitions=found))
        with Wire(self.brokers[0].direct) as wire:
            answer = wire.ask(AlterPartitionReassignmentsRequest(topics=topics), 0)
            error = Errors.for_code(answer.error_code, answer.error_message)
            if error is not None:
                raise error
            # All whose leader is not the first replica. One that cannot be had is elected later, as it is preferred.
            wire.ask(ElectLeadersRequest(election_type=_PREFERRED, topic_partitions=None), 2)

    def close(self) -> None:
        """Stop everything and remove its files."""
        for broker in self.brokers:
            if broker.running:
                broker.resume()
            broker.kill()
            broker.proxy.stop()
        for controller in self._controllers.values():
            controller.kill()
        shutil.rmtree(self._dir, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:  # a Ctrl-C as well: nobody else would stop it
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()


def _knows(broker: ClusterBroker, topic: str, partitions: int) -> bool:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    with Wire(broker.direct) as wire:
        (found,) = wire.ask(request, 12).topics
    return not found.error_code and [each.leader_id >= 0 for each in found.partitions] == [True] * partitions


def _quorum(ports: Sequence[int]) -> dict[str, str]:
    """Settings by which every node knows the controllers."""
    voters = (f"{number}@127.0.0.1:{port}" for number, port in enumerate(ports, _CONTROLLER))
    return {
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": _PROTOCOLS,
    }
