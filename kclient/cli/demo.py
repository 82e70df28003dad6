"""`kclient demo`: records through a broker and back, every one accounted for."""

from __future__ import annotations

import argparse
import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Collection, Iterator

import attrs
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

from kclient.admin import KafkaAdminClient, NewTopic, OffsetSpec
from kclient.cli.common import add_settings_arguments, client_settings, closing, given_settings, positive
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener, KafkaConsumer
from kclient.errors import ConfigError, KafkaError
from kclient.producer import KafkaProducer, RecordMetadata
from kclient.utils.text import counted

_TOPIC = "kclient-demo"
_GROUP = "kclient-demo-readers"
_PARTITIONS = 3
_KEYS = 1000
_READERS = 2
_POLL_MS = 200
_STALLED_S = 60.0
_SAMPLE_EVERY = 50  # one latency sample in so many records: enough for percentiles, too few to slow anything


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--records", type=positive, default=100_000, help="how many (default 100000)")
    parser.add_argument(
        "--size", type=positive, default=100, help="bytes per value, at least 8 (default 100)"
    )
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="use this cluster (default: from --command-config, else an embedded broker of its own)",
    )
    add_settings_arguments(parser, "client", "of settings that all clients have")


def run(options: argparse.Namespace) -> int:
    console = Console(soft_wrap=True)
    if options.size < 8:
        raise ConfigError("--size must be at least 8")
    with _cluster(options, console) as settings:
        demo = Demo(
            settings, options.records, options.size, f"{_TOPIC}-{time.time_ns() // 1_000_000}", console
        )
        return 0 if demo.run() else 1


@contextlib.contextmanager
def _cluster(options: argparse.Namespace, console: Console) -> Iterator[dict[str, object]]:
    """The settings for all clients; where they name no cluster there is an embedded broker meanwhile."""
    settings = client_settings(options)
    if options.bootstrap_server or "bootstrap.servers" in given_settings(options):
        yield settings
        return
    from kclient.broker import EmbeddedKafka

    with EmbeddedKafka() as kafka:
        console.print(f"embedded broker listening on {kafka.bootstrap_servers}", highlight=False)
        yield {**settings, "bootstrap.servers": kafka.bootstrap_servers}


@attrs.define
class Produced:
    """Time, latencies and failures of sending.

    Latencies are from `send()` to the broker's acknowledgement.
    """

    seconds: float
    latencies_ms: list[float]
    failures: list[str]


class Verifier:
    """Accounts for every record: seen once, in the order of its key. Thread-safe: one lock a batch."""

    def __init__(self, records: int) -> None:
        self._seen = bytearray(records)
        self._last_of_key: dict[bytes | None, int] = {}
        self.total = 0
        self.out_of_order = 0
        self.unknown = 0
        self.changed = threading.Condition()

    def take(self, batch: list[tuple[bytes | None, int]]) -> None:
        """Account for the (key, number) pairs of one poll, in their order."""
        with self.changed:
            for key, number in batch:
                if not 0 <= number < len(self._seen):
                    self.unknown += 1
                    continue
                self._seen[number] = min(self._seen[number] + 1, 255)
                if self._last_of_key.get(key, -1) >= number:
                    self.out_of_order += 1
                self._last_of_key[key] = number
            self.total += len(batch)
            self.changed.notify_all()

    @property
    def missing(self) -> int:
        return self._seen.count(0)

    @property
    def duplicates(self) -> int:
        return sum(times - 1 for times in self._seen if times > 1)


