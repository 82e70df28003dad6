"""Rules that hold for a topic after faults, in the words of Jepsen's checker for Kafka.

Every function returns what is wrong, as sentences; an empty list is a pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.real_kafka.logs import PartitionLog
from harness.soak.account import Account
from harness.soak.load import Load
from kclient.consumer import ConsumerRecord

Records = Sequence[ConsumerRecord[bytes, bytes]]
UNKNOWN = "may have been written"
"""Words in the error of a record that may be in the log; any other error says that the record is not there."""


def check_log(loads: Iterable[Load], records: Records) -> list[str]:
    """Hold everything in the topic (`records`, as read from beginning to end) against what was sent to it.

    - unaccounted: each record that was sent was acknowledged or failed, once;
    - lost write and inconsistent offset: where a record was acknowledged to be, it is;
    - duplicate: no record is there twice;
    - unknown: nothing is there that was not sent;
    - order: the records of a key are in the order in which they were sent.
    """
    places: dict[tuple[int, int], bytes | None] = {}
    times: dict[bytes | None, int] = {}
    by_key: dict[bytes | None, list[bytes | None]] = {}
    problems: list[str] = []
    for record in records:
        place = record.partition, record.offset
        if place in places:
            problems.append(
                f"inconsistent offset: {place} was read with {places[place]!r} and {record.value!r}"
            )
        places[place] = record.value
        times[record.value] = times.get(record.value, 0) + 1
        by_key.setdefault(record.key, []).append(record.value)
    problems += [
        f"duplicate: {value!r} is there {count} times" for value, count in times.items() if count > 1
    ]
    unknown = set(times)
    for load in loads:
        unknown -= set(load.sent)
        problems += _check_load(load, places, times, by_key)
    problems += [f"unknown: {value!r} was never sent" for value in sorted(unknown, key=repr)]
    return problems


def _check_load(
    load: Load,
    places: dict[tuple[int, int], bytes | None],
    times: dict[bytes | None, int],
    by_key: dict[bytes | None, list[bytes | None]],
) -> list[str]:
    problems = [
        f"unaccounted: {value!r} has not exactly one outcome"
        for value in load.sent
        if (value in load.acked) + (value in load.failed) != 1
    ]
    for value, metadata in load.acked.items():
        place = metadata.partition, metadata.offset
        if value not in times:
            problems.append(f"lost write: {value!r} was acknowledged at {place}")
        elif places.get(place) != value:
            problems.append(
                f"inconsistent offset: {value!r} was acknowledged at {place}: {places.get(place)!r}"
            )
    order: dict[bytes, dict[bytes | None, int]] = {}
    for number, (value, key) in enumerate(load.sent.items()):
        order.setdefault(key, {})[value] = number
    for key, numbers in order.items():
        last = -1
        for found in by_key.get(key, []):
            number = numbers.get(found, last)
            if number < last:
                problems.append(f"order: {found!r} comes too late among those of key {key!r}")
            last = max(last, number)
    return problems


def check_reader(name: str, records: Records) -> list[str]:
    """Check what one consumer was handed, in the order of its polls, while it owned its partitions without a break.

    - poll skip and nonmonotonic poll: the offsets of a partition follow each other.
    """
    problems: list[str] = []
    following: dict[int, int] = {}
    for record in records:
        expected = following.get(record.partition, record.offset)
        if record.offset != expected:
            kind = "poll skip" if record.offset > expected else "nonmonotonic poll"
            problems.append(
                f"{kind}: {name} was handed {record.partition}@{record.offset} instead of @{expected}"
            )
        following[record.partition] = record.offset + 1
    return problems


def check_accounts(accounts: Iterable[Account], logs: Iterable[PartitionLog]) -> list[str]:
    """Hold what producers were told against all logs that their topics had, one for each time a topic was created.

    - unaccounted: the outcome of each record was told, once;
    - lost write and inconsistent offset: where a record was acknowledged to be, it is;
    - written after all: what failed for good is nowhere;
    - duplicate: no record is twice in a log;
    - order: those of a producer are in the order in which they were sent;
    - unknown and damaged: nothing else is there.
    """
    problems: list[str] = []
    by_name = {account.name: account for account in accounts}
    found = {name: bytearray(len(account)) for name, account in by_name.items()}
    for log in logs:
        problems += _check_partition(log, by_name, found)
    for name, account in by_name.items():
        for number, seen in enumerate(found[name]):
            problems += _check_outcome(account, number, seen)
    return problems


_SEEN = 1
_IN_ITS_PLACE = 2


def _check_partition(
    log: PartitionLog, accounts: dict[str, Account], found: dict[str, bytearray]
) -> list[str]:
    """Look at one log; marks in `found` which records are there."""
    where = f"{log.topic}-{log.partition} ({log.topic_id})"
    problems = [f"damaged: {where}: {each}" for each in log.damage]
    first: dict[bytes, str] = {}
    last: dict[str, int] = {}
    for record in log.records:
        here = f"{record.value!r} at {where}@{record.offset} ({record.batch})"
        name, _, digits = record.value.decode(errors="replace").rpartition(":")
        account = accounts.get(name)
        if account is None or not digits.isdecimal() or int(digits) >= len(account):
            problems.append(f"unknown: {here}")
            continue
        number = int(digits)
        if account.place(number) != (log.topic, log.partition):
            problems.append(f"unknown: {here} was sent elsewhere")
            continue
        if record.value in first:
            problems.append(f"duplicate: {here}, and at {first[record.value]}")
        elif number < last.get(name, -1):
            problems.append(f"order: {here} comes after number {last[name]}")
        first.setdefault(record.value, f"@{record.offset} ({record.batch})")
        last[name] = max(number, last.get(name, -1))
        found[name][number] |= _SEEN
        if account.offset(number) in {-1, record.offset}:
            found[name][number] |= _IN_ITS_PLACE
    return problems


def _check_outcome(account: Account, number: int, seen: int) -> list[str]:
    what = f"{account.value(number)!r} for {'-'.join(map(str, account.place(number)))}"
    if account.told(number) != 1:
        return [f"unaccounted: {what} was told {account.told(number)} times"]
    offset = account.offset(number)
    if offset is None:
        error = account.errors[number]
        return [f"written after all: {what}: {error}"] if seen and UNKNOWN not in error else []
    if not seen:
        return [f"lost write: {what} was acknowledged @{offset}"]
    if not seen & _IN_ITS_PLACE:
        return [f"inconsistent offset: {what} was acknowledged @{offset}"]
    return []
