"""`kclient perf latency`: its short form, the record it sends, and what it says of another one that comes back."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from harness.consumer.model import ConsumerModel
from kclient.cli import perf_latency
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord
from kclient.errors import ConfigError, KafkaError

T0 = TopicPartition("t", 0)
SHORT = ("b:1", "t", "3", "all", "20")


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    perf_latency.add_arguments(parser)
    return parser.parse_args(words)


def taken(*words: str) -> argparse.Namespace:
    found = options(*words)
    perf_latency._take_positions(found)
    return found


@pytest.mark.parametrize(("more", "file"), [((), None), (("client.properties",), "client.properties")])
def test_the_short_form_is_that_of_the_options_by_name(more: tuple[str, ...], file: str | None) -> None:
    found = taken(*SHORT, *more)
    assert (found.bootstrap_server, found.topic, found.num_records) == ("b:1", "t", 3)
    assert (found.producer_acks, found.record_size, found.command_config) == ("all", 20, file)


def test_without_a_short_form_the_options_stay_as_they_are() -> None:
    found = taken("--topic", "t", "--num-records", "5")
    assert (found.topic, found.num_records, found.producer_acks, found.record_size) == ("t", 5, None, None)


def test_options_that_have_no_place_in_the_short_form_go_with_it() -> None:
    found = taken(*SHORT, "--record-key-size", "7", "-X", "client.id=me")
    assert (found.record_key_size, found.record_size, found.settings) == (7, 20, [("client.id", "me")])


@pytest.mark.parametrize("count", [1, 4, 7])
def test_a_short_form_of_another_length_is_refused(count: int) -> None:
    with pytest.raises(ConfigError, match=f"takes 5 or 6 arguments, not {count}"):
        taken(*(*SHORT, "file", "more")[:count])


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--bootstrap-server", "c:1"), ("--topic", "t"), ("--num-records", "3"), ("--producer-acks", "1"),
        ("--record-size", "20"), ("--command-config", "f"),
    ],
)  # fmt: skip
def test_what_is_in_the_short_form_is_not_given_by_its_name_as_well(flag: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"{flag} is given twice"):
        taken(*SHORT, "file", flag, value)


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (2, "0", "--num-records: '0' should be a whole number, 1 or more"),
        (2, "", "--num-records: '' should be"),
        (3, "0", "--producer-acks 0 is not one of 1, all"),
        (3, "ALL", "--producer-acks ALL is not one of 1, all"),
        (4, "big", "--record-size: 'big' should be"),
    ],
)
def test_a_value_of_the_short_form_that_cannot_be_is_told_by_its_name(
    place: int, value: str, said: str
) -> None:
    words = [*SHORT]
    words[place] = value
    with pytest.raises(ConfigError) as refused:
        taken(*words)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("words", [(), ("--topic", "t"), ("--num-records", "3")])
def test_a_topic_and_a_number_are_needed(words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match="--topic and --num-records are needed"):
        perf_latency.run(options(*words))


def test_a_record_is_100_bytes_without_key_and_headers_unless_more_is_asked_for() -> None:
    plain = perf_latency._message(options("--topic", "t"))
    assert (plain.key, len(plain.value), plain.headers) == (None, 100, ())
    assert plain.value.startswith(b"ABCDEFGHIJKLMNOPQRSTUVWXYZAB")


@pytest.mark.parametrize(("size", "value"), [("0", b""), ("-1", None), ("2", b"AB")])
def test_headers_are_all_alike_and_may_be_empty_or_null(size: str, value: bytes | None) -> None:
    words = ["--num-headers", "3", "--record-header-key-size", "4", f"--record-header-size={size}"]
    assert perf_latency._message(options(*words)).headers == (("ABCD", value),) * 3


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 512, 1000])
def test_a_filler_has_the_size_that_was_asked_for(size: int) -> None:
    filler = perf_latency._filler(size)
    assert (len(filler), filler[256:]) == (size, perf_latency._filler(max(size - 256, 0)))


SENT = perf_latency._Message(b"k", b"v", (("h", None),))
READ: Any = ConsumerRecord("t", 0, 7, 1000, 0, b"k", b"v", (("h", None),), None, 1, 1)


def test_a_record_that_comes_back_as_it_was_sent_is_the_right_one() -> None:
    perf_latency._check(READ, SENT)


@pytest.mark.parametrize(
    ("name", "other"), [("key", None), ("value", b"w"), ("headers", ()), ("headers", (("h", b""),))]
)
def test_a_record_that_comes_back_as_another_one_is_told_with_its_place(name: str, other: Any) -> None:
    with pytest.raises(KafkaError, match=f"t-0, offset 7: the {name} read is not what was sent"):
        perf_latency._check(attrs.evolve(READ, **{name: other}), SENT)


@pytest.fixture
def rig() -> Iterator[ConsumerModel]:
    made = ConsumerModel()
    made.topics["t"] = 1
    yield made
    made.consumer.close(0)


def test_reading_begins_behind_what_is_there_before_the_first_record_is_sent(rig: ConsumerModel) -> None:
    rig.fill(T0, 3)
    perf_latency._start_at_end(rig.consumer, "t")
    rig.logs[T0].append(b"sent")
    assert perf_latency._read_one(rig.consumer).value == b"sent"


@pytest.mark.parametrize(
    ("count", "said"), [(0, "0 records came within 60 s"), (2, "does anybody else write")]
)
def test_no_record_or_more_than_one_is_an_error(rig: ConsumerModel, count: int, said: str) -> None:
    perf_latency._start_at_end(rig.consumer, "t")
    rig.logs[T0] = [b"v"] * count
    with pytest.raises(KafkaError, match=said) as failed:
        perf_latency._read_one(rig.consumer)
    assert ("anybody else" in str(failed.value)) == bool(count)
