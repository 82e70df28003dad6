"""One task of a read, on an executor: its range, and the numbers that it tells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kclient.spark.options import SourceOptions
from kclient.spark.output import OutputColumn
from kclient.spark.range_reader import ReadTally, read_range
from kclient.spark.ranges import OffsetRange
from kclient.spark.report_log import report_log
from kclient.spark.task_attempt import present_attempt
from kclient.spark.worker_garbage import task_begins
from kclient.spark.zip_finders import forget_zip_finders
from kclient.utils.time import SYSTEM_TIME

if TYPE_CHECKING:
    from kclient.spark.task_metrics import Counter

_log = report_log()


def read_task(
    options: SourceOptions, output: Sequence[OutputColumn], wanted: OffsetRange, counter: Counter | None
) -> Iterator[Any]:
    """The records of the range, as `read_range` has them. At the end they are counted, and logged as a line of JSON."""
    attempt = present_attempt()
    if attempt is not None:
        task_begins()
    tally, began_ms = ReadTally(), SYSTEM_TIME.monotonic_ms()
    yield from read_range(options, output, wanted, tally)
    task_ms = SYSTEM_TIME.monotonic_ms() - began_ms
    line = {
        "read": {} if attempt is None else attempt.as_json(),
        "topic": wanted.tp.topic,
        "partition": wanted.tp.partition,
        "from": wanted.start,
        "to": wanted.end,
        "records": tally.records,
        "bytes": tally.bytes,
        "fetchMs": tally.fetch_ns // 1_000_000,
        "taskMs": task_ms,
    }
    _log.info("%s", json.dumps(line))
    if counter is not None:
        from kclient.spark.task_metrics import Counted, TaskNumbers

        query_id = None if attempt is None else attempt.query_id
        numbers = TaskNumbers(
            1, tally.records, tally.records, tally.bytes, tally.fetch_ns // 1_000_000, task_ms
        )
        counter.add({Counted(query_id, True, wanted.tp): numbers})
    forget_zip_finders()
