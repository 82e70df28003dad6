"""Rules for records that were sent: each has one outcome, and what it says is true."""

from __future__ import annotations

from collections.abc import Iterator

from harness.checker.history import Anomaly, Evidence, Place, Send
from harness.checker.index import Index, Log, done_at, is_certain


def check_writes(index: Index) -> Iterator[Anomaly]:
    """Find what is wrong with records that were sent.

    - unaccounted: its outcome was told twice; or never, although its producer ended in good order;
    - lost write: acknowledged (and committed) below the highest offset that was read, and read by nobody;
    - unseen: a subscriber read to the end after it was acknowledged (and committed), and was not handed it;
    - inconsistent offset: it is not where it was acknowledged, or a place holds two records;
    - duplicate: it is in a log twice, and its producer is idempotent;
    - written after all: it failed for certain, and was read;
    - unknown value: it was read where nobody sent it;
    - nonmonotonic send: those of an idempotent producer are not in the order of their sending.
    """
    yield from index.history.noticed
    for send in index.history.sends:
        if send.told > 1 or (send.told == 0 and send.process in index.history.closed):
            yield Anomaly("unaccounted", f"the outcome of a record was told {send.told} times", (send,))
    for place, sends in index.sends.items():
        yield from _check_places(index, place, sends)
        yield from _check_order(index, place, sends)
    for log in index.logs.values():
        yield from _check_log(index, log)


def _check_places(index: Index, place: Place, sends: dict[str, Send]) -> Iterator[Anomaly]:
    """Hold what producers were told against what was read."""
    log = index.log_of(place)
    highest = -1 if log is None else log.highest
    logs = index.homes.get(place, [])
    acked: dict[int, Send] = {}
    for send in sends.values():
        offset = send.offset
        if offset is not None and len(logs) < 2 and acked.setdefault(offset, send) is not send:
            yield Anomaly(
                "inconsistent offset",
                f"two records were acknowledged at {place}@{offset}",
                (acked[offset], send),
            )
        held = [each for each in logs if send.value in each.offsets]
        if held:
            if offset is not None and not any(each.holds(send.value, offset) for each in held):
                where = tuple(index.read_of(each, each.offsets[send.value], send.value) for each in held)
                yield Anomaly(
                    "inconsistent offset", "a record is not where it was acknowledged", (send, *where)
                )
            if send.outcome == "fail":
                read = index.read_of(held[0], held[0].offsets[send.value], send.value)
                yield Anomaly("written after all", "a record failed for certain and was read", (send, read))
        elif is_certain(send) and offset is not None and log is not None and offset <= highest:
            read = index.read(log, offset if offset in log.values else highest)
            what = f"nobody read a record that was acknowledged at {place}@{offset}"
            yield Anomaly("lost write", what, (*_sent(send), read))
            continue
        if is_certain(send):
            yield from _check_finishes(index, place, send)


def _check_finishes(index: Index, place: Place, send: Send) -> Iterator[Anomaly]:
    for finish in index.finishes.get(place, ()):
        if done_at(send) < finish.at and send.value not in index.read_by[finish.subscriber][place]:
            what = (
                f"{finish.subscriber} read {place} to the end, but for a record that was acknowledged before"
            )
            yield Anomaly("unseen", what, (*_sent(send), finish))


def _check_order(index: Index, place: Place, sends: dict[str, Send]) -> Iterator[Anomaly]:
    """Hold the order of every producer's records against the order in which it sent them."""
    logs: list[Log | None] = [*index.homes.get(place, [])] or [None]
    for log in logs:
        last: dict[str, tuple[int, Send]] = {}
        for send in sends.values():
            offset = send.offset if len(logs) == 1 else None
            if offset is None and log is not None:
                offset = log.offsets.get(send.value)
            if offset is None:
                continue
            previous, before = last.get(send.process, (-1, send))
            last[send.process] = offset, send
            if offset < previous and index.history.client(send.process).idempotent:
                what = f"at {place}@{offset} is a record that was sent after the one @{previous}"
                yield Anomaly("nonmonotonic send", what, (before, send, *_proof(index, log, before, send)))


def _proof(index: Index, log: Log | None, *sends: Send) -> list[Evidence]:
    """Reads of those records whose producer did not know their offset."""
    if log is None:
        return []
    return [
        index.read_of(log, log.offsets[send.value], send.value)
        for send in sends
        if send.offset is None and send.value in log.offsets
    ]


def _check_log(index: Index, log: Log) -> Iterator[Anomaly]:
    """Look at what was read of a log."""
    for offset, value, poll in log.others:
        both = index.read(log, offset), index.read_of(log, offset, value)
        what = f"{poll.process} was handed another record at {log.place}@{offset} than others"
        yield Anomaly("inconsistent offset", what, both)
    sends = index.sends.get(log.place.home, {})
    for value in log.offsets.keys() - sends.keys():
        elsewhere = index.sends_of(log.place.topic, value)
        read = index.read_of(log, log.offsets[value], value)
        what = f"nobody sent {value!r} to {log.place.home}, where it was read"
        yield Anomaly("unknown value", what, (read, *elsewhere))
    for value, offsets in log.copies.items():
        send = sends.get(value)
        if send is not None and index.history.client(send.process).idempotent:
            reads = [index.read_of(log, offset, value) for offset in [log.offsets[value], *offsets]]
            yield Anomaly("duplicate", f"{value!r} is {len(reads)} times in {log.place}", (send, *reads))


def _sent(send: Send) -> tuple[Evidence, ...]:
    """A send and the transaction that it is in."""
    return (send,) if send.transaction is None else (send, send.transaction)
