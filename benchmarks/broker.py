"""The brokers that the tests use as well: a real Apache Kafka, and the embedded one as a process."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).resolve().parent.parent / "tests"


def real_kafka() -> Any:
    """Return the module tests/harness/real_kafka/broker.py, which only tests have on their path."""
    return _of_the_tests("harness.real_kafka.broker")


def long_lived() -> tuple[str, ...]:
    """Return the options of a virtual machine that is to be fast, and not soon there."""
    options: tuple[str, ...] = _of_the_tests("harness.real_kafka.node").LONG_LIVED
    return options


def java_programs() -> Any:
    """Return the module tests/harness/real_kafka/java.py."""
    return _of_the_tests("harness.real_kafka.java")


def embedded_process() -> Any:
    """Return the class BrokerProcess of tests/harness/broker/process.py."""
    return _of_the_tests("harness.broker.process").BrokerProcess


def spark_cluster(folder: Path, workers: int) -> Any:
    """Return a standalone cluster of Spark, as tests/harness/spark/standalone.py has it."""
    return _of_the_tests("harness.spark.standalone").standalone_cluster(folder, workers)


def certificates() -> Any:
    """Return the module tests/harness/network/certificates.py."""
    return _of_the_tests("harness.network.certificates")


def _of_the_tests(module: str) -> Any:
    if str(_TESTS) not in sys.path:
        sys.path.append(str(_TESTS))
    return importlib.import_module(module)


def kafka_version(classpath: str) -> str:
    """As the names of the jars say it."""
    found = re.search(r"kafka-clients-([0-9.]+[0-9])", classpath)
    return found.group(1) if found else "unknown"
