"""`kclient consume`: how a record is shown, where reading begins and ends, and what is committed of it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.consumer.model import ConsumerModel
from kclient.cli import consume
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, ConsumerRecords
from kclient.errors import ConfigError, UnknownTopicOrPartitionError

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Record = ConsumerRecord[bytes, bytes]


def record(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    *headers: tuple[str, bytes | None],
    tp: TopicPartition = T0,
    offset: int = 7,
    timestamp_type: int = 0,
) -> Record:
    sizes = (-1 if part is None else len(part) for part in (key, value))
    return ConsumerRecord(
        tp.topic, tp.partition, offset, 1000, timestamp_type, key, value, headers, None, *sizes
    )


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    consume.add_arguments(parser)
    return parser.parse_args(words)


def text(shown: Record, **chosen: str) -> bytes:
    words = [f"--property={name.replace('_', '.')}={value}" for name, value in chosen.items()]
    return consume._writer(options("--topic", "t", *words))(shown)


class TestShowing:
    def test_a_value_alone_is_a_line_unless_more_is_asked_for(self) -> None:
        assert text(record()) == b"v\n"
        assert text(record(value=b"\xff\n")) == b"\xff\n\n", "bytes stay what they are"

    def test_parts_come_in_the_order_of_kafkas_tool_whatever_the_order_of_options(self) -> None:
        every = dict.fromkeys(
            (
                "print_value",
                "print_key",
                "print_headers",
                "print_offset",
                "print_partition",
                "print_timestamp",
            ),
            "TRUE",
        )
        shown = text(record(b"k", b"v", ("a", b"1"), ("b", None)), **every, key_separator="|")
        assert shown == b"CreateTime:1000|Partition:0|Offset:7|a:1,b:null|k|v\n"

    def test_what_is_not_there_has_a_word_for_it_and_what_is_empty_has_none(self) -> None:
        chosen = {"print_key": "true", "print_headers": "true", "null_literal": "-"}
        nothing = record(None, None, ("h", None), timestamp_type=-1)
        assert text(nothing, **chosen) == b"h:-\t-\t-\n"
        assert text(record(b"", b""), **chosen) == b"NO_HEADERS\t\t\n"
        assert text(nothing, print_timestamp="true", print_value="false") == b"NoTimestampType:1000\n"

    @pytest.mark.parametrize("word", ["yes", "1", "", "false"])
    def test_only_true_is_true(self, word: str) -> None:
        assert text(record(), print_key=word, print_value=word) == b"\n"

    def test_a_format_fills_in_each_mark_and_keeps_what_is_between(self) -> None:
        shown = consume.formatted("%t-%p@%o %T é%k=%s/%v %h %S %K 100%%")
        filled = shown(record(b"key", b"\xff", ("a", b"1"), ("b", None)))
        assert filled == "t-0@7 1000 ékey=".encode() + b"\xff/\xff a=1,b= 1 3 100%"

    def test_a_format_shows_a_null_as_nothing_and_its_size_as_minus_one(self) -> None:
        assert consume.formatted("[%k|%s|%h|%S|%K]")(record(None, None)) == b"[|||-1|-1]"

    @pytest.mark.parametrize(
        ("given", "mark"), [("%", "%;"), ("a%", "%;"), ("%s%x", "%x"), ("%\n", "%;"), ("%é", "%é")]
    )
    def test_a_mark_that_there_is_not_is_refused_before_any_record(self, given: str, mark: str) -> None:
        with pytest.raises(ConfigError, match=f"--format has no mark {mark}.*%t %p %o"):
            consume.formatted(given)

    def test_json_names_what_is_null_and_what_is_no_text(self) -> None:
        line = consume.to_json(record(None, b"\xff", ("h", b"\xfe"), ("n", None), ("é", "✓".encode())))
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        assert json.loads(line) == {
            "topic": "t", "partition": 0, "offset": 7, "timestamp_ms": 1000, "key": None, "value_base64": "/w==",
            "headers": [
                {"name": "h", "value_base64": "/g=="}, {"name": "n", "value": None}, {"name": "é", "value": "✓"},
            ],
        }  # fmt: skip

    def test_json_wins_over_a_format(self) -> None:
        write = consume._writer(options("--topic", "t", "--output", "json", "--format", "%s"))
        assert json.loads(write(record()))["value"] == "v"


@pytest.fixture
def make_rig() -> Iterator[Callable[..., ConsumerModel]]:
    rigs: list[ConsumerModel] = []

    def make(**settings: object) -> ConsumerModel:
        rigs.append(ConsumerModel(**settings))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.consumer.close(0)


@pytest.fixture
def rig(make_rig: Callable[..., ConsumerModel]) -> ConsumerModel:
    made = make_rig(auto_offset_reset="latest", enable_auto_commit=False)
    made.fill(T0, 4, start=2)
    made.fill(T1, 3)
    return made


def start(rig: ConsumerModel, *words: str, in_group: bool = False) -> None:
    consume._start(
        rig.consumer, options(*(words if "--include" in words else ("--topic", "t", *words))), in_group
    )


class TestStarting:
    @pytest.mark.parametrize(
        ("words", "positions"),
        [
            ((), {T0: 6, T1: 3}),
            (("--from-beginning",), {T0: 2, T1: 0}),
            (("--partition", "0", "--offset", "earliest"), {T0: 2}),
            (("--partition", "1", "--offset", "latest"), {T1: 3}),
            (("--partition", "0", "--offset", "5"), {T0: 5}),
            (("--partition", "1"), {T1: 3}),
        ],
    )
    def test_reading_begins_where_it_was_asked_to(
        self, rig: ConsumerModel, words: tuple[str, ...], positions: dict[TopicPartition, int]
    ) -> None:
        start(rig, *words)
        assert {tp: rig.consumer.position(tp) for tp in rig.consumer.assignment()} == positions

    @pytest.mark.parametrize("offset", ["soon", "", "-1", "1.5", str(2**63)])
    def test_an_offset_that_is_none_is_refused(self, rig: ConsumerModel, offset: str) -> None:
        with pytest.raises(ConfigError, match=f"--offset {offset} is not earliest, latest or a number"):
            start(rig, "--partition", "0", f"--offset={offset}")

    def test_a_partition_that_there_is_not_is_said_not_to_be(self, rig: ConsumerModel) -> None:
        with pytest.raises(UnknownTopicOrPartitionError, match="no topic t with a partition 2"):
            start(rig, "--partition", "2")
        assert rig.consumer.assignment() == frozenset()

    @pytest.mark.parametrize("more", [("--group", "g"), ("--topic", "u")])
    def test_one_partition_is_of_one_topic_and_read_without_a_group(
        self, rig: ConsumerModel, more: tuple[str, ...]
    ) -> None:
        with pytest.raises(ConfigError, match="--partition goes with one --topic and without --group"):
            start(rig, "--partition", "0", *more, in_group="--group" in more)

    def test_a_pattern_needs_a_group(self, rig: ConsumerModel) -> None:
        with pytest.raises(ConfigError, match="--include needs --group") as refused:
            start(rig, "--include", "t.*")
        assert refused.value.name == "group.id"

    @pytest.mark.parametrize("words", [(), ("--include", "[t]")])
    def test_in_a_group_topics_are_subscribed_to(
        self, make_rig: Callable[..., ConsumerModel], words: tuple[str, ...]
    ) -> None:
        rig = make_rig(group_id="g", enable_auto_commit=False)
        start(rig, *words, in_group=True)
        rig.consumer.poll(100)
        assert rig.consumer.assignment() == {T0, T1}


@pytest.fixture
def out(capsysbinary: pytest.CaptureFixture[bytes]) -> Callable[[int | None], consume._Output]:
    """Makes outputs whose lines go to the standard output that pytest sees."""
    return lambda limit: consume._Output(consume.formatted("%v "), limit)


class TestReading:
    def test_it_ends_with_the_record_that_reaches_the_limit(
        self, rig: ConsumerModel, out: Callable[..., Any], capsysbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        start(rig, "--from-beginning", "--partition", "0")
        shown = out(3)
        consume._read(rig.consumer, shown, None)
        assert (shown.count, shown.full) == (3, True)
        assert capsysbinary.readouterr().out == b"2 3 4 "

    def test_a_limit_of_nothing_polls_nothing(self, rig: ConsumerModel, out: Callable[..., Any]) -> None:
        shown = out(0)
        consume._read(rig.consumer, shown, None)  # a consumer with nothing assigned could not be polled
        assert shown.full

    @pytest.mark.parametrize("timeout_ms", [0, 1, 700, 1200])
    def test_it_ends_when_no_record_came_for_so_long(
        self, rig: ConsumerModel, out: Callable[..., Any], timeout_ms: int
    ) -> None:
        start(rig, "--partition", "1")
        rig.consumer.position(T1)
        began_ms = rig.time.monotonic_ms()
        shown = out(None)
        consume._read(rig.consumer, shown, timeout_ms)
        assert (shown.count, shown.full) == (0, False)
        assert timeout_ms <= rig.time.monotonic_ms() - began_ms <= timeout_ms + 50

    def test_a_record_gives_those_after_it_the_whole_time_again(
        self, rig: ConsumerModel, out: Callable[..., Any]
    ) -> None:
        start(rig, "--partition", "1")
        rig.consumer.position(T1)
        began_ms = rig.time.monotonic_ms()
        fetch_usual = rig.partition_data

        def late(tp: TopicPartition, offset: int) -> Any:
            if rig.time.monotonic_ms() - began_ms > 600 and len(rig.logs[T1]) == 3:
                rig.logs[T1].append(b"late")
            return fetch_usual(tp, offset)

        rig.partition_data = late  # type: ignore[method-assign]
        shown = out(None)
        consume._read(rig.consumer, shown, 1000)
        assert shown.count == 1
        assert rig.time.monotonic_ms() - began_ms >= 1600


class TestSettling:
    def polled(self, *offsets: tuple[TopicPartition, int]) -> ConsumerRecords[bytes, bytes]:
        by_partition: dict[TopicPartition, list[Record]] = {}
        for tp, offset in offsets:
            by_partition.setdefault(tp, []).append(record(tp=tp, offset=offset))
        return ConsumerRecords(by_partition)

    @pytest.mark.parametrize(
        ("limit", "positions"), [(None, (5, 2)), (4, (5, 2)), (3, (5, 1)), (2, (5, 0)), (1, (4, 0))]
    )
    def test_each_partition_is_put_behind_what_was_shown_of_it(
        self, rig: ConsumerModel, out: Callable[..., Any], limit: int | None, positions: tuple[int, int]
    ) -> None:
        start(rig)
        shown = out(limit)
        shown.show(self.polled((T0, 3), (T0, 4), (T1, 0), (T1, 1)))
        shown.settle(rig.consumer)
        assert (rig.consumer.position(T0), rig.consumer.position(T1)) == positions

    def test_only_the_last_poll_is_settled(self, rig: ConsumerModel, out: Callable[..., Any]) -> None:
        start(rig, "--from-beginning")
        rig.consumer.seek(T1, 3)
        shown = out(3)
        shown.show(self.polled((T1, 0), (T1, 1)))
        shown.show(self.polled((T0, 3), (T0, 4)))
        shown.settle(rig.consumer)
        assert (rig.consumer.position(T0), rig.consumer.position(T1)) == (4, 3)

    def test_a_partition_that_was_taken_away_is_left_alone(
        self, rig: ConsumerModel, out: Callable[..., Any]
    ) -> None:
        start(rig, "--partition", "0")
        shown = out(1)
        shown.show(self.polled((T1, 0), (T0, 3)))
        shown.settle(rig.consumer)
        assert rig.consumer.position(T0) == 3

    def test_without_a_poll_there_is_nothing_to_settle(
        self, rig: ConsumerModel, out: Callable[..., Any]
    ) -> None:
        out(None).settle(rig.consumer)


def test_an_offset_without_a_partition_is_refused_before_a_client_is_made() -> None:
    with pytest.raises(ConfigError, match="--offset needs --partition"):
        consume.run(options("--topic", "t", "--offset", "earliest", "--bootstrap-server", "::not an address"))
