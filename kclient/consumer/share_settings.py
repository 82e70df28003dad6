"""Settings as keyword arguments. Made by `kclient.config.typed_dicts`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kclient.config.settings import ClientSettings
from kclient.consumer.types import OnDeserializationError


class ShareConsumerSettings(ClientSettings, total=False):
    """Keyword arguments for the settings of a share consumer; docs/configuration.md tells more."""

    allow_auto_create_topics: bool
    """Default: True. Whether the broker may create a topic that is subscribed to and does not exist."""
    auto_commit_interval_ms: int
    """Default: 5000. How often poll() commits, with enable.auto.commit."""
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
    """Optional. The share group that the consumer is a member of; it has to have one."""
    internal_throw_on_fetch_stable_offset_unsupported: bool
    """Default: False. Whether old brokers that cannot tell stable offsets are an error; used by Kafka Streams. Not
    implemented yet.
    """
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
    """Default: 500. How many records one poll() returns at most, and a broker is asked for: see share.acquire.mode."""
    share_acknowledgement_mode: Literal["implicit", "explicit"]
    """Default: 'implicit'. Whether poll() and commits accept what was returned (implicit), or acknowledge() has to
    (explicit).
    """
    share_acquire_mode: Literal["batch_optimized", "record_limit"]
    """Default: 'batch_optimized'. Only for share consumers: whether brokers deliver whole batches or max.poll.records
    at most (KIP-1206).
    """
