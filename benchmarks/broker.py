"""The real Apache Kafka that the tests use as well."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).resolve().parent.parent / "tests"


def real_kafka() -> Any:
    """The module tests/harness/real_kafka/broker.py, which only tests have on their path."""
    if str(_TESTS) not in sys.path:
        sys.path.append(str(_TESTS))
    return importlib.import_module("harness.real_kafka.broker")


def kafka_version(classpath: str) -> str:
    """As the names of the jars say it."""
    found = re.search(r"kafka-clients-([0-9.]+[0-9])", classpath)
    return found.group(1) if found else "unknown"