class Demo:
    """One run with clients of these `settings`; `run` says whether everything was verified."""

    def __init__(
        self, settings: dict[str, object], records: int, size: int, topic: str, console: Console
    ) -> None:
        self._settings = settings
        self._records = records
        self._size = size
        self._topic = topic
        self._group = f"{_GROUP}-{topic}"
        self._console = console
        self._verifier = Verifier(records)

    def run(self) -> bool:
        with KafkaAdminClient(self._settings) as admin:
            admin.create_topics([NewTopic(self._topic, num_partitions=_PARTITIONS)])
            self._console.print(f"created topic {self._topic} with {_PARTITIONS} partitions", highlight=False)
            with self._progress() as progress:
                produced = self._produce(progress, progress.add_task("produce", total=self._records))
                read_s, readers = self._consume(progress, progress.add_task("consume", total=self._records))
            partitions = [TopicPartition(self._topic, number) for number in range(_PARTITIONS)]
            ends = {
                tp: one.offset
                for tp, one in admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST)).items()
            }
            committed = {
                tp: -1 if one is None else one.offset
                for tp, one in admin.list_consumer_group_offsets(self._group, partitions).items()
            }
        self._console.print(self._rates(produced, read_s))
        self._console.print(self._offsets(ends, committed, readers))
        return self._verdict(produced, ends, committed)

    def _progress(self) -> Progress:
        return Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self._console,
        )

    def _produce(self, progress: Progress, task: TaskID) -> Produced:
        latencies_ms: list[float] = []
        filler = b"." * (self._size - 8)
        clock = time.perf_counter

        def sampled(sent_s: float) -> Callable[[RecordMetadata, KafkaError | None], None]:
            def delivered(_metadata: RecordMetadata, _error: KafkaError | None) -> None:
                latencies_ms.append((clock() - sent_s) * 1000)

            return delivered

        started_s = clock()
        with closing(KafkaProducer({**self._settings, "client.id": "demo-producer"})) as producer:
            futures = []
            for number in range(self._records):
                key = b"user-%d" % (number % _KEYS)
                value = b"%08d" % number + filler
                if number % _SAMPLE_EVERY:
                    futures.append(producer.send(self._topic, value, key=key))
                else:
                    futures.append(producer.send(self._topic, value, key=key, on_delivery=sampled(clock())))
                    progress.update(task, completed=number)
            producer.flush()
            seconds = clock() - started_s
            progress.update(task, completed=self._records)
        failures = [str(error) for error in (future.exception(0) for future in futures) if error]
        return Produced(seconds, latencies_ms, failures)

    def _consume(self, progress: Progress, task: TaskID) -> tuple[float, dict[TopicPartition, str]]:
        """Read everything with a group of readers; the seconds it took and who read which partition."""
        together = threading.Barrier(_READERS + 1)
        done = threading.Event()
        readers = [
            _Reader(f"demo-consumer-{n + 1}", self._of_readers(), self._topic, self._verifier, together, done)
            for n in range(_READERS)
        ]
        threads = [threading.Thread(target=reader.run, name=reader.name, daemon=True) for reader in readers]
        for thread in threads:
            thread.start()
        try:
            together.wait(_STALLED_S)
            started_s = time.perf_counter()
            with self._verifier.changed:
                while self._verifier.total < self._records:
                    if not self._verifier.changed.wait(_STALLED_S):
                        break  # nothing came for a minute: the verdict will say what is missing
                    progress.update(task, completed=self._verifier.total)
            seconds = time.perf_counter() - started_s
        except threading.BrokenBarrierError:
            seconds = 0.0
        except KeyboardInterrupt:
            together.abort()
            raise  # they are left behind: what they wait for may never come
        finally:
            done.set()
        for thread in threads:
            thread.join(_STALLED_S)
        for reader in readers:
            if reader.error is not None:
                raise reader.error
        return seconds, {tp: reader.name for reader in readers for tp in reader.partitions}

    def _of_readers(self) -> dict[str, object]:
        return {
            **self._settings,
            "group.id": self._group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "max.poll.records": 5000,
        }

    def _rates(self, produced: Produced, read_s: float) -> Table:
        table = Table(title="rates", title_justify="left")
        for column in ("", "records/s", "MB/s", "p50 latency", "p99 latency"):
            table.add_column(column, justify="right" if column else "left")
        megabytes = self._records * self._size / 1e6
        quantiles = statistics.quantiles(produced.latencies_ms or [0.0, 0.0], n=100, method="inclusive")
        latency = [f"{quantiles[49]:.1f} ms", f"{quantiles[98]:.1f} ms"]
        for name, seconds, more in (("produce", produced.seconds, latency), ("consume", read_s, ["", ""])):
            rate = (
                [f"{self._records / seconds:,.0f}", f"{megabytes / seconds:.1f}"]
                if seconds > 0
                else ["-", "-"]
            )
            table.add_row(name, *rate, *more)
        return table

    def _offsets(
        self,
        ends: dict[TopicPartition, int],
        committed: dict[TopicPartition, int],
        readers: dict[TopicPartition, str],
    ) -> Table:
        table = Table(title="partitions", title_justify="left")
        table.add_column("partition")
        table.add_column("end offset", justify="right")
        table.add_column("committed", justify="right")
        table.add_column("read by")
        for tp, end in sorted(ends.items()):
            table.add_row(str(tp), f"{end:,}", f"{committed[tp]:,}", readers.get(tp, "-"))
        return table

    def _verdict(
        self, produced: Produced, ends: dict[TopicPartition, int], committed: dict[TopicPartition, int]
    ) -> bool:
        verifier = self._verifier
        problems = []
        if produced.failures:
            problems.append(f"{len(produced.failures):,} not delivered (first: {produced.failures[0]})")
        for count, what in (
            (verifier.missing, "missing"),
            (verifier.duplicates, "read twice"),
            (verifier.out_of_order, "out of order"),
            (verifier.unknown, "that nobody sent"),
        ):
            if count:
                problems.append(f"{count:,} {what}")
        if committed != ends:
            problems.append("committed offsets are not the end offsets")
        if problems:
            self._console.print(f"[bold red]NOT verified:[/] {escape('; '.join(problems))}", highlight=False)
            return False
        self._console.print(
            f"[bold green]verified:[/] {counted(self._records, 'record')}, each exactly once and in order per key, "
            "all committed",
            highlight=False,
        )
        return True


