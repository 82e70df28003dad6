"""The admin client when brokers refuse, move, fall silent or go away."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from harness.network.scripted_broker import Reply, ScriptedBroker, cluster_of
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic, OffsetSpec
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    ClientClosedError,
    ConfigError,
    Errors,
    GroupAuthorizationError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationError,
    UnknownServerError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from kclient.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from kclient.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kclient.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


def admin_of(broker: ScriptedBroker, **settings: object) -> KafkaAdminClient:
    return KafkaAdminClient(
        {"bootstrap.servers": broker.bootstrap, "retry.backoff.ms": 1, "retry.backoff.max.ms": 5, **settings}
    )


def created(code: int, message: str | None = None) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name="t", error_code=code, error_message=message)]
    )


def coordinator(broker: ScriptedBroker, code: int = 0) -> Any:
    host, port = broker.address

    def answer(header: Any, message: Any) -> FindCoordinatorResponse:
        if header.api_version < 4:
            return FindCoordinatorResponse(error_code=code, node_id=0, host=host, port=port)
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=0, host=host, port=port, error_code=code)
                for key in message.coordinator_keys
            ]
        )

    return answer


def offsets(code: int, offset: int = -1) -> ListOffsetsResponse:
    partition = ListOffsetsPartitionResponse(partition_index=0, error_code=code, offset=offset)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])


def test_a_controller_that_moved_is_looked_up_again() -> None:
    with ScriptedBroker() as broker, admin_of(broker) as admin:
        broker.answer(ApiKeys.CREATE_TOPICS, created(Errors.NOT_CONTROLLER), created(0))
        assert list(admin.create_topics([NewTopic("t", 1)])) == ["t"]
        assert len(broker.received(ApiKeys.CREATE_TOPICS)) == 2


def test_what_is_for_the_controller_is_not_sent_to_a_bootstrap_server_that_is_not_known_to_be_it() -> None:
    brokers = cluster_of(2)
    with brokers[0], brokers[1], admin_of(brokers[1]) as admin:
        brokers[0].answer(ApiKeys.CREATE_TOPICS, created(0))
        brokers[1].answer(ApiKeys.CREATE_TOPICS, created(Errors.NOT_CONTROLLER))
        assert list(admin.create_topics(["t"])) == ["t"]
        assert not brokers[1].received(ApiKeys.CREATE_TOPICS)


def test_an_error_that_does_not_pass_is_raised_at_once_with_the_brokers_words() -> None:
    with ScriptedBroker() as broker, admin_of(broker) as admin:
        broker.answer(ApiKeys.CREATE_TOPICS, created(Errors.TOPIC_AUTHORIZATION_FAILED, "not you"))
        with pytest.raises(TopicAuthorizationError, match="Creating topics failed for t: not you"):
            admin.create_topics(["t"])
        assert len(broker.received(ApiKeys.CREATE_TOPICS)) == 1


def test_an_unknown_code_keeps_its_number_and_the_client_lives() -> None:
    with ScriptedBroker() as broker, admin_of(broker) as admin:
        broker.answer(ApiKeys.CREATE_TOPICS, created(32000), created(0))
        with pytest.raises(UnknownServerError) as failed:
            admin.create_topics(["t"])
        assert failed.value.code == 32000
        assert list(admin.create_topics(["t"])) == ["t"]


@pytest.mark.parametrize("reply", [Reply.CLOSE, Reply.RESET])
def test_a_connection_that_breaks_is_made_again_and_the_request_repeated(reply: Reply) -> None:
    with ScriptedBroker() as broker, admin_of(broker, **{"reconnect.backoff.ms": 1}) as admin:
        broker.answer(ApiKeys.CREATE_TOPICS, reply, created(0))
        assert list(admin.create_topics(["t"])) == ["t"]


def test_a_broker_that_never_answers_ends_in_a_timeout_that_says_what_was_tried() -> None:
    with ScriptedBroker() as broker, admin_of(broker, **{"request.timeout.ms": 150}) as admin:
        broker.on(ApiKeys.CREATE_TOPICS, lambda header, message: Reply.NOTHING)
        started = time.monotonic()
        with pytest.raises(KafkaTimeoutError, match=r"Creating topics t .* 500 ms"):
            admin.create_topics(["t"], timeout_ms=500)
        assert time.monotonic() - started < 20


def test_offsets_of_a_partition_whose_leader_moves_are_asked_for_again() -> None:
    with ScriptedBroker(topics={"t": 1}) as broker, admin_of(broker) as admin:
        broker.answer(ApiKeys.LIST_OFFSETS, offsets(Errors.NOT_LEADER_OR_FOLLOWER), offsets(0, 7))
        tp = TopicPartition("t", 0)
        assert admin.list_offsets({tp: OffsetSpec.LATEST})[tp].offset == 7


def test_what_an_old_broker_would_take_for_something_else_is_not_sent_to_it() -> None:
    with ScriptedBroker(topics={"t": 1}) as broker, admin_of(broker) as admin:
        broker.versions |= {ApiKeys.LIST_OFFSETS: (1, 6), ApiKeys.LIST_GROUPS: (0, 3)}
        broker.answer(ApiKeys.LIST_OFFSETS, offsets(0, 7))
        tp = TopicPartition("t", 0)
        with pytest.raises(KafkaError) as failed:
            admin.list_offsets({tp: OffsetSpec.MAX_TIMESTAMP})
        assert "1 to 6 of LIST_OFFSETS" in str(failed.value)
        assert admin.list_offsets({tp: OffsetSpec.LATEST})[tp].offset == 7
        for narrowed in ({"states": ["Stable"]}, {"types": ["classic"]}):
            with pytest.raises(KafkaError) as failed:
                admin.list_groups(**narrowed)
            assert "0 to 3 of LIST_GROUPS" in str(failed.value)
        assert not broker.received(ApiKeys.LIST_GROUPS)


def test_a_group_whose_coordinator_loads_is_described_when_it_has_loaded() -> None:
    with ScriptedBroker() as broker, admin_of(broker) as admin:
        broker.on(ApiKeys.FIND_COORDINATOR, coordinator(broker))
        loading = DescribeGroupsResponse(
            groups=[DescribedGroup(group_id="g", error_code=Errors.COORDINATOR_LOAD_IN_PROGRESS)]
        )
        stable = DescribeGroupsResponse(groups=[DescribedGroup(group_id="g", group_state="Stable")])
        broker.answer(ApiKeys.DESCRIBE_GROUPS, loading, stable)
        assert admin.describe_classic_groups(["g"])["g"].state == "Stable"
        assert len(broker.received(ApiKeys.FIND_COORDINATOR)) >= 2


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_coordinators_of_many_groups_are_looked_up_once_each_and_one_that_is_refused_is_named(
    version: int,
) -> None:
    def find(header: Any, message: Any) -> FindCoordinatorResponse:
        refused = "b" in (message.key, *message.coordinator_keys)
        answer = coordinator(broker, Errors.GROUP_AUTHORIZATION_FAILED if refused else 0)(header, message)
        for entry in answer.coordinators:
            entry.error_code = Errors.GROUP_AUTHORIZATION_FAILED if entry.key == "b" else 0
        return answer  # type: ignore[no-any-return]

    with ScriptedBroker() as broker, admin_of(broker) as admin:
        broker.versions |= {ApiKeys.FIND_COORDINATOR: (0, version)}
        broker.on(ApiKeys.FIND_COORDINATOR, find)
        broker.on(
            ApiKeys.DESCRIBE_GROUPS,
            lambda header, message: DescribeGroupsResponse(
                groups=[
                    DescribedGroup(group_id=group_id, group_state="Stable") for group_id in message.groups
                ]
            ),
        )
        with pytest.raises(AdminError, match="'b'") as failed:
            admin.describe_classic_groups(["a", "b", "c", "d"])
        assert {key: type(error) for key, error in failed.value.errors.items()} == {
            "b": GroupAuthorizationError
        }
        described = failed.value.results
        assert {key: group.coordinator.port for key, group in described.items()} == dict.fromkeys(
            "acd", broker.port
        )
        asked = [
            key
            for message in broker.received(ApiKeys.FIND_COORDINATOR)
            for key in (message.coordinator_keys or [message.key])
        ]
        assert sorted(asked) == ["a", "b", "c", "d"]


def test_a_coordinator_that_may_not_be_asked_for_fails_the_call() -> None:
    with ScriptedBroker() as broker, admin_of(broker) as admin:
        broker.on(ApiKeys.FIND_COORDINATOR, coordinator(broker, Errors.GROUP_AUTHORIZATION_FAILED))
        with pytest.raises(GroupAuthorizationError, match="g"):
            admin.delete_groups(["g"])
        with pytest.raises(AdminError) as several:
            admin.delete_groups(["g", "h"])
        assert {type(error) for error in several.value.errors.values()} == {GroupAuthorizationError}
        assert set(several.value.errors) == {"g", "h"}


def test_a_coordinator_whose_broker_is_gone_is_looked_up_again() -> None:
    brokers = cluster_of(2)
    coordinator = brokers[1]

    def find(_header: Any, message: Any) -> Any:
        host, port = coordinator.address
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=brokers.index(coordinator), host=host, port=port)
                for key in message.coordinator_keys
            ]
        )

    def describe(_header: Any, message: Any) -> Any:
        group = DescribedGroup(group_id=message.groups[0], group_state="Stable")
        return DescribeGroupsResponse(groups=[group])

    with brokers[0], brokers[1], admin_of(brokers[0]) as admin:
        for broker in brokers:
            broker.on(ApiKeys.FIND_COORDINATOR, find)
            broker.on(ApiKeys.DESCRIBE_GROUPS, describe)
        assert admin.describe_classic_groups(["g"])["g"].state == "Stable"
        brokers[1].stop()
        assert brokers[0].received(ApiKeys.DESCRIBE_GROUPS) == []
        coordinator = brokers[0]
        assert admin.describe_classic_groups(["g"])["g"].state == "Stable"
        assert len(brokers[0].received(ApiKeys.DESCRIBE_GROUPS)) == 1
        assert sum(len(broker.received(ApiKeys.FIND_COORDINATOR)) for broker in brokers) < 20


def test_closing_twice_is_closing_once_and_calls_after_it_say_so() -> None:
    with ScriptedBroker() as broker:
        admin = admin_of(broker)
        admin.close()
        admin.close()
        with pytest.raises(ClientClosedError):
            admin.list_topics()


def test_closing_with_a_call_under_way_ends_the_call_and_the_thread() -> None:
    with ScriptedBroker() as broker:
        broker.on(ApiKeys.LIST_GROUPS, lambda header, message: Reply.NOTHING)
        admin = admin_of(broker)
        errors: list[BaseException] = []

        def call() -> None:
            try:
                admin.list_groups()
            except Exception as error:
                errors.append(error)

        caller = threading.Thread(target=call)
        caller.start()
        wait_until(lambda: broker.received(ApiKeys.LIST_GROUPS))
        started = time.monotonic()
        admin.close(timeout_ms=100)
        caller.join(25)
        assert time.monotonic() - started < 20
        assert len(errors) == 1


def test_an_admin_client_that_was_never_closed_is_warned_about_and_stopped() -> None:
    with ScriptedBroker() as broker:
        admin = admin_of(broker, **{"client.id": "forgotten"})
        with pytest.warns(ResourceWarning, match="forgotten was not closed"):
            del admin  # the last reference: no collection is needed
        wait_until(lambda: not any("forgotten" in thread.name for thread in threading.enumerate()))


def test_arguments_that_cannot_be_right_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="embedded://"):
        KafkaAdminClient()
    with pytest.raises(ValueError, match="num_partitions"):
        NewTopic("t", 0)
    with ScriptedBroker() as broker, admin_of(broker) as admin:
        with pytest.raises(ValueError, match="timeout_ms"):
            admin.list_topics(timeout_ms=-1)
        with pytest.raises(ValueError, match="isolation_level"):
            admin.list_offsets({}, isolation_level="committed")
