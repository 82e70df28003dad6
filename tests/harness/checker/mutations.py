"""Broken promises: each changes a good history so that one has not been kept, and says which anomaly shows it.

A mutation returns None where nothing in the history can show it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from harness.checker.history import Client, Commit, History, Observation, Place, Poll, Send, Transaction, Turn
from harness.checker.index import is_certain
from harness.checker.model import GROUP, place

Mutation = Callable[[History, random.Random], str | None]
MUTATIONS: list[Mutation] = []
T = TypeVar("T")
_LATE = 10.0**9


def mutation(function: Mutation) -> Mutation:
    """Add a mutation to the list."""
    MUTATIONS.append(function)
    return function


@mutation
def drop_a_record_from_the_log(history: History, rng: random.Random) -> str | None:
    tops = {home: max(offsets) for home, offsets in _offsets(history).items()}
    send = _any(rng, [s for s in _read_sends(history) if is_certain(s) and _offset(s) < tops[_place(s)]])
    if send is None:
        return None
    _change(history, lambda home, offset, value: [] if value == send.value else [(offset, value)])
    return "lost write" if _offset(send) < max(_offsets(history).get(_place(send), [-1])) else None


@mutation
def drop_a_record_from_one_poll(history: History, rng: random.Random) -> str | None:
    seen = _seen(history)
    found = []
    for poll in _polls(history):
        isolated = history.client(poll.process).read_committed
        for home, records in poll.records.items():
            for at in range(1, len(records) - 1):
                others = [each for each in seen[home, records[at][0]] if each is not poll]
                if any(history.client(each.process).read_committed or not isolated for each in others):
                    found.append((poll, home, at))
    chosen = _any(rng, found)
    if chosen is None:
        return None
    poll, home, at = chosen
    _set(poll, home, [*poll.records[home][:at], *poll.records[home][at + 1 :]])
    return "poll skip"


@mutation
def hide_a_record_from_who_read_to_the_end(history: History, rng: random.Random) -> str | None:
    [finish] = history.finishes
    mine = [poll for poll in _polls(history) if poll.process == finish.subscriber]
    others = {value for poll in _polls(history) if poll not in mine for _, value in _values(poll)}
    send = _any(rng, [s for s in _read_sends(history) if is_certain(s) and s.value in others])
    if send is None:
        return None
    for poll in mine:
        for home, records in poll.records.items():
            _set(poll, home, [record for record in records if record[1] != send.value])
    return "unseen"


@mutation
def swap_two_records_of_a_poll(history: History, rng: random.Random) -> str | None:
    chosen = _any(
        rng, [(p, home) for p in _polls(history) for home, each in p.records.items() if len(each) > 1]
    )
    if chosen is None:
        return None
    poll, home = chosen
    records = list(poll.records[home])
    at = rng.randrange(len(records) - 1)
    records[at : at + 2] = records[at + 1], records[at]
    _set(poll, home, records)
    return "nonmonotonic poll"


@mutation
def swap_two_records_of_the_log(history: History, rng: random.Random) -> str | None:
    one = _any(rng, _read_sends(history))
    other = one and _any(rng, [s for s in _read_sends(history) if _place(s) == _place(one) and s is not one])
    if one is None or other is None:
        return None
    _swap(history, one, other)
    return "inconsistent offset"


@mutation
def swap_two_records_of_a_producer_and_tell_it(history: History, rng: random.Random) -> str | None:
    one = _any(rng, _read_sends(history))
    other = one and _any(
        rng,
        [
            s
            for s in _read_sends(history)
            if (_place(s), s.process) == (_place(one), one.process) and s is not one
        ],
    )
    if one is None or other is None:
        return None
    _swap(history, one, other)
    one.offset, other.offset = other.offset, one.offset
    return "nonmonotonic send"


@mutation
def show_another_record_to_one_reader(history: History, rng: random.Random) -> str | None:
    seen = _seen(history)
    found = [
        (poll, home, at)
        for poll in _polls(history)
        for home, records in poll.records.items()
        for at, (offset, _) in enumerate(records)
        if len(seen[home, offset]) > 1
    ]
    chosen = _any(rng, found)
    send = _any(rng, _read_sends(history))
    if chosen is None or send is None:
        return None
    poll, home, at = chosen
    records = list(poll.records[home])
    if records[at][1] == send.value:
        return None
    records[at] = records[at][0], send.value
    _set(poll, home, records)
    return "inconsistent offset"


@mutation
def write_a_record_twice(history: History, rng: random.Random) -> str | None:
    send = _any(rng, _read_sends(history))
    if send is None:
        return None
    _poll(history, _place(send), 10**6, send.value, at=_LATE)
    return "duplicate"


@mutation
def acknowledge_a_record_elsewhere(history: History, rng: random.Random) -> str | None:
    send = _any(rng, _read_sends(history))
    if send is None:
        return None
    send.offset = 10**6
    return "inconsistent offset"


@mutation
def acknowledge_two_records_in_one_place(history: History, rng: random.Random) -> str | None:
    one = _any(rng, _acked(history))
    other = one and _any(rng, [s for s in _acked(history) if _place(s) == _place(one) and s is not one])
    if one is None or other is None:
        return None
    one.offset = other.offset
    return "inconsistent offset"


@mutation
def tell_an_outcome_twice(history: History, rng: random.Random) -> str | None:
    send = _any(rng, [send for send in history.sends if send.told])
    if send is None:
        return None
    send.told += 1
    return "unaccounted"


@mutation
def tell_no_outcome(history: History, rng: random.Random) -> str | None:
    send = _any(rng, [send for send in history.sends if send.process in history.closed])
    if send is None:
        return None
    send.told, send.outcome = 0, "unknown"
    return "unaccounted"


@mutation
def fail_a_record_that_is_there(history: History, rng: random.Random) -> str | None:
    send = _any(rng, _read_sends(history))
    if send is None:
        return None
    send.outcome, send.offset = "fail", None
    return "written after all"


@mutation
def show_a_record_that_nobody_sent(history: History, rng: random.Random) -> str | None:
    _poll(history, place(0), 10**6, "nobody's", at=_LATE)
    return "unknown value"


@mutation
def show_an_aborted_record(history: History, rng: random.Random) -> str | None:
    send = _any(rng, [s for s in _acked(history) if s.transaction and s.transaction.outcome == "fail"])
    if send is None:
        return None
    _poll(history, _place(send), _offset(send), send.value, at=_LATE)
    return "aborted read"


@mutation
def show_a_record_before_its_commit(history: History, rng: random.Random) -> str | None:
    open_ = [s for s in _acked(history) if s.transaction and s.transaction.outcome != "fail"]
    send = _any(rng, open_)
    if send is None or send.transaction is None:
        return None
    called = send.transaction.commit_started
    _poll(history, _place(send), _offset(send), send.value, at=_LATE if called is None else called - 0.5)
    return "precommitted read"


@mutation
def tear_a_transaction(history: History, rng: random.Random) -> str | None:
    parts: defaultdict[Transaction, list[Send]] = defaultdict(list)
    for send in _read_sends(history):
        if send.transaction is not None and send.transaction.outcome == "ok":
            parts[send.transaction].append(send)
    chosen = _any(rng, [(txn, sends) for txn, sends in parts.items() if len(sends) > 1])
    if chosen is None:
        return None
    transaction, sends = chosen
    transaction.outcome = "unknown"
    lost = rng.choice(sends)
    _change(history, lambda home, offset, value: [] if value == lost.value else [(offset, value)])
    return "torn transaction"


@mutation
def let_two_transactions_read_each_other(history: History, rng: random.Random) -> str | None:
    whole = [s for s in _read_sends(history) if s.transaction and s.transaction.outcome == "ok"]
    one = _any(rng, whole)
    other = one and _any(rng, [send for send in whole if send.transaction is not one.transaction])
    if one is None or other is None:
        return None
    for send, reader in ((one, other), (other, one)):
        assert reader.transaction is not None
        group = f"mutants of {reader.process}"
        history.clients[group] = Client(group, group=group, read_committed=True)
        history.reading.append(Poll(group, _LATE, {_place(send): [(_offset(send), send.value)]}))
        offsets = {_place(send): _offset(send) + 1}
        history.commits.append(
            Commit(reader.process, 10**6, _LATE, group, offsets, reader.transaction, _LATE, "ok")
        )
    return "G1c"


@mutation
def give_a_partition_to_a_second_owner(history: History, rng: random.Random) -> str | None:
    history.clients["second"] = Client("second", group=GROUP)
    history.reading.append(Turn("second", _LATE, "assigned", [place(0)]))
    return "two owners"


@mutation
def hand_out_a_partition_that_was_given_up(history: History, rng: random.Random) -> str | None:
    process = rng.choice([name for name, client in history.clients.items() if client.group == GROUP])
    history.reading.append(Turn(process, _LATE, "revoked", [place(0)]))
    send = _any(rng, [s for s in _read_sends(history) if _place(s) == place(0)])
    if send is None:
        return None
    history.reading.append(Poll(process, _LATE, {place(0): [(_offset(send), send.value)]}))
    return "foreign poll"


@mutation
def commit_beyond_the_end(history: History, rng: random.Random) -> str | None:
    _observe(history, place(0), 10**6, at=_LATE)
    return "committed too far"


@mutation
def commit_what_was_not_handed_out(history: History, rng: random.Random) -> str | None:
    first: dict[tuple[Place, int], float] = {}
    for poll in _polls(history):
        if history.client(poll.process).group == GROUP:
            for home, records in poll.records.items():
                for offset, _ in records:
                    first.setdefault((home, offset), poll.at)
    begins = {home: min(o for h, o in first if h == home) for home, _ in first}
    chosen = _any(rng, [(home, offset, at) for (home, offset), at in first.items() if offset > begins[home]])
    if chosen is None:
        return None
    home, offset, at = chosen
    _observe(history, home, offset + 1, at=at - 0.5)
    return "committed too far"


@mutation
def show_an_offset_that_nobody_committed(history: History, rng: random.Random) -> str | None:
    if not any(commit.group == GROUP and commit.offsets for commit in history.commits):
        return None
    taken = {commit.offsets.get(place(0)) for commit in history.commits}
    _observe(history, place(0), min(offset for offset in range(10**6) if offset not in taken), at=_LATE)
    return "unknown commit"


@mutation
def show_an_offset_whose_commit_failed(history: History, rng: random.Random) -> str | None:
    found = [
        (commit, home, offset)
        for commit in history.commits
        for home, offset in commit.offsets.items()
        if all(_failed(each) for each in history.commits if _same(each, commit, home))
    ]
    chosen = _any(rng, found)
    if chosen is None:
        return None
    commit, home, offset = chosen
    _observe(history, home, offset, at=_LATE, group=commit.group)
    return "aborted commit"


@mutation
def show_an_offset_before_its_output(history: History, rng: random.Random) -> str | None:
    found = [
        (commit, home, offset, called)
        for commit in history.commits
        if commit.transaction is not None
        and commit.transaction.outcome != "fail"
        and (called := commit.transaction.commit_started) is not None
        for home, offset in commit.offsets.items()
        if sum(_same(each, commit, home) for each in history.commits) == 1
    ]
    chosen = _any(rng, found)
    if chosen is None:
        return None
    commit, home, offset, called = chosen
    _observe(history, home, offset, at=called - 0.5, group=commit.group)
    return "precommitted commit"


@mutation
def lose_a_commit(history: History, rng: random.Random) -> str | None:
    plain = [each for each in history.commits if each.group == GROUP and each.outcome == "ok"]
    found = [
        (home, older.offsets[home])
        for older in plain
        for newer in plain
        for home in older.offsets.keys() & newer.offsets.keys()
        if older.offsets[home] != newer.offsets[home]
        and all(
            each.outcome == "fail" or (each.outcome == "ok" and (each.ended or _LATE) < newer.started)
            for each in history.commits
            if _same(each, older, home)
        )
    ]
    chosen = _any(rng, found)
    if chosen is None:
        return None
    _observe(history, *chosen, at=_LATE)
    return "lost commit"


def _any(rng: random.Random, found: Sequence[T]) -> T | None:
    return rng.choice(found) if found else None


def _polls(history: History) -> list[Poll]:
    return [each for each in history.reading if isinstance(each, Poll)]


def _values(poll: Poll) -> Iterable[tuple[int, str]]:
    return (record for records in poll.records.values() for record in records)


def _seen(history: History) -> defaultdict[tuple[Place, int], list[Poll]]:
    found: defaultdict[tuple[Place, int], list[Poll]] = defaultdict(list)
    for poll in _polls(history):
        for home, records in poll.records.items():
            for offset, _ in records:
                found[home, offset].append(poll)
    return found


def _offsets(history: History) -> defaultdict[Place, set[int]]:
    found: defaultdict[Place, set[int]] = defaultdict(set)
    for home, offset in _seen(history):
        found[home].add(offset)
    return found


def _acked(history: History) -> list[Send]:
    """Records of idempotent producers that know their offset."""
    return [s for s in history.sends if s.offset is not None and history.client(s.process).idempotent]


def _read_sends(history: History) -> list[Send]:
    """Those of them that readers of committed records have read."""
    read = {
        value
        for poll in _polls(history)
        if history.client(poll.process).read_committed
        for _, value in _values(poll)
    }
    return [send for send in _acked(history) if send.value in read]


def _place(send: Send) -> Place:
    assert send.place is not None
    return send.place


def _offset(send: Send) -> int:
    assert send.offset is not None
    return send.offset


def _set(poll: Poll, home: Place, records: Sequence[tuple[int, str]]) -> None:
    poll.records = {**poll.records, home: records}


def _change(history: History, change: Callable[[Place, int, str], list[tuple[int, str]]]) -> None:
    """Change every record that was read, wherever it was."""
    for poll in _polls(history):
        for home, records in poll.records.items():
            _set(poll, home, [new for offset, value in records for new in change(home, offset, value)])


def _swap(history: History, one: Send, other: Send) -> None:
    values = {one.value: other.value, other.value: one.value}
    _change(history, lambda home, offset, value: [(offset, values.get(value, value))])


def _poll(history: History, home: Place, offset: int, value: str, *, at: float) -> None:
    """Let one more reader of committed records read one record."""
    history.clients["mutant"] = Client("mutant", read_committed=True)
    history.reading.append(Poll("mutant", at, {home: [(offset, value)]}))


def _observe(history: History, home: Place, offset: int, *, at: float, group: str = GROUP) -> None:
    history.observations.append(Observation(at, at, group, {home: offset}))


def _same(one: Commit, other: Commit, home: Place) -> bool:
    return one.group == other.group and one.offsets.get(home) == other.offsets[home]


def _failed(commit: Commit) -> bool:
    return commit.outcome == "fail" or (
        commit.transaction is not None and commit.transaction.outcome == "fail"
    )
