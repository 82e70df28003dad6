"""The controller of topics with a real metadata log and real logs, in a directory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from kclient.broker.config import BrokerConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.metadata.cache import MetadataCache
from kclient.broker.metadata.controller import Controller, NewTopic
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.topics import TopicImage
from kclient.broker.metadata.metadata_store import MetadataStore
from kclient.broker.metadata.recovery import known_topics
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
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
        self.store = self._found()
        self.store.start()
        stack.callback(self.store.close)
        self.cache = MetadataCache()
        self.controller = Controller(self.store, self.cache, self.replicas, self.config, LogContext())
        self.controller.start([], [])

    def create(self, name: str = "t", count: int = 2, **fields: Any) -> TopicImage:
        self.controller.create_topic(NewTopic(name, count, **fields))
        return self.cache.existing_topic(name)

    def start(self, directories: Mapping[str, tuple[Uuid, ...]] = MappingProxyType({})) -> None:
        """Lead everything anew, as after a restart; `directories` has topics whose partitions are elsewhere."""
        found = known_topics(self.store.image, NODE)
        topics = [
            attrs.evolve(each, directories=directories.get(each.name, each.directories)) for each in found
        ]
        self.controller.start(topics, [])

    @property
    def logged(self) -> MetadataImage:
        """The metadata that a start would find now."""
        return self._found().image

    def _found(self) -> MetadataStore:
        return MetadataStore(self.root / "__cluster_metadata-0", SYSTEM_TIME, snapshot_bytes=1 << 40)

    def led(self) -> set[TopicPartition]:
        return {partition.log.topic_partition for partition in self.replicas.partitions()}
