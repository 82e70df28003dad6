"""Resolving earliest, latest, times and groups to offsets on an embedded broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.mock_time import MockTime
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import ConfigError, KafkaTimeoutError, UnknownTopicOrPartitionError
from kclient.producer import KafkaProducer
from kclient.spark import clients
from kclient.spark.data_loss import DataLossError
from kclient.spark.option_names import Use
from kclient.spark.options import SourceOptions, parse_source
from kclient.spark.resolver import OffsetResolver

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", num_partitions=2), NewTopic("tx"), NewTopic("other")])
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for number in range(10):
                producer.send("t", b"v", partition=0, timestamp_ms=1000 + 10 * number)
        with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id="g") as consumer:
            consumer.assign([T0])
            consumer.commit_sync({T0: 4})
        yield kafka.bootstrap_servers
        clients.close_all()


def source(servers: str, **more: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": servers, **{name.lower(): value for name, value in more.items()}}
    if not {"assign", "subscribe", "subscribepattern"} & set(given):
        given["subscribe"] = "t"
    return parse_source(given, Use.STREAM_READ)


def start(servers: str, **more: str) -> dict[TopicPartition, int]:
    options = source(servers, **more)
    resolver = OffsetResolver(options)
    return resolver.start(options.starting, resolver.partitions())


def test_partitions_of_topics_of_a_pattern_and_as_assigned(servers: str) -> None:
    assert OffsetResolver(source(servers, subscribe="t")).partitions() == {T0, T1}
    matched = OffsetResolver(source(servers, subscribePattern="^t.?$")).partitions()
    assert matched == {T0, T1, TopicPartition("tx", 0)}
    # As in Spark's own connector, a part of the name is enough.
    matched = OffsetResolver(source(servers, subscribePattern="x|the")).partitions()
    assert matched == {TopicPartition("tx", 0), TopicPartition("other", 0)}
    assert OffsetResolver(source(servers, subscribePattern="nothing")).partitions() == frozenset()
    assert OffsetResolver(source(servers, assign='{"t":[1]}')).partitions() == {T1}


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("subscribe", "t,away,gone", "There is no topic away, gone on {servers} (subscribe t, away, gone)"),
        ("assign", '{"t":[0,7]}', "There is no partition t-7 on {servers} (assign t-0, t-7)"),
        ("assign", '{"away":[0]}', "There is no partition away-0 on {servers} (assign away-0)"),
    ],
)
def test_a_new_query_says_what_is_not_there_and_what_to_do(
    servers: str, option: str, value: str, said: str, fail: str
) -> None:
    given = source(servers, **{option: value}, failOnDataLoss=fail, **{"fetchOffset.numRetries": "0"})
    with pytest.raises(UnknownTopicOrPartitionError, match="Create it before the query starts") as caught:
        OffsetResolver(given).partitions()
    assert said.format(servers=servers) in str(caught.value)
    assert "lost" not in str(caught.value)


def test_a_topic_that_was_there_and_is_gone_is_data_loss(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    away = TopicPartition("away", 0)
    time = MockTime()
    began_ms = time.monotonic_ms()
    with pytest.raises(DataLossError, match="The topic away was read before"):
        OffsetResolver(source(servers, subscribe="t,away"), time).partitions({T0, away})
    assert time.monotonic_ms() - began_ms == 3000
    with pytest.raises(DataLossError, match="The partition t-7 was read before"):
        OffsetResolver(source(servers, assign='{"t":[0,7]}'), time).partitions({T0, TopicPartition("t", 7)})
    lenient = OffsetResolver(source(servers, subscribe="t,away", failOnDataLoss="false"))
    caplog.clear()
    assert lenient.partitions({T0, away}) == {T0, T1}
    assert "The topic away was read before" in caplog.text
    caplog.clear()
    # Once the loss was put up with, nothing of the topic is in the query's offsets.
    assert lenient.partitions({T0, T1}) == {T0, T1}
    assert "goes on without it" in caplog.text


def test_a_topic_that_a_running_query_was_told_of_and_never_read_is_no_data_loss(servers: str) -> None:
    given = source(servers, subscribe="t,away", **{"fetchOffset.numRetries": "0"})
    with pytest.raises(UnknownTopicOrPartitionError, match="There is no topic away"):
        OffsetResolver(given).partitions({T0, T1})
    assert OffsetResolver(given).partitions_that_exist() == {T0, T1}


def test_a_topic_that_is_just_being_created_is_looked_for_again(servers: str) -> None:
    class Waiting(MockTime):
        """Creates the topic while the resolver waits for it."""

        def sleep_ms(self, duration_ms: int) -> None:
            super().sleep_ms(duration_ms)
            with KafkaAdminClient(bootstrap_servers=servers) as admin:
                admin.create_topics([NewTopic("late")])

    resolver = OffsetResolver(source(servers, subscribe="late"), Waiting())
    assert resolver.partitions() == {TopicPartition("late", 0)}


def test_a_topic_for_markers_has_to_be_there(servers: str) -> None:
    group = {"commitGroupId": "g"}
    OffsetResolver(source(servers, **group)).check_marker_topic()
    OffsetResolver(source(servers, **group, **{"kclient.marker.topic": "other"})).check_marker_topic()
    with pytest.raises(
        UnknownTopicOrPartitionError, match=r"kclient\.marker\.topic: there is no topic away on"
    ):
        OffsetResolver(source(servers, **group, **{"kclient.marker.topic": "away"})).check_marker_topic()


def test_the_ids_of_what_was_found_last(servers: str) -> None:
    resolver = OffsetResolver(source(servers, subscribePattern="^t.?$"))
    assert resolver.topic_ids == {}
    resolver.partitions()
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        described = admin.describe_topics(["t", "tx"])
    assert resolver.topic_ids == {name: topic.topic_id for name, topic in described.items()}


def test_earliest_and_latest(servers: str) -> None:
    assert start(servers, startingOffsets="earliest") == {T0: 0, T1: 0}
    assert start(servers, startingOffsets="latest") == {T0: 10, T1: 0}


def test_offsets_with_numbers_for_earliest_and_latest(servers: str) -> None:
    assert start(servers, startingOffsets='{"t":{"0":-1,"1":-2}}') == {T0: 10, T1: 0}
    assert start(servers, startingOffsets='{"t":{"0":7,"1":0}}') == {T0: 7, T1: 0}


@pytest.mark.parametrize(
    ("text", "said"),
    [('{"t":{"0":1}}', "t-1 is missing"), ('{"t":{"0":1,"1":0,"2":0}}', "t-2 is not read")],
)
def test_offsets_must_name_all_partitions_and_no_other(servers: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        start(servers, startingOffsets=text)


def test_a_time_is_the_first_record_that_late(servers: str) -> None:
    found = start(servers, startingTimestamp="1011", startingOffsetsByTimestampStrategy="latest")
    assert found == {T0: 2, T1: 0}
    assert start(servers, assign='{"t":[0]}', startingOffsetsByTimestamp='{"t":{"0":1090}}') == {T0: 9}


def test_a_time_after_all_records_is_an_error_unless_latest_is_asked_for(servers: str) -> None:
    with pytest.raises(ConfigError, match=r"no record of t-0, t-1 is that late"):
        start(servers, startingTimestamp="1091")
    found = start(servers, startingTimestamp="1091", startingOffsetsByTimestampStrategy="latest")
    assert found == {T0: 10, T1: 0}


def test_an_end_after_all_records_is_the_latest(servers: str) -> None:
    given = {"kafka.bootstrap.servers": servers, "subscribe": "t", "endingtimestamp": "1050"}
    options = parse_source(given, Use.BATCH_READ)
    resolver = OffsetResolver(options)
    assert resolver.end(options.ending, [T0, T1]) == {T0: 5, T1: 0}


def test_a_groups_offsets_and_the_earliest_where_it_has_none(servers: str) -> None:
    assert start(servers, startingOffsets="group:g") == {T0: 4, T1: 0}
    assert start(servers, startingOffsets="group:nobody") == {T0: 0, T1: 0}


def test_a_broker_that_is_away_is_asked_again_as_often_as_said(caplog: pytest.LogCaptureFixture) -> None:
    given = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.default.api.timeout.ms": "50",
        "kafka.request.timeout.ms": "50",
        "kafka.fetch.max.wait.ms": "10",
        "subscribe": "t",
        "fetchoffset.numretries": "2",
        "fetchoffset.retryintervalms": "10",
    }
    time = MockTime()
    began_ms = time.monotonic_ms()
    with pytest.raises(KafkaTimeoutError, match=r"127\.0\.0\.1:1"):
        OffsetResolver(parse_source(given, Use.BATCH_READ), time).partitions()
    assert time.monotonic_ms() - began_ms == 20
    assert caplog.text.count("describing topics failed") == 2
    clients.close_all()
