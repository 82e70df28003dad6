"""Bad rows, what becomes of them, and how queries start and end."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from harness.waiting import wait_until
from kclient.errors import ConfigError
from kclient.spark.pipelines import orders
from kclient.spark.pipelines.options import EventsOptions

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-parsing"),
    pytest.mark.timeout(300),
]

SENT = datetime(2025, 1, 1, 12, tzinfo=UTC)
GOOD = {"order_id": "o-1", "product": "bread", "quantity": 1, "amount": 1.5, "time": "2025-01-01T12:00:00Z"}
OPTIONS = orders.order_options(
    bootstrap_servers="broker:9092",
    topic="orders",
    checkpoint="/checkpoint",
    output="/output",
    dead_letter_topic="dead",
    window_topic="windows",
)
RECORD = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)


def records(spark: Any, *values: bytes | None, headers: list[tuple[str, bytes | None]] | None = None) -> Any:
    rows = [(b"k", value, "orders", 1, number, SENT, headers) for number, value in enumerate(values)]
    return spark.createDataFrame(rows, RECORD)


def errors(spark: Any, options: EventsOptions, *values: bytes | None) -> list[str | None]:
    from kclient.spark.pipelines.parsing import parse

    rows = parse(records(spark, *values), options).orderBy("offset").select("error").collect()
    return [row.error for row in rows]


def with_(**instead: object) -> bytes:
    return json.dumps({**GOOD, **instead}).encode()


def iso(**since: float) -> str:
    return (SENT + timedelta(**since)).isoformat()


CASES: dict[str, tuple[bytes | None, str | None]] = {
    "good": (with_(), None),
    "more columns than the schema": (with_(more=[1]), None),
    "a column that is not required is null": (with_(quantity=None), None),
    "white space around it": (b" \r\n\t" + with_() + b"\n", None),
    "no value": (None, "no value"),
    "nothing": (b"", "not one JSON object"),
    "not JSON": (b"hello", "not one JSON object"),
    "cut off": (with_()[:-1], "not one JSON object"),
    "two objects": (with_() + with_(), "not one JSON object"),
    "an object and more": (with_() + b" x", "not one JSON object"),
    "two with a comma": (with_() + b"," + with_(), "not one JSON object"),
    "an array of objects": (b"[" + with_() + b"]", "not one JSON object"),
    "a number": (b"17", "not one JSON object"),
    "null": (b"null", "not one JSON object"),
    "no UTF-8": (b"\xff" + with_(), "not UTF-8"),
    "an empty object": (b"{}", "order_id is missing"),
    "no decimal": (with_(amount="a lot"), "amount is no decimal(12,2)"),
    "too large a decimal": (with_(amount=12345678901.5), "amount is no decimal(12,2)"),
    "no int": (with_(quantity=1.5), "quantity is no int"),
    "no time": (with_(time="noon"), "time is no timestamp"),
    "a condition": (with_(amount=0), "not event.amount > 0"),
    "as late as may be": (with_(time=iso(minutes=-5)), None),
    "later": (with_(time=iso(minutes=-5, milliseconds=-1)), "time is more than 5 minutes late"),
    "as far ahead as may be": (with_(time=iso(minutes=1)), None),
    "further ahead": (with_(time=iso(minutes=1, milliseconds=1)), "time is more than 1 minute ahead"),
}


def test_every_bad_row_has_its_reason_and_no_good_one_has(spark: Any) -> None:
    found = errors(spark, OPTIONS, *(value for value, _ in CASES.values()))
    assert dict(zip(CASES, found, strict=True)) == {name: error for name, (_, error) in CASES.items()}


def test_a_condition_that_is_neither_true_nor_false_makes_a_bad_row(spark: Any) -> None:
    options = attrs.evolve(OPTIONS, required=(), conditions=("event.quantity < 9",))
    assert errors(spark, options, with_(quantity=None), with_()) == ["not event.quantity < 9", None]


def test_a_dead_letter_keeps_what_came_and_adds_headers(spark: Any) -> None:
    from kclient.spark.pipelines.parsing import dead_letters, parse

    of = [("trace", b"7"), ("empty", None)]
    (letter,) = dead_letters(parse(records(spark, with_(), b"\xffbad", headers=of), OPTIONS)).collect()
    assert (bytes(letter.key), bytes(letter.value)) == (b"k", b"\xffbad")
    assert [(name, None if value is None else bytes(value)) for name, value in letter.headers] == [
        *of,
        ("kclient.source.topic", b"orders"),
        ("kclient.source.partition", b"1"),
        ("kclient.source.offset", b"1"),
        ("kclient.error", b"not UTF-8"),
    ]


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        ({"required": ("customer",)}, "no column 'customer'; there is order_id"),
        ({"time_column": "when"}, "no column 'when'"),
        ({"time_column": "product"}, "has to be a timestamp"),
        ({"schema": "order_id strin, time"}, "schema is 'order_id strin, time', which Spark cannot read"),
    ],
)
def test_a_schema_that_does_not_go_with_the_options_is_refused(
    spark: Any, instead: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        errors(spark, attrs.evolve(OPTIONS, **instead), with_())


def test_a_column_of_the_events_is_not_replaced_by_the_date(spark: Any) -> None:
    from kclient.spark.pipelines.parsing import dated, good, parse

    options = attrs.evolve(OPTIONS, schema=OPTIONS.schema + ", date string")
    with pytest.raises(ConfigError, match="has a column 'date'"):
        dated(good(parse(records(spark, with_()), options)), options)


def test_windows_of_columns_that_are_not_there_are_refused(spark: Any) -> None:
    from kclient.spark.pipelines.parsing import good, parse
    from kclient.spark.pipelines.windows import windowed

    options = attrs.evolve(OPTIONS, group_by=("shop",))
    with pytest.raises(ConfigError, match="no column 'shop' to group by"):
        windowed(good(parse(records(spark, with_()), options)), options, "/checkpoint")


@pytest.mark.parametrize(
    ("table", "join_on", "said"),
    [
        ("id,origin\n1,Lyon\n", ("product",), "join_on names 'product', which the table does not have"),
        ("id,origin\n1,Lyon\n", ("id",), "join_on names 'id', which the schema does not have"),
        ("product,amount\nbread,1\n", ("product",), "Both the schema and the table have amount"),
    ],
)
def test_a_join_that_cannot_be_is_refused(
    spark: Any, tmp_path: Path, table: str, join_on: tuple[str, ...], said: str
) -> None:
    from kclient.spark.pipelines import EnrichOptions
    from kclient.spark.pipelines.enrich import start_enrich

    (tmp_path / "table.csv").write_text(table)
    options = EnrichOptions(
        bootstrap_servers="broker:9092",
        topic="orders",
        schema=orders.SCHEMA,
        checkpoint=str(tmp_path / "checkpoint"),
        output_topic="out",
        table=str(tmp_path / "table.csv"),
        table_format="csv",
        join_on=join_on,
    )
    with pytest.raises(ConfigError, match=said):
        start_enrich(spark, options)


def test_latest_would_be_two_places_for_two_queries(spark: Any) -> None:
    from kclient.spark.pipelines.events import start_events

    with pytest.raises(ConfigError, match="starting_offsets=latest"):
        start_events(spark, attrs.evolve(OPTIONS, starting_offsets="latest"))


def test_a_batch_that_is_run_again_replaces_its_folder_and_an_empty_one_makes_none(
    spark: Any, tmp_path: Path
) -> None:
    from kclient.spark.pipelines.sinks import BatchFolders

    def numbers() -> list[int]:
        return sorted(row.id for row in spark.read.parquet(str(tmp_path)).collect())

    folders = BatchFolders(str(tmp_path))
    folders.write(spark.range(3), 7)
    folders.write(spark.range(3, 5), 8)
    folders.write(spark.range(0), 9)
    assert numbers() == [0, 1, 2, 3, 4]
    assert not (tmp_path / "batch=9").exists()

    again = BatchFolders(str(tmp_path))
    again.write(spark.range(4, 6), 8)
    assert numbers() == [0, 1, 2, 4, 5]
    # The first of a run may be one that was cut off: also with nothing in it, it replaces what is there.
    BatchFolders(str(tmp_path)).write(spark.range(0), 8)
    assert numbers() == [0, 1, 2]


def start_slowly(spark: Any, folder: Path) -> Any:
    """Start a query whose source is made when there is a file `go`, and fails if that is not empty."""
    from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

    from kclient.spark.pipelines.source import start

    class Slow(DataSource):
        @classmethod
        def name(cls) -> str:
            return "slow"

        def schema(self) -> str:
            return "n int"

        def simpleStreamReader(self, schema: Any) -> Any:
            import time
            from pathlib import Path

            class Reader(SimpleDataSourceStreamReader):
                def initialOffset(self) -> dict[str, int]:
                    return {"offset": 0}

                def read(self, start: dict[str, int]) -> Any:
                    return iter([]), start

                def readBetweenOffsets(self, start: Any, end: Any) -> Any:
                    return iter([])

            folder = Path(self.options["folder"])
            (folder / "asked").touch()
            deadline = time.monotonic() + 20
            while not (folder / "go").exists():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            if reason := (folder / "go").read_text():
                raise RuntimeError(reason)
            return Reader()

    spark.dataSource.register(Slow)
    options = attrs.evolve(OPTIONS, every="1 second", checkpoint=str(folder / "checkpoint"))
    frame = spark.readStream.format("slow").option("folder", str(folder)).load()
    return start(frame.writeStream.format("noop"), options, "slow")


def test_a_query_is_started_when_it_has_its_source(spark: Any, tmp_path: Path) -> None:
    queries: list[Any] = []
    starting = threading.Thread(target=lambda: queries.append(start_slowly(spark, tmp_path)))
    starting.start()
    try:
        wait_until((tmp_path / "asked").exists, 60, "the source's being made")
        assert not queries
    finally:
        (tmp_path / "go").touch()
        starting.join(60)
    (query,) = queries
    assert query.isActive
    query.stop()


def test_a_query_that_fails_to_make_its_source_says_so_to_who_waits_for_it(
    spark: Any, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    from kclient.spark.pipelines.source import wait

    (tmp_path / "go").write_text("there is no source")
    query = start_slowly(spark, tmp_path)
    with pytest.raises(StreamingQueryException, match="there is no source"):
        wait(spark, [query])


def test_when_a_query_fails_the_others_are_stopped_and_its_error_is_raised(
    spark: Any, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    from kclient.spark.pipelines.source import wait

    def fail(_frame: Any, batch_id: int) -> None:
        if batch_id == 1:
            raise RuntimeError("the second batch fails")

    def start(name: str, write: Any) -> Any:
        writer = spark.readStream.format("rate").load().writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", str(tmp_path / name)).queryName(name).start()

    good = start("good", lambda _frame, _batch_id: None)
    bad = start("bad", fail)
    with pytest.raises(StreamingQueryException, match="the second batch fails"):
        wait(spark, [good, bad])
    assert not good.isActive
    # What has failed before is no matter of the next ones.
    later = spark.readStream.format("rate").load().writeStream.format("noop").trigger(availableNow=True)
    wait(spark, [later.option("checkpointLocation", str(tmp_path / "later")).start()])
