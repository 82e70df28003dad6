"""A real Apache Kafka broker, alone: KRaft, or over a ZooKeeper that is there.

Used by the tests, by the soak and by the benchmarks.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from harness.network.ports import free_port
from harness.real_kafka.node import POM, SHORT_LIVED, KafkaNode, classpath, missing, new_id, tool

__all__ = ["RealKafka", "classpath", "missing"]


class RealKafka(KafkaNode):
    """One broker with its own directory, port and log file.

    A second listener, on `behind_proxy_port`, tells clients that the broker is at `proxy_port`: a `FaultProxy` that
    listens there has all of their connections. `listeners` are further ones, by name with their protocols; `ports` has
    theirs. `zookeeper` is the address of the one that keeps the metadata, where the broker does not do that itself.
    `settings` overrides lines of server.properties; `java`, `pom` and `more_classes` are as of KafkaNode. Use as a
    context manager, or call start() and close().
    """

    def __init__(
        self,
        *,
        heap: str = "512m",
        listeners: Mapping[str, str] | None = None,
        zookeeper: str | None = None,
        settings: Mapping[str, str] | None = None,
        java: Sequence[str] = SHORT_LIVED,
        pom: Path = POM,
        more_classes: Path | None = None,
    ) -> None:
        directory = Path(tempfile.mkdtemp(prefix="kclient-kafka-"))
        port = free_port()
        self.proxy_port = free_port()
        self.behind_proxy_port = free_port()
        protocols = listeners or {}
        self.ports = {name: free_port() for name in protocols}
        more = "".join(f",{name}://127.0.0.1:{port}" for name, port in self.ports.items())
        if zookeeper is None:
            controller = f"127.0.0.1:{free_port()}"
            metadata = {
                "process.roles": "broker,controller",
                "node.id": "1",
                "controller.quorum.voters": f"1@{controller}",
                "controller.listener.names": "CONTROLLER",
            }
            own = f",CONTROLLER://{controller}"
        else:
            metadata, own = {"broker.id": "1", "zookeeper.connect": zookeeper}, ""
        properties = {
            **metadata,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},PROXIED://127.0.0.1:{self.behind_proxy_port}{own}{more}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},PROXIED://127.0.0.1:{self.proxy_port}{more}",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": ",".join(
                ["CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT"]
                + [f"{name}:{protocol}" for name, protocol in protocols.items()]
            ),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "5",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": "6000",
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": "500",
            "log.initial.task.delay.ms": "1000",
            "producer.id.expiration.check.interval.ms": "1000",
            "auto.create.topics.enable": "true",
            "num.partitions": "1",
            **(settings or {}),
        }
        super().__init__(
            directory, properties, port=port, heap=heap, java=java, pom=pom, more_classes=more_classes
        )
        if zookeeper is None:
            self.format(new_id())

    tool = staticmethod(tool)

    @property
    def bootstrap_servers(self) -> str:
        """host:port of the broker."""
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stop the broker, if it runs, and remove its files."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:  # a Ctrl-C as well: nobody else would stop it
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
