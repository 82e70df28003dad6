"""Groups of kclient's, librdkafka's and Java's members, which come, leave, are killed and stopped all the time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.checker.log import HistoryLog
from harness.checker.report import check
from harness.real_kafka.broker import RealKafka
from harness.seeds import new_seed
from harness.soak.churn import Program, handed_out, not_committed
from harness.soak.group_churn import GroupChurn
from harness.soak.load import Load
from harness.soak.recorded import end_of, observe, read_to_end
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient

_PARTITIONS = 6
_LIBRDKAFKAS = ("poll skip: librdkafka-", "nonmonotonic poll: librdkafka-", "foreign poll: librdkafka-")
"""Anomalies of librdkafka alone: a member that was stopped hands out a record that it had fetched before it lost the
partition, and goes on with it. Whose the partitions are, and what is read in all, is judged of all members."""
_SHORT = 20
_SETTLE_S = 60
_JAVA = "org.apache.kafka.clients.consumer."
_SESSION = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 300}

_JAVA_SESSION = {"--session-timeout": "3000", "heartbeat.interval.ms": "300"}

_GROUPS: dict[str, list[tuple[Program, Mapping[str, object]]]] = {
    "eager": [
        ("kclient", {"partition.assignment.strategy": ["range"]}),
        ("librdkafka", {"partition.assignment.strategy": "range", **_SESSION}),
        ("java", {"--assignment-strategy": f"{_JAVA}RangeAssignor", **_JAVA_SESSION}),
    ],
    "cooperative": [
        ("kclient", {"partition.assignment.strategy": ["cooperative-sticky"]}),
        ("librdkafka", {"partition.assignment.strategy": "cooperative-sticky", **_SESSION}),
        ("kclient", {"partition.assignment.strategy": ["cooperative-sticky"]}),
        ("java", {"--assignment-strategy": f"{_JAVA}CooperativeStickyAssignor", **_JAVA_SESSION}),
    ],
    "consumer": [
        ("kclient", {"group.protocol": "consumer"}),
        ("librdkafka", {"group.protocol": "consumer"}),
        ("kclient", {"group.protocol": "consumer"}),
        ("java", {"--group-protocol": "consumer"}),
    ],
}


# Longer than the session, which with the consumer protocol is the broker's: the group goes on without the member.
_STOP_S = {"eager": 4.0, "cooperative": 4.0, "consumer": 8.0}


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("protocol", "steps"),
    [
        pytest.param("cooperative", _SHORT, id="cooperative"),
        pytest.param("consumer", _SHORT, id="consumer"),
        pytest.param(
            "consumer",
            200,
            id="consumer-200",
            marks=[pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(1800)],
        ),
        pytest.param("eager", 50, id="eager-50", marks=[pytest.mark.soak, pytest.mark.long]),
        pytest.param(
            "cooperative",
            200,
            id="cooperative-200",
            marks=[pytest.mark.soak, pytest.mark.long, pytest.mark.timeout(1800)],
        ),
    ],
)
def test_no_partition_is_lost_or_owned_twice(
    kafka: RealKafka, tmp_path: Path, protocol: str, steps: int
) -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed (pip install '.[peers]')")
    rng = random.Random(new_seed())
    servers = kafka.bootstrap_servers
    topic = new_topic(servers, _PARTITIONS)
    sends = tmp_path / "sends.jsonl"
    churn = GroupChurn(tmp_path, servers, topic, rng, programs=_GROUPS[protocol], stop_s=_STOP_S[protocol])
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        load = Load(servers, topic, f"load-{topic}", HistoryLog.at(sends), per_s=200)
        try:
            churn.fill()
            wait_until(lambda: churn.settled(_PARTITIONS), _SETTLE_S, "one owner for each partition")
            for _ in range(steps):
                churn.step()
                observe(admin, churn.group, churn.log)
            churn.fill()
            wait_until(lambda: churn.settled(_PARTITIONS), _SETTLE_S, "one owner for each partition again")
            load.stop()
            ended, ends = churn.log.now(), end_of(servers, topic)
            wait_until(
                lambda: handed_out(churn.history()) == ends, _SETTLE_S, "the group reading up to the end"
            )
            churn.log.at_end(churn.group, list(ends), at=ended)
            # A commit that is refused in a rebalance Java and librdkafka only log, and read on: what they leave behind
            # is read again by kclient's members, which owe all of it when they leave, one after another.
            last = churn.leave_to("kclient")

            def caught_up() -> bool:
                read, committed = handed_out(churn.history(), last), observe(admin, churn.group, churn.log)
                return all(end in (read.get(place), committed.get(place)) for place, end in ends.items())

            wait_until(caught_up, _SETTLE_S, "what others had not committed being read by kclient")
            churn.end(kill=False)
        finally:
            churn.end(kill=True)
        read_to_end(servers, topic, churn.log)
        committed = observe(admin, churn.group, churn.log)
    history = churn.history(sends)
    print(f"{len(churn.members)} members, {churn.steps}")
    assert load.recorded.problems == []
    assert [text for text in map(str, check(history)) if not text.startswith(_LIBRDKAFKAS)] == []
    assert not_committed(history, churn.names("kclient")) == []
    assert committed == dict.fromkeys(committed, 0) | ends
