"""The broker's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from kclient.broker.config import BrokerConfig
from kclient.broker.network.listener import Endpoint, Listener
from kclient.compress import LEVELS, CompressionType
from kclient.errors import ConfigError


def config(**settings: object) -> BrokerConfig:
    return BrokerConfig.parse({"log.dirs": "/data"}, settings)


def test_names_are_those_of_server_properties(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "node.id=3\nlisteners=PLAINTEXT://localhost:9092\nlog.dirs=/a, /b\nnum.io.threads=2\nlog.retention.hours=1\n"
    )
    parsed = BrokerConfig.parse(str(file))
    assert (parsed.node_id, parsed.num_io_threads) == (3, 2)
    assert parsed.data_directories() == [Path("/a"), Path("/b")]
    assert parsed.log_config().retention_ms == 3_600_000


def test_an_unknown_setting_is_named_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"num_partitons.*num\.partitions"):
        config(num_partitons=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.dirs", ""),
        ("listeners", ""),
        ("listeners", "localhost:9092"),
        ("listeners", "EXTERNAL://localhost:9092"),
        ("listener.security.protocol.map", "EXTERNAL:TLS"),
        ("listeners", "PLAINTEXT://localhost:70000"),
        ("listeners", "PLAINTEXT://::1:9092"),
        ("advertised.listeners", "PLAINTEXT://a:1,PLAINTEXT://b:2"),
        ("num.partitions", 0),
        ("default.replication.factor", 3),
        ("kclient.ack.policy", "sometimes"),
        ("log.cleanup.policy", "shred"),
        ("compression.type", "zip"),
        ("compression.gzip.level", 0),
        ("group.min.session.timeout.ms", 2_000_000),
        ("log.cleaner.dedupe.buffer.size", 1024 * 1024),
        ("log.cleaner.threads", 0),
        ("log.cleaner.io.max.bytes.per.second", 0),
        ("log.cleaner.min.compaction.lag.ms", -1),
    ],
)
def test_a_bad_value_raises_with_the_settings_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError) as raised:
        BrokerConfig.parse({"log.dirs": "/data", name: value})
    assert name in str(raised.value)
    assert raised.value.name == name


def test_the_directory_has_no_default() -> None:
    with pytest.raises(ConfigError, match=r"log\.dirs is not set"):
        BrokerConfig.parse({})


@pytest.mark.parametrize(
    ("listener", "endpoint"),
    [
        ("PLAINTEXT://127.0.0.1:0", Endpoint("127.0.0.1", 0)),
        ("PLAINTEXT://:9092", Endpoint("", 9092)),
        ("PLAINTEXT://[::1]:9092", Endpoint("::1", 9092)),
    ],
)
def test_listeners_are_urls(listener: str, endpoint: Endpoint) -> None:
    (parsed,) = config(listeners=listener).listeners_with_security()
    assert parsed == Listener("PLAINTEXT", endpoint)


def test_an_ipv6_address_is_shown_in_brackets() -> None:
    assert (str(Endpoint("::1", 1)), str(Endpoint("h", 1))) == ("[::1]:1", "h:1")


def test_the_finest_unit_that_is_set_counts() -> None:
    assert config().log_config().retention_ms == 168 * 3_600_000
    assert config(log_retention_minutes=5).log_config().retention_ms == 300_000
    assert config(log_retention_minutes=5, log_retention_ms=7).log_config().retention_ms == 7
    assert config(log_retention_ms=-1).log_config().retention_ms == -1
    assert config(log_retention_hours=-1).log_config().retention_ms == -1
    assert config(log_roll_ms=9).log_config().segment_ms == 9


def test_every_default_of_topics_reaches_them() -> None:
    parsed = config(
        message_max_bytes=1, compression_type="zstd", log_segment_bytes=100, log_index_interval_bytes=2,
        log_cleanup_policy="delete,compact", log_message_timestamp_type="LogAppendTime", min_insync_replicas=2,
        log_segment_delete_delay_ms=3, log_flush_interval_messages=4, log_flush_interval_ms=5,
        log_cleaner_delete_retention_ms=6, log_cleaner_min_compaction_lag_ms=7,
        log_cleaner_max_compaction_lag_ms=8, log_cleaner_min_cleanable_ratio=0.25,
    ).log_config()  # fmt: skip
    assert (parsed.delete_retention_ms, parsed.min_compaction_lag_ms, parsed.max_compaction_lag_ms) == (
        6,
        7,
        8,
    )
    assert parsed.min_cleanable_dirty_ratio == 0.25
    assert (parsed.max_message_bytes, parsed.compression_type, parsed.segment_bytes) == (1, "zstd", 100)
    assert (parsed.index_interval_bytes, parsed.cleanup_policy) == (2, ("delete", "compact"))
    assert (parsed.message_timestamp_type, parsed.min_insync_replicas) == ("LogAppendTime", 2)
    assert (parsed.file_delete_delay_ms, parsed.flush_messages, parsed.flush_ms) == (
        3,
        4,
        5,
    )


@pytest.mark.parametrize("codec", [each.label for each in CompressionType if each in LEVELS])
def test_the_default_level_of_every_codec_reaches_the_topics(codec: str) -> None:
    name = f"compression_{codec}_level"
    assert getattr(config(**{name: 7}).log_config(), name) == 7
