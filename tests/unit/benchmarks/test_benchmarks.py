"""The benchmark's bookkeeping: what is run, what is counted, and when a target counts as met."""

from __future__ import annotations

import json
import mmap
import os
import threading
import time
from io import StringIO
from pathlib import Path
from typing import Self

import pytest
from rich.console import Console

from benchmarks import comparison, memory, output, profile, report, shapes, targets, watch
from benchmarks.case import Case, Job, Measured, UnavailableError
from benchmarks.clients import CLIENTS, OPERATIONS
from benchmarks.comparison import Comparison, Line
from benchmarks.plan import Stage, plan, records_for


def line(client: str, operation: str, *seconds: float, case: Case | None = None, **more: float) -> Line:
    """Runs of a million records that took so many seconds and as much CPU."""
    runs = tuple(Measured(1_000_000, one, one, 50_000_000, **more) for one in seconds)
    return Line(case or Case(), operation, client, runs)


def test_what_is_measured_by_default_holds_every_case_with_a_target() -> None:
    stages = list(plan(OPERATIONS, [100, 1000], ["none"], [1], [16_384, 131_072]))
    planned = {(operation, stage.case.size) for stage in stages for operation in stage.operations}
    assert {(target.operation, target.size) for target in targets.TARGETS} <= planned
    assert {stage.case.batch_bytes for stage in stages if stage.operations == ("produce",)} == {
        16_384,
        131_072,
    }


def test_reading_is_planned_once_for_each_codec_and_latency_once_in_all() -> None:
    stages = list(plan(OPERATIONS, [100, 1000], ["none", "lz4"], [1, 12], [16_384, 131_072]))
    assert sum("consume" in stage.operations for stage in stages) == 8
    assert sum("produce" in stage.operations for stage in stages) == 16
    assert [stage for stage in stages if "busy" in stage.operations] == [
        Stage(Case(), ("round_trip", "busy"))
    ]


def test_operations_that_were_not_asked_for_are_not_planned() -> None:
    assert list(plan(["arrow"], [100], ["none"], [1], [1])) == [Stage(Case(batch_bytes=1), ("arrow",))]


@pytest.mark.parametrize(
    ("operation", "size", "wanted", "part", "records"),
    [
        ("produce", 100, None, 1.0, 1_500_000),
        ("produce", 1000, None, 1.0, 300_000),
        ("consume", 1000, 5000, 0.2, 1000),
        ("round_trip", 100, None, 1.0, 3000),
        ("round_trip", 100, 10, 1.0, 10),
        ("busy", 100, None, 0.2, 100_000),
        ("produce", 100, 1, 0.2, 1),
    ],
)
def test_a_run_takes_as_many_records_as_keep_it_at_seconds(
    operation: str, size: int, wanted: int | None, part: float, records: int
) -> None:
    assert records_for(operation, Case(size), wanted, part) == records


def test_a_ratio_is_that_of_the_medians_and_its_noise_that_of_the_runs_furthest_apart() -> None:
    lines = [line("kclient", "produce", 1.0, 2.0, 4.0), line("confluent", "produce", 3.0, 4.0, 8.0)]
    found = {verdict.target.figure: verdict for verdict in targets.verdicts(lines)}
    assert found["records/s"].reached == pytest.approx(2.0)
    assert found["records/s"].noise == pytest.approx((0.75, 8.0))
    assert found["records/s"].met
    assert found["CPU/record"].reached == pytest.approx(0.5)
    assert not found["CPU/record"].met  # at most 0.4


def test_columns_are_held_against_the_objects_that_the_peers_read() -> None:
    lines = [line("kclient", "columns", 1.0), line("confluent", "consume", 5.0), line("java", "consume", 3.0)]
    found = {(verdict.target.peer, verdict.target.figure): verdict for verdict in targets.verdicts(lines)}
    assert found["confluent", "records/s"].met
    assert not found["java", "records/s"].met
    assert found["confluent", "CPU/record"].reached == pytest.approx(0.2)


