"""The file of a history: written by threads and processes at the same time, and readable after a kill."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.checker.history import Place, Poll, Turn
from harness.checker.loader import HistoryError, load, load_lines
from harness.checker.log import HistoryLog
from harness.checker.memory import MemoryLog
from harness.checker.report import check, report
from harness.programs import environment, start_script
from harness.waiting import wait_until

P = Place("t", 0)
_WRITER = """
import itertools, sys
from pathlib import Path
from harness.checker.log import HistoryLog

producer = HistoryLog.at(Path(sys.argv[1])).producer(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for number in itertools.count():
    producer.send("t", b"%s:%d" % (sys.argv[2].encode(), number), 0)
"""


def test_everything_that_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    log = HistoryLog.at(path)
    producer = log.producer("p", idempotent=False)
    consumer = log.consumer("c", group="g", read_committed=True, auto_commit=True)
    transaction = producer.begun()
    first, second = producer.send("t", b"\xff\n\0", 0, transaction), producer.send("t", b"b")
    producer.acked(first, 0, -1)
    producer.failed(second, ValueError("no"), "unknown")
    commit = producer.commit("g", {P: 7}, transaction)
    producer.committed(commit, "unknown")
    producer.ending(transaction, commit=True)
    producer.finished(transaction, "ok")
    consumer.assigned([P])
    consumer.polled({P._replace(topic_id="id"): [(3, None), (4, b"\xff\n\0")]})
    log.at_end("g", [P], at=log.now())
    log.observed("g", log.now(), {P: 7})
    producer.closed()
    log.ended("c")

    history = load(path)
    p, c = history.clients["p"], history.clients["c"]
    assert (p.idempotent, p.subscriber, c.subscriber, c.read_committed, c.auto_commit) == (
        False,
        "p",
        "g",
        True,
        True,
    )
    [one] = history.transactions
    assert one.outcome == "ok"
    assert one.commit_started is not None
    assert one.ended is not None
    assert one.started < one.commit_started < one.ended
    sends = [(s.partition, s.offset, s.outcome, s.error, s.told, s.transaction) for s in history.sends]
    assert sends == [(0, None, "ok", "", 1, one), (None, None, "unknown", "no", 1, None)]
    assert [(c.group, c.offsets, c.transaction, c.outcome) for c in history.commits] == [
        ("g", {P: 7}, one, "unknown")
    ]
    turn, poll = history.reading
    assert isinstance(turn, Turn)
    assert isinstance(poll, Poll)
    assert (turn.kind, turn.places) == ("assigned", [P])
    assert poll.records == {Place("t", 0, "id"): [(3, "(null)"), (4, history.sends[0].value)]}
    assert [(o.group, o.offsets) for o in history.observations] == [("g", {P: 7})]
    assert [(f.subscriber, f.places) for f in history.finishes] == [("g", [P])]
    assert (history.closed, set(history.ended)) == ({"p"}, {"c"})


def test_threads_share_a_log(tmp_path: Path) -> None:
    log = HistoryLog.at(tmp_path / "history.jsonl")
    producer = log.producer("p")

    def send(name: bytes) -> None:
        for number in range(500):
            producer.acked(producer.send("t", b"%s:%d" % (name, number), 0), 0, -1)

    threads = [threading.Thread(target=send, args=[name]) for name in (b"a", b"b", b"c", b"d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    history = load(tmp_path / "history.jsonl")
    assert len({send.number for send in history.sends}) == 2000
    assert all(send.outcome == "ok" for send in history.sends)


@pytest.mark.heavy
def test_processes_share_a_file_and_a_kill_costs_the_last_line_at_most(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    names = ("a", "b", "c")
    writers = [start_script(_WRITER, str(path), name) for name in names]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        wait_until(lambda: path.stat().st_size > 300_000, 60, "lines of all writers")
    finally:
        for writer in writers:
            with writer:
                writer.kill()
    history = load(path)
    assert set(history.clients) == set(names)
    for name in names:
        numbers = [send.number for send in history.sends if send.process == name]
        assert numbers == list(range(1, len(numbers) + 1))


def torn(*lines: bytes) -> list[bytes]:
    """Lines of a process that was killed; each begins with its line break."""
    return b"".join(lines).splitlines(keepends=True)


def test_a_line_that_a_kill_cut_off_is_left_out_though_others_write_on() -> None:
    killed, other = MemoryLog(), MemoryLog()
    killed.producer("p").send("t", b"a", 0)
    other.producer("q").send("t", b"b", 0)
    for cut in range(1, len(killed.lines[-1])):
        history = load_lines(torn(killed.lines[0], killed.lines[1][:-cut], *other.lines))
        assert [send.value for send in history.sends] == ["b"]


def test_more_lines_that_cannot_be_read_than_clients_were_killed_are_refused() -> None:
    log = MemoryLog()
    producer = log.producer("p")
    for _ in range(2):
        producer.send("t", b"a", 0)
    lines = torn(log.lines[0], log.lines[1][:-3], log.lines[2][:-3])
    with pytest.raises(HistoryError, match="line:3, line:4 cannot be read"):
        load_lines(lines)
    producer.closed()
    with pytest.raises(HistoryError, match="line:3 cannot be read, and 0 clients"):
        load_lines(torn(log.lines[0], log.lines[1][:-3], log.lines[3]))


@pytest.mark.parametrize(
    "line",
    [
        b'["acked", "p", 1.0, 7, 0, 0]',
        b'["guessed", "p", 1.0]',
        b'["send", "p", 1.0, 1, "t", 0]',
        b'["opened", "p", 1.0, {"colour": "red"}]',
    ],
    ids=["without its send", "unknown event", "too short", "unknown setting"],
)
def test_a_line_that_says_nothing_possible_is_named(line: bytes) -> None:
    with pytest.raises(HistoryError, match="line:1: "):
        load_lines([line])


def test_a_name_is_for_one_client() -> None:
    log = MemoryLog()
    log.producer("p")
    log.consumer("p")
    with pytest.raises(HistoryError, match="a second client is called p"):
        log.history()


def test_files_that_belong_together_are_one_history(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("sends", "reads")]
    producer, consumer = HistoryLog.at(paths[0]).producer("p"), HistoryLog.at(paths[1]).consumer("c")
    producer.acked(producer.send("t", b"a", 0), 0, 0)
    consumer.polled({P: [(0, b"a")]})
    assert [each.kind for each in check(load(*paths))] == []
    assert [each.kind for each in check(load(paths[1]))] == ["unknown value"]


def test_the_report_shows_the_first_of_every_kind_with_what_proves_it() -> None:
    log = MemoryLog()
    consumer = log.consumer("c")
    consumer.polled({P: [(offset, b"v%d" % offset) for offset in range(20)]})
    consumer.polled({P: [(30, b"v30")]})
    history = log.history()
    text = report(history, check(history))
    assert text.startswith("2 operations of 1 clients: 22 anomalies\n")
    assert "\nunknown value: 21\n" in text
    assert text.count("- unknown value: nobody sent") == 8
    assert "- poll skip: c was handed t-0@30 next after @19\n    c read 'v19' at t-0@19 at 2.000000\n" in text


@pytest.mark.heavy
def test_the_command_judges_files(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    consumer = HistoryLog.at(path).consumer("c")
    command = [sys.executable, "-m", "harness.checker", str(path)]
    clean = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert (clean.returncode, clean.stdout) == (0, "0 operations of 1 clients: 0 anomalies\n")
    consumer.polled({P: [(0, b"a")]})
    found = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert "unknown value: nobody sent 'a' to t-0" in found.stdout
