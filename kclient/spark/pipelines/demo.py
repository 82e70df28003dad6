"""`kclient pipeline demo`: orders through the pipeline `events` on an embedded broker, and every one accounted for."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.errors import ConfigError
from kclient.spark.pipelines import orders, trial
from kclient.spark.pipelines.events import start_events
from kclient.spark.pipelines.live import Live
from kclient.spark.pipelines.options import EventsOptions
from kclient.spark.pipelines.plots import Picture
from kclient.spark.pipelines.report import Progress, ProgressListener
from kclient.spark.pipelines.session import session
from kclient.spark.pipelines.source import wait

_Row = TypeVar("_Row")

_PARTITIONS = 3
_BATCHES = 4
_SHOWN_WINDOWS = 5
_WINDOW_MS = 300_000
_QUERIES = ("events", "windows")
# A small machine is enough, and a run of half a minute ends before the better compiler has paid off. What --conf says
# comes first.
_SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
}


class Demo:
    """One run with `records` orders; `run` says whether everything was verified.

    A picture of it is in `output`, a folder that must be new and gets the Parquet files too; without one it is in a
    temporary folder, which stays.
    """

    def __init__(
        self,
        records: int,
        settings: Mapping[str, str],
        console: Console | None = None,
        output: str | None = None,
    ) -> None:
        if records < 1:
            raise ConfigError("There has to be an order at least.", name="records")
        self._records = records
        self._settings = {**_SETTINGS, **settings}
        self._console = console or Console(soft_wrap=True)
        self._output = output
        self._progress: list[Progress] = []

    def run(self) -> bool:
        """Everything from the broker's start to the verdict. Raises SparkMissingError, KafkaError."""
        with EmbeddedKafka() as kafka, tempfile.TemporaryDirectory(prefix="kclient-pipeline-") as folder:
            if self._output is not None and Path(self._output).exists():
                raise ConfigError(f"output is {self._output!r}, which is there already.", name="output")
            self._say(f"embedded broker listening on {kafka.bootstrap_servers}")
            options = orders.order_options(
                bootstrap_servers=kafka.bootstrap_servers,
                topic="orders",
                checkpoint=f"{folder}/checkpoint",
                output=self._output or f"{folder}/output",
                dead_letter_topic="orders.dead",
                window_topic="orders.windows",
                # Shared among the partitions, and rounded down for each.
                max_offsets_per_trigger=self._records // _BATCHES + _PARTITIONS,
                commit_group_id="orders-pipeline",
            )
            expected = self._send(options)
            seconds = self._stream(options)
            found = trial.outcome(options)
            self._show(found, expected, seconds)
            self._say(escape(self._picture(found)))
            return self._verdict(found, expected)

    def _send(self, options: EventsOptions) -> trial.Expected:
        with KafkaAdminClient(bootstrap_servers=options.bootstrap_servers) as admin:
            admin.create_topics(
                [
                    NewTopic(options.topic, num_partitions=_PARTITIONS),
                    NewTopic(options.dead_letter_topic, num_partitions=1),
                    NewTopic(options.window_topic, num_partitions=1),
                ]
            )
        now_ms = time.time_ns() // 1_000_000
        sent = list(orders.generate(self._records, now_ms - self._records * 1000, options))
        expected = trial.send(sent, options)
        self._say(
            f"sent {len(sent):,} orders, of which {len(expected.letters):,} are bad, late or ahead of time"
        )
        return expected

    def _stream(self, options: EventsOptions) -> float:
        with Live(self._console, dict.fromkeys(_QUERIES, self._records)) as live:
            live.doing("starting Spark, which takes a few seconds")
            spark = session("kclient pipeline demo", self._settings, quiet=True)
            try:

                def on_progress(progress: Progress) -> None:
                    live.told(progress)
                    self._progress.append(progress)

                listener = ProgressListener(on_progress)
                spark.streams.addListener(listener)
                live.doing("starting the queries, and their first micro-batches")
                started_s = time.monotonic()
                queries = start_events(spark, options)
                wait(spark, queries)
                seconds = time.monotonic() - started_s
                listener.wait_for(queries)
                spark.streams.removeListener(listener)
            finally:
                live.doing("stopping Spark")
                spark.stop()
        return seconds

    def _rows(self) -> Counter[str]:
        rows: Counter[str] = Counter()
        for each in self._progress:
            rows[each.query] += each.rows
        return rows

    def _picture(self, found: trial.Outcome) -> str:
        made = Picture(f"{self._records:,} orders through the pipeline")
        windows = [(each.start_ms, each.product, each.events) for each in found.windows]
        made.over_time("orders in closed windows of five minutes", "orders", _WINDOW_MS, windows)
        made.lines(
            "lag", "records behind", [(each.time_ms, each.query, each.behind) for each in self._progress]
        )
        made.bars("dead letters", "records", Counter(letter.error for letter in found.letters).items())
        folder = self._output or tempfile.mkdtemp(prefix="kclient-pipeline-demo-")
        return made.save(f"{folder}/orders.png")

    def _show(self, found: trial.Outcome, expected: trial.Expected, seconds: float) -> None:
        self._table(
            f"what came out, in {seconds:.0f} s",
            ("sink", "rows", "expected", "written again"),
            [
                ("events in Parquet", *_counts(found.orders, expected.orders)),
                ("windows in Parquet", *_counts(found.windows, expected.closed)),
                ("windows in orders.windows", *_counts(found.window_records, expected.closed)),
                ("dead letters in orders.dead", *_counts(found.letters, expected.letters)),
                ("windows still open", "", f"{len(expected.open):,}", ""),
            ],
        )
        reasons = Counter(letter.error for letter in found.letters)
        self._table(
            "dead letters",
            ("reason", "rows"),
            [(error, f"{count:,}") for error, count in reasons.most_common()],
        )
        top = sorted(found.windows, key=lambda window: (-window.amount, window.start_ms))[:_SHOWN_WINDOWS]
        self._table(
            "top windows",
            ("window", "product", "orders", "amount"),
            [(_clock(each.start_ms), each.product, f"{each.events:,}", f"{each.amount:,}") for each in top],
        )
        self._table(
            "lag",
            ("query", "micro-batches", "rows", "most behind", "behind now", "too late for a window"),
            [self._lag(query) for query in _QUERIES],
        )

    def _lag(self, query: str) -> tuple[str, ...]:
        mine = [each for each in self._progress if each.query == query]
        numbers = (
            len({each.batch_id for each in mine}),
            sum(each.rows for each in mine),
            max((each.behind for each in mine), default=0),
            mine[-1].behind if mine else 0,
            sum(each.late_rows for each in mine),
        )
        return query, *(f"{number:,}" for number in numbers)

    def _table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        table = Table(title=title, title_justify="left")
        for number, column in enumerate(columns):
            table.add_column(column, justify="right" if number else "left")
        for row in rows:
            table.add_row(*row)
        self._console.print(table)

    def _verdict(self, found: trial.Outcome, expected: trial.Expected) -> bool:
        problems = trial.differences(found, expected)
        for query, rows in self._rows().items():
            if rows != self._records:
                problems.append(f"{query} read {rows:,} rows")
        last = {each.query: each for each in self._progress}
        problems += [f"{each.query} is {each.behind:,} behind" for each in last.values() if each.behind]
        late = sum(each.late_rows for each in self._progress)
        if late:
            problems.append(f"{late:,} good orders came too late for their window")
        if problems:
            self._say(f"[bold red]NOT verified:[/] {'; '.join(problems)}")
            return False
        self._say(
            f"[bold green]verified:[/] {self._records:,} orders, each either in Parquet exactly once or a dead letter "
            f"with its reason; {len(expected.closed):,} windows as plain Python computes them, in Parquet and in Kafka"
        )
        return True

    def _say(self, text: str) -> None:
        self._console.print(text, highlight=False)


def _counts(found: Counter[_Row], expected: frozenset[_Row]) -> tuple[str, str, str]:
    return f"{len(found):,}", f"{len(expected):,}", f"{found.total() - len(found):,}"


def _clock(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%H:%M")