def test_iteration_is_held_against_our_own_poll_too() -> None:
    written = Case(partitions=shapes.PARTITIONS)
    lines = [line("kclient", "iterate", 10.0, case=written), line("kclient", "poll", 6.0, case=written)]
    (found,) = [verdict for verdict in targets.verdicts(lines) if verdict.target.peer == "kclient"]
    assert (found.target.against, found.reached, found.met) == ("kclient poll", pytest.approx(0.6), True)


def test_a_latency_without_a_peer_is_held_against_milliseconds() -> None:
    (p50, p99) = targets.verdicts([line("kclient", "busy", 5.0, p50_ms=2.5, p99_ms=31.0)])
    assert (p50.reached, p50.met) == (2.5, True)
    assert (p99.reached, p99.met) == (31.0, False)


@pytest.mark.parametrize("case", [Case(codec="lz4"), Case(partitions=12), Case(size=50)])
def test_cases_beside_the_targets_are_not_held_to_them(case: Case) -> None:
    lines = [line("kclient", "produce", 1.0, case=case), line("confluent", "produce", 1.0, case=case)]
    assert list(targets.verdicts(lines)) == []


def test_the_report_shows_every_line_and_target_and_keeps_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        line("kclient", "produce", 1.0, 2.0, 1.0),
        line("confluent", "produce", 4.0, 4.0, 4.0),
        line("kclient", "busy", 5.0, p50_ms=2.5, p99_ms=31.0),
    ]
    printed = StringIO()
    console = Console(width=160, file=printed)
    console.print(report.figures(lines).table())
    console.print(report.held_to(list(targets.verdicts(lines))).table())
    text = printed.getvalue()
    assert "4.00x" in text
    assert "500 - 1,000" in text
    assert ">= 1.5x" in text
    assert "NOT met" in text
    assert "..." not in text
    assert "…" not in text

    monkeypatch.setattr(output, "RESULTS", tmp_path / "results")
    path = report.write(lines, {"kafka": "4.3.1"})
    assert (
        path.with_suffix(".md").read_text(encoding="utf-8").count("| produce 100 B, none, 1 p, 16 KiB |") == 3
    )
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["kafka"] == "4.3.1"
    assert [run["seconds"] for run in written["lines"][0]["runs"]] == [1.0, 2.0, 1.0]
    assert [target["met"] for target in written["targets"]] == [True, True, True, False]


def test_reading_refuses_values_that_nobody_wrote_and_bytes_that_are_missing() -> None:
    job = Job("consume", "", "t", 4, Case(size=8))
    known = job.case.values()[0]
    with pytest.raises(ValueError, match="nobody wrote"):
        watch.Reading.of(job).take(2, 16, b"somebody")
    short = watch.Reading.of(job)
    short.take(2, 16, known)
    short.take(2, 15, known)
    with pytest.raises(ValueError, match="31 bytes"):
        short.measured(job)
    full = watch.Reading.of(job)
    full.take(2, 16, known)
    assert not full.done
    full.take(2, 16, known)
    assert full.done
    assert full.measured(job).records == 2  # the clock starts with the first ones


def test_the_percentiles_are_those_of_the_sorted_latencies() -> None:
    taken = watch.with_latencies(
        100, watch.Stopwatch(1.0, 1.0), [number / 1000 for number in range(100, 0, -1)]
    )
    assert (taken.p50_ms, taken.p99_ms) == pytest.approx((50.0, 99.0))


def test_a_busy_sender_takes_its_turns_at_the_rate_and_never_early() -> None:
    with watch.Stopwatch() as stopwatch:
        assert list(watch.busy_turns(1000)) == list(range(1000))
    assert stopwatch.seconds >= 999 / watch.BUSY_RECORDS_PER_S


def test_the_peak_of_this_process_is_at_least_what_it_has_now() -> None:
    kept = bytearray(b"x" * 10_000_000)
    assert watch.peak_rss_bytes() > len(kept)


class _Admin:
    def __init__(self, **_: object) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...
    def create_topics(self, _topics: object) -> None: ...
    def delete_topics(self, _names: object) -> None: ...


