"""Requests to all brokers and to leaders, as brokers see them; by the operations that need no more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.network.scripted_broker import Reply, ScriptedBroker, cluster_of
from kclient.admin import KafkaAdminClient, OffsetSpec
from kclient.admin.internals import fan_out
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    Errors,
    InvalidTopicError,
    KafkaTimeoutError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from kclient.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

TPS = [TopicPartition("t", number) for number in range(4)]


@pytest.fixture
def brokers() -> Iterator[list[ScriptedBroker]]:
    """Two, of which each leads every second partition of t, and answers with its id as the offset."""
    made = cluster_of(2, {"t": 4})
    for broker in made:
        broker.on(ApiKeys.LIST_OFFSETS, lambda h, m, broker=broker: offsets(m, broker.node_id))
        broker.start()
    yield made
    for broker in made:
        broker.stop()
        assert broker.errors == []


@pytest.fixture
def client(brokers: list[ScriptedBroker]) -> Iterator[KafkaAdminClient]:
    settings = {
        "bootstrap.servers": brokers[0].bootstrap,
        "retry.backoff.ms": 1,
        "retry.backoff.max.ms": 5,
        "reconnect.backoff.ms": 1,
    }
    with KafkaAdminClient(settings) as made:
        yield made


def offsets(message: Any, offset: int, codes: dict[int, int] | None = None) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=each.partition_index,
                        offset=offset,
                        error_code=(codes or {}).get(each.partition_index, 0),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in message.topics
        ]
    )


def asked(broker: ScriptedBroker) -> list[list[int]]:
    return [
        [each.partition_index for topic in request.topics for each in topic.partitions]
        for request in broker.received(ApiKeys.LIST_OFFSETS)
    ]


def listed(client: KafkaAdminClient, *partitions: TopicPartition, **more: Any) -> list[int]:
    found = client.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST), **more)
    assert list(found) == list(partitions)
    return [each.offset for each in found.values()]


def spoil_two_looks(brokers: list[ScriptedBroker], spoil: Callable[[MetadataResponse], None]) -> list[int]:
    """Have `spoil` change what the first two looks for leaders find; an entry for each look."""
    looks: list[int] = []

    def answered(header: Any, message: Any) -> MetadataResponse:
        answer = brokers[0].metadata()
        looks.extend([1] if message.topics else [])
        if message.topics and len(looks) < 3:
            spoil(answer)
        return answer

    for broker in brokers:
        broker.on(ApiKeys.METADATA, answered)
    return looks


def test_each_leader_is_asked_once_for_all_that_it_leads(
    client: KafkaAdminClient, brokers: list[ScriptedBroker]
) -> None:
    assert listed(client, *reversed(TPS)) == [1, 0, 1, 0]
    assert [asked(broker) for broker in brokers] == [[[0, 2]], [[1, 3]]]


def test_a_partition_whose_leader_moved_is_asked_of_the_new_one(
    client: KafkaAdminClient, brokers: list[ScriptedBroker]
) -> None:
    def moved(header: Any, message: Any) -> ListOffsetsResponse:
        brokers[0].topics["t"] = brokers[1].topics["t"] = 4
        for broker in brokers:
            broker.brokers = [brokers[1], brokers[0]]
        return offsets(message, 0, {2: Errors.NOT_LEADER_OR_FOLLOWER})

    brokers[0].once(ApiKeys.LIST_OFFSETS, moved)
    assert listed(client, TPS[0], TPS[2]) == [0, 1]
    assert [asked(broker) for broker in brokers] == [[[0, 2]], [[2]]]


def test_a_partition_without_a_leader_is_waited_for(
    client: KafkaAdminClient, brokers: list[ScriptedBroker]
) -> None:
    seen: list[int] = []

    def leaderless(header: Any, message: Any) -> Any:
        answer = brokers[0].metadata()
        if message.topics:
            seen.append(len(seen))
            if len(seen) < 3:
                answer.topics[0].partitions[2].error_code = Errors.LEADER_NOT_AVAILABLE
        return answer

    for broker in brokers:
        broker.on(ApiKeys.METADATA, leaderless)
    assert listed(client, TPS[0], TPS[2]) == [0, 0]
    assert asked(brokers[0]) == [[0], [2]]


def test_a_leader_that_dies_while_it_is_asked_has_a_successor(
    client: KafkaAdminClient, brokers: list[ScriptedBroker]
) -> None:
    def die(header: Any, message: Any) -> Reply:
        for broker in brokers:
            broker.brokers = [brokers[1]]
        return Reply.CLOSE

    brokers[0].on(ApiKeys.LIST_OFFSETS, die)
    assert listed(client, TPS[0], TPS[2]) == [1, 1]
    assert [asked(broker) for broker in brokers] == [[[0, 2]], [[0, 2]]]


def test_a_leader_whose_connection_breaks_may_be_none_any_more(
    client: KafkaAdminClient, brokers: list[ScriptedBroker]
) -> None:
    def close(header: Any, message: Any) -> Reply:
        for broker in brokers:
            broker.brokers = [brokers[1], brokers[0]]
        return Reply.CLOSE

    brokers[0].once(ApiKeys.LIST_OFFSETS, close)
    assert listed(client, TPS[0]) == [1]


def test_a_leader_that_is_new_in_the_cluster_is_found(brokers: list[ScriptedBroker]) -> None:
    brokers[0].brokers = brokers[:1]
    with KafkaAdminClient(bootstrap_servers=brokers[0].bootstrap) as client:
        client.list_topics()
        brokers[0].brokers = brokers
        assert listed(client, TPS[1]) == [1]
    # A refresh of the metadata may have told of the new one before.
    asked = [request for broker in brokers for request in broker.received(ApiKeys.METADATA)]
    assert sum(bool(request.topics) for request in asked) == 1


def test_a_leader_that_cannot_be_reached_has_a_successor(brokers: list[ScriptedBroker]) -> None:
    seen: list[int] = []

    def elected(header: Any, message: Any) -> Any:
        seen.extend([1] if message.topics else [])
        if len(seen) == 3:
            brokers[1].brokers = [brokers[1]]
        return brokers[1].metadata()

    brokers[1].on(ApiKeys.METADATA, elected)
    brokers[0].stop()
    with KafkaAdminClient(bootstrap_servers=brokers[1].bootstrap, retry_backoff_ms=1) as client:
        assert listed(client, TPS[0]) == [1]
    assert len(seen) == 3


def test_a_leader_that_has_left_the_cluster_has_a_successor(
    client: KafkaAdminClient, brokers: list[ScriptedBroker]
) -> None:
    def gone(answer: MetadataResponse) -> None:
        answer.topics[0].partitions[0].leader_id = 7

    looks = spoil_two_looks(brokers, gone)
    assert listed(client, TPS[0], TPS[1]) == [0, 1]
    assert len(looks) == 3


def test_a_topic_that_a_broker_has_not_heard_of_yet_is_looked_for_again(
    client: KafkaAdminClient, brokers: list[ScriptedBroker]
) -> None:
    def unheard_of(answer: MetadataResponse) -> None:
        answer.topics = [
            MetadataResponseTopic(name="t", error_code=Errors.UNKNOWN_TOPIC_OR_PARTITION, partitions=[])
        ]

    looks = spoil_two_looks(brokers, unheard_of)
    assert listed(client, TPS[0], TPS[1]) == [0, 1]
    assert len(looks) == 3


def test_what_does_not_exist_and_what_is_refused_hide_nothing_else(
    client: KafkaAdminClient, brokers: list[ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fan_out, "PROPAGATION_MS", 20)
    brokers[1].on(ApiKeys.LIST_OFFSETS, lambda h, m: offsets(m, 1, {3: Errors.TOPIC_AUTHORIZATION_FAILED}))
    missing, unknown = TopicPartition("t", 9), TopicPartition("u", 0)
    with pytest.raises(AdminError, match="t-3: ") as failed:
        listed(client, *TPS, missing, unknown)
    assert list(failed.value.results) == TPS[:3]
    errors = failed.value.errors
    assert list(errors) == [TPS[3], missing, unknown]
    assert isinstance(errors[missing], UnknownTopicOrPartitionError)
    assert isinstance(errors[unknown], UnknownTopicOrPartitionError)
    with pytest.raises(UnknownTopicOrPartitionError, match="failed for t-9"):
        listed(client, missing)


def test_an_error_of_the_topic_is_that_of_its_partitions(
    client: KafkaAdminClient, brokers: list[ScriptedBroker]
) -> None:
    def refused(header: Any, message: Any) -> Any:
        answer = brokers[0].metadata()
        answer.topics[0].error_code = Errors.INVALID_TOPIC_EXCEPTION
        answer.topics[0].partitions = []
        return answer

    for broker in brokers:
        broker.on(ApiKeys.METADATA, refused)
    with pytest.raises(InvalidTopicError, match="failed for t-0"):
        listed(client, TPS[0])


def test_what_an_answer_leaves_out_has_failed(
    client: KafkaAdminClient, brokers: list[ScriptedBroker]
) -> None:
    brokers[1].on(ApiKeys.LIST_OFFSETS, lambda h, m: ListOffsetsResponse(topics=[]))
    with pytest.raises(AdminError) as failed:
        listed(client, *TPS)
    assert list(failed.value.errors) == [TPS[1], TPS[3]]
    assert isinstance(failed.value.errors[TPS[1]], UnknownServerError)
    for broker in brokers:
        broker.on(
            ApiKeys.METADATA,
            lambda h, m: (answer := brokers[0].metadata(), answer.topics.clear())[0],
        )
    with pytest.raises(UnknownServerError, match="failed for t-0: The broker was asked for its leader"):
        listed(client, TPS[0])


def test_a_timeout_says_which_partition_failed_and_how(brokers: list[ScriptedBroker]) -> None:
    slow = {"retry.backoff.ms": 10_000, "retry.backoff.max.ms": 10_000}
    brokers[0].on(ApiKeys.LIST_OFFSETS, lambda h, m: offsets(m, 0, {0: Errors.NOT_LEADER_OR_FOLLOWER}))
    brokers[1].on(ApiKeys.LIST_OFFSETS, lambda h, m: Reply.NOTHING)
    with KafkaAdminClient(slow, bootstrap_servers=brokers[0].bootstrap) as client:
        with pytest.raises(KafkaTimeoutError, match=r"within 500 ms .* no time was left .* t-0: .*leader"):
            listed(client, TPS[0], timeout_ms=500)
        with pytest.raises(KafkaTimeoutError, match="t-1: LIST_OFFSETS to broker 1 got no answer in time"):
            listed(client, TPS[1], timeout_ms=500)
        brokers[1].stop()
        with pytest.raises(KafkaTimeoutError, match=r"t-3: broker 1 cannot be reached: .*Connection refused"):
            listed(client, TPS[3], timeout_ms=500)


def test_every_broker_is_asked_and_one_that_fails_is_named(
    client: KafkaAdminClient, brokers: list[ScriptedBroker]
) -> None:
    for broker in brokers:
        answer = ListGroupsResponse(groups=[ListedGroup(group_id=f"g{broker.node_id}")])
        broker.answer(ApiKeys.LIST_GROUPS, answer)
    assert set(client.list_groups()) == {"g0", "g1"}
    brokers[0].answer(ApiKeys.LIST_GROUPS, answer)
    brokers[1].answer(ApiKeys.LIST_GROUPS, ListGroupsResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED))
    with pytest.raises(AdminError, match="broker 1: ") as failed:
        client.list_groups()
    assert (list(failed.value.results), list(failed.value.errors)) == (["g1"], ["broker 1"])


def test_many_partitions_are_no_more_work_each_than_a_few() -> None:
    class Counted(list[MetadataResponsePartition]):
        looks = 0

        def __iter__(self) -> Iterator[MetadataResponsePartition]:
            self.looks += 1
            return super().__iter__()

    partitions = Counted(MetadataResponsePartition(partition_index=each, leader_id=7) for each in range(50))
    answer = MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=partitions)])
    tps = [TopicPartition("t", each) for each in range(51)]
    found = fan_out._leaders(answer, tps)
    assert [found[tp] for tp in tps[:50]] == [7] * 50
    assert isinstance(found[tps[50]], UnknownTopicOrPartitionError)
    assert partitions.looks == 1
