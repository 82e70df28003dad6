"""Settings as keyword arguments. Made by `kclient.config.typed_dicts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from kclient.config.durations import ByDuration
from kclient.config.settings import ClientSettings
from kclient.consumer.assignor import ConsumerPartitionAssignor
from kclient.consumer.interceptor import ConsumerInterceptor
from kclient.consumer.types import OnDeserializationError

AssignorName: TypeAlias = Literal["cooperative-sticky", "range", "roundrobin", "sticky"]


class ConsumerSettings(ClientSettings, total=False):
    """Keyword arguments for the settings of a consumer; docs/configuration.md tells more."""

    allow_auto_create_topics: bool
    """Default: True. Whether the broker may create a topic that is subscribed to and does not exist."""
    auto_commit_interval_ms: int
    """Default: 5000. How often poll() commits, with enable.auto.commit."""
    auto_offset_reset: Literal["latest", "earliest", "none"] | ByDuration
    """Default: 'latest'. Where to start without a valid offset: earliest, latest, by_duration:P7D (ago), or none
    (raise).
    """
    bootstrap_servers: str | Sequence[str]
    """Required. The brokers to ask first, as host:port; embedded://NAME is a broker inside this process."""
    check_crcs: bool
    """Default: True. Whether the checksum of every fetched batch is checked."""
    client_rack: str
    """Default: ''. The rack that the consumer runs in, so that it can read from a replica nearby (KIP-392)."""
    connections_max_idle_ms: int
    """Default: 540000. How long a connection may be unused before it is closed; -1 is for ever."""
    default_api_timeout_ms: int
    """Default: 60000. How long calls without a timeout of their own may take."""
    enable_auto_commit: bool
    """Default: True. Whether poll() and revocation commit what earlier polls returned, and close() all that was
    returned.
    """
    enable_metrics_push: bool
    """Default: True. Whether metrics are pushed to brokers that ask for them (KIP-714)."""
    exclude_internal_topics: bool
    """Default: True. Whether a subscribed pattern leaves out Kafka's internal topics."""
    fetch_max_bytes: int
    """Default: 52428800. How many bytes of records a fetch returns at most; a first batch that is larger is still
    returned.
    """
    fetch_max_wait_ms: int
    """Default: 500. How long a broker waits for fetch.min.bytes."""
    fetch_min_bytes: int
    """Default: 1. How many bytes a broker gathers before it answers a fetch, within fetch.max.wait.ms."""
    group_id: str | None
    """Optional. The group that the consumer shares its topics' partitions with, and commits offsets for."""
    group_instance_id: str | None
    """Optional. A lasting name, so that a restart within session.timeout.ms keeps the partitions (KIP-345)."""
    group_protocol: Literal["classic", "consumer"]
    """Default: 'classic'. The rebalance protocol: classic, or the consumer protocol of KIP-848."""
    group_remote_assignor: str | None
    """Optional. The coordinator's assignor to use, for group.protocol=consumer: uniform or range."""
    heartbeat_interval_ms: int
    """Default: 3000. How often the consumer tells the coordinator that it lives."""
    interceptor_classes: Sequence[ConsumerInterceptor | type[ConsumerInterceptor]]
    """Default: []. Objects that see, and may change, records before poll() returns them, and see commits."""
    internal_throw_on_fetch_stable_offset_unsupported: bool
    """Default: False. Whether old brokers that cannot tell stable offsets are an error; used by Kafka Streams. Not
    implemented yet.
    """
    isolation_level: Literal["read_uncommitted", "read_committed"]
    """Default: 'read_uncommitted'. Whether records of open and aborted transactions are returned."""
    kclient_decompress_max_bytes: int
    """Default: 67108864. How many bytes one batch may have when it is decompressed; guards against decompression bombs.
    """
    kclient_on_deserialization_error: Literal["raise", "skip"] | OnDeserializationError
    """Default: 'raise'. What becomes of a record that a deserializer fails for: poll() raises, it is left out, or a
    function decides.
    """
    max_partition_fetch_bytes: int
    """Default: 1048576. The same for each partition."""
    max_poll_interval_ms: int
    """Default: 300000. How long the application may take between two calls of poll() before the consumer leaves its
    group.
    """
    max_poll_records: int
    """Default: 500. How many records one poll() returns at most."""
    partition_assignment_strategy: (
        AssignorName | Sequence[AssignorName | ConsumerPartitionAssignor | type[ConsumerPartitionAssignor]]
    )
    """Default: ['range', 'cooperative-sticky']. The assignors, preferred first: range, roundrobin, sticky, cooperative-
    sticky, or objects of your own.
    """
    session_timeout_ms: int
    """Default: 45000. After how long without a heartbeat the coordinator takes the consumer for dead."""
    share_acknowledgement_mode: Literal["implicit", "explicit"]
    """Default: 'implicit'. Only for share consumers: whether poll() accepts what the poll before returned."""
    share_acquire_mode: Literal["batch_optimized", "record_limit"]
    """Default: 'batch_optimized'. Only for share consumers: whether brokers deliver whole batches or max.poll.records
    at most (KIP-1206).
    """
