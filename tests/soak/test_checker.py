"""The checkers find what they are for: a soak that cannot fail proves nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from checker import check_log, check_reader
from churn import Ownership, check_owners, check_reads, handed_out, ownerships, seen


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
    from churn import MemberProcess

    member = MemberProcess.__new__(MemberProcess)
    member._journal = tmp_path / "m.jsonl"
    member._journal.write_text('{"at": 1.0, "event": "started", "content": null}\n{"at": 2.0, "ev')
    assert [event.event for event in member.events()] == ["started"]
