"""The Java client, by Kafka's own ProducerPerformance and ConsumerPerformance.

A JVM is slow until it has compiled what runs often. As they come the tools count that, too; with `Job.warm_up` they do
so many records more, before those that count. Where these begin is seen in the counts that the tools print as they go;
the JVM's CPU is read at that moment.
The tools offer nothing for the latency of one record that is finer than a millisecond.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import psutil  # type: ignore[import-untyped]

from benchmarks.broker import real_kafka
from benchmarks.case import FETCH_BYTES, IN_FLIGHT, LINGER_MS, PARTITION_FETCH_BYTES, Job, Measured
from benchmarks.watch import peak_rss_bytes

_TOOLS = "org.apache.kafka.tools."
_HEAP = "-Xmx512m"  # what kafka-producer-perf-test.sh gives
_TIMEOUT_S = 600.0
_REPORT_MS = 10
_SENT = re.compile(r"(\d+) records sent, .*ms max latency(, .* 99\.9th)?")
_READ = re.compile(r"[-0-9]+ [0-9:]+, \d+, ([0-9.]+), [0-9.]+, (\d+), ")
_MIB = 1 << 20


@attrs.frozen
class _Moment:
    """The progress of a tool at one moment, and its cost until then."""

    records: int
    at_s: float
    cpu_s: float
    rss_bytes: int


def produce(job: Job) -> Measured:
    """Send everything and wait until it is acknowledged."""
    with tempfile.TemporaryDirectory() as folder:
        payloads = Path(folder) / "payloads"
        payloads.write_bytes(b"\n".join(job.case.values()))
        moments: list[_Moment] = []
        count = 0
        arguments = [
            *("--bootstrap-server", job.bootstrap_servers, "--topic", job.topic, "--throughput", "-1"),
            *("--num-records", str(job.records + job.warm_up), "--payload-file", str(payloads)),
            *("--reporting-interval", str(_REPORT_MS), "--command-property"),
            *("acks=all", "enable.idempotence=true", f"batch.size={job.case.batch_bytes}"),
            *(f"linger.ms={LINGER_MS}", f"compression.type={job.case.codec}"),
            *(f"max.in.flight.requests.per.connection={IN_FLIGHT}", "send.buffer.bytes=-1"),
        ]
        for line, jvm in _lines("ProducerPerformance", arguments):
            found = _SENT.match(line)
            if found:
                # The last line counts all of them, those before it what came since the one before.
                count = int(found[1]) if found[2] else count + int(found[1])
                moments.append(_moment(count, jvm))
    if count != job.records + job.warm_up:
        raise RuntimeError(f"Java sent {count} of {job.records + job.warm_up} records")
    return _between(moments, job.warm_up)


def consume(job: Job) -> Measured:
    """Read everything as the only member of a new group. The tool always leaves the checksums unchecked."""
    moments: list[_Moment] = []
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as config:
        config.write(
            f"max.poll.records={job.poll_records}\nfetch.max.bytes={FETCH_BYTES}\nenable.auto.commit=false\n"
        )
        config.flush()
        arguments = [
            *("--bootstrap-server", job.bootstrap_servers, "--topic", job.topic),
            *("--group", f"{job.topic}-java", "--num-records", str(job.records + job.warm_up)),
            *("--fetch-size", str(PARTITION_FETCH_BYTES), "--command-config", config.name),
            *("--show-detailed-stats", "--reporting-interval", str(_REPORT_MS)),
        ]
        for line, jvm in _lines("ConsumerPerformance", arguments):
            found = _READ.match(line)
            if not found:
                continue
            count = int(found[2])
            # Printed in MiB with four digits: 53 bytes either way.
            if abs(float(found[1]) * _MIB - count * job.case.size) > 100:
                raise ValueError(f"Java read {count} records of {found[1]} MiB")
            moments.append(_moment(count, jvm))
    return _between(moments, job.warm_up)


def _lines(tool: str, arguments: list[str]) -> Iterator[tuple[str, psutil.Process]]:
    """The lines that a tool prints, each as it comes, with the process. Raises RuntimeError if the tool fails."""
    with tempfile.TemporaryFile("w+") as errors:
        command = ["java", _HEAP, "-cp", real_kafka().classpath(), _TOOLS + tool, *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as running:
            assert running.stdout is not None
            last = threading.Timer(_TIMEOUT_S, running.kill)
            last.start()
            try:
                jvm = psutil.Process(running.pid)
                for line in running.stdout:
                    yield line, jvm
            except BaseException:
                running.kill()
                raise
            finally:
                last.cancel()
        if running.returncode != 0:
            errors.seek(0)
            raise RuntimeError(f"{tool} ended with {running.returncode}:\n{errors.read()[-4000:]}")


def _moment(count: int, jvm: psutil.Process) -> _Moment:
    at_s = time.perf_counter()
    used = jvm.cpu_times()
    return _Moment(count, at_s, used.user + used.system, peak_rss_bytes(jvm.pid))


def _between(moments: list[_Moment], warm_up: int) -> Measured:
    """From the first report after the warming up to the last one."""
    counted = [moment for moment in moments if moment.records >= warm_up]
    if len(counted) < 2 or counted[0].records == counted[-1].records:
        raise RuntimeError(f"the tool reported {len(counted)} times after {warm_up} records; let it do more")
    first, last = counted[0], counted[-1]
    return Measured(
        last.records - first.records,
        last.at_s - first.at_s,
        last.cpu_s - first.cpu_s,
        # The last report may be that of a process that has ended.
        max(moment.rss_bytes for moment in moments),
    )
