"""Rows that are too late for their window are counted exactly, and go where they can be seen."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from harness.topics import new_topic, read_all
from kclient.producer import KafkaProducer
from kclient.spark.pipelines import WindowOptions

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-late"),
    pytest.mark.timeout(300),
]

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
# Minutes of the events of each run of the query, which is a micro-batch and what closes windows after it.
RUNS = (
    (0, 0.5, 1, 1.5, 2),
    # The watermark is at 12:01, so one is late. 12:20 moves it to 12:19, which holds from the next micro-batch on.
    (20, 20.5, 0, 1),
    # Windows up to 12:02 are over: four rows. That of 12:19 is not.
    (0, 1, 1.2, 1.8, 19.5, 20),
)
LATE = [0, 1, 4]


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.parametrize("final", [False, True])
def test_late_rows_are_counted_and_become_dead_letters(
    spark: Any, servers: str, tmp_path: Path, final: bool
) -> None:
    from kclient.spark.pipelines.report import Progress, ProgressListener
    from kclient.spark.pipelines.source import wait
    from kclient.spark.pipelines.windows import start_windows

    topic = new_topic(servers, 2)
    options = WindowOptions(
        bootstrap_servers=servers,
        topic=topic,
        schema="time timestamp, amount decimal(12,2)",
        time_column="time",
        window="1 minute",
        watermark="1 minute",
        sums=("amount",),
        output_topic=new_topic(servers, 1),
        late_topic=new_topic(servers, 1),
        checkpoint=str(tmp_path / "checkpoint"),
        final=final,
    )
    late: list[int] = []
    sent: dict[bytes, timedelta] = {}
    for minutes in RUNS:
        with KafkaProducer(bootstrap_servers=servers) as producer:
            for minute in minutes:
                since = timedelta(minutes=minute)
                value = json.dumps({"time": (NOON + since).isoformat(), "amount": 1, "n": len(sent)}).encode()
                sent[value] = since
                producer.send(topic, value, key=b"%d" % len(sent))
        told: list[Progress] = []
        listener = ProgressListener(told.append)
        spark.streams.addListener(listener)
        query = start_windows(spark, options)
        wait(spark, [query])
        assert listener.wait_for([query])
        spark.streams.removeListener(listener)
        assert sum(each.rows for each in told) == len(minutes)
        late.append(sum(each.late_rows for each in told))
    assert late == LATE

    letters = read_all(servers, str(options.late_topic))
    assert len(letters) == sum(LATE)
    places = set()
    for letter in letters:
        headers = dict(letter.headers)
        assert headers["kclient.error"] == b"time is too late for its window"
        places.add((headers["kclient.source.partition"], headers["kclient.source.offset"]))
        assert letter.value in sent
    assert len(places) == sum(LATE)

    # All others, and no late one, are in windows that were written, or would be.
    if not final:
        newest = {
            record.key: json.loads(record.value or b"") for record in read_all(servers, options.output_topic)
        }
        assert sum(row["events"] for row in newest.values()) == len(sent) - sum(LATE)


def test_the_watermark_that_counts_is_that_of_the_micro_batch_before(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    from kclient.spark.pipelines.report import Progress, ProgressListener
    from kclient.spark.pipelines.source import wait
    from kclient.spark.pipelines.windows import start_windows

    topic = new_topic(servers, 1)
    options = WindowOptions(
        bootstrap_servers=servers,
        topic=topic,
        schema="time timestamp",
        time_column="time",
        window="1 minute",
        watermark="1 minute",
        output_topic=new_topic(servers, 1),
        late_topic=new_topic(servers, 1),
        checkpoint=str(tmp_path / "checkpoint"),
        max_offsets_per_trigger=3,
    )
    with KafkaProducer(bootstrap_servers=servers) as producer:
        # The second three come when the watermark is at 12:19, and are held against none; the third ones come when it
        # is at 12:29, and are held against 12:19.
        for minute in (0, 0.5, 20, 1, 1.5, 30, 1.2, 25, 26):
            producer.send(
                topic, json.dumps({"time": (NOON + timedelta(minutes=minute)).isoformat()}).encode()
            )
    told: list[Progress] = []
    listener = ProgressListener(told.append)
    spark.streams.addListener(listener)
    query = start_windows(spark, options)
    wait(spark, [query])
    assert listener.wait_for([query])
    spark.streams.removeListener(listener)
    assert [each.late_rows for each in told if each.rows] == [0, 0, 1]
    assert [letter.offset for letter in read_all(servers, str(options.late_topic))] == [0]
    newest = {
        record.key: json.loads(record.value or b"") for record in read_all(servers, options.output_topic)
    }
    assert sum(row["events"] for row in newest.values()) == 8


def test_without_a_topic_for_them_they_are_only_counted(spark: Any, servers: str, tmp_path: Path) -> None:
    from kclient.spark.pipelines.late import LateRows

    options = attrs.evolve(
        WindowOptions(
            bootstrap_servers=servers,
            topic="t",
            schema="time timestamp",
            time_column="time",
            output_topic="out",
            checkpoint=str(tmp_path),
        )
    )
    # There is nothing in the checkpoint that it could look at.
    LateRows(spark, options, options.checkpoint).write(3)
