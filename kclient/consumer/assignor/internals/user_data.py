"""The user data by which members tell a sticky leader of their last assignment (KIP-54, KIP-341)."""

from __future__ import annotations

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor.internals.java_order import hash_map_order
from kclient.errors import SchemaError
from kclient.protocol.codec import decode_prefix, encode
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int32, String

NO_GENERATION = -1


@structure
class TopicAssignment(Structure):
    topic: str = wire(String, "0+")
    partitions: list[int] = wire(Array(Int32), "0+")


@message(kind="data", versions="0-1", flexible="none")
class StickyAssignorUserData(Message):
    """No version stands before it: what has no room for the generation is version 0."""

    previous_assignment: list[TopicAssignment] = wire(Array(TopicAssignment), "0+")
    generation: int = wire(Int32, "1+", default=NO_GENERATION, ignorable=True)


@message(kind="data", versions="0", flexible="none")
class CooperativeStickyAssignorUserData(Message):
    """The generation alone: the partitions are in the subscription (KIP-429)."""

    generation: int = wire(Int32, "0+", default=NO_GENERATION)


@attrs.frozen
class MemberData:
    """The partitions that a member claims, and the generation in which it was given them. Immutable."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION


def encode_sticky(data: MemberData) -> bytes:
    """The user data of `StickyAssignor`, as Java writes it."""
    by_topic: dict[str, list[int]] = {}
    for tp in data.partitions:
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    # Java's computeIfAbsent puts a key before the others of its bucket.
    in_order = hash_map_order([*reversed(by_topic)])
    topics = [TopicAssignment(topic=topic, partitions=by_topic[topic]) for topic in in_order]
    return encode(StickyAssignorUserData(previous_assignment=topics, generation=data.generation), 1)


def decode_sticky(user_data: bytes | None) -> MemberData:
    """The other direction; what cannot be read claims nothing."""
    if not user_data:
        return MemberData()
    for version in (1, 0):
        try:
            found, _ = decode_prefix(StickyAssignorUserData, version, user_data)
        except SchemaError:
            continue
        claimed = (
            TopicPartition(each.topic, at) for each in found.previous_assignment for at in each.partitions
        )
        return MemberData(tuple(claimed), found.generation)
    return MemberData()


def encode_cooperative(generation: int) -> bytes:
    """The user data of `CooperativeStickyAssignor`."""
    return encode(CooperativeStickyAssignorUserData(generation=generation), 0)


def decode_cooperative(user_data: bytes | None) -> int:
    """The other direction; what cannot be read is of no generation."""
    try:
        found, _ = decode_prefix(CooperativeStickyAssignorUserData, 0, user_data or b"")
    except SchemaError:
        return NO_GENERATION
    return found.generation
