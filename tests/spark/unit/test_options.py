"""Options have the names, the precedence and the checks of Spark's own connector."""

from __future__ import annotations

import pickle

import attrs
import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError
from kclient.spark.limits import Trigger
from kclient.spark.offsets import Kind
from kclient.spark.option_names import OPTIONS, Use
from kclient.spark.options import check_any, parse_source
from kclient.spark.sink_options import parse_sink

SERVER = {"kafka.bootstrap.servers": "localhost:9092"}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def options(**more: str) -> dict[str, str]:
    """As Spark hands them over: lower-case names."""
    return {**SERVER, **{name.replace("__", ".").lower(): value for name, value in more.items()}}


def batch(**more: str):
    return parse_source(options(**{"subscribe": "t", **more}), Use.BATCH_READ)


def stream(**more: str):
    return parse_source(options(**{"subscribe": "t", **more}), Use.STREAM_READ)


def test_topics_are_separated_by_commas_and_trimmed() -> None:
    assert batch(subscribe=" a, b ,,a ").subscription.topics == ("a", "b")


def test_partitions_and_patterns_can_be_named_instead() -> None:
    assert parse_source(options(assign='{"t":[0,1]}'), Use.BATCH_READ).subscription.partitions == {T0, T1}
    assert parse_source(options(subscribePattern="t.*"), Use.BATCH_READ).subscription.pattern == "t.*"


def test_a_batch_reads_from_the_earliest_to_the_latest_and_a_stream_from_the_latest() -> None:
    assert (batch().starting.kind, batch().ending.kind) == (Kind.EARLIEST, Kind.LATEST)
    assert stream().starting.kind is Kind.LATEST


def test_one_timestamp_goes_before_timestamps_and_these_before_offsets() -> None:
    all_three = {
        "startingTimestamp": "1000",
        "startingOffsetsByTimestamp": '{"t":{"0":2000}}',
        "startingOffsets": '{"t":{"0":5}}',
    }
    kinds = []
    while all_three:
        kinds.append(batch(**all_three).starting.kind)
        all_three.pop(next(iter(all_three)))
    assert kinds == [Kind.TIMESTAMP, Kind.TIMESTAMPS, Kind.OFFSETS]
    assert batch(endingTimestamp="7", endingOffsets="latest").ending.timestamp_ms == 7


def test_a_group_can_say_where_to_start() -> None:
    assert stream(startingOffsets="group:billing").starting.group_id == "billing"


def test_defaults_are_the_connectors() -> None:
    found = stream()
    assert found.fail_on_data_loss
    assert not found.include_headers
    assert found.poll_timeout_ms == 120_000
    assert found.retries == 3
    assert found.limits.max_delay_ms == 15 * 60_000
    assert found.isolation_level == "read_uncommitted"


def test_settings_of_the_client_lose_their_prefix() -> None:
    found = batch(kafka__isolation__level="read_committed")
    assert found.settings == {"bootstrap.servers": "localhost:9092", "isolation.level": "read_committed"}
    assert found.isolation_level == "read_committed"


