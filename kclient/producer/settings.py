"""Settings as keyword arguments. Made by `kclient.config.typed_dicts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from kclient.config.settings import ClientSettings
from kclient.producer.interceptor import ProducerInterceptor
from kclient.producer.partitioner import Partitioner

PartitionerName: TypeAlias = Literal["default", "round_robin", "uniform_sticky"]


class ProducerSettings(ClientSettings, total=False):
    """Keyword arguments for the settings of a producer; docs/configuration.md tells more."""

    acks: Literal["all", "-1", "0", "1", -1, 0, 1]
    """Default: 'all'. Who must have a record before it counts as sent: all in-sync replicas, the leader (1), no one
    (0).
    """
    batch_size: int
    """Default: 16384. How many bytes of one partition's records go into a batch; 0 sends every record alone."""
    bootstrap_servers: str | Sequence[str]
    """Required. The brokers to ask first, as host:port; embedded://NAME is a broker inside this process."""
    buffer_memory: int
    """Default: 33554432. How many bytes of records may wait in the producer; when they are used up, send() blocks."""
    buffer_memory_allocation_strategy: Literal["full", "incremental"]
    """Default: 'full'. Whether a batch takes all its memory at once or as it grows. Not implemented yet."""
    client_rack: str
    """Default: ''. The rack that the producer runs in, for partitioner.rack.aware. Not implemented yet."""
    compression_gzip_level: int
    """Default: -1. How hard gzip tries; -1 is zlib's own choice."""
    compression_lz4_level: int
    """Default: 9. How hard lz4 tries."""
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    """Default: 'none'. How batches are compressed."""
    compression_zstd_level: int
    """Default: 3. How hard zstd tries; levels below zero are faster and compress less."""
    connections_max_idle_ms: int
    """Default: 540000. How long a connection may be unused before it is closed; -1 is for ever."""
    delivery_timeout_ms: int
    """Default: 120000. How long after send() a record has been delivered or has failed, with all its retries."""
    enable_idempotence: bool
    """Default: True. Whether brokers keep each record exactly once and in order even when it is sent again."""
    enable_metrics_push: bool
    """Default: True. Whether metrics are pushed to brokers that ask for them (KIP-714)."""
    interceptor_classes: Sequence[ProducerInterceptor | type[ProducerInterceptor]]
    """Default: []. Objects that see, and may change, records before they are sent, and see their outcome."""
    kclient_adaptive_batching: bool
    """Default: True. Whether batches that wait for others in flight may grow beyond batch.size, up to max.request.size
    and 500,000 bytes.
    """
    linger_ms: int
    """Default: 5. How long a batch that is not full waits for more records."""
    max_block_ms: int
    """Default: 60000. How long send() and partitions_for() may wait for metadata and buffer space."""
    max_in_flight_requests_per_connection: int
    """Default: 5. How many requests may wait for their answer on a connection."""
    max_request_size: int
    """Default: 1048576. How many bytes a request, and so a record, may have at most."""
    metadata_max_idle_ms: int
    """Default: 300000. How long a topic that is not used stays in the producer's metadata."""
    partitioner_adaptive_partitioning_enable: bool
    """Default: True. Whether records without key go more often to partitions whose brokers are faster."""
    partitioner_availability_timeout_ms: int
    """Default: 0. After how long without progress a broker gets no more records without key; 0 is never."""
    partitioner_class: PartitionerName | Partitioner | type[Partitioner] | None
    """Optional. An object that chooses partitions; without one, keys are hashed, the others fill batch by batch."""
    partitioner_ignore_keys: bool
    """Default: False. Whether the built-in partitioner treats records with a key as if they had none."""
    partitioner_rack_aware: bool
    """Default: False. Whether records without key prefer partitions whose leader is in client.rack. Not implemented
    yet.
    """
    retries: int
    """Default: 2147483647. How often a batch is sent again after a passing error; delivery.timeout.ms is the better
    limit.
    """
    transaction_timeout_ms: int
    """Default: 60000. How long a transaction may stay open before the broker aborts it."""
    transaction_two_phase_commit_enable: bool
    """Default: False. Whether transactions are part of an outer two-phase commit and never time out. Not implemented
    yet.
    """
    transactional_id: str | None
    """Optional. The name under which the producer's transactions survive its restarts; of all producers with the same
    one only the newest may write.
    """
