"""`kclient pipeline`: pipelines on Spark that people run, and a demonstration of them.

Help and the check of options need no PySpark.
"""

from __future__ import annotations

import argparse
import re
import signal
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kclient.cli import dead_letters
from kclient.cli.common import complain, error_console
from kclient.cli.pipeline_arguments import PIPELINES, add_pipeline, pipeline_options, with_flags
from kclient.errors import ConfigError
from kclient.utils.time import SYSTEM_TIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PAUSE_MS = 10_000
"""The most that a query which is told to end is given to come to the end of its micro-batch."""
_LOOK_MS = 20

# Spark shows an error of Python code as a traceback within its own; the last such line says what was wrong,
# unless PySpark's own code stumbled over it then.
_PYTHON_ERROR = re.compile(r"^((?:[A-Za-z_]\w*\.)*)[A-Z]\w*(?:Error|Exception): (.+)", re.MULTILINE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = parser.add_subparsers(dest="pipeline", metavar="NAME", required=True)
    for name in PIPELINES:
        add_pipeline(names, name)
    dead_letters.add_arguments(names)


def run(options: argparse.Namespace) -> int:
    if options.pipeline == dead_letters.NAME:
        return dead_letters.run(options)
    # Before Spark is started, which takes seconds.
    chosen = None if options.pipeline == "demo" else pipeline_options(options)
    from kclient.spark.pipelines.session import check_spark, session

    check_spark()
    from pyspark.errors import PySparkException

    try:
        if options.pipeline == "demo":
            from kclient.spark.pipelines.demo import Demo

            return 0 if Demo(options.records, dict(options.conf), output=options.output).run() else 1
        spark = session(f"kclient pipeline {options.pipeline}", dict(options.conf), quiet=not options.verbose)
        try:
            return _run(spark, options.pipeline, chosen)
        except ConfigError as error:
            raise with_flags(error, options.pipeline) from None
        finally:
            spark.stop()
    except PySparkException as error:
        complain("error", _said(error))
        return 1


def _run(spark: SparkSession, name: str, options: Any) -> int:
    if name == "backfill":
        from kclient.spark.pipelines.backfill import run_backfill

        done = run_backfill(spark, options)
        print(f"{done.records - done.bad} rows written, {done.bad} bad ones left out")
        return 0
    from kclient.spark.pipelines.report import Progress, ProgressListener, Totals

    console = error_console()
    totals: dict[str, Totals] = {}

    def show(progress: Progress) -> None:
        console.print(str(progress), highlight=False, markup=False)
        totals.setdefault(progress.query, Totals()).add(progress)

    listener = ProgressListener(show)
    spark.streams.addListener(listener)
    queries = PIPELINES[name].start(spark, options)
    stopped = _wait(spark, queries)
    listener.wait_for(queries)
    for query, total in sorted(totals.items()):
        console.print(f"{query}: {total} in all", highlight=False, markup=False)
    # Being stopped is how a stream without an end ends.
    return 130 if stopped and options.every is None else 0


def _wait(spark: SparkSession, queries: Sequence[StreamingQuery]) -> bool:
    """Wait until the queries have ended, or SIGINT or SIGTERM has stopped them: whether that came.

    They are waited for on a thread: a signal in the middle of a call to the JVM would break the connection to it.
    """
    from kclient.spark.pipelines.source import wait

    over = threading.Event()
    signals: list[int] = []
    failures: list[Exception] = []

    def wait_for_the_end() -> None:
        try:
            wait(spark, queries)
        except Exception as error:
            failures.append(error)
        finally:
            over.set()

    def stop(number: int, _frame: object) -> None:
        signals.append(number)
        over.set()

    waiting = threading.Thread(target=wait_for_the_end, name="pipeline", daemon=True)
    before = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}
    try:
        waiting.start()
        over.wait()
        for query in queries:
            _await_pause(query, signals)
            query.stop()
        waiting.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if failures and not signals:
        raise failures[0]
    return bool(signals)


def _await_pause(query: StreamingQuery, signals: Sequence[int]) -> None:
    """Wait a while for the end of the micro-batch: of one that is cut off Spark tells in a thousand lines.

    A second signal ends that.
    """
    timer = SYSTEM_TIME.timer(_PAUSE_MS)
    while query.isActive and query.status["isTriggerActive"] and len(signals) < 2 and not timer.is_expired():
        SYSTEM_TIME.sleep_ms(_LOOK_MS)


def _said(error: Exception) -> str:
    """The line of an error of Spark's that a person can use."""
    text = str(error)
    found: list[tuple[str, str]] = _PYTHON_ERROR.findall(text)
    ours = [said for package, said in found if package.startswith("kclient.")]
    return (ours or [said for _, said in found] or [text.partition("\n")[0]])[-1]
