"""Offsets in options and checkpoints are the JSON of Spark's own connector."""

from __future__ import annotations

import json

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError
from kclient.spark.offsets import (
    INITIAL,
    from_json,
    is_initial,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
    to_json,
)


def test_a_checkpoint_of_the_connector_is_read_and_written_as_it_is() -> None:
    text = '{"a.b":{"0":7,"2":0,"10":9223372036854775807},"z":{"0":23}}'
    offsets = from_json(json.loads(text))
    assert offsets[TopicPartition("a.b", 10)] == 2**63 - 1
    shuffled = dict(reversed(offsets.items()))
    assert json.dumps(to_json(shuffled), separators=(",", ":")) == text


def test_the_mark_of_the_start_is_no_offset_of_any_topic() -> None:
    assert is_initial(json.loads(json.dumps(dict(INITIAL))))
    assert not is_initial(to_json({TopicPartition("kclient", 0): 0}))
    assert not is_initial({})


def test_options_know_earliest_and_latest_by_number() -> None:
    parsed = parse_offsets("startingOffsets", '{"t":{"0":23,"1":-1},"u":{"0":-2}}')
    assert parsed == {TopicPartition("t", 0): 23, TopicPartition("t", 1): -1, TopicPartition("u", 0): -2}


def test_timestamps_are_milliseconds() -> None:
    parsed = parse_timestamps("startingOffsetsByTimestamp", '{"t":{"0":1700000000000}}')
    assert parsed == {TopicPartition("t", 0): 1_700_000_000_000}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a JSON object"),
        ("[1]", "is not a JSON object"),
        ("{}", "names no partition"),
        ('{"t":3}', "'t' needs an object"),
        ('{"t":{"x":1}}', "'x' is not a partition"),
        ('{"t":{"-1":1}}', "'-1' is not a partition"),
        ('{"t":{"0":1.5}}', "1.5 for partition 0"),
        ('{"t":{"0":true}}', "True for partition 0"),
        ('{"t":{"0":-3}}', "-3 for t-0 is not an offset"),
        ('{"t":{"0":9223372036854775808}}', "9223372036854775808 for t-0"),
    ],
)
def test_what_are_no_offsets_is_refused_with_the_options_name(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match="endingOffsets") as caught:
        parse_offsets("endingOffsets", text)
    assert said in str(caught.value)
    assert caught.value.name == "endingOffsets"


def test_a_timestamp_is_not_negative() -> None:
    with pytest.raises(ConfigError, match="-1 for t-0 is not a time"):
        parse_timestamps("startingOffsetsByTimestamp", '{"t":{"0":-1}}')


def test_assign_names_partitions() -> None:
    assert parse_partitions("assign", '{"t":[0,2]}') == {TopicPartition("t", 0), TopicPartition("t", 2)}


@pytest.mark.parametrize(
    "text", ["t", "{}", '{"t":[]}', '{"t":0}', '{"t":["0"]}', '{"t":[-1]}', '{"t":[true]}']
)
def test_what_are_no_partitions_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="assign"):
        parse_partitions("assign", text)


@pytest.mark.parametrize("value", [{"t": 1}, {"t": {"0": -1}}, {"t": {"0": "5"}}, {"t": {"x": 5}}])
def test_a_checkpoint_that_is_none_is_refused(value: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="t"):
        from_json(value)
