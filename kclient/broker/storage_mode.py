"""StorageMode: the parts of a broker that decide what is written, for one that writes and for one that only reads."""

from __future__ import annotations

import attrs

from kclient.broker.config import BrokerConfig
from kclient.broker.group.group_store import GroupStore
from kclient.broker.group.read_only_group_store import ReadOnlyGroupStore
from kclient.broker.log.file_system import DISK, FileSystem, ReadOnlyFileSystem
from kclient.broker.metadata.metadata_store import MetadataStore, ReadOnlyMetadataStore


@attrs.frozen
class StorageMode:
    """The way to files, and the kinds of stores for metadata and groups. Immutable.

    The rest of the broker is the same in both modes: what it does at a start it does in memory where nothing is
    written, and what clients want to change is refused by these parts.
    """

    file_system: FileSystem
    metadata_store: type[MetadataStore]
    group_store: type[GroupStore]

    @property
    def writable(self) -> bool:
        """True if anything is written: else nothing need be done behind the logs."""
        return self.file_system.writable

    @classmethod
    def of(cls, config: BrokerConfig) -> StorageMode:
        """The mode that the settings ask for."""
        if config.kclient_read_only:
            return cls(ReadOnlyFileSystem(), ReadOnlyMetadataStore, ReadOnlyGroupStore)
        return cls(DISK, MetadataStore, GroupStore)