def test_a_client_that_warms_up_does_so_before_the_records_that_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[int, int]] = []

    def measure(_client: object, job: Job) -> Measured:
        asked.append((job.records, job.warm_up))
        return Measured(job.records, 1.0, 1.0)

    monkeypatch.setattr(comparison, "measure", measure)
    monkeypatch.setattr(comparison, "KafkaAdminClient", _Admin)
    monkeypatch.setattr(comparison, "make_present", lambda: 0)
    compared = Comparison("", ["java", "java_warm"], 1, lambda _text: None, 10)
    assert [line.client for line in compared.of(Stage(Case(), ("produce",)))] == ["java", "java_warm"]
    assert asked == [(10, 0), (10, 10)]


def test_clients_take_turns_and_one_that_is_not_there_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def measure(client: object, job: Job) -> Measured:
        name = next(name for name, one in CLIENTS.items() if one is client)
        asked.append(name)
        if name == "aiokafka":
            raise UnavailableError("not installed")
        if name == "java" and asked.count("java") == 2:
            raise RuntimeError("broke")
        return Measured(job.records, 1.0, 1.0)

    monkeypatch.setattr(comparison, "measure", measure)
    monkeypatch.setattr(comparison, "KafkaAdminClient", _Admin)
    monkeypatch.setattr(comparison, "make_present", lambda: 0)
    compared = Comparison("", ["confluent", "java", "aiokafka"], 3, lambda _text: None, 10)
    lines = list(compared.of(Stage(Case(), ("produce",))))
    assert asked == ["confluent", "java", "aiokafka", "java", "confluent", "confluent", "java"]
    assert [(one.client, len(one.runs)) for one in lines] == [("confluent", 3), ("java", 2)]
    assert compared.absent == {("produce", "aiokafka"): "not installed"}
    assert len(compared.failed) == 1
    assert "broke" in compared.failed[0]


def test_memory_is_made_present_before_each_run_of_a_rate_and_of_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []

    def measure(_client: object, job: Job) -> Measured:
        done.append(job.operation)
        return Measured(job.records, 1.0, 1.0)

    monkeypatch.setattr(comparison, "measure", measure)
    monkeypatch.setattr(comparison, "KafkaAdminClient", _Admin)
    monkeypatch.setattr(comparison, "make_present", lambda: done.append("memory"))
    compared = Comparison("", ["kclient", "confluent"], 1, lambda _text: None, 10)
    assert len(list(compared.of(Stage(Case(), ("produce",))))) == 2
    assert len(list(compared.of(Stage(Case(), ("round_trip",))))) == 2
    assert done == ["memory", "produce", "memory", "produce", "round_trip", "round_trip"]


def test_memory_that_is_made_present_was_all_written_and_is_no_more_than_a_quarter() -> None:
    before = watch.peak_rss_bytes()
    size = before + 50_000_000
    assert memory.make_present(size) == size // mmap.PAGESIZE * mmap.PAGESIZE
    assert watch.peak_rss_bytes() >= before + 45_000_000
    quarter = os.sysconf("SC_PHYS_PAGES") // 4 * mmap.PAGESIZE
    assert memory.make_present(size) <= quarter


def test_the_profile_times_every_step_of_the_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "_BATCHES", 2)
    monkeypatch.setattr(profile, "_REPEATS", 1)
    steps = list(profile.steps(Case()))
    assert [step.unit for step in steps].count("ns/record") == 5
    assert all(step.figure > 0 for step in steps)


def test_the_cpu_of_each_thread_is_told_apart() -> None:
    release = threading.Event()
    other = threading.Thread(target=release.wait, name="idle")
    other.start()
    with profile.ThreadClocks() as clocks:
        deadline_s = time.process_time() + 0.02
        while time.process_time() < deadline_s:
            pass
    release.set()
    other.join()
    assert clocks.seconds[threading.current_thread().name] >= 0.015
    assert clocks.seconds["idle"] < 0.005
