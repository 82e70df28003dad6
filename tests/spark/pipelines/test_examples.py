"""Every example for Spark runs as its first lines say, with the right results."""

from __future__ import annotations

import importlib.util
import itertools
import json
import runpy
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from kclient.admin import KafkaAdminClient, NewTopic
from kclient.errors import ConfigError
from kclient.spark.pipelines import BackfillOptions, orders, trial
from kclient.spark.pipelines.options import EventsOptions
from kclient.spark.pipelines.orders import Sent

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-examples"),
    pytest.mark.timeout(300),
]

PNG = b"\x89PNG\r\n\x1a\n"
EXAMPLES = Path(__file__).parents[3] / "examples"
RECORDS = 520
WINDOW_MS = 300_000
# Bad for the pipeline `events` alone: the other examples do not ask for these.
LATE_OR_AHEAD = {"time is more than 5 minutes late", "time is more than 1 minute ahead"}
NEGATIVE = {"not event.amount > 0"}
_numbers = itertools.count()


@attrs.frozen
class OrdersHarness:
    """Orders in a topic of the test's own, and examples that read it."""

    spark: Any
    servers: str
    topic: str
    folder: Path
    options: EventsOptions
    sent: list[Sent]
    expected: trial.Expected
    monkeypatch: pytest.MonkeyPatch

    def run(self, example: str, *arguments: object) -> None:
        """As `python examples/EXAMPLE HOST:PORT TOPIC ARGUMENTS`, in the session of all tests."""
        self.monkeypatch.setattr(sys, "argv", [example, self.servers, self.topic, *map(str, arguments)])
        self.monkeypatch.setattr(type(self.spark), "stop", lambda _session: None)
        runpy.run_path(str(EXAMPLES / example), run_name="__main__")

    def picture(self, path: Path) -> bytes:
        """The picture that an example has drawn; a PNG's first bytes where there is no Matplotlib."""
        if importlib.util.find_spec("matplotlib") is None:
            assert not path.exists()
            return PNG
        return path.read_bytes()

    def new_topic(self, suffix: str) -> str:
        name = f"{self.topic}.{suffix}"
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            admin.create_topics([NewTopic(name, num_partitions=2)])
        return name

    def good(self, *tolerated: set[str]) -> list[Sent]:
        """The records that are good if these errors are none."""
        fine = {None, *itertools.chain(*tolerated)}
        return [each for each in self.sent if each.error in fine]

    def values(self, *tolerated: set[str]) -> list[dict[str, Any]]:
        return [json.loads(each.value or b"", parse_float=Decimal) for each in self.good(*tolerated)]

    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"


@pytest.fixture
def harness(spark: Any, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OrdersHarness:
    topic = f"orders-{next(_numbers)}"
    options = orders.order_options(
        bootstrap_servers=servers,
        topic=topic,
        checkpoint=str(tmp_path / "checkpoint"),
        output=str(tmp_path / "output"),
        dead_letter_topic=f"{topic}.dead",
        window_topic=f"{topic}.windows",
    )
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(topic, num_partitions=2)])
    # Up to the first quarter of an hour of today or the day before: two dates, and no record of the future.
    start_ms = time.time_ns() // 1_000_000 // 86_400_000 * 86_400_000 - RECORDS * 500
    sent = list(orders.generate(RECORDS, start_ms, options))
    expected = trial.send(sent, options)
    return OrdersHarness(spark, servers, topic, tmp_path, options, sent, expected, monkeypatch)


