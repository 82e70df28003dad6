"""Cycles of transactions: those by reads are found, those by the order of records are permitted and counted."""

from __future__ import annotations

import random

import pytest

from harness.checker.history import Commit, Outcome, Place, Read, Send, Transaction
from harness.checker.memory import MemoryLog
from harness.checker.model import Model
from harness.checker.report import check, permitted, report

P = Place("t", 0)
Q = Place("t", 1)
R = Place("t", 2)


class Story:
    """Transactions, each of a producer of its own, that overlap; all are asked to commit before anything is read."""

    def __init__(self, *names: str) -> None:
        self.log = MemoryLog()
        self._producers = {name: self.log.producer(name) for name in names}
        self._numbers = {name: log.begun() for name, log in self._producers.items()}
        self._values: dict[tuple[Place, int], bytes] = {}
        self._called: set[str] = set()

    def write(self, name: str, place: Place, offset: int, *, told: bool = True) -> None:
        """Write a record to a place in the log, of which the producer is told or not."""
        value = self._values[place, offset] = f"{name} at {place}@{offset}".encode()
        number = self._producers[name].send(place.topic, value, place.partition, self._numbers[name])
        if told:
            self._producers[name].acked(number, place.partition, offset)

    def call_commits(self) -> None:
        """Begin the commit of all."""
        for name, log in self._producers.items():
            log.ending(self._numbers[name], commit=True)

    def read(self, name: str, place: Place, offset: int, *, read_committed: bool = True) -> None:
        """Read a record in a transaction."""
        group = f"group of {name}"
        if group not in self._called:
            self._called.add(group)
            self._reader = self.log.consumer(group, group=group, read_committed=read_committed)
        self._reader.polled({place: [(offset, self._values[place, offset])]})
        log = self._producers[name]
        log.committed(log.commit(group, {place: offset + 1}, self._numbers[name]))

    def end(self, outcome: Outcome = "ok") -> None:
        """End all; a reader of what is committed reads all of it, if it was committed."""
        for name, log in self._producers.items():
            log.finished(self._numbers[name], outcome)
        reader = self.log.consumer("reader", read_committed=outcome != "fail")
        for place, offset in sorted(self._values):
            reader.polled({place: [(offset, self._values[place, offset])]})

    def found(self) -> tuple[list[str], list[str]]:
        """Kinds of the anomalies, and of what is permitted."""
        return self.log.kinds(), sorted(each.kind for each in permitted(self.log.history()))


def in_opposite_orders() -> Story:
    story = Story("a", "b")
    for name, place, offset in (("a", P, 0), ("b", P, 1), ("b", Q, 0), ("a", Q, 1)):
        story.write(name, place, offset)
    return story


def test_writes_in_opposite_orders_are_permitted_and_counted() -> None:
    story = in_opposite_orders()
    story.call_commits()
    story.end()
    assert story.found() == ([], ["G0"])
    [cycle] = permitted(story.log.history())
    assert [type(each) for each in cycle.evidence] == [Transaction, Send, Send] * 2
    told = [each.value for each in cycle.evidence if isinstance(each, Send)]
    assert told == ["a at t-0@0", "b at t-0@1", "b at t-1@0", "a at t-1@1"]


def test_writes_in_one_order_are_no_cycle() -> None:
    story = Story("a", "b")
    for name, place, offset in (("a", P, 0), ("b", P, 1), ("a", Q, 0), ("b", Q, 1)):
        story.write(name, place, offset)
    story.call_commits()
    story.end()
    assert story.found() == ([], [])


def test_records_that_alternate_in_one_partition_are_a_cycle_of_writes() -> None:
    story = Story("a", "b")
    for name, offset in (("a", 0), ("b", 1), ("a", 2)):
        story.write(name, P, offset)
    story.call_commits()
    story.end()
    assert story.found() == ([], ["G0"])


def test_a_ring_of_writes_is_one_cycle_of_all() -> None:
    story = Story("a", "b", "c")
    for place, (one, other) in zip((P, Q, R), ("ab", "bc", "ca"), strict=True):
        story.write(one, place, 0)
        story.write(other, place, 1)
    story.call_commits()
    story.end()
    [cycle] = permitted(story.log.history())
    assert cycle.kind == "G0"
    assert [each.process for each in cycle.evidence if isinstance(each, Transaction)] == ["a", "b", "c"]


def test_two_pairs_of_transactions_are_two_cycles() -> None:
    story = Story("a", "b", "c", "d")
    for place, names in ((P, "abcd"), (Q, "badc")):
        for offset, name in enumerate(names):
            story.write(name, place, offset)
    story.call_commits()
    story.end()
    assert story.found() == ([], ["G0", "G0"])


