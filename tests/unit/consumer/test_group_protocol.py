"""Messages of the members of a group to each other."""

from __future__ import annotations

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor import Assignment, Subscription
from kclient.consumer.internals.coordinator import group_protocol
from kclient.errors import SchemaError
from kclient.protocol.codec import encode_versioned
from kclient.protocol.messages.consumer_protocol import (
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)

OWNED = (TopicPartition("a", 1), TopicPartition("a", 4), TopicPartition("b", 0))


def test_a_subscription_reads_back() -> None:
    given = Subscription(("a", "b"), b"data", OWNED, None, 7, "rack")
    assert group_protocol.decode_subscription(group_protocol.encode_subscription(given)) == given


def test_an_assignment_reads_back_and_no_bytes_are_an_empty_one() -> None:
    given = Assignment(OWNED, b"data")
    assert group_protocol.decode_assignment(group_protocol.encode_assignment(given)) == given
    assert group_protocol.decode_assignment(b"") == Assignment(())


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_members_of_every_version_are_understood(version: int) -> None:
    message = ConsumerProtocolSubscription(topics=["a"])
    if version >= 1:
        message.owned_partitions = [ConsumerProtocolSubscriptionTopicPartition(topic="a", partitions=[1])]
    if version >= 2:
        message.generation_id = 9
    if version >= 3:
        message.rack_id = "r"
    decoded = group_protocol.decode_subscription(encode_versioned(message, version), "i-1")
    assert decoded.topics == ("a",)
    assert decoded.owned_partitions == ((TopicPartition("a", 1),) if version >= 1 else ())
    assert decoded.generation_id == (9 if version >= 2 else -1)
    assert decoded.rack_id == ("r" if version >= 3 else None)
    assert decoded.group_instance_id == "i-1"


def test_what_a_newer_version_adds_is_left_unread() -> None:
    encoded = bytearray(group_protocol.encode_subscription(Subscription(("a",), rack_id="r")))
    encoded[0:2] = (9).to_bytes(2, "big")
    assert group_protocol.decode_subscription(bytes(encoded + b"more")).rack_id == "r"


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\1\0\0\0\5", b"\0\0\x7f\xff\xff\xff"])
def test_malformed_bytes_are_one_typed_error(data: bytes) -> None:
    with pytest.raises(SchemaError):
        group_protocol.decode_subscription(data)
