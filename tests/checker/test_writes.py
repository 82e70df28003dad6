"""Records that were sent: one outcome each, which is true; and what only looks like an anomaly."""

from __future__ import annotations

import pytest

from harness.checker.history import Finish, Place, Read, Send
from harness.checker.log import ConsumerLog, ProducerLog
from harness.checker.memory import MemoryLog
from harness.checker.report import check

P = Place("t", 0)
Q = Place("t", 1)


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def producer(log: MemoryLog) -> ProducerLog:
    return log.producer("p")


@pytest.fixture
def consumer(log: MemoryLog) -> ConsumerLog:
    return log.consumer("c")


def acked(producer: ProducerLog, *values: bytes, first: int = 0, partition: int = 0) -> None:
    """Values acknowledged at one offset after another."""
    for offset, value in enumerate(values, first):
        producer.acked(producer.send("t", value, partition), partition, offset)


def read(consumer: ConsumerLog, *values: bytes, first: int = 0, place: Place = P) -> None:
    """Values handed out at one offset after another."""
    consumer.polled({place: list(enumerate(values, first))})


def evidence(log: MemoryLog) -> list[type]:
    [anomaly] = check(log.history())
    return [type(each) for each in anomaly.evidence]


def test_a_good_history_has_no_anomalies(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    acked(producer, b"a", b"b")
    acked(producer, b"c", partition=1)
    read(consumer, b"a", b"b")
    read(consumer, b"c", place=Q)
    log.at_end("c", [P, Q])
    producer.closed()
    assert log.kinds() == []


def test_a_lost_write_is_found(log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog) -> None:
    acked(producer, b"a", b"b", b"c")
    consumer.polled({P: [(0, b"a")]})
    consumer.sought([P])
    consumer.polled({P: [(2, b"c")]})
    assert log.kinds() == ["lost write"]
    [anomaly] = check(log.history())
    assert "sent 'b'" in str(anomaly.evidence[0])
    assert evidence(log) == [Send, Read]


def test_a_lost_write_is_no_poll_skip_as_well(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    acked(producer, b"a", b"b", b"c")
    consumer.polled({P: [(0, b"a"), (2, b"c")]})
    assert log.kinds() == ["lost write"]


def test_a_write_that_another_consumer_read_is_not_lost(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    acked(producer, b"a", b"b", b"c")
    read(consumer, b"a", b"b")
    read(log.consumer("d"), b"c", first=2)
    assert log.kinds() == []


def test_a_write_behind_the_highest_offset_read_is_not_lost(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    acked(producer, b"a", b"b")
    read(consumer, b"a")
    assert log.kinds() == []


def test_a_record_of_unknown_outcome_may_be_there_or_not(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    acked(producer, b"a")
    producer.failed(producer.send("t", b"b", 0), "timed out", "unknown")
    producer.failed(producer.send("t", b"c", 0), "timed out", "unknown")
    producer.send("t", b"d", 0)  # its producer was killed
    acked(producer, b"e", first=2)
    read(consumer, b"a", b"c", b"e")
    log.at_end("c", [P])
    assert log.kinds() == []


def test_a_record_that_nobody_was_handed_although_they_read_to_the_end_is_found(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    acked(producer, b"a", b"b")
    read(consumer, b"a")
    log.at_end("c", [P])
    assert log.kinds() == ["unseen"]
    assert evidence(log) == [Send, Finish]


def test_a_group_that_left_out_what_others_read_is_found(log: MemoryLog, producer: ProducerLog) -> None:
    acked(producer, b"a", b"b")
    read(log.consumer("c"), b"a", b"b")
    read(log.consumer("m", group="g"), b"a")
    log.at_end("g", [P])
    assert log.kinds() == ["unseen"]


def test_the_members_of_a_group_read_together(log: MemoryLog, producer: ProducerLog) -> None:
    acked(producer, b"a", b"b")
    read(log.consumer("m", group="g"), b"a")
    read(log.consumer("n", group="g"), b"b", first=1)
    log.at_end("g", [P])
    assert log.kinds() == []


def test_what_was_acknowledged_after_the_end_was_reached_may_be_unseen(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    acked(producer, b"a")
    read(consumer, b"a")
    log.at_end("c", [P])
    acked(producer, b"b", first=1)
    assert log.kinds() == []


def test_an_acknowledged_record_of_unknown_offset_has_to_be_somewhere(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    for value in (b"a", b"b"):
        producer.acked(producer.send("t", value, 0), 0, -1)
    read(consumer, b"a")
    assert log.kinds() == []
    log.at_end("c", [P])
    assert log.kinds() == ["unseen"]


def test_a_record_in_another_place_than_acknowledged_is_found(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    acked(producer, b"a", b"b", first=1)
    consumer.polled({P: [(1, b"a")]})
    consumer.sought([P])
    consumer.polled({P: [(3, b"b")]})
    assert log.kinds() == ["inconsistent offset"]
    assert evidence(log) == [Send, Read]


def test_two_records_in_one_place_are_found(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    for value in (b"a", b"b"):
        producer.failed(producer.send("t", value, 0), "timed out", "unknown")
    read(consumer, b"a")
    read(log.consumer("d"), b"b")
    assert log.kinds() == ["inconsistent offset"]
    assert evidence(log) == [Read, Read]


def test_two_records_acknowledged_in_one_place_are_found(log: MemoryLog, producer: ProducerLog) -> None:
    acked(producer, b"a")
    acked(log.producer("q"), b"b")
    assert log.kinds() == ["inconsistent offset"]
    assert evidence(log) == [Send, Send]


def test_a_record_acknowledged_in_another_partition_is_found(log: MemoryLog, producer: ProducerLog) -> None:
    producer.acked(producer.send("t", b"a", 0), 1, 7)
    assert log.kinds() == ["inconsistent offset"]


@pytest.mark.parametrize("outcome", ["ok", "unknown"])
def test_a_duplicate_is_found(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog, outcome: str
) -> None:
    number = producer.send("t", b"a", 0)
    if outcome == "ok":
        producer.acked(number, 0, 0)
    read(consumer, b"a", b"a")
    assert log.kinds() == ["duplicate"]
    assert evidence(log) == [Send, Read, Read]


def test_a_producer_that_is_not_idempotent_may_write_a_record_twice_and_late(
    log: MemoryLog, consumer: ConsumerLog
) -> None:
    producer = log.producer("q", idempotent=False)
    first = producer.send("t", b"a", 0)
    acked(producer, b"b", first=1)
    producer.acked(first, 0, 2)
    read(consumer, b"a", b"b", b"a")
    assert log.kinds() == []


def test_reading_a_record_again_after_a_seek_is_no_duplicate(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    acked(producer, b"a")
    read(consumer, b"a")
    consumer.sought([P])
    read(consumer, b"a")
    assert log.kinds() == []


def test_a_record_that_failed_for_certain_and_is_there_is_found(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    producer.failed(producer.send("t", b"a", 0), "too large", "fail")
    assert log.kinds() == []
    read(consumer, b"a")
    assert log.kinds() == ["written after all"]
    assert evidence(log) == [Send, Read]


def test_a_value_that_nobody_sent_there_is_found(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    read(consumer, b"a")
    assert log.kinds() == ["unknown value"]
    producer.send("t", b"a", 1)
    assert log.kinds() == ["unknown value"]
    assert evidence(log) == [Read, Send]
    producer.send("t", b"a", 0)
    assert log.kinds() == []


def test_a_record_whose_partition_nobody_was_told_may_be_in_any_but_only_one(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    producer.failed(producer.send("t", b"a"), "timed out", "unknown")
    producer.acked(producer.send("t", b"b"), 1, 0)
    read(consumer, b"a")
    read(consumer, b"b", place=Q)
    assert log.kinds() == []
    read(consumer, b"a", first=1, place=Q)
    assert log.kinds() == ["unknown value"]


def test_records_of_one_producer_in_another_order_are_found(log: MemoryLog, producer: ProducerLog) -> None:
    first, second = producer.send("t", b"a", 0), producer.send("t", b"b", 0)
    producer.acked(second, 0, 0)
    producer.acked(first, 0, 1)
    assert log.kinds() == ["nonmonotonic send"]
    assert evidence(log) == [Send, Send]


def test_the_order_counts_for_records_of_unknown_outcome_as_well(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    producer.failed(producer.send("t", b"a", 0), "timed out", "unknown")
    acked(producer, b"b")
    read(consumer, b"b", b"a")
    assert log.kinds() == ["nonmonotonic send"]
    assert evidence(log) == [Send, Send, Read]


def test_producers_and_partitions_have_no_order_among_each_other(
    log: MemoryLog, producer: ProducerLog
) -> None:
    acked(producer, b"a", first=5)
    acked(log.producer("q"), b"b", first=3)
    acked(producer, b"c", partition=1)
    assert log.kinds() == []


def test_an_outcome_that_was_told_twice_or_never_is_found(log: MemoryLog, producer: ProducerLog) -> None:
    number = producer.send("t", b"a", 0)
    assert log.kinds() == []
    producer.closed()
    assert log.kinds() == ["unaccounted"]
    producer.acked(number, 0, 0)
    assert log.kinds() == []
    producer.failed(number, "timed out", "unknown")
    assert log.kinds() == ["unaccounted"]


def test_the_logs_of_a_topic_that_was_created_again_are_held_apart(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    old, new = P._replace(topic_id="old"), P._replace(topic_id="new")
    acked(producer, b"a", b"b")
    acked(producer, b"c", b"d")  # offsets begin again
    read(consumer, b"a", b"b", place=old)
    read(consumer, b"c", b"d", place=new)
    log.at_end("c", [old, new])
    assert log.kinds() == []
    acked(producer, b"e", first=2)
    log.at_end("c", [new])  # it may have been in the old one
    assert log.kinds() == []
    log.at_end("c", [old, new])
    assert log.kinds() == ["unseen"]


def test_a_record_that_was_sent_again_to_the_new_topic_is_no_duplicate(
    log: MemoryLog, producer: ProducerLog, consumer: ConsumerLog
) -> None:
    acked(producer, b"a", b"b")
    old, new = P._replace(topic_id="old"), P._replace(topic_id="new")
    read(consumer, b"b", b"a", place=new)
    assert log.kinds() == ["inconsistent offset", "inconsistent offset"]
    read(consumer, b"a", b"b", place=old)
    assert log.kinds() == ["nonmonotonic send"]  # in the new one


def test_values_that_do_not_tell_records_apart_are_refused(log: MemoryLog, producer: ProducerLog) -> None:
    acked(producer, b"a", b"a")
    with pytest.raises(ValueError, match="same value"):
        log.kinds()