def test_limits_are_read() -> None:
    limits = stream(
        maxOffsetsPerTrigger="100", minOffsetsPerTrigger="10", maxTriggerDelay="2m", maxBytesPerTrigger="7"
    ).limits
    assert (limits.max_offsets, limits.min_offsets, limits.max_delay_ms, limits.max_bytes) == (
        100,
        10,
        120_000,
        7,
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subscribe": ""}, "names no topic"),
        ({"assign": '{"t":[0]}'}, "assign and subscribe are given"),
        ({"kafka__bootstrap__servers": " "}, "kafka.bootstrap.servers is not set"),
        ({"kafka__bootstrap__servers": "embedded://x"}, "EmbeddedKafka()"),
        ({"kafka__auto__offset__reset": "latest"}, "kafka.auto.offset.reset cannot be set"),
        ({"kafka__key__deserializer": "x"}, "kafka.key.deserializer cannot be set"),
        ({"kafka__value__deserializer": "x"}, "kafka.value.deserializer cannot be set"),
        ({"kafka__enable__auto__commit": "true"}, "kafka.enable.auto.commit cannot be set"),
        ({"kafka__interceptor__classes": "x"}, "kafka.interceptor.classes cannot be set"),
        ({"kafka__fetch__min__bytes": "x"}, "fetch.min.bytes"),
        ({"kafka__security__protocol": "TLS"}, "security.protocol"),
        ({"kclient__triger": "x"}, "Did you mean 'kclient.trigger'"),
        ({"kafka__max__poll__records": "0"}, "max.poll.records"),
        ({"startingOffsets": "start"}, "none of earliest, latest, group:ID"),
        ({"startingOffsets": "group: "}, "names no group"),
        ({"startingTimestamp": "yesterday"}, "startingTimestamp: 'yesterday'"),
        ({"startingTimestamp": "-1"}, "at least 0"),
        ({"startingTimestamp": "1", "startingOffsets": "x"}, "startingOffsets: 'x'"),
        ({"startingOffsetsByTimestampStrategy": "earliest"}, "none of error, latest"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss: 'no' is neither"),
        ({"includeHeaders": "1"}, "includeHeaders"),
        ({"minPartitions": "0"}, "minPartitions: '0'"),
        ({"maxRecordsPerPartition": "-1"}, "maxRecordsPerPartition: '-1'"),
        ({"kafkaConsumer__pollTimeoutMs": "0"}, "kafkaConsumer.pollTimeoutMs"),
        ({"fetchOffset__numRetries": "x"}, "fetchOffset.numRetries"),
    ],
)
@pytest.mark.parametrize("use", [Use.BATCH_READ, Use.STREAM_READ])
def test_a_wrong_option_of_a_source_is_refused_by_name(use: Use, given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_source(options(**{"subscribe": "t", **given}), use)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"startingOffsets": "latest"}, "makes no sense in a batch"),
        ({"startingOffsets": '{"t":{"0":-1}}'}, "makes no sense in a batch"),
        ({"endingOffsets": "earliest"}, "makes no sense as an end"),
        ({"endingOffsets": '{"t":{"0":-2}}'}, "makes no sense as an end"),
        ({"endingOffsets": "group:g"}, "cannot be a group's"),
    ],
)
def test_a_batch_refuses_bounds_that_make_no_sense(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        batch(**given)


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is not valid in a streaming query"):
        stream(**{name: "latest"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger"),
        ({"maxBytesPerTrigger": "1k"}, "maxBytesPerTrigger"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay: 'soon' is not a time"),
        ({"maxTriggerDelay": "5 parsecs"}, "maxTriggerDelay"),
        ({"maxOffsetsPerTrigger": "1", "minOffsetsPerTrigger": "2"}, "must not be greater than"),
        ({"commitGroupId": " "}, "commitGroupId is empty"),
    ],
)
def test_a_stream_refuses_wrong_limits(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        stream(**given)


def test_a_stream_can_say_its_trigger() -> None:
    assert stream().trigger is None
    assert stream(kclient__trigger="processing").trigger is Trigger.PROCESSING
    assert stream(kclient__trigger="AvailableNow").trigger is Trigger.AVAILABLE_NOW
    with pytest.raises(ConfigError, match=r"kclient\.trigger: 'once' is none of processing, availableNow"):
        stream(kclient__trigger="once")


def test_one_set_of_settings_serves_reads_and_writes() -> None:
    shared = {
        "kafka__client__id": "job",
        "kafka__linger__ms": "20",
        "kafka__key__serializer": "x",
        "kafka__fetch__min__bytes": "7",
        "kafka__auto__offset__reset": "latest",
    }
    common = {"bootstrap.servers": "localhost:9092", "client.id": "job"}
    reading = {name: value for name, value in shared.items() if "auto" not in name}
    assert batch(**reading).settings == {**common, "fetch.min.bytes": "7"}
    writing = {name: value for name, value in shared.items() if "serializer" not in name}
    assert parse_sink(options(**writing), Use.BATCH_WRITE).settings == {**common, "linger.ms": "20"}


def test_nothing_to_read_is_refused() -> None:
    with pytest.raises(ConfigError, match="none is given"):
        parse_source(SERVER, Use.BATCH_READ)


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a regular expression"):
        parse_source(options(subscribePattern="t("), Use.BATCH_READ)


def test_limits_of_a_stream_are_ignored_in_a_batch_which_is_told() -> None:
    found = batch(maxOffsetsPerTrigger="5")
    assert found.limits.max_offsets is None
    assert found.remarks == ("Option maxOffsetsPerTrigger has no effect in a batch read and is ignored.",)


def test_a_group_id_is_allowed_and_what_it_does_not_do_is_told() -> None:
    found = batch(kafka__group__id="g")
    assert found.settings["group.id"] == "g"
    (told,) = found.remarks
    assert "commitGroupId" in told


@pytest.mark.parametrize("use", [Use.BATCH_READ, Use.STREAM_READ])
def test_wrong_names_are_told_in_the_order_of_options_and_settings_and_change_nothing(use: Use) -> None:
    given = options(
        subscribe="t", kafka__fetch__min__bites="1", startingOfset="earliest", path="p", kafka__acks="x"
    )
    found = parse_source(given, use)
    assert found == attrs.evolve(parse_source(options(subscribe="t"), use), remarks=found.remarks)
    assert [text.split(" ")[:2] for text in found.remarks] == [
        ["Option", "startingofset"],
        ["Option", "path,"],
        ["kafka.acks", "is"],
        ["kafka.fetch.min.bites", "is"],
    ]


def test_before_the_use_is_known_names_and_servers_are_checked() -> None:
    check_any(options(topic="t"))
    check_any(options(topik="t"))
    with pytest.raises(ConfigError, match="bootstrap"):
        check_any({})
    with pytest.raises(ConfigError, match="not an option"):
        check_any(options(kclient__topik="t"))


def test_options_can_be_pickled() -> None:
    found = stream(startingOffsets='{"t":{"0":-1}}', maxOffsetsPerTrigger="3")
    assert pickle.loads(pickle.dumps(found)) == found


def test_every_name_is_known_in_lower_case_once() -> None:
    assert len({name.lower() for name in OPTIONS}) == len(OPTIONS)