@attrs.define(eq=False)
class _Reader:
    """One member of the group. It reads nothing until every member has its share: the rates would mean little."""

    name: str
    _settings: dict[str, object]
    _topic: str
    _verifier: Verifier
    _together: threading.Barrier
    _done: threading.Event
    partitions: set[TopicPartition] = attrs.field(factory=set, init=False)
    error: Exception | None = attrs.field(default=None, init=False)

    def run(self) -> None:
        try:
            self._read()
        except Exception as error:
            self.error = error
            self._together.abort()

    def _read(self) -> None:
        with KafkaConsumer({**self._settings, "client.id": self.name}) as consumer:
            share = _Paused(consumer)
            consumer.subscribe([self._topic], listener=share)
            # A share of its own, not all of them: then the other members are in the group too.
            deadline_s = time.monotonic() + _STALLED_S
            while not 0 < len(consumer.assignment()) < _PARTITIONS:
                consumer.poll(_POLL_MS)
                if time.monotonic() > deadline_s:
                    raise KafkaError(
                        f"{self.name} was given no share of the partitions within {_STALLED_S:.0f} s"
                    )
            self._together.wait(_STALLED_S)
            share.paused = False
            consumer.resume(consumer.assignment())
            self.partitions = set(consumer.assignment())
            while not self._done.is_set():
                records = consumer.poll(_POLL_MS)
                if records:
                    self._verifier.take([(record.key, int((record.value or b"")[:8])) for record in records])
                    consumer.commit_sync()


class _Paused(ConsumerRebalanceListener):
    def __init__(self, consumer: KafkaConsumer[bytes, bytes]) -> None:
        self._consumer = consumer
        self.paused = True

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        if self.paused:
            self._consumer.pause(partitions)
