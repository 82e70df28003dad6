"""Options of the sink: what is needed, what cannot be, and what exactly once asks for."""

from __future__ import annotations

import pytest

from kclient.errors import ConfigError
from kclient.spark.option_names import Use
from kclient.spark.sink_options import ExactlyOnceOptions, parse_sink


def options(**given: str) -> dict[str, str]:
    """Options as Spark hands them over; "__" stands for a dot."""
    more = {name.replace("__", ".").lower(): value for name, value in given.items()}
    return {"kafka.bootstrap.servers": "b:1", **more}


def exactly_once(use: Use, **given: str) -> ExactlyOnceOptions:
    found = parse_sink(options(kclient__delivery="exactly_once", **given), use).exactly_once
    assert found is not None
    return found


def test_a_sink_takes_a_topic_and_producer_settings() -> None:
    found = parse_sink(
        options(topic=" out ", kafka__acks="all", checkpointLocation="/tmp/c"), Use.STREAM_WRITE
    )
    assert found.topic == "out"
    assert found.settings["acks"] == "all"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": ""}, "topic is empty"),
        ({"kafka__key__serializer": "x"}, "kafka.key.serializer cannot be set"),
        ({"kafka__value__serializer": "x"}, "kafka.value.serializer cannot be set"),
        (
            {"kafka__transactional__id": "x"},
            "kafka.transactional.id cannot be set: the sink makes those of its tasks",
        ),
        ({"kafka__linger__ms": "x"}, "linger.ms"),
        ({"kclient__delivry": "exactly_once"}, "Did you mean 'kclient.delivery'"),
        ({"kclient__sink__timestamp": "x"}, "kclient.sink.timestamp: 'x' is none of use, ignore"),
    ],
)
def test_a_wrong_option_of_a_sink_is_refused_by_name(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_sink(options(**given), Use.BATCH_WRITE)
    assert said in str(caught.value)


def test_a_sink_writes_at_least_once_unless_it_is_told_otherwise() -> None:
    for given in ({}, {"kclient__delivery": "at_least_once"}):
        assert parse_sink(options(topic="t", **given), Use.STREAM_WRITE).exactly_once is None
    with pytest.raises(ConfigError, match="'once' is none of at_least_once, exactly_once"):
        parse_sink(options(topic="t", kclient__delivery="once"), Use.STREAM_WRITE)


def test_markers_are_in_the_topic_that_is_written_unless_another_is_named() -> None:
    assert exactly_once(Use.STREAM_WRITE, topic="t").marker_topic == "t"
    assert exactly_once(Use.STREAM_WRITE, topic="t", kclient__marker__topic="m").marker_topic == "m"
    with pytest.raises(ConfigError, match=r"kclient\.marker\.topic is needed, as rows choose") as caught:
        exactly_once(Use.STREAM_WRITE)
    assert caught.value.name == "kclient.marker.topic"


def test_a_stream_is_known_by_its_query_and_a_batch_write_by_its_id_or_by_none() -> None:
    stream = exactly_once(Use.STREAM_WRITE, topic="t")
    assert (stream.write_id, stream.epoch, stream.repeatable) == (None, 0, True)
    named = exactly_once(Use.BATCH_WRITE, topic="t", kclient__write__id="w", kclient__write__epoch="7")
    assert (named.write_id, named.epoch, named.repeatable) == ("w", 7, True)
    one, other = (exactly_once(Use.BATCH_WRITE, topic="t") for _ in range(2))
    assert one.write_id != other.write_id
    assert not one.repeatable


def test_missing_markers_are_accepted_on_demand_alone() -> None:
    assert not exactly_once(Use.STREAM_WRITE, topic="t").accept_missing_markers
    assert exactly_once(
        Use.STREAM_WRITE, topic="t", kclient__missing__markers="accept"
    ).accept_missing_markers


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"kclient__write__epoch": "1"}, "kclient.write.epoch"),
        ({"kclient__write__id": "w", "kclient__write__epoch": "-1"}, "kclient.write.epoch"),
        ({"kclient__write__id": " "}, "kclient.write.id"),
        ({"kclient__write__id": "w" * 201}, "kclient.write.id"),
        ({"kclient__missing__markers": "ignore"}, "kclient.missing.markers"),
        ({"kafka__acks": "1"}, "acks"),
        ({"kafka__enable__idempotence": "false"}, "enable.idempotence"),
    ],
)
def test_what_does_not_go_with_exactly_once_is_refused_by_name(given: dict[str, str], name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        exactly_once(Use.BATCH_WRITE, topic="t", **given)
    assert name in str(caught.value)


def test_options_of_exactly_once_are_told_of_without_it() -> None:
    (told,) = parse_sink(options(topic="t", kclient__write__id="w"), Use.BATCH_WRITE).remarks
    assert (
        told == "Option kclient.write.id has no effect without kclient.delivery=exactly_once and is ignored."
    )


def test_settings_that_are_no_producers_are_told_of_and_left_out() -> None:
    found = parse_sink(
        options(topic="t", kafka__fetch__min__bites="1", kafka__fetch__min__bytes="x"), Use.BATCH_WRITE
    )
    assert found.settings == {"bootstrap.servers": "b:1"}
    assert found.remarks == (
        "kafka.fetch.min.bytes is a setting of the consumer alone, without effect in a batch write, and ignored.",
        "kafka.fetch.min.bites is not a setting of any client and is ignored. Did you mean 'kafka.fetch.min.bytes'?",
    )


def test_the_column_timestamp_is_used_unless_it_is_to_be_ignored() -> None:
    assert not parse_sink(options(topic="t"), Use.STREAM_WRITE).ignore_timestamp
    for use in (Use.BATCH_WRITE, Use.STREAM_WRITE):
        assert parse_sink(options(topic="t", kclient__sink__timestamp="IGNORE"), use).ignore_timestamp
