"""The parts of the soaks write down what happens: a soak that cannot fail proves nothing."""

from __future__ import annotations

import os
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from harness.checker.history import Place
from harness.checker.loader import load
from harness.checker.memory import MemoryLog
from harness.checker.report import check
from harness.programs import start_script
from harness.real_kafka.logs import LoggedRecord, PartitionLog, parse_dump
from harness.soak.churn import ClientProcess, handed_out, not_committed, owners_now
from harness.soak.recorded import RecordedProducer, write_logs
from harness.waiting import wait_until
from kclient.errors import KafkaTimeoutError, RecordTooLargeError
from kclient.producer import RecordMetadata

P = Place("t", 0)


class Answering:
    """A producer that answers each record at once: with an offset or an error, or in two ways."""

    def __init__(self, told: int | Exception, said: int | Exception | None = None) -> None:
        self._told = told
        self._said = told if said is None else said

    def send(
        self, topic: str, value: bytes, *, key: bytes | None, partition: int, on_delivery: Any = None
    ) -> Future[RecordMetadata]:
        future: Future[RecordMetadata] = Future()
        if on_delivery is not None:
            error = self._told if isinstance(self._told, Exception) else None
            on_delivery(self._metadata(self._told), error)
        if isinstance(self._said, Exception):
            future.set_exception(self._said)
        else:
            future.set_result(self._metadata(self._said))
        return future

    def _metadata(self, answer: int | Exception) -> RecordMetadata:
        offset = -1 if isinstance(answer, Exception) else answer
        return RecordMetadata("t", 0, offset, -1, -1, -1)


UNKNOWN = KafkaTimeoutError("no answer came, so they may have been written")
REFUSED = RecordTooLargeError("too large")


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(
    ("answer", "outcome"), [(7, "ok"), (-1, "ok"), (UNKNOWN, "unknown"), (REFUSED, "fail")]
)
def test_what_became_of_a_record_is_written_down(alone: bool, answer: int | Exception, outcome: str) -> None:
    log = MemoryLog()
    recorded = RecordedProducer(log.producer("p"))
    producer: Any = Answering(answer)
    if alone:
        recorded.send_alone(producer, "t", b"a", partition=0, timeout_s=1.0)
    else:
        recorded.send(producer, "t", b"a", partition=0)
    recorded.closed()
    [send] = log.history().sends
    assert (send.place, send.value, send.outcome, send.told) == (P, "a", outcome, 1)
    assert send.offset == (7 if answer == 7 else None)
    assert recorded.acked == (outcome == "ok")
    assert recorded.problems == []


@pytest.mark.parametrize(("told", "said"), [(7, 8), (7, UNKNOWN), (UNKNOWN, 7), (UNKNOWN, REFUSED)])
def test_a_callback_and_a_future_that_do_not_agree_are_found(
    told: int | Exception, said: int | Exception
) -> None:
    recorded = RecordedProducer(MemoryLog().producer("p"))
    producer: Any = Answering(told, said)
    recorded.send(producer, "t", b"a", partition=0)
    recorded.look_at_futures()
    [problem] = recorded.problems
    assert problem.startswith("unaccounted: record 1 of p: its future says")


class Silent:
    """A producer that never answers."""

    def send(self, *_: object, **__: object) -> Future[RecordMetadata]:
        return Future()


def test_records_without_an_outcome_are_found_when_their_producer_is_closed() -> None:
    log = MemoryLog()
    recorded = RecordedProducer(log.producer("p"))
    producer: Any = Silent()
    recorded.send(producer, "t", b"a", partition=0)
    recorded.look_at_futures()
    assert recorded.problems == []
    recorded.closed()
    assert recorded.problems == ["unaccounted: the future of record 1 of p has no outcome"]
    assert log.kinds() == ["unaccounted"]


def test_a_record_that_the_producer_does_not_take_has_failed() -> None:
    class Refusing:
        def send(self, *_: object, **__: object) -> None:
            raise REFUSED

    log = MemoryLog()
    recorded = RecordedProducer(log.producer("p"))
    producer: Any = Refusing()
    recorded.send(producer, "t", b"a", partition=0)
    recorded.closed()
    assert [send.outcome for send in log.history().sends] == ["fail"]
    assert log.kinds() == []