def ids(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(row["order_id"] for row in rows)


def parquet(folder: Path) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    return list(pq.read_table(str(folder)).to_pylist())


def headers(record: Any) -> dict[str, str]:
    return {name: value.decode() for name, value in record.headers}


def test_etl_writes_every_good_row_once_by_date_and_goes_on_where_it_ended(harness: OrdersHarness) -> None:
    output = harness.folder / "output"
    harness.run("spark_etl_parquet.py", output, harness.checkpoint())
    assert ids(parquet(output)) == ids(harness.values(LATE_OR_AHEAD, NEGATIVE))
    for row in parquet(output):
        assert str(row["date"]) == row["time"].strftime("%Y-%m-%d")
    assert len(list(output.glob("date=*"))) == 2
    assert harness.picture(output / "_orders.png").startswith(PNG)

    trial.send(harness.sent[:10], harness.options)
    harness.run("spark_etl_parquet.py", output, harness.checkpoint())
    assert ids(parquet(output)) == ids(harness.values(LATE_OR_AHEAD, NEGATIVE)) + ids(
        [json.loads(each.value or b"") for each in harness.sent[:10]]
    )


def test_windows_are_written_whenever_they_have_changed_and_the_newest_record_holds(
    harness: OrdersHarness,
) -> None:
    topic = harness.new_topic("windows")
    harness.run("spark_windowed_agg.py", topic, harness.checkpoint())
    assert harness.picture(harness.folder / "checkpoint.png").startswith(PNG)
    newest = {
        record.key: json.loads(record.value or b"", parse_float=Decimal)
        for record in trial.read_topic(harness.servers, topic)
    }

    counts: Counter[tuple[int, str]] = Counter()
    sums: Counter[tuple[int, str]] = Counter()
    for row in harness.values(LATE_OR_AHEAD, NEGATIVE):
        place = trial.milliseconds(row["time"]) // WINDOW_MS * WINDOW_MS, row["product"]
        counts[place] += 1
        sums[place] += row["amount"]
    found = {(trial.milliseconds(row["window_start"]), row["product"]): row for row in newest.values()}
    assert {place: row["events"] for place, row in found.items()} == counts
    assert {place: row["sum_amount"] for place, row in found.items()} == sums
    for key, row in newest.items():
        assert json.loads(key or b"") == {"window_start": row["window_start"], "product": row["product"]}


def test_orders_get_the_columns_of_the_table_and_keep_key_time_and_source(harness: OrdersHarness) -> None:
    topic = harness.new_topic("enriched")
    table = harness.folder / "products.csv"
    table.write_text("product,origin,organic\nbread,Lyon,true\ncheese,Gouda,false\n")
    harness.run("spark_enrich_writeback.py", topic, table, harness.checkpoint())

    assert harness.picture(harness.folder / "checkpoint.png").startswith(PNG)
    origins = {"bread": ("Lyon", True), "cheese": ("Gouda", False)}
    expected = {row["order_id"]: row for row in harness.values(LATE_OR_AHEAD, NEGATIVE)}
    records = trial.read_topic(harness.servers, topic)
    sources = set()
    for record in records:
        row = json.loads(record.value or b"", parse_float=Decimal)
        wanted = expected.pop(row["order_id"])
        assert (row["origin"], row["organic"]) == origins.get(wanted["product"], (None, None))
        assert row["amount"] == wanted["amount"]
        assert record.key == wanted["product"].encode()
        of = headers(record)
        sources.add((of["kclient.source.topic"], of["kclient.source.partition"], of["kclient.source.offset"]))
    assert expected == {}
    assert len(sources) == len(records)
    assert {record.timestamp_ms for record in records} <= {each.timestamp_ms for each in harness.sent}


def test_a_range_of_time_is_filled_in_and_a_folder_that_is_there_is_left_alone(
    harness: OrdersHarness,
) -> None:
    from kclient.spark.pipelines.backfill import run_backfill

    output = harness.folder / "output"
    start_ms, end_ms = harness.sent[100].timestamp_ms, harness.sent[400].timestamp_ms
    within = [
        each for each in harness.good(LATE_OR_AHEAD, NEGATIVE) if start_ms <= each.timestamp_ms < end_ms
    ]
    wanted = ids([json.loads(each.value or b"") for each in within])
    iso = [datetime.fromtimestamp(each / 1000, UTC).isoformat() for each in (start_ms, end_ms)]
    harness.run("spark_backfill.py", output, *iso)
    assert ids(parquet(output)) == wanted
    assert harness.picture(output / "_orders.png").startswith(PNG)
    with pytest.raises(ConfigError, match=r"output is .* which is there already; overwrite replaces it"):
        harness.run("spark_backfill.py", output, *iso)

    options = BackfillOptions(
        bootstrap_servers=harness.servers,
        topic=harness.topic,
        schema=orders.SCHEMA,
        time_column="time",
        required=("order_id", "amount"),
        start_ms=start_ms,
        end_ms=end_ms,
        output=str(output),
        overwrite=True,
    )
    done = run_backfill(harness.spark, options)
    assert (done.records, done.records - done.bad) == (300, len(within))
    assert ids(parquet(output)) == wanted
    future = attrs.evolve(options, start_ms=end_ms + 86_400_000, end_ms=end_ms + 90_000_000)
    assert run_backfill(harness.spark, future).records == 0


def test_bad_rows_go_with_their_reason_and_good_ones_as_they_are(harness: OrdersHarness) -> None:
    output, dead = harness.new_topic("good"), harness.new_topic("dead")
    harness.run("spark_dlq.py", output, dead, harness.checkpoint())
    assert harness.picture(harness.folder / "checkpoint.png").startswith(PNG)
    good = Counter(
        (record.key, record.value, record.timestamp_ms)
        for record in trial.read_topic(harness.servers, output)
    )
    assert good == Counter((each.key, each.value, each.timestamp_ms) for each in harness.good(LATE_OR_AHEAD))

    letters = trial.read_topic(harness.servers, dead)
    places = {
        (
            headers(each)["kclient.source.partition"],
            headers(each)["kclient.source.offset"],
            each.value,
            headers(each)["kclient.error"],
        )
        for each in letters
    }
    assert places == {
        (str(each.partition), str(each.offset), each.value, each.error)
        for each in harness.expected.letters
        if each.error not in LATE_OR_AHEAD
    }
    assert len(places) == len(letters)


def test_the_whole_way_comes_to_what_plain_python_computes(
    harness: OrdersHarness, capfd: pytest.CaptureFixture[str]
) -> None:
    harness.new_topic("dead")
    harness.new_topic("windows")
    harness.run("spark_pipeline.py", harness.folder / "output", harness.checkpoint())
    assert trial.differences(trial.outcome(harness.options), harness.expected) == []
    assert harness.picture(harness.folder / "output" / "orders.png").startswith(PNG)
    assert "events: 0 behind" in capfd.readouterr().out
