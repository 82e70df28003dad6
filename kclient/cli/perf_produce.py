"""`kclient perf produce`: how many records get out, and how long each takes to be acknowledged."""

from __future__ import annotations

import argparse
import itertools
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs
from rich.progress import Progress, TaskID

from kclient.cli.common import (
    add_client_arguments,
    add_pairs,
    client_settings,
    closing,
    complain,
    natural,
    positive,
    unescape,
)
from kclient.cli.perf_common import (
    MIB,
    PROGRESS_EVERY_S,
    Latencies,
    add_reporting_arguments,
    print_metrics,
    progress_bar,
    warn_if_embedded,
)
from kclient.errors import ConfigError, KafkaError, KafkaTimeoutError
from kclient.producer import KafkaProducer, RecordMetadata
from kclient.utils.futures import KafkaFuture
from kclient.utils.text import counted

_LETTERS = bytes(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[byte % 26] for byte in range(256))
_PAYLOADS = 1000
_PAYLOAD_BYTES = 32 * MIB
_CHUNK = 1000  # sent, and looked at, together
_MOST_SAMPLES = 500_000
_ENOUGH_SAMPLES = 10_000
_SAMPLED_EVERY = 50
_SLOW_PER_S = 10_000  # at such a rate the time that a callback takes does not matter
_SHORTEST_PAUSE_S = 0.001
_SHOWN_ERRORS = 5
_EPILOG = """\
The topic is looked up before the clock starts. Every record's outcome is checked. Latency runs from send() to the
acknowledgement; with many records it is measured on some of them, evenly spread, because a callback for each record
would slow down what is measured.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("--topic", required=True, help="where the records go")
    parser.add_argument("--num-records", type=positive, required=True, help="how many")
    payload = parser.add_mutually_exclusive_group(required=True)
    payload.add_argument("--record-size", type=positive, metavar="BYTES", help="send random letters")
    payload.add_argument(
        "--payload-file", type=Path, metavar="FILE", help="send the lines of this file, shuffled"
    )
    payload.add_argument(
        "--payload-monotonic", action="store_true", help="send the numbers 0, 1, 2 and so on"
    )
    parser.add_argument(
        "--payload-delimiter",
        default="\\n",
        metavar="TEXT",
        help="what ends a payload in the file (default \\n)",
    )
    parser.add_argument(
        "--throughput", type=int, default=-1, metavar="PER_S", help="records/s; -1, the default, is no limit"
    )
    parser.add_argument(
        "--warmup-records",
        type=natural,
        default=0,
        help="say at the end also how it went after the first so many were delivered (default 0)",
    )
    parser.add_argument(
        "--reporting-interval", type=positive, default=5000, metavar="MS", help="between lines (default 5000)"
    )
    add_reporting_arguments(parser)
    add_client_arguments(parser, "producer")
    parser.add_argument(
        "--producer.config", dest="command_config", metavar="FILE", help="the same as --command-config"
    )
    add_pairs(
        parser,
        "-X",
        "--command-property",
        "--producer-props",
        dest="settings",
        nargs="+",
        action="extend",
        help="producer settings; win over the file; may be repeated",
    )


def run(options: argparse.Namespace) -> int:
    if not options.throughput:
        raise ConfigError("--throughput 0 would never send anything; -1 is no limit")
    if options.warmup_records >= options.num_records:
        raise ConfigError("--warmup-records must be less than --num-records")
    payloads = _payloads(options)
    settings = client_settings(options, client_id="perf-producer-client")
    warn_if_embedded(settings)
    with progress_bar(options.no_progress) as progress, closing(KafkaProducer(settings)) as producer:
        producer.partitions_for(options.topic)
        task = progress.add_task("sending", total=options.num_records)
        every = sample_every(options.num_records, options.throughput)
        load = Load(producer, options.topic, every, options.warmup_records)
        _send_all(load, payloads, options, progress, task)
        metrics = producer.metrics() if options.print_metrics else None
    print(load.total.line())
    if options.warmup_records:
        print(load.steady.line("steady state records"))
    for message, count in load.errors.most_common(_SHOWN_ERRORS):
        complain("failed", f"{message} ({counted(count, 'record')})")
    if metrics is not None:
        print_metrics(metrics)
    return 1 if load.errors else 0


def _send_all(
    load: Load, payloads: Iterator[bytes], options: argparse.Namespace, progress: Progress, task: TaskID
) -> None:
    clock = time.perf_counter
    interval_s = options.reporting_interval / 1000
    throttle = Throttle(options.throughput) if options.throughput > 0 else None
    # At a rate, no more at once than a millisecond's worth.
    at_once = _CHUNK if throttle is None else max(min(_CHUNK, options.throughput // 1000), 1)
    report_s = clock() + interval_s
    progress_s = clock() + PROGRESS_EVERY_S
    sent = 0
    while sent < options.num_records:
        # A chunk ends with the warming up, so that it can be told when that was delivered.
        end = options.warmup_records if sent < options.warmup_records else options.num_records
        chunk = list(itertools.islice(payloads, min(at_once, end - sent)))
        load.send(chunk)
        sent += len(chunk)
        if throttle is not None:
            throttle.wait(sent)
        load.settle()
        now_s = clock()
        if now_s >= progress_s:
            progress.update(task, completed=load.delivered)
            progress_s = now_s + PROGRESS_EVERY_S
        if now_s >= report_s:
            print(load.window().line(percentiles=False), flush=True)
            report_s = now_s + interval_s
    load.finish()
    progress.update(task, completed=load.delivered)


@attrs.frozen
class Stretch:
    """The records delivered in a stretch of time, with their latencies."""

    records: int
    bytes: int
    seconds: float
    latencies: Latencies

    def line(self, what: str = "records", percentiles: bool = True) -> str:
        """As kafka-producer-perf-test.sh prints it."""
        seconds = max(self.seconds, 1e-9)
        text = (
            f"{self.records} {what} sent, {self.records / seconds:.1f} records/sec "
            f"({self.bytes / MIB / seconds:.2f} MB/sec), {self.latencies.average:.2f} ms avg latency, "
            f"{self.latencies.highest:.2f} ms max latency"
        )
        if percentiles:
            for part, name in ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th")):
                text += f", {self.latencies.percentile(part):.2f} ms {name}"
        return text + "."


@attrs.frozen
class _Mark:
    """The progress at one moment."""

    at_s: float
    delivered: int
    bytes: int
    samples: int


class Load:
    """Sends, keeps the futures until they are done, and counts what became of them, from when it is made.

    Used by one thread.
    """

    def __init__(
        self, producer: KafkaProducer[bytes, bytes], topic: str, sampled_every: int, warm_up: int = 0
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._sampled_every = sampled_every
        self._warm_up = warm_up
        self._chunks: deque[tuple[list[KafkaFuture[RecordMetadata]], int]] = deque()
        # Written by the producer's I/O thread, read here: appending is atomic.
        self._taken_s: list[float] = []
        self._bytes = 0
        self._settled = 0
        self.delivered = 0
        self.errors: Counter[str] = Counter()
        self._begun = self._window = self._steady = self._ended = self._mark()

    def send(self, values: Sequence[bytes]) -> None:
        """Send these, the first of each so many to be sampled."""
        send, topic, every = self._producer.send, self._topic, self._sampled_every
        futures: list[KafkaFuture[RecordMetadata]] = []
        for start in range(0, len(values), every):
            futures.append(send(topic, values[start], on_delivery=self._timer()))
            futures += [send(topic, value) for value in values[start + 1 : start + every]]
        self._chunks.append((futures, sum(map(len, values))))

    def settle(self) -> None:
        """Count what is done, oldest first."""
        while self._chunks:
            futures, size = self._chunks[0]
            if not futures[-1].done():
                return
            try:
                errors = [error for future in futures if (error := future.exception(0)) is not None]
            except KafkaTimeoutError:
                return  # an earlier one, in another partition, is not done yet
            self._chunks.popleft()
            warming_up = self._settled < self._warm_up
            self._count(len(futures), size, errors)
            if warming_up and self._settled >= self._warm_up:
                self._steady = self._mark()

    def finish(self) -> None:
        """Deliver everything and stop the clock."""
        self._producer.flush()
        self.settle()
        self._ended = self._mark()

    def window(self) -> Stretch:
        """Return the records delivered since the last call."""
        self.settle()
        before, self._window = self._window, self._mark()
        return self._between(before, self._window)

    @property
    def total(self) -> Stretch:
        """Everything."""
        return self._between(self._begun, self._ended)

    @property
    def steady(self) -> Stretch:
        """The records delivered after the warm-up."""
        return self._between(self._steady, self._ended)

    def _count(self, records: int, size: int, errors: Sequence[BaseException]) -> None:
        self._settled += records
        self.delivered += records - len(errors)
        self._bytes += size * (records - len(errors)) // records  # nobody kept the size of the single record
        self.errors.update(str(error) for error in errors)

    def _timer(self) -> Callable[[RecordMetadata, KafkaError | None], None]:
        clock = time.perf_counter
        taken_s = self._taken_s
        sent_s = clock()

        def delivered(_metadata: RecordMetadata, error: KafkaError | None) -> None:
            if error is None:
                taken_s.append(clock() - sent_s)

        return delivered

    def _mark(self) -> _Mark:
        return _Mark(time.perf_counter(), self.delivered, self._bytes, len(self._taken_s))

    def _between(self, start: _Mark, end: _Mark) -> Stretch:
        return Stretch(
            end.delivered - start.delivered,
            end.bytes - start.bytes,
            end.at_s - start.at_s,
            Latencies.of_seconds(self._taken_s[start.samples : end.samples]),
        )


@attrs.define(eq=False)
class Throttle:
    """Holds a sender back to `per_s` records a second."""

    _per_s: int
    _clock: Callable[[], float] = time.perf_counter
    _sleep: Callable[[float], object] = time.sleep
    _started_s: float = attrs.field(init=False)

    @_started_s.default
    def _now(self) -> float:
        return self._clock()

    def wait(self, sent: int) -> None:
        """Return when `sent` records are not too many; pauses too short to be kept are left for later."""
        ahead_s = sent / self._per_s - (self._clock() - self._started_s)
        if ahead_s >= _SHORTEST_PAUSE_S:
            self._sleep(ahead_s)


def sample_every(records: int, throughput: int) -> int:
    """One in how many records has its latency measured."""
    fewest = -(-records // _MOST_SAMPLES)
    if 0 < throughput <= _SLOW_PER_S:
        return fewest
    return max(fewest, min(_SAMPLED_EVERY, records // _ENOUGH_SAMPLES))


def _payloads(options: argparse.Namespace) -> Iterator[bytes]:
    """Without end, and with next to no work for each: the client is to be measured, not this."""
    if options.payload_monotonic:
        return (b"%d" % number for number in itertools.count())
    source = random.Random(0)
    if options.payload_file is None:
        size: int = options.record_size
        count = min(_PAYLOADS, max(_PAYLOAD_BYTES // size, 1))
        return itertools.cycle([source.randbytes(size).translate(_LETTERS) for _ in range(count)])
    delimiter = unescape(options.payload_delimiter).encode()
    if not delimiter:
        raise ConfigError("--payload-delimiter must not be empty")
    lines = options.payload_file.read_bytes().split(delimiter)
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise ConfigError(f"--payload-file {options.payload_file} holds nothing")
    source.shuffle(lines)
    return itertools.cycle(lines)
