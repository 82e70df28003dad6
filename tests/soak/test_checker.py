"""The checkers find what they are for: a soak that cannot fail proves nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.real_kafka.logs import LoggedRecord, PartitionLog, parse_dump
from harness.soak.account import Account
from harness.soak.checker import check_accounts, check_log, check_reader
from harness.soak.churn import Ownership, check_owners, check_reads, handed_out, ownerships, seen


def record(offset: int, value: bytes, key: bytes = b"k", partition: int = 0) -> Any:
    return SimpleNamespace(partition=partition, offset=offset, key=key, value=value)


def load(sent: list[bytes], acked: dict[bytes, int], failed: tuple[bytes, ...] = ()) -> Any:
    return SimpleNamespace(
        sent=dict.fromkeys(sent, b"k"),
        acked={value: SimpleNamespace(partition=0, offset=offset) for value, offset in acked.items()},
        failed=dict.fromkeys(failed, "error"),
    )


def kinds(problems: list[str]) -> list[str]:
    return sorted(problem.split(":")[0] for problem in problems)


def test_a_good_log_has_no_problems() -> None:
    sent = load([b"1", b"2", b"3"], {b"1": 0, b"3": 2}, failed=(b"2",))
    assert check_log([sent], [record(0, b"1"), record(2, b"3")]) == []


def test_a_record_that_failed_may_be_there_all_the_same() -> None:
    sent = load([b"1", b"2"], {b"1": 0}, failed=(b"2",))
    assert check_log([sent], [record(0, b"1"), record(1, b"2")]) == []


def test_a_lost_write_is_found() -> None:
    assert kinds(check_log([load([b"1", b"2"], {b"1": 0, b"2": 1})], [record(0, b"1")])) == ["lost write"]


def test_a_duplicate_is_found() -> None:
    assert kinds(check_log([load([b"1"], {b"1": 0})], [record(0, b"1"), record(1, b"1")])) == ["duplicate"]


def test_an_acknowledged_offset_with_another_record_is_found() -> None:
    sent = load([b"1", b"2"], {b"1": 1, b"2": 2})
    assert "inconsistent offset" in kinds(check_log([sent], [record(0, b"1"), record(2, b"2")]))


def test_a_record_out_of_order_is_found() -> None:
    sent = load([b"1", b"2"], {b"1": 1, b"2": 0})
    assert kinds(check_log([sent], [record(0, b"2"), record(1, b"1")])) == ["order"]


def test_a_record_that_nobody_sent_is_found() -> None:
    assert kinds(check_log([load([], {})], [record(0, b"1")])) == ["unknown"]


def test_a_record_without_an_outcome_is_found() -> None:
    assert kinds(check_log([load([b"1"], {})], [])) == ["unaccounted"]


def test_offsets_that_do_not_follow_each_other_are_found() -> None:
    assert kinds(check_reader("r", [record(0, b"1"), record(2, b"3")])) == ["poll skip"]
    assert kinds(check_reader("r", [record(1, b"1"), record(1, b"1")])) == ["nonmonotonic poll"]
    assert check_reader("r", [record(4, b"1"), record(0, b"2", partition=1), record(5, b"3")]) == []


def test_two_owners_at_a_time_are_found_unless_the_first_was_thrown_out() -> None:
    later = Ownership(0, "b", 4.0, 9.0, False)
    assert check_owners([Ownership(0, "a", 1.0, 4.0, False), later]) == []
    assert kinds(check_owners([Ownership(0, "a", 1.0, 4.5, False), later])) == ["two owners"]
    assert check_owners([Ownership(0, "a", 1.0, 4.5, True), later]) == []
    assert check_owners([Ownership(1, "a", 1.0, 4.5, False), later]) == []


class Journaled:
    """A member of which only the journal is left."""

    def __init__(self, *events: tuple[str, Any]) -> None:
        self.name = "m"
        self.ended_at = 100.0
        self._events = [
            SimpleNamespace(at=float(at), event=event, content=content)
            for at, (event, content) in enumerate(events)
        ]

    def events(self) -> list[Any]:
        return self._events


def test_a_journal_tells_who_had_what_and_read_what() -> None:
    member: Any = Journaled(
        ("assigned", [0, 1]), ("read", {"0": [5, 7, 3]}), ("revoked", [0, 1]), ("assigned", [1])
    )
    assert sorted((o.partition, o.start, o.end) for o in ownerships([member])) == [
        (0, 0.0, 2.0),
        (1, 0.0, 2.0),
        (1, 3.0, 100.0),
    ]
    assert handed_out([member]) == {0: 8}
    assert seen([member]) == {(0, 5), (0, 6), (0, 7)}
    assert check_reads(member) == []


def test_reading_what_is_not_owned_or_does_not_follow_is_found() -> None:
    foreign: Any = Journaled(("assigned", [1]), ("read", {"0": [5, 7, 3]}))
    assert "without owning" in check_reads(foreign)[0]
    skipping: Any = Journaled(("assigned", [0]), ("read", {"0": [5, 7, 3]}), ("read", {"0": [9, 9, 1]}))
    assert kinds(check_reads(skipping)) == ["poll skip"]
    gap: Any = Journaled(("assigned", [0]), ("read", {"0": [5, 7, 2]}))
    assert kinds(check_reads(gap)) == ["poll skip"]


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path: Path) -> None:
    from harness.soak.churn import MemberProcess

    member = MemberProcess.__new__(MemberProcess)
    member._journal = tmp_path / "m.jsonl"
    member._journal.write_text('{"at": 1.0, "event": "started", "content": null}\n{"at": 2.0, "ev')
    assert [event.event for event in member.events()] == ["started"]


UNKNOWN = RuntimeError("no answer came, so they may have been written")
GONE = RuntimeError("refused")


def account(*outcomes: int | Exception | None) -> Account:
    """Records 0, 1, 2 ... of producer p for t-0: acknowledged at an offset, failed, or without outcome."""
    made = Account("p", [("t", 0)])
    for outcome in outcomes:
        number = made.new()
        if isinstance(outcome, int):
            made.acked(number, outcome)
        elif outcome is not None:
            made.failed(number, outcome)
    return made


def log(*values: bytes | None, topic_id: str = "first") -> PartitionLog:
    """A log of t-0 with values at offsets 0, 1, 2 ...; None is an offset without a record."""
    records = [LoggedRecord(i, value, "batch") for i, value in enumerate(values) if value is not None]
    return PartitionLog("t", 0, topic_id, records)


def test_good_accounts_have_no_problems() -> None:
    told = account(0, GONE, UNKNOWN, UNKNOWN, -1, 3)
    assert check_accounts([told], [log(b"p:0", b"p:3", b"p:4", b"p:5")]) == []


def test_a_topic_that_was_created_again_has_two_logs() -> None:
    told = account(0, UNKNOWN, 0)
    first, second = log(b"p:0", b"p:1"), log(b"p:2", topic_id="second")
    assert check_accounts([told], [second, first]) == []
    # Sent again to the new topic, as nobody answered for the old one.
    assert check_accounts([account(0, 0)], [first, log(b"p:1", topic_id="second")]) == []


def test_an_acknowledged_record_that_is_nowhere_is_found() -> None:
    assert kinds(check_accounts([account(0, 1)], [log(b"p:0")])) == ["lost write"]
    assert kinds(check_accounts([account(-1, 0)], [log(b"p:1")])) == ["lost write"]


def test_an_acknowledged_record_in_another_place_is_found() -> None:
    assert kinds(check_accounts([account(5)], [log(b"p:0")])) == ["inconsistent offset"]


def test_a_record_that_failed_for_good_and_is_there_is_found() -> None:
    assert kinds(check_accounts([account(0, GONE)], [log(b"p:0", b"p:1")])) == ["written after all"]


def test_a_record_that_is_twice_in_a_log_is_found_whatever_was_told() -> None:
    for outcome in (0, -1, UNKNOWN):
        assert kinds(check_accounts([account(outcome)], [log(b"p:0", b"p:0")])) == ["duplicate"]


def test_records_that_overtake_each_other_are_found_whatever_was_told() -> None:
    assert kinds(check_accounts([account(1, 0)], [log(b"p:1", b"p:0")])) == ["order"]
    assert kinds(check_accounts([account(UNKNOWN, 0)], [log(b"p:1", b"p:0")])) == ["order"]


def test_outcomes_that_were_told_never_or_twice_are_found() -> None:
    assert kinds(check_accounts([account(None)], [])) == ["unaccounted"]
    twice = account(0)
    twice.failed(0, UNKNOWN)
    assert kinds(check_accounts([twice], [log(b"p:0")])) == ["unaccounted"]


def test_records_of_somebody_else_or_of_another_partition_are_found() -> None:
    foreign = [b"q:0", b"p:7", b"p:x", b"p:-1", b""]
    assert kinds(check_accounts([account()], [log(*foreign)])) == ["unknown"] * 5
    elsewhere = Account("p", [("t", 1)])
    elsewhere.acked(elsewhere.new(), 0)
    assert kinds(check_accounts([elsewhere], [log(b"p:0")])) == ["lost write", "unknown"]


def test_numbers_go_round_the_partitions() -> None:
    made = Account("p", [("t", 0), ("t", 1)], in_a_row=2)
    assert [made.place(number)[1] for number in range(6)] == [0, 0, 1, 1, 0, 0]


def test_what_kafkas_tool_prints_is_understood() -> None:
    batch = (
        "baseOffset: 3 lastOffset: 4 count: 2 baseSequence: 7 lastSequence: 8 producerId: 5 producerEpoch: 1 "
        "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
        "position: 0 CreateTime: 1 size: 90 magic: 2 compresscodec: none crc: 1 isvalid: "
    )
    record = "| offset: {} CreateTime: 1 keySize: -1 valueSize: 3 sequence: 7 headerKeys: [] payload: {}"
    lines = [
        "Dumping /d/t-0/00000000000000000000.log",
        "Log starting offset: 0",
        batch + "true",
        record.format(3, "p:0"),
        record.format(4, "p:1"),
        batch + "false",
        "Dumping /d/t-1/00000000000000000000.log",
        "Log starting offset: 0",
        batch + "true",
        record.format(3, "p:2"),
    ]
    logs = {Path(f"/d/t-{i}"): PartitionLog("t", i, "id") for i in range(2)}
    parse_dump("\n".join(lines), logs)
    zero, one = logs.values()
    assert [(each.offset, each.value) for each in zero.records] == [(3, b"p:0"), (4, b"p:1")]
    assert zero.records[0].batch == "producer 5 epoch 1 sequence 7"
    assert kinds(check_accounts([], [zero]))[0] == "damaged"
    assert [each.value for each in one.records] == [b"p:2"]
