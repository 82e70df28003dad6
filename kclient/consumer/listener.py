"""The calls that tell a group member of changes of its partitions."""

from __future__ import annotations

from collections.abc import Collection

from kclient.common.topic_partition import TopicPartition


class ConsumerRebalanceListener:
    """Called when partitions come and go. Subclass it and override what is needed.

    All calls happen inside `poll()`, iteration, `unsubscribe()` or `close()`, on the application's thread. The
    consumer may be used from within: committing in `on_partitions_revoked` and seeking in
    `on_partitions_assigned` is what they are for. An error raised by a callback surfaces from the call that ran it.
    """

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """`partitions` were added to the assignment; nothing has been read from them yet."""

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """`partitions` are about to be given up; their offsets can still be committed."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """`partitions` are gone already: the group removed this member. Nothing can be committed for them.

        Unless overridden this does what `on_partitions_revoked` does (KIP-429).
        """
        self.on_partitions_revoked(partitions)
