"""The real Apache Kafka that the tests use as well."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).resolve().parent.parent / "tests" / "kafka"


def real_kafka() -> Any:
    """The module tests/kafka/real_kafka.py, which is in no package."""
    if str(_FOLDER) not in sys.path:
        sys.path.append(str(_FOLDER))
    return importlib.import_module("real_kafka")


def kafka_version(classpath: str) -> str:
    """As the names of the jars say it."""
    found = re.search(r"kafka-clients-([0-9.]+[0-9])", classpath)
    return found.group(1) if found else "unknown"
