"""The consumer's settings: rules that concern more than one of them."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.consumer.config import ConsumerConfig
from kclient.errors import ConfigError

JAVA = "org.apache.kafka.clients.consumer."


def parse(**settings: Any) -> ConsumerConfig:
    return ConsumerConfig.parse({"bootstrap.servers": "localhost:9092"}, settings)


def test_without_a_group_there_is_nothing_to_commit() -> None:
    assert not parse().enable_auto_commit
    assert not parse(enable_auto_commit=False).enable_auto_commit
    assert parse(group_id="g").enable_auto_commit
    with pytest.raises(ConfigError, match=r"enable\.auto\.commit=true needs a group\.id"):
        parse(enable_auto_commit=True)


def test_a_group_must_have_a_name() -> None:
    with pytest.raises(ConfigError, match=r"group\.id must not be empty"):
        parse(group_id="")


def test_a_static_member_needs_a_group_and_a_good_name() -> None:
    assert parse(group_id="g", group_instance_id="member-1").group_instance_id == "member-1"
    with pytest.raises(ConfigError, match=r"group\.instance\.id needs a group\.id"):
        parse(group_instance_id="member-1")
    for name in ("", ".", "a b", "x" * 250):
        with pytest.raises(ConfigError, match=r"group\.instance\.id: .* is not valid"):
            parse(group_id="g", group_instance_id=name)


def test_heartbeats_must_be_more_frequent_than_the_session_is_long() -> None:
    with pytest.raises(ConfigError, match=r"heartbeat\.interval\.ms \(45000\) must be less than session"):
        parse(heartbeat_interval_ms=45_000)
    with pytest.raises(ConfigError, match=r"heartbeat\.interval\.ms"):
        parse(session_timeout_ms=3000)


def test_a_fetch_must_not_wait_longer_than_its_request() -> None:
    with pytest.raises(
        ConfigError, match=r"fetch\.max\.wait\.ms \(500\) must be less than request\.timeout\.ms"
    ):
        parse(request_timeout_ms=500)


def test_the_default_strategy_is_range() -> None:
    assert parse().partition_assignment_strategy == ["range", "cooperative-sticky"]


def test_assignors_may_be_javas_classes_short_names_or_objects() -> None:
    own = object()
    config = parse(partition_assignment_strategy=[f"{JAVA}CooperativeStickyAssignor", "range", own])
    assert config.partition_assignment_strategy == ["cooperative-sticky", "range", own]


def test_no_assignor_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="it is empty"):
        parse(partition_assignment_strategy=[])


def test_a_duration_to_reset_to_is_known_in_milliseconds() -> None:
    assert parse(auto_offset_reset="by_duration:P1DT1S").auto_offset_reset_duration_ms == 86_401_000
    assert parse(auto_offset_reset="earliest").auto_offset_reset_duration_ms is None
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset: 'by_duration:1d' is not valid"):
        parse(auto_offset_reset="by_duration:1d")


def test_the_receive_limit_has_room_for_a_whole_fetch() -> None:
    assert parse().kclient_receive_max_bytes == 100 * 2**20
    assert parse(fetch_max_bytes=200 * 2**20).kclient_receive_max_bytes == 201 * 2**20
    assert parse(fetch_max_bytes=2**31 - 1).kclient_receive_max_bytes == 2**31 - 1
    with pytest.raises(ConfigError, match=r"kclient\.receive\.max\.bytes \(1048576\) must be at least"):
        parse(kclient_receive_max_bytes=2**20)


def test_the_protocol_is_a_word_in_any_case() -> None:
    assert parse(group_protocol="CLASSIC").group_protocol == "classic"
    assert parse(group_protocol="CONSUMER").group_protocol == "consumer"


@pytest.mark.parametrize(
    ("protocol", "setting", "value"),
    [
        ("consumer", "session.timeout.ms", 6000),
        ("consumer", "heartbeat.interval.ms", 300),
        ("consumer", "partition.assignment.strategy", "range"),
        ("classic", "group.remote.assignor", "uniform"),
    ],
)
def test_a_setting_of_the_other_protocol_is_refused_by_name(
    protocol: str, setting: str, value: object
) -> None:
    with pytest.raises(
        ConfigError, match=f"^{setting} cannot be set when group.protocol={protocol}"
    ) as failed:
        ConsumerConfig.parse(
            {"bootstrap.servers": "localhost:9092", "group.protocol": protocol, setting: value}, {}
        )
    assert failed.value.name == setting
