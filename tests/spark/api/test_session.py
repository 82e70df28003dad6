"""The session that pipelines make where there is none: what is set in it, and what is left to others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import pyspark.sql
import pytest

from kclient.spark import registration
from kclient.spark.pipelines import session as module


class Builder:
    """Stands for SparkSession.builder; its session knows nothing but what was set."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}

    def appName(self, name: str) -> Builder:
        self.settings["name"] = name
        return self

    def config(self, name: str, value: str) -> Builder:
        self.settings[name] = value
        return self

    def getOrCreate(self) -> Builder:
        return self


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, str] | None], dict[str, str]]:
    monkeypatch.setattr(module, "check_spark", lambda: None)
    monkeypatch.setattr(registration, "register", lambda _spark: None)
    without = {"PYSPARK_GATEWAY_PORT", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"}
    # A copy, as the session adds to it.
    environment = {name: value for name, value in os.environ.items() if name not in without}
    monkeypatch.setattr(os, "environ", environment)

    def make(settings: Mapping[str, str] | None) -> dict[str, str]:
        builder = Builder()
        stand_in: Any = type("SparkSession", (), {"builder": builder})
        monkeypatch.setattr(pyspark.sql, "SparkSession", stand_in)
        module.session("mine", settings)
        return builder.settings

    return make


def test_on_this_machine_there_are_as_many_shuffle_partitions_as_cores(made: Any) -> None:
    # Spark's 200 make a micro-batch of a few windows take half a minute here.
    assert made(None)["spark.sql.shuffle.partitions"] == str(os.cpu_count())
    assert made({"spark.master": "local[2]"})["spark.sql.shuffle.partitions"] == str(os.cpu_count())
    assert made({"spark.sql.shuffle.partitions": "7"})["spark.sql.shuffle.partitions"] == "7"


def test_a_cluster_decides_by_itself(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "spark.sql.shuffle.partitions" not in made({"spark.master": "spark://there:7077"})
    monkeypatch.setitem(os.environ, "PYSPARK_GATEWAY_PORT", "1")
    assert set(made(None)) == {"name", "spark.sql.session.timeZone"}
