"""The metrics of a share consumer: Java's names, and what they count."""

from __future__ import annotations

import re
from pathlib import Path

from harness.consumer.share_model import ShareModel
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors

T0 = TopicPartition("t", 0)
# As the classes of the Java client 4.4 name them.
NAMES = {
    "consumer-share-metrics": {
        *("time-between-poll-avg", "time-between-poll-max", "poll-idle-ratio-avg", "last-poll-seconds-ago"),
    },
    "consumer-share-fetch-manager-metrics": {
        *("fetch-size-avg", "fetch-size-max", "bytes-consumed-rate", "bytes-consumed-total"),
        *("records-per-request-avg", "records-per-request-max"),
        *("records-consumed-rate", "records-consumed-total"),
        *("acknowledgements-send-rate", "acknowledgements-send-total"),
        *("acknowledgements-error-rate", "acknowledgements-error-total"),
        *("fetch-latency-avg", "fetch-latency-max", "fetch-rate", "fetch-total"),
        *("fetch-throttle-time-avg", "fetch-throttle-time-max"),
    },
    "consumer-share-coordinator-metrics": {
        *("heartbeat-rate", "heartbeat-total", "heartbeat-response-time-max", "last-heartbeat-seconds-ago"),
        *("rebalance-total", "rebalance-rate-per-hour"),
    },
}
OF_CONNECTIONS = re.compile(
    r"connection|request-|incoming|outgoing|network-io|response-|io-|select|reauth|authent|reset|failed|success"
)


def test_the_metrics_have_javas_names(share: ShareModel) -> None:
    share.subscribe()
    share.poll(50)
    found = share.consumer.metrics()
    for group, names in NAMES.items():
        there = {name.name for name in found if name.group == group}
        assert names <= there
        assert {name for name in there - names if not OF_CONNECTIONS.match(name)} == set()


def test_they_count_what_happens(share: ShareModel) -> None:
    share.subscribe()
    share.fill(T0, 3)
    assert len(share.poll()) == 3
    share.consumer.commit_sync()
    share.fill(T0, 2)
    assert len(share.poll()) == 2
    share.acknowledge_error[T0] = Errors.INVALID_RECORD_STATE
    share.consumer.commit_sync()
    found = share.consumer.metrics()
    assert found["records-consumed-total"] == 5
    assert found["acknowledgements-send-total"] == 5
    assert found["acknowledgements-error-total"] == 2
    assert found["records-per-request-max"] == 3
    assert found["heartbeat-total"] >= 1
    assert found["rebalance-total"] == 1


def test_the_guide_has_every_metric() -> None:
    guide = (Path(__file__).parents[4] / "docs" / "share-groups.md").read_text(encoding="utf-8")
    for group, names in NAMES.items():
        rows = " ".join(line for line in guide.splitlines() if line.startswith(f"| `{group}`"))
        for name in names:
            assert f"`{name}`" in rows or f"`-{name.rpartition('-')[2]}`" in rows, name
