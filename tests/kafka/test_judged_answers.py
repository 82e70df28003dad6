"""A real broker whose answers are spoilt or refused on their way; the checker judges what producers and groups saw.

A row is a fault of faults.md by its number, as in test_judged_faults.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from harness.network import edits
from harness.network.produce_answers import refuse
from harness.network.proxy import FaultProxy
from harness.real_kafka.broker import RealKafka
from harness.scenarios.faults import UnderFault, judged_behind
from harness.soak.recorded import RecordedProducer
from harness.topics import new_topic
from kclient.errors import (
    CorruptRecordError,
    ErrorCode,
    GroupAuthorizationError,
    KafkaError,
    TopicAuthorizationError,
    UnknownServerError,
    UnsupportedCompressionTypeError,
)
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.join_group import JoinGroupResponse
from kclient.protocol.messages.sync_group import SyncGroupResponse

_E = ErrorCode
_UNKNOWN = 32000
Fault = Callable[[FaultProxy, UnderFault], None]


def spoilt(*ways: edits.Spoiling) -> Fault:
    """Batches that are not what they say, on their way to members of both groups, each twice."""

    def fault(proxy: FaultProxy, running: UnderFault) -> None:
        running.happened(*(proxy.edit(ApiKeys.FETCH, edits.spoilt_batch(way), times=2) for way in ways))
        running.until(lambda: bool(running.errors()), "an error that names the batch")
        for member in running.members.values():
            assert [str(error) for error in member.errors if running.topic not in str(error)] == []

    return fault


def told(running: UnderFault, error: str) -> None:
    """Wait until a producer's caller and a member's application were told of it."""
    running.until(lambda: any(load.recorded.failed[error] for load in running.loads), f"{error} of a record")
    running.until(lambda: running.errors()[error] > 0, f"{error} of a member")


def unknown_codes(proxy: FaultProxy, running: UnderFault) -> None:
    """A code that nobody knows, whether or not the broker has done what was asked."""
    running.happened(
        proxy.answer(ApiKeys.PRODUCE, refuse(_UNKNOWN), times=3),
        proxy.answer(ApiKeys.PRODUCE, refuse(_UNKNOWN), times=3, pass_on=True),
        proxy.edit(ApiKeys.FETCH, edits.refused(_UNKNOWN), times=3),
        proxy.edit(ApiKeys.OFFSET_COMMIT, edits.refused(_UNKNOWN), times=3),
        proxy.edit(ApiKeys.HEARTBEAT, edits.refused(_UNKNOWN)),
        proxy.edit(ApiKeys.CONSUMER_GROUP_HEARTBEAT, edits.refused(_UNKNOWN)),
    )
    joined = [
        proxy.answer(ApiKeys.JOIN_GROUP, lambda _: JoinGroupResponse(error_code=_UNKNOWN)),
        proxy.answer(ApiKeys.SYNC_GROUP, lambda _: SyncGroupResponse(error_code=_UNKNOWN)),
    ]
    running.more_members("late", running.group)
    running.happened(*joined)
    running.wait_for_shares()
    told(running, "UnknownServerError")


_PRODUCE = (
    *(
        _E.UNKNOWN_TOPIC_OR_PARTITION,
        _E.LEADER_NOT_AVAILABLE,
        _E.NOT_LEADER_OR_FOLLOWER,
        _E.REQUEST_TIMED_OUT,
    ),
    *(_E.NETWORK_EXCEPTION, _E.NOT_ENOUGH_REPLICAS, _E.KAFKA_STORAGE_ERROR, _E.FENCED_LEADER_EPOCH),
)
_AFTER_APPEND = (_E.NOT_LEADER_OR_FOLLOWER, _E.REQUEST_TIMED_OUT, _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
_FETCH = (
    *(
        _E.UNKNOWN_TOPIC_OR_PARTITION,
        _E.LEADER_NOT_AVAILABLE,
        _E.NOT_LEADER_OR_FOLLOWER,
        _E.KAFKA_STORAGE_ERROR,
    ),
    *(_E.FENCED_LEADER_EPOCH, _E.UNKNOWN_LEADER_EPOCH, _E.OFFSET_NOT_AVAILABLE, _E.UNKNOWN_TOPIC_ID),
)
_SESSION = (_E.FETCH_SESSION_ID_NOT_FOUND, _E.INVALID_FETCH_SESSION_EPOCH, _E.FETCH_SESSION_TOPIC_ID_ERROR)
_COORDINATOR = (_E.COORDINATOR_LOAD_IN_PROGRESS, _E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR)


def passing_errors(proxy: FaultProxy, running: UnderFault) -> None:
    """Everything that a client tries again by itself."""
    rules = [proxy.answer(ApiKeys.PRODUCE, refuse(code)) for code in _PRODUCE]
    rules += [proxy.answer(ApiKeys.PRODUCE, refuse(code), pass_on=True) for code in _AFTER_APPEND]
    rules += [proxy.edit(ApiKeys.FETCH, edits.refused(code)) for code in _FETCH]
    rules += [proxy.edit(ApiKeys.FETCH, edits.session_refused(code)) for code in _SESSION]
    for api in (ApiKeys.OFFSET_COMMIT, ApiKeys.HEARTBEAT, ApiKeys.CONSUMER_GROUP_HEARTBEAT):
        rules += [proxy.edit(api, edits.refused(code)) for code in _COORDINATOR]
    rules.append(proxy.edit(ApiKeys.HEARTBEAT, edits.refused(_E.REBALANCE_IN_PROGRESS)))
    for code in _COORDINATOR:
        joins, syncs = JoinGroupResponse(error_code=code), SyncGroupResponse(error_code=code)
        rules.append(proxy.answer(ApiKeys.JOIN_GROUP, lambda _, joins=joins: joins))  # type: ignore[misc]
        rules.append(proxy.answer(ApiKeys.SYNC_GROUP, lambda _, syncs=syncs: syncs))  # type: ignore[misc]
    running.more_members("late", running.group)
    running.happened(*rules)
    running.wait_for_shares()
    assert [load.recorded.failed for load in running.loads if load.recorded.failed] == []


def poor_metadata(proxy: FaultProxy, running: UnderFault) -> None:
    changes = edits.without_brokers, edits.without_leaders, edits.without_partitions, edits.without_topics
    for change in changes:
        lacking = proxy.edit(ApiKeys.METADATA, change, times=3)
        not_leader = proxy.answer(ApiKeys.PRODUCE, refuse(_E.NOT_LEADER_OR_FOLLOWER), times=3)
        moved = proxy.edit(ApiKeys.FETCH, edits.refused(_E.NOT_LEADER_OR_FOLLOWER), times=2)
        running.happened(not_leader, moved, lacking)
    assert [load.recorded.failed for load in running.loads if load.recorded.failed] == []


def lost_producer_state(proxy: FaultProxy, running: UnderFault) -> None:
    """Brokers that do not know the producer any more, or the batch before: it begins a new epoch and sends again."""
    for code in (_E.UNKNOWN_PRODUCER_ID, _E.OUT_OF_ORDER_SEQUENCE_NUMBER):
        running.happened(proxy.answer(ApiKeys.PRODUCE, refuse(code), times=2))
        running.wait_for_progress()


def too_large_batches(proxy: FaultProxy, running: UnderFault) -> None:
    bulky = running.more_load("bulky", per_s=600, size=200, **{"linger.ms": 50})
    huge = running.more_load("huge", per_s=20, size=3000)
    running.until(lambda: bulky.metric("batch-split-total") >= 3, "batches that are split")
    running.until(lambda: huge.recorded.failed["RecordTooLargeError"] >= 3, "records that are too large")


def errors_of_records(proxy: FaultProxy, running: UnderFault) -> None:
    """A compacted topic takes no record without a key; the broker says which of a batch has none."""
    recorded = RecordedProducer(running.log.producer("keyless"))
    with KafkaProducer({"bootstrap.servers": proxy.bootstrap, "linger.ms": 100}) as producer:
        for turn in range(10):
            for number in range(20):
                key = None if turn % 2 and number == 7 else b"key"
                value = b"keyless:%d:%d" % (turn, number)
                recorded.send(producer, running.topic, value, key=key, partition=number % 3)
            producer.flush()
    recorded.closed()
    assert recorded.problems == []
    assert recorded.failed["InvalidRecordError"] >= 5
    assert recorded.acked >= 100


def rights_that_are_taken_away(proxy: FaultProxy, running: UnderFault) -> None:
    code = _E.TOPIC_AUTHORIZATION_FAILED
    running.happened(
        proxy.answer(ApiKeys.PRODUCE, refuse(code), times=3),
        proxy.edit(ApiKeys.FETCH, edits.refused(code), times=3),
        proxy.edit(ApiKeys.OFFSET_COMMIT, edits.refused(code), times=3),
        proxy.edit(ApiKeys.HEARTBEAT, edits.refused(_E.GROUP_AUTHORIZATION_FAILED)),
        proxy.edit(ApiKeys.CONSUMER_GROUP_HEARTBEAT, edits.refused(_E.GROUP_AUTHORIZATION_FAILED)),
    )
    told(running, "TopicAuthorizationError")
    running.until(lambda: running.errors()["GroupAuthorizationError"] > 0, "members who are told")


ROWS: Mapping[str, Fault] = {
    "F14": spoilt(edits.damaged),
    "F15": spoilt(*(edits.of_codec(number) for number in (1, 2, 3, 4, 5, 6, 7))),
    "F16": spoilt(edits.bomb),
    "F17": spoilt(
        *(edits.of_count(more) for more in (1, -1, 1_000_000)),
        *(edits.of_length(length) for length in (-1, 0, 20, 1 << 30)),
    ),
    "F18": unknown_codes,
    "F21": passing_errors,
    "F22": poor_metadata,
    "F25": lost_producer_state,
    "F26": too_large_batches,
    "F27": errors_of_records,
    "F52": rights_that_are_taken_away,
}
_TOPICS: Mapping[str, dict[str, str]] = {
    "F26": {"max_message_bytes": "1000"},
    "F27": {"cleanup_policy": "compact"},
}
_CONSUMING: Mapping[str, dict[str, object]] = {
    "F16": {"kclient.decompress.max.bytes": edits.BOMB_MB << 19},
    # No broker has a topic without partitions, and nobody asks sooner than this whether it has got some.
    "F22": {"metadata.max.age.ms": 1000},
}
_TOLERATED: Mapping[str, tuple[type[KafkaError], ...]] = {
    **dict.fromkeys(("F14", "F16"), (CorruptRecordError,)),
    "F15": (CorruptRecordError, UnsupportedCompressionTypeError),
    "F17": (KafkaError,),
    "F18": (UnknownServerError,),
    "F52": (TopicAuthorizationError, GroupAuthorizationError),
}


@pytest.mark.parametrize("row", ROWS)
def test_nothing_is_lost_doubled_out_of_order_or_committed_ahead(
    kafka: RealKafka, kafka_proxy: FaultProxy, tmp_path: Path, row: str
) -> None:
    topic = new_topic(kafka.bootstrap_servers, **_TOPICS.get(row, {}))
    with judged_behind(
        kafka_proxy,
        kafka,
        tmp_path,
        topic,
        consuming=_CONSUMING.get(row, {}),
        tolerated=_TOLERATED.get(row, ()),
    ) as running:
        ROWS[row](kafka_proxy, running)
