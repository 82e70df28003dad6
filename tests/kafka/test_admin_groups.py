"""Groups of every type on a real Apache Kafka: described, altered, emptied of members and deleted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.consumer.member import Member
from harness.network.driven_client import DrivenClient
from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic, produce
from harness.waiting import wait_until
from kclient.admin import AclOperation, KafkaAdminClient, SharePartitionOffsetInfo
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    GroupIdNotFoundError,
    GroupNotEmptyError,
    GroupSubscribedToTopicError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from kclient.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


@pytest.fixture(scope="module")
def admin(kafka: RealKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as client:
        yield client


@pytest.fixture
def servers(kafka: RealKafka) -> str:
    return kafka.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    return new_topic(servers, 2)


@pytest.fixture
def group() -> str:
    return f"g-{uuid.uuid4().hex[:12]}"


@contextmanager
def reading(servers: str, topic: str, group: str, **settings: str) -> Iterator[Member]:
    member = Member(servers, topic, group, **settings)
    try:
        wait_until(lambda: len(member.assignment) == 2, 30, "the member's assignment")
        yield member
    finally:
        member.stop()


@contextmanager
def sharing(admin: KafkaAdminClient, servers: str, topic: str, group: str) -> Iterator[str]:
    """A member of a share group, by its heartbeats alone."""
    member = str(uuid.uuid4())
    # The first request about a group makes Kafka create the groups' topic, and only then is there a coordinator.
    admin.list_consumer_group_offsets(group)

    def beat(client: DrivenClient, epoch: int, topics: list[str] | None = None) -> int:
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=topics
        )
        response = client.call(request, node_id=1)
        response.raise_if_failed()
        assert response.message.error_code == 0, response.message
        return int(response.message.member_epoch)

    with DrivenClient(servers, client_id="sharer") as client:
        epoch = beat(client, 0, [topic])

        def has_all() -> bool:
            nonlocal epoch
            epoch = beat(client, epoch)
            return len(admin.describe_share_groups([group])[group].members[0].assignment) == 2

        wait_until(has_all, 30, "the member's assignment")
        yield member
        beat(client, -1)


def test_describe_consumer_groups_knows_a_static_member_and_what_the_caller_may_do(
    admin: KafkaAdminClient, servers: str, topic: str, group: str
) -> None:
    with reading(servers, topic, group, **{"group.instance.id": "one"}):
        found = admin.describe_consumer_groups([group], include_authorized_operations=True)[group]
        assert (found.group_type, found.state, found.partition_assignor) == ("classic", "Stable", "range")
        assert found.members[0].group_instance_id == "one"
        assert (found.group_epoch, found.members[0].target_assignment) == (None, None)
        assert {AclOperation.READ, AclOperation.DESCRIBE} <= (found.authorized_operations or set())
        assert admin.describe_consumer_groups([group])[group].authorized_operations is None


def test_describe_classic_groups_finds_no_group_of_another_type(
    admin: KafkaAdminClient, servers: str, topic: str, group: str
) -> None:
    with reading(servers, topic, group), sharing(admin, servers, topic, f"{group}-share"):
        assert admin.describe_classic_groups([group])[group].protocol_type == "consumer"
        for describe in (admin.describe_classic_groups, admin.describe_consumer_groups):
            with pytest.raises(GroupIdNotFoundError, match=f"{group}-share"):
                describe([f"{group}-share"])
        both = admin.describe_groups([group, f"{group}-share"])
        assert [both[each].group_type for each in (group, f"{group}-share")] == ["classic", "share"]


def test_describe_share_groups_shows_members_and_epochs(
    admin: KafkaAdminClient, servers: str, topic: str, group: str
) -> None:
    with sharing(admin, servers, topic, group) as member:
        assert admin.list_groups(types=["share"])[group].protocol_type == "share"
        assert group not in admin.list_groups(protocol_types=["consumer"])
        found = admin.describe_share_groups([group], include_authorized_operations=True)[group]
        assert (found.group_type, found.state) == ("share", "Stable")
        assert (found.group_epoch or 0) >= 1
        assert found.target_assignment_epoch == found.group_epoch
        assert AclOperation.READ in (found.authorized_operations or set())
        (described,) = found.members
        assert (described.member_id, described.client_id) == (member, "sharer")
        assert set(described.assignment) == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
        assert (described.member_epoch or 0) >= 1
        with pytest.raises(GroupIdNotFoundError):
            admin.describe_share_groups([f"{group}-none"])


def test_alter_consumer_group_offsets_is_for_groups_without_members(
    admin: KafkaAdminClient, servers: str, topic: str, group: str
) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    noted = OffsetAndMetadata(3, "a note", 0)
    assert admin.alter_consumer_group_offsets(group, {first: noted, second: 5}) == {first: None, second: None}
    expected = {first: noted, second: OffsetAndMetadata(5)}
    assert admin.list_consumer_group_offsets(group) == expected
    admin.alter_consumer_group_offsets(f"{group}-2", {first: 7})
    assert admin.list_consumer_group_offsets(
        {group: None, f"{group}-2": [first, second], f"{group}-3": None}
    ) == {
        group: expected,
        f"{group}-2": {first: OffsetAndMetadata(7), second: None},
        f"{group}-3": {},
    }
    assert admin.list_groups()[group].is_simple_consumer_group
    with pytest.raises(AdminError) as raised:
        admin.alter_consumer_group_offsets(group, {first: 1, TopicPartition(f"{topic}-none", 0): 1})
    assert [type(error) for error in raised.value.errors.values()] == [UnknownTopicOrPartitionError]
    with reading(servers, topic, group), pytest.raises(UnknownMemberIdError, match=str(first)):
        admin.alter_consumer_group_offsets(group, {first: 1})


def test_delete_consumer_group_offsets_leaves_what_members_read(
    admin: KafkaAdminClient, servers: str, topic: str, group: str
) -> None:
    other = TopicPartition(new_topic(servers, 1), 0)
    mine = TopicPartition(topic, 0)
    admin.alter_consumer_group_offsets(group, {mine: 0, other: 0})
    with reading(servers, topic, group):
        with pytest.raises(AdminError) as raised:
            admin.delete_consumer_group_offsets(group, [mine, other])
        assert list(raised.value.results) == [other]
        assert isinstance(raised.value.errors[mine], GroupSubscribedToTopicError)
    assert other not in admin.list_consumer_group_offsets(group)
    assert admin.delete_consumer_group_offsets(group, [mine]) == {mine: None}
    with pytest.raises(GroupIdNotFoundError):
        admin.delete_consumer_group_offsets(f"{group}-none", [mine])


def test_list_share_group_offsets_follows_alter_share_group_offsets_and_delete_share_group_offsets(
    admin: KafkaAdminClient, servers: str, topic: str, group: str
) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    produce(servers, topic, 20)
    with sharing(admin, servers, topic, group):
        with pytest.raises(GroupNotEmptyError, match=group):
            admin.alter_share_group_offsets(group, {first: 1})
        with pytest.raises(GroupNotEmptyError, match=group):
            admin.delete_share_group_offsets(group, [topic])
    assert admin.alter_share_group_offsets(group, {first: 2, second: 0}) == {first: None, second: None}
    found = admin.list_share_group_offsets({group: None})[group]
    assert {tp: one and one.start_offset for tp, one in found.items()} == {first: 2, second: 0}
    one = admin.list_share_group_offsets({group: [first]})[group]
    assert isinstance(one[first], SharePartitionOffsetInfo)
    assert list(one) == [first]
    assert admin.delete_share_group_offsets(group, [topic]) == {topic: None}
    assert admin.list_share_group_offsets({group: None}) == {group: {}}
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_share_group_offsets(group, [f"{topic}-none"])


def test_alter_share_group_offsets_names_partitions_that_do_not_exist(
    admin: KafkaAdminClient, topic: str, group: str
) -> None:
    right, wrong = TopicPartition(topic, 0), TopicPartition(f"{topic}-none", 0)

    def altered() -> bool:
        """False while the coordinator does not know the new topic."""
        try:
            return admin.alter_share_group_offsets(group, {right: 0}) == {right: None}
        except UnknownTopicOrPartitionError:
            return False

    wait_until(altered, 30, "the coordinator's metadata")
    with pytest.raises(AdminError) as raised:
        admin.alter_share_group_offsets(group, {right: 0, wrong: 0})
    assert list(raised.value.errors) == [wrong]


def test_delete_share_group_offsets_is_for_groups_that_are_there(admin: KafkaAdminClient, group: str) -> None:
    with pytest.raises(GroupIdNotFoundError):
        admin.delete_share_group_offsets(group, ["t"])


def test_remove_members_from_consumer_group_takes_static_ones_by_name_and_all_without_names(
    admin: KafkaAdminClient, servers: str, topic: str, group: str
) -> None:
    def members() -> set[str | None]:
        return {member.group_instance_id for member in admin.describe_groups([group])[group].members}

    with reading(servers, topic, group, **{"group.instance.id": "one"}) as one:
        with pytest.raises(AdminError) as raised:
            admin.remove_members_from_consumer_group(group, ["one", "two"], reason="moving")
        assert list(raised.value.results) == ["one"]
        assert isinstance(raised.value.errors["two"], UnknownMemberIdError)
        one.stop()
    wait_until(lambda: members() == set(), 30, "the member's end")
    with reading(servers, topic, group):
        ((name, outcome),) = admin.remove_members_from_consumer_group(group).items()
        assert (bool(name), outcome) == (True, None)
    wait_until(lambda: members() == set(), 30, "the member's end")
    assert admin.remove_members_from_consumer_group(group) == {}


def test_delete_consumer_groups_and_delete_share_groups_delete_those_without_members(
    admin: KafkaAdminClient, servers: str, topic: str, group: str
) -> None:
    with sharing(admin, servers, topic, group), pytest.raises(GroupNotEmptyError, match=group):
        admin.delete_share_groups([group])
    assert admin.delete_share_groups([group]) == {group: None}
    admin.alter_consumer_group_offsets(group, {TopicPartition(topic, 0): 0})
    assert admin.delete_consumer_groups([group]) == {group: None}
    assert group not in admin.list_groups()
