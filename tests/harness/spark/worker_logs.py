"""The log of kclient's reports in Spark's Python workers, as Spark collects it from PySpark 4.1 on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from harness.waiting import wait_until


def need(spark: Any) -> None:
    """Skip the test where Spark does not collect them."""
    if not hasattr(spark.tvf, "python_worker_logs"):
        pytest.skip("PySpark collects the logs of workers from 4.1 on")


def reports(spark: Any, complete: Callable[[list[dict[str, Any]]], object]) -> list[dict[str, Any]]:
    """Return the reports of all workers, in any order, when they are `complete`.

    A thread of Spark's reads them from the workers, maybe after the query has ended.
    """
    found: list[dict[str, Any]] = []

    def look() -> object:
        logs = spark.tvf.python_worker_logs().where("logger = 'kclient.spark.report'").select("msg")
        found[:] = [json.loads(row.msg) for row in logs.collect()]
        return complete(found)

    wait_until(look, 60, "the logs of the Python workers")
    return found
