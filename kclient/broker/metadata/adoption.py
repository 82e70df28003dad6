"""Adoption: an account of what a broker has taken over from the Kafka whose directories it was started on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from kclient.broker.log.log_manager import LogManager
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.kafka_metadata import KafkaMetadata
from kclient.broker.metadata.recovery import RecoveredTopics
from kclient.broker.transaction.open_transactions import EndedTransactions

_SHOWN = 5


@attrs.frozen(kw_only=True)
class Adoption:
    """An account of an adoption, as numbers and names. Immutable. `str` has a line for each thing worth knowing."""

    metadata_log: Path | None
    """The directory of Kafka's metadata log; None if there is none."""
    topics: int
    partitions: int
    records: int
    """Offsets from the start to the end of each partition: what compaction has removed is counted."""
    size_bytes: int
    users: int
    rules: int
    quotas: int
    broker_settings: int
    unclaimed: Sequence[str]
    """The topics that only directories know, all of whose records are kept."""
    kept: Sequence[str]
    """The topics without a retention.ms of their own, which has become one."""
    elsewhere: Mapping[str, int]
    """The number of partitions of each topic that are not here, and begin empty."""
    unwritable: Sequence[str]
    """The topics whose min.insync.replicas one broker cannot satisfy."""
    left_out: Mapping[str, Sequence[str]]
    """The settings of each topic that this broker does not have."""
    deleted: int
    """Partitions of deleted topics, whose files go."""
    transactions: EndedTransactions = attrs.field(factory=EndedTransactions)
    """The partitions with transactions that were open, and have ended."""

    @classmethod
    def of(
        cls, recovered: RecoveredTopics, kafka: KafkaMetadata | None, logs: LogManager, node_id: int
    ) -> Adoption:
        """The account of an adoption whose logs are open, and their transactions not ended yet."""
        image = MetadataImage() if kafka is None else kafka.image
        open_logs = logs.all_logs()
        settings = image.configs.resources.items()
        topics = recovered.topics
        return cls(
            metadata_log=None if kafka is None else kafka.directory,
            topics=len(topics),
            partitions=len(open_logs),
            records=sum(one.log_end_offset - one.log_start_offset for one in open_logs),
            size_bytes=sum(one.size for one in open_logs),
            users=len({name for _, name in image.scram.credentials}),
            rules=len(image.acls.acls),
            quotas=sum(map(len, image.client_quotas.entities.values())),
            broker_settings=sum(
                len(found)
                for (kind, name), found in settings
                if kind == ResourceType.BROKER and name in {"", str(node_id)}
            ),
            unclaimed=sorted(topics.keys() - image.topics.by_name),
            kept=recovered.kept,
            elsewhere={name: topic.elsewhere for name, topic in sorted(topics.items()) if topic.elsewhere},
            unwritable=[
                name
                for name, topic in sorted(topics.items())
                if int(topic.configs.get("min.insync.replicas", "1")) > 1
            ],
            left_out={} if kafka is None else kafka.left_out(),
            deleted=len(recovered.deleted),
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        source = "without a metadata log" if self.metadata_log is None else f"as {self.metadata_log} has them"
        lines = [
            f"adopted {self.topics} topics with {self.partitions} partitions, {source}",
            f"adopted {self.records} records at most, {self.size_bytes} bytes",
            f"adopted {self.users} SCRAM users, {self.rules} access rules, {self.quotas} quotas",
            f"adopted {self.broker_settings} settings of brokers",
        ]
        if self.deleted:
            lines.append(f"removed {self.deleted} partitions of topics that were deleted")
        if self.unclaimed:
            lines.append(f"keeping all records of topics that no metadata know: {_names(self.unclaimed)}")
        if self.kept:
            lines.append(
                f"retention.ms is now set for topics that had the default of Kafka's server.properties, which is not "
                f"known: {_names(self.kept)}"
            )
        lines += [
            f"warning: {count} partitions of {name} are on other brokers, and begin empty here"
            for name, count in self.elsewhere.items()
        ]
        if self.unwritable:
            lines.append(
                f"warning: min.insync.replicas is more than 1 for {_names(self.unwritable)}: writes with acks=all are "
                "refused until it is 1"
            )
        ended = self.transactions
        if ended.committed:
            lines.append(
                f"committed transactions that Kafka had decided to commit and not ended: {_names(ended.committed)}"
            )
        if ended.aborted:
            lines.append(f"warning: aborted transactions that were open: {_names(ended.aborted)}")
        if ended.failed:
            lines.append(
                f"warning: transactions are open in {_names(ended.failed)}, and could not be ended: readers of "
                "committed records stop before them until another start can end them"
            )
        lines += [
            f"warning: settings of {name} that this broker does not have: {_names(settings)}"
            for name, settings in self.left_out.items()
        ]
        return lines


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
