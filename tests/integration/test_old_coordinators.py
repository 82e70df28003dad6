"""Brokers that only know the versions of FindCoordinator and OffsetFetch that ask for one group at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.network.scripted_broker import ScriptedBroker, cluster_of
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import (
    Errors,
    GroupAuthorizationError,
    KafkaError,
    TopicAuthorizationError,
    UnknownServerError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import RequestHeader
from kclient.protocol.messages.find_coordinator import FindCoordinatorResponse
from kclient.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
FIND_VERSIONS = range(4)
FETCH_VERSIONS = range(ApiKeys.OFFSET_FETCH.min_version, 8)


@pytest.fixture
def brokers() -> Iterator[list[ScriptedBroker]]:
    """Two brokers with the versions before the batched ones; the second coordinates every group."""
    made = cluster_of(2, {"t": 2, "u": 1})
    for broker in made:
        limit(broker, ApiKeys.FIND_COORDINATOR, 3)
        limit(broker, ApiKeys.OFFSET_FETCH, 7)
        broker.on(ApiKeys.FIND_COORDINATOR, lambda _header, _message: found(made[1]))
    with made[0], made[1]:
        yield made
        assert [error for broker in made for error in broker.errors] == []


def limit(broker: ScriptedBroker, api: ApiKeys, highest: int) -> None:
    broker.versions[api] = (min(api.min_version, highest), highest)


def found(coordinator: ScriptedBroker) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(node_id=coordinator.node_id, host="127.0.0.1", port=coordinator.port)


def consumer(brokers: list[ScriptedBroker], **settings: Any) -> KafkaConsumer[bytes, bytes]:
    # One bootstrap broker, the one that is not the coordinator.
    return KafkaConsumer(
        bootstrap_servers=brokers[0].bootstrap,
        group_id="g",
        enable_auto_commit=False,
        default_api_timeout_ms=20_000,
        retry_backoff_ms=5,
        retry_backoff_max_ms=20,
        reconnect_backoff_ms=5,
        **settings,
    )


def committed(
    offsets: dict[TopicPartition, int], codes: dict[TopicPartition, int] | None = None
) -> Callable[[RequestHeader, Any], OffsetFetchResponse]:
    """Answers with these offsets, in leader epoch 3 where the version has one, and -1 for what is not there."""

    def answer(header: RequestHeader, request: Any) -> OffsetFetchResponse:
        topics = []
        for asked in request.topics:
            partitions = []
            for number in asked.partition_indexes:
                tp = TopicPartition(asked.name, number)
                known = tp in offsets
                partitions.append(
                    OffsetFetchResponsePartition(
                        partition_index=number,
                        committed_offset=offsets.get(tp, -1),
                        committed_leader_epoch=3 if known and header.api_version >= 5 else -1,
                        metadata="note" if known else None,
                        error_code=(codes or {}).get(tp, 0),
                    )
                )
            topics.append(OffsetFetchResponseTopic(name=asked.name, partitions=partitions))
        return OffsetFetchResponse(topics=topics)

    return answer


def refused(code: int) -> Callable[[RequestHeader, Any], OffsetFetchResponse]:
    """Answers with an error of the group, which version 1 can only say for each partition."""

    def answer(header: RequestHeader, request: Any) -> OffsetFetchResponse:
        if header.api_version >= 2:
            return OffsetFetchResponse(error_code=code)
        everything = {
            TopicPartition(t.name, number): code for t in request.topics for number in t.partition_indexes
        }
        return committed({}, everything)(header, request)

    return answer


def headers(broker: ScriptedBroker, api: ApiKeys) -> list[RequestHeader]:
    return [header for header, _ in list(broker.requests) if header.api_key is api]


@pytest.mark.parametrize("version", FIND_VERSIONS)
def test_the_coordinator_is_asked_for_by_one_key_and_used(
    brokers: list[ScriptedBroker], version: int
) -> None:
    for broker in brokers:
        limit(broker, ApiKeys.FIND_COORDINATOR, version)
        broker.on(ApiKeys.OFFSET_FETCH, committed({T0: 7}))
    with consumer(brokers) as made:
        assert made.committed([T0])[T0] is not None
    asked = [m for broker in brokers for m in broker.received(ApiKeys.FIND_COORDINATOR)]
    assert [(message.key, message.key_type, message.coordinator_keys) for message in asked] == [("g", 0, [])]
    sent = [header for broker in brokers for header in headers(broker, ApiKeys.FIND_COORDINATOR)]
    assert [header.api_version for header in sent] == [version]
    assert brokers[0].received(ApiKeys.OFFSET_FETCH) == []
    assert len(brokers[1].received(ApiKeys.OFFSET_FETCH)) == 1


@pytest.mark.parametrize("version", FIND_VERSIONS)
def test_a_coordinator_that_is_not_there_yet_is_asked_for_again(
    brokers: list[ScriptedBroker], version: int
) -> None:
    for broker in brokers:
        limit(broker, ApiKeys.FIND_COORDINATOR, version)
        broker.answer(
            ApiKeys.FIND_COORDINATOR, FindCoordinatorResponse(error_code=Errors.COORDINATOR_NOT_AVAILABLE)
        )
        broker.on(ApiKeys.OFFSET_FETCH, committed({T0: 7}))
    with consumer(brokers) as made:
        assert made.committed([T0])[T0] is not None
    assert 2 <= sum(len(broker.received(ApiKeys.FIND_COORDINATOR)) for broker in brokers) <= 3


@pytest.mark.parametrize("version", FIND_VERSIONS)
@pytest.mark.parametrize(
    ("code", "error"),
    [(Errors.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError), (32000, UnknownServerError)],
)
def test_a_search_that_is_refused_is_raised_with_its_code(
    brokers: list[ScriptedBroker], version: int, code: int, error: type[KafkaError]
) -> None:
    for broker in brokers:
        limit(broker, ApiKeys.FIND_COORDINATOR, version)
        broker.answer(ApiKeys.FIND_COORDINATOR, FindCoordinatorResponse(error_code=code))
    with consumer(brokers) as made, pytest.raises(error) as caught:
        made.committed([T0])
    assert caught.value.code == code


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_offsets_are_asked_for_one_group_and_read_as_far_as_the_version_has_them(
    brokers: list[ScriptedBroker], version: int
) -> None:
    limit(brokers[1], ApiKeys.OFFSET_FETCH, version)
    brokers[1].on(ApiKeys.OFFSET_FETCH, committed({T0: 7, U0: 0}))
    with consumer(brokers) as made:
        offsets = made.committed([U0, T1, T0])
    epoch = 3 if version >= 5 else None
    assert offsets == {
        U0: OffsetAndMetadata(0, "note", epoch),
        T1: None,
        T0: OffsetAndMetadata(7, "note", epoch),
    }
    (header,) = headers(brokers[1], ApiKeys.OFFSET_FETCH)
    (request,) = brokers[1].received(ApiKeys.OFFSET_FETCH)
    assert header.api_version == version
    assert (request.group_id, request.groups) == ("g", [])
    assert {topic.name: topic.partition_indexes for topic in request.topics} == {"t": [0, 1], "u": [0]}
    assert request.require_stable is (version >= 7)  # older brokers cannot tell (KIP-447)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_reading_starts_at_the_committed_offset(brokers: list[ScriptedBroker], version: int) -> None:
    limit(brokers[1], ApiKeys.OFFSET_FETCH, version)
    # Without leader epochs there is nothing to check a position against.
    for broker in brokers:
        limit(broker, ApiKeys.OFFSET_FOR_LEADER_EPOCH, 0)
    brokers[1].on(ApiKeys.OFFSET_FETCH, committed({T0: 7}))
    with consumer(brokers) as made:
        made.assign([T0])
        assert made.position(T0) == 7


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_a_coordinator_that_loads_is_asked_again_and_one_that_has_moved_is_looked_for(
    brokers: list[ScriptedBroker], version: int
) -> None:
    limit(brokers[1], ApiKeys.OFFSET_FETCH, version)
    brokers[1].once(ApiKeys.OFFSET_FETCH, refused(Errors.COORDINATOR_LOAD_IN_PROGRESS))
    brokers[1].once(ApiKeys.OFFSET_FETCH, refused(Errors.NOT_COORDINATOR))
    brokers[1].on(ApiKeys.OFFSET_FETCH, committed({T0: 7}))
    with consumer(brokers) as made:
        offset = made.committed([T0])[T0]
    assert offset is not None
    assert offset.offset == 7
    assert len(brokers[1].received(ApiKeys.OFFSET_FETCH)) == 3
    assert sum(len(broker.received(ApiKeys.FIND_COORDINATOR)) for broker in brokers) == 2


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@pytest.mark.parametrize(
    ("code", "error"),
    [(Errors.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError), (32000, UnknownServerError)],
)
def test_a_group_that_is_refused_is_raised_with_its_code(
    brokers: list[ScriptedBroker], version: int, code: int, error: type[KafkaError]
) -> None:
    limit(brokers[1], ApiKeys.OFFSET_FETCH, version)
    brokers[1].once(ApiKeys.OFFSET_FETCH, refused(code))
    with consumer(brokers) as made, pytest.raises(error) as caught:
        made.committed([T0])
    assert caught.value.code == code


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_errors_of_single_partitions_are_told_apart(brokers: list[ScriptedBroker], version: int) -> None:
    limit(brokers[1], ApiKeys.OFFSET_FETCH, version)
    missing = committed({T0: 7}, {U0: Errors.UNKNOWN_TOPIC_OR_PARTITION})
    brokers[1].once(ApiKeys.OFFSET_FETCH, missing)
    brokers[1].once(ApiKeys.OFFSET_FETCH, committed({T0: 7}, {U0: Errors.TOPIC_AUTHORIZATION_FAILED}))
    brokers[1].once(ApiKeys.OFFSET_FETCH, committed({T0: 7}, {T0: 32000}))
    with consumer(brokers) as made:
        assert made.committed([T0, U0])[U0] is None
        with pytest.raises(TopicAuthorizationError, match="u"):
            made.committed([T0, U0])
        with pytest.raises(UnknownServerError, match="32000"):
            made.committed([T0, U0])