def test_transactions_that_were_aborted_are_in_no_cycle() -> None:
    story = in_opposite_orders()
    story.end("fail")
    assert story.found() == ([], [])


def test_a_transaction_of_unknown_outcome_is_in_a_cycle_once_somebody_has_read_it() -> None:
    story = in_opposite_orders()
    story.call_commits()
    assert story.found() == ([], [])
    story.end("unknown")
    assert story.found() == ([], ["G0"])


def test_a_record_whose_offset_only_readers_know_has_its_place_in_the_order() -> None:
    story = Story("a", "b")
    for name, place, offset in (("a", P, 0), ("b", P, 1), ("b", Q, 0), ("a", Q, 1)):
        story.write(name, place, offset, told=False)
    story.call_commits()
    story.end()
    [cycle] = permitted(story.log.history())
    assert [type(each) for each in cycle.evidence] == [Transaction, Read, Read] * 2


def test_transactions_that_read_each_other_are_found() -> None:
    story = Story("a", "b")
    story.write("a", P, 0)
    story.write("b", Q, 0)
    story.call_commits()
    story.read("a", Q, 0)
    story.read("b", P, 0)
    story.end()
    assert story.log.kinds() == ["G1c"]
    [cycle] = check(story.log.history())
    assert [type(each) for each in cycle.evidence] == [Transaction, Send, Commit] * 2


def test_a_ring_of_reads_is_found() -> None:
    story = Story("a", "b", "c")
    for name, place in zip("abc", (P, Q, R), strict=True):
        story.write(name, place, 0)
    story.call_commits()
    for name, place in zip("abc", (Q, R, P), strict=True):
        story.read(name, place, 0)
    story.end()
    [cycle] = check(story.log.history())
    assert cycle.kind == "G1c"
    assert "3 transactions" in cycle.what


def test_readers_of_everything_may_read_each_other() -> None:
    story = Story("a", "b")
    story.write("a", P, 0)
    story.write("b", Q, 0)
    story.call_commits()
    story.read("a", Q, 0, read_committed=False)
    story.read("b", P, 0, read_committed=False)
    story.end()
    assert story.found() == ([], ["G1c"])


def test_a_read_of_a_transaction_that_wrote_later_elsewhere_is_permitted() -> None:
    story = Story("a", "b")
    story.write("b", P, 0)
    story.write("a", P, 1)
    story.write("a", Q, 0)
    story.call_commits()
    story.read("b", Q, 0)
    story.end()
    assert story.found() == ([], ["G1c"])


def test_reads_in_one_direction_are_no_cycle() -> None:
    story = Story("a", "b")
    story.write("a", P, 0)
    story.write("b", Q, 0)
    story.call_commits()
    story.read("b", P, 0)
    story.end()
    assert story.found() == ([], [])


def test_what_former_transactions_of_the_group_read_is_not_read_again() -> None:
    log = MemoryLog()
    early, late, later = (log.producer(name) for name in ("early", "late", "later"))
    copier = log.consumer("copier", group="g", read_committed=True)
    numbers = {}
    for producer, place in ((early, P), (late, Q), (later, R)):
        numbers[producer] = producer.begun()
        producer.acked(producer.send("t", b"x", place.partition, numbers[producer]), place.partition, 0)
        producer.ending(numbers[producer], commit=True)
    # `late` reads what `early` wrote, and `early` what `later` wrote, which has only the end of the group's offsets.
    copier.polled({P: [(0, b"x")]})
    late.committed(late.commit("g", {P: 1}, numbers[late]))
    copier.polled({R: [(0, b"x")]})
    early.committed(early.commit("g", {R: 1}, numbers[early]))
    later.committed(later.commit("g", {P: 1}, numbers[later]))
    for producer, number in numbers.items():
        producer.finished(number, "ok")
    assert log.kinds() == []


@pytest.mark.parametrize("seed", range(3))
def test_a_right_cluster_has_cycles_of_writes(seed: int) -> None:
    model = Model(random.Random(seed))
    model.run(2000)
    history = model.log.history()
    assert "G0" in {each.kind for each in permitted(history)}
    assert check(history) == []


def test_a_report_has_the_number_of_the_cycles_that_are_permitted() -> None:
    story = in_opposite_orders()
    story.call_commits()
    story.end()
    history = story.log.history()
    text = report(history, check(history), permitted(history))
    assert text.splitlines()[1:] == ["G0, which Kafka permits: 1"]
