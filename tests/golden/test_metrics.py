"""Metrics against those of the Java client after the same work. What is left out is listed here with its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from harness.golden import golden_table
from kclient.admin import KafkaAdminClient
from kclient.admin.types import NewTopic
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.metrics import MetricValues
from kclient.producer import KafkaProducer

pytestmark = pytest.mark.golden

Key: TypeAlias = tuple[str, str, tuple[str, ...]]
"""Group, name, names of tags."""

TABLE = golden_table("metrics")
CLIENTS = ("admin", "consumer", "producer")
GUIDE = Path(__file__).parent.parent.parent / "docs" / "observability.md"

_TEXT = "it is a text, or the time of a start: the log has that, and telemetry's labels"
_NO_TWO_PHASES = "there are no prepared transactions yet"
LEFT_OUT = {
    ("app-info", "commit-id"): _TEXT,
    ("app-info", "start-time-ms"): _TEXT,
    ("app-info", "version"): _TEXT,
    ("kafka-metrics-count", "count"): "the length of metrics() is it",
    ("producer-metrics", "record-size-max"): "it would have to look at every record",
    ("producer-metrics", "txn-prepare-time-ns-total"): _NO_TWO_PHASES,
    **{
        (
            f"{client}-metrics",
            "successful-authentication-no-reauth-total",
        ): "it is for brokers; clients can always authenticate again"
        for client in ("admin-client", "consumer", "producer")
    },
}


def javas(client: str) -> set[Key]:
    return {(row["group"], row["name"], tuple(row["tags"])) for row in TABLE[client]}


@pytest.fixture(scope="module")
def measured() -> Iterator[dict[str, MetricValues]]:
    """The metrics of one client of each kind that has done what the Java clients did."""
    where = {"bootstrap_servers": "embedded://metered"}
    with (
        KafkaAdminClient(**where) as admin,
        KafkaProducer(**where) as producer,
        KafkaConsumer(**where, group_id="metered", auto_offset_reset="earliest") as consumer,
    ):
        admin.create_topics([NewTopic("metered", 2)])
        for number in range(100):
            producer.send("metered", bytes(100), partition=number % 2)
        producer.flush()
        consumer.subscribe(["metered"])
        read = 0
        while read < 100:
            read += len(consumer.poll(1000))
        consumer.commit_sync()
        consumer.committed([TopicPartition("metered", 0)])
        consumer.poll(0)
        yield {"admin": admin.metrics(), "consumer": consumer.metrics(), "producer": producer.metrics()}


def keys(values: MetricValues) -> set[Key]:
    return {(name.group, name.name, tuple(sorted(key for key, _ in name.tags))) for name in values}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_has_the_metrics_of_java_but_for_what_is_left_out(
    measured: dict[str, MetricValues], client: str
) -> None:
    missing = {key for key in javas(client) - keys(measured[client]) if key[:2] not in LEFT_OUT}
    assert not missing


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_has_no_metric_that_java_has_not(measured: dict[str, MetricValues], client: str) -> None:
    assert not keys(measured[client]) - javas(client)


def test_nothing_is_left_out_that_is_there_or_that_java_has_not(measured: dict[str, MetricValues]) -> None:
    there = {key[:2] for client in CLIENTS for key in keys(measured[client])}
    known = {key[:2] for client in CLIENTS for key in javas(client)}
    assert not LEFT_OUT.keys() & there
    assert not LEFT_OUT.keys() - known


@pytest.mark.parametrize("client", CLIENTS)
def test_every_total_of_traffic_has_moved(measured: dict[str, MetricValues], client: str) -> None:
    values = measured[client]
    for name in ("request", "response", "outgoing-byte", "incoming-byte", "network-io", "select"):
        assert values[f"{name}-total"] > 0, name
        assert values[f"{name}-rate"] > 0, name
    assert values["connection-count"] > 0
    assert values["connection-creation-total"] > 0


# Nothing has failed, waited long enough to be measured in ms, been authenticated or lagged behind; and whether the
# member has sent a heartbeat by now is up to the machine.
STILL = re.compile(
    ".*(error|retry|split|exhausted|throttle|authentication|failed|latency|time|lag|lead|wait|connection-close"
    "|heartbeat|ratio|age|ago|replica|waiting|in-flight).*"
)


@pytest.mark.parametrize("client", CLIENTS)
def test_every_figure_of_what_was_done_has_moved(measured: dict[str, MetricValues], client: str) -> None:
    still = {
        str(name)
        for name, value in measured[client].items()
        if not value > 0 and not STILL.fullmatch(name.name) and ("node-id", "node--1") not in name.tags
    }
    assert not still


def documented() -> set[Key]:
    """The rows of the tables of clients: group, names, tags; a name that begins with a dash is another ending."""
    found: set[Key] = set()
    section = (
        GUIDE.read_text(encoding="utf-8").split("\n## Metrics\n")[1].split("\n### The embedded broker\n")[0]
    )
    for group, names, tags in re.findall(r"^\| (`[^|]*) \| (`[^|]*) \|([^|]*)\|", section, re.MULTILINE):
        first, *more = re.findall(r"`([^`]+)`", names)
        endings = [first, *(first.rpartition("-")[0] + each if each[0] == "-" else each for each in more)]
        tag_names = tuple(sorted(("client-id", *re.findall(r"`([^`]+)`", tags))))
        found |= {(each, name, tag_names) for each in re.findall(r"`([^`]+)`", group) for name in endings}
    return found


def test_the_guide_has_every_metric_and_no_other(measured: dict[str, MetricValues]) -> None:
    there = {key for client in CLIENTS for key in keys(measured[client])}
    assert documented() == there