def test_a_history_tells_who_has_what_and_how_far_a_group_has_come() -> None:
    log = MemoryLog()
    first, second = (log.consumer(name, group="g") for name in ("m", "n"))
    q = Place("t", 1)
    first.assigned([P, q])
    first.polled({P: [(5, b"a"), (6, b"b")]})
    assert owners_now(log.history()) == {P: ["m"], q: ["m"]}
    second.assigned([q])
    assert owners_now(log.history()) == {P: ["m"], q: ["m", "n"]}
    log.ended("m")
    second.polled({q: [(0, b"c")]})
    assert owners_now(log.history()) == {q: ["n"]}
    assert handed_out(log.history()) == {P: 7, q: 1}
    assert handed_out(log.history(), {"m"}) == {P: 7}


@pytest.mark.parametrize("committed", [{}, {P: 6}])
def test_what_a_member_gave_up_without_its_offset_is_found(committed: dict[Place, int]) -> None:
    log = MemoryLog()
    member = log.consumer("m", group="g", auto_commit=True)
    member.assigned([P])
    member.polled({P: [(5, b"a"), (6, b"b")]})
    log.observed("g", log.now(), {P: 4})
    member.revoked([P])
    log.observed("g", log.now(), committed)
    (found,) = not_committed(log.history(), {"m"})
    assert found.startswith("not committed: m gave up t-0")
    assert "@7" in found
    assert not_committed(log.history(), {"n"}) == []


@pytest.mark.parametrize("goes", ["committed", "lost", "ended"])
def test_who_commits_is_lost_or_killed_owes_nothing(goes: str) -> None:
    log = MemoryLog()
    member = log.consumer("m", group="g", auto_commit=True)
    member.assigned([P])
    member.polled({P: [(5, b"a"), (6, b"b")]})
    if goes == "ended":
        log.ended("m")
    else:
        (member.lost if goes == "lost" else member.revoked)([P])
    log.observed("g", log.now(), {P: 7 if goes == "committed" else 5})
    assert not_committed(log.history(), {"m"}) == []


@pytest.mark.heavy
def test_all_clients_of_a_process_that_is_killed_have_ended(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, threading\n"
        "from pathlib import Path\n"
        "from harness.checker.log import HistoryLog\n"
        "log = HistoryLog.at(Path(sys.argv[-1]))\n"
        "log.producer('p')\n"
        "log.consumer('c')\n"
        "threading.Event().wait()\n"
    )
    log = MemoryLog()
    process = ClientProcess("both", tmp_path, program, [], log)
    try:
        wait_until(lambda: len(load(process.path).clients) == 2, 30, "the clients of the process")
    finally:
        process.kill()
    assert log.history().ended.keys() == {"p", "c"}


def test_a_member_ends_with_the_process_that_began_it(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from harness.checker.log import HistoryLog\n"
        "from harness.soak.churn import MemberProcess\n"
        "log = HistoryLog.at(Path(sys.argv[1]) / 'log.jsonl')\n"
        "member = MemberProcess('m', Path(sys.argv[1]), '127.0.0.1:1', 't', 'g', log, commit='auto')\n"
        "print(member._process.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with start_script(program, str(tmp_path)) as parent:
        assert parent.stdout is not None
        member = int(parent.stdout.readline())
        wait_until(lambda: load(tmp_path / "m.jsonl").clients, 30, "the member")
        parent.kill()
    wait_until(lambda: not is_running(member), 30, "the end of the member")


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_logs_on_disk_are_held_against_what_producers_were_told() -> None:
    log = MemoryLog()
    producer = log.producer("p")
    for offset, value in enumerate((b"a", b"b")):
        producer.acked(producer.send("t", value, 0), 0, offset)
    on_disk = PartitionLog("t", 0, "id", [LoggedRecord(0, b"a", "batch")])
    write_logs(log, [on_disk], [P])
    assert log.kinds() == ["unseen"]
    [anomaly] = check(log.history())
    assert "the logs on disk had read t-0 (id), t-0 to the end" in str(anomaly)


def test_a_partition_without_any_log_on_disk_has_lost_what_was_acknowledged() -> None:
    log = MemoryLog()
    producer = log.producer("p")
    producer.acked(producer.send("t", b"a", 0), 0, 0)
    write_logs(log, [], [P])
    assert log.kinds() == ["unseen"]


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
    assert len(zero.damage) == 1
    assert one.damage == []
    assert [each.value for each in one.records] == [b"p:2"]
