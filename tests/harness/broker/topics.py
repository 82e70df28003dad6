"""The controller of topics with a real journal and real logs, in a directory."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kclient.broker.config import BrokerConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.metadata.cache import MetadataCache, TopicImage
from kclient.broker.metadata.controller import Controller, NewTopic
from kclient.broker.metadata.topics import TopicStore
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.common.topic_partition import TopicPartition
from kclient.utils.log_context import LogContext
from kclient.utils.time import SYSTEM_TIME

NODE = 1


class Topics:
    """A controller over a directory."""

    def __init__(self, root: Path, stack: ExitStack, **settings: Any) -> None:
        changes = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = BrokerConfig.parse(
            {"log.dirs": str(root), "node.id": NODE, "num.partitions": 3, **changes}
        )
        self.root = root
        self.logs = LogManager([root])
        self.logs.startup()
        stack.callback(self.logs.shutdown)
        self.replicas = ReplicaManager(self.logs, SYSTEM_TIME, LogContext())
        stack.callback(self.replicas.shutdown)
        self.store = TopicStore(root)
        self.store.start([], {})
        stack.callback(self.store.close)
        self.cache = MetadataCache()
        self.controller = Controller(self.store, self.cache, self.replicas, self.config, LogContext())

    def create(self, name: str = "t", count: int = 2, **fields: Any) -> TopicImage:
        return self.controller.create_topic(NewTopic(name, count, **fields))

    @property
    def journal(self) -> dict[str, TopicImage]:
        """The topics that a start would find now."""
        return TopicStore(self.root).topics

    def led(self) -> set[TopicPartition]:
        return {partition.log.topic_partition for partition in self.replicas.partitions()}
