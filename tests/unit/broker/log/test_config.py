"""A topic's settings by their Kafka names."""

from __future__ import annotations

import pytest

from kclient.broker.log.config import LogConfig
from kclient.errors import InvalidConfigurationError


def test_the_defaults_are_kafkas() -> None:
    config = LogConfig()
    assert (config.segment_bytes, config.segment_ms, config.segment_index_bytes) == (
        1 << 30,
        604_800_000,
        10 << 20,
    )
    assert (config.retention_ms, config.retention_bytes, config.max_message_bytes) == (
        604_800_000,
        -1,
        1048588,
    )
    assert (config.index_interval_bytes, config.file_delete_delay_ms) == (4096, 60_000)
    assert (config.message_timestamp_type, config.compression_type) == ("CreateTime", "producer")
    assert (config.cleanup_policy, config.delete, config.compact) == (("delete",), True, False)


def test_a_topics_settings_go_on_top_of_the_defaults() -> None:
    defaults = LogConfig(retention_ms=5, segment_bytes=100)
    config = LogConfig.from_topic_configs(
        {
            "retention.ms": "-1",
            "cleanup.policy": "compact, delete",
            "segment.bytes": None,
            "preallocate": "false",
        },
        defaults,
    )
    assert (config.retention_ms, config.segment_bytes) == (-1, 100)
    assert (config.cleanup_policy, config.delete, config.compact) == (("compact", "delete"), True, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("segment.bytes", "13"),
        ("segment.bytes", str(2**31)),
        ("segment.ms", "0"),
        ("retention.ms", "-2"),
        ("retention.bytes", "many"),
        ("max.message.bytes", "-1"),
        ("cleanup.policy", "shred"),
        ("cleanup.policy", ""),
        ("compression.type", "none"),
        ("compression.gzip.level", "0"),
        ("compression.lz4.level", "18"),
        ("compression.zstd.level", "23"),
        ("message.timestamp.type", "createtime"),
        ("message.timestamp.after.max.ms", "-1"),
        ("min.insync.replicas", "0"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "half"),
        ("preallocate", "yes"),
        ("unclean.leader.election.enable", "yes"),
    ],
)
def test_a_bad_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=name.replace(".", r"\.")):
        LogConfig.from_topic_configs({name: value})


def test_an_unknown_setting_is_refused_with_its_neighbour() -> None:
    with pytest.raises(InvalidConfigurationError, match=r"retention\.mss.*did you mean retention\.ms"):
        LogConfig.from_topic_configs({"retention.mss": "1"})


def test_lags_of_compaction_must_fit_each_other() -> None:
    with pytest.raises(InvalidConfigurationError, match=r"min\.compaction\.lag\.ms"):
        LogConfig.from_topic_configs({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


def test_values_are_checked_at_construction_too() -> None:
    with pytest.raises(InvalidConfigurationError, match=r"segment\.bytes"):
        LogConfig(segment_bytes=0)


def test_settings_as_texts_give_the_same_settings() -> None:
    config = LogConfig(cleanup_policy=("compact", "delete"), retention_ms=7, min_cleanable_dirty_ratio=0.25)
    texts = config.to_topic_configs()
    assert (texts["cleanup.policy"], texts["retention.ms"], texts["preallocate"]) == (
        "compact,delete",
        "7",
        "false",
    )
    assert LogConfig.from_topic_configs(texts) == config
    assert sorted(texts) == LogConfig.names()
    assert all(LogConfig.doc(name).endswith(".") for name in LogConfig.names())
