"""Rights on topics that requests name by their ids (KIP-516), on those that are there and on those that are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harness.broker.wire import batch
from harness.scenarios.access_requests import Scene
from harness.scenarios.access_table import Case, on_group, on_topic
from kclient.admin import AclOperation
from kclient.common.uuid import Uuid
from kclient.protocol.messages import fetch as fetching
from kclient.protocol.messages import metadata
from kclient.protocol.messages import offset_commit as committing
from kclient.protocol.messages import offset_fetch as committed
from kclient.protocol.messages import produce as producing
from kclient.protocol.schema import Message

OK, TOPIC, GROUP, UNKNOWN_ID = 0, 29, 30, 100
NOBODYS = Uuid.random()
"""The id of no topic."""


def _ids(scene: Scene) -> tuple[Uuid, Uuid]:
    return scene.topic_id, NOBODYS


def _by_id(scene: Scene, topics: Any, partitions: str = "partitions") -> tuple[int, ...]:
    """The code of the first partition of both ids, wherever they stand in the answer."""
    codes = {topic.topic_id: getattr(topic, partitions)[0].error_code for topic in topics}
    assert len(topics) == 2
    return tuple(codes[each] for each in _ids(scene))


def _fetch(scene: Scene) -> Message:
    wanted = [fetching.FetchPartition(partition=0, partition_max_bytes=1000)]
    topics = [fetching.FetchTopic(topic_id=each, partitions=wanted) for each in _ids(scene)]
    return fetching.FetchRequest(max_wait_ms=0, max_bytes=1000, session_epoch=-1, topics=topics)


def _produce(scene: Scene) -> Message:
    data = [producing.PartitionProduceData(index=0, records=batch(b"v"))]
    topics = [producing.TopicProduceData(topic_id=each, partition_data=data) for each in _ids(scene)]
    return producing.ProduceRequest(acks=1, timeout_ms=1000, topic_data=topics)


def _commit(scene: Scene) -> Message:
    wanted = [committing.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)]
    topics = [committing.OffsetCommitRequestTopic(topic_id=each, partitions=wanted) for each in _ids(scene)]
    return committing.OffsetCommitRequest(group_id=scene.name, topics=topics)


def _fetch_offsets(*, every: bool) -> Callable[[Scene], Message]:
    def request(scene: Scene) -> Message:
        topics = [
            committed.OffsetFetchRequestTopics(topic_id=each, partition_indexes=[0]) for each in _ids(scene)
        ]
        group = committed.OffsetFetchRequestGroup(group_id=scene.name, topics=None if every else topics)
        return committed.OffsetFetchRequest(groups=[group])

    return request


def _offsets(scene: Scene, answer: Any) -> object:
    (group,) = answer.groups
    told = {topic.topic_id: topic.partitions[0] for topic in group.topics}
    return group.error_code, [
        (told[each].error_code, told[each].committed_offset, told[each].metadata)
        for each in _ids(scene)
        if each in told
    ]


def _describe(scene: Scene) -> Message:
    topics = [metadata.MetadataRequestTopic(name=None, topic_id=each) for each in _ids(scene)]
    return metadata.MetadataRequest(topics=topics, include_topic_authorized_operations=True)


def _described(scene: Scene, answer: Any) -> object:
    told = {topic.topic_id: topic for topic in answer.topics}
    return [
        (
            told[each].error_code,
            told[each].name == scene.name,
            told[each].name is None,
            len(told[each].partitions),
        )
        for each in _ids(scene)
    ]


def _known(operation: AclOperation) -> Sequence[tuple[Any, object]]:
    """An id of no topic is unknown whatever the rights; that of a topic is refused until there is one."""
    return [(None, (TOPIC, UNKNOWN_ID)), (on_topic(operation), (OK, UNKNOWN_ID))]


_O = AclOperation

CASES: Sequence[Case] = [
    *(
        Case(f"fetch-by-id-{version}", version, _fetch, lambda s, a: _by_id(s, a.responses), _known(_O.READ))
        for version in (13, 18)
    ),
    Case(
        "produce-by-id",
        13,
        _produce,
        lambda s, a: _by_id(s, a.responses, "partition_responses"),
        _known(_O.WRITE),
    ),
    Case(
        "offset-commit-by-id",
        10,
        _commit,
        lambda scene, answer: _by_id(scene, answer.topics),
        [
            (None, (GROUP, GROUP)),
            (on_group(_O.READ), (TOPIC, UNKNOWN_ID)),
            (on_topic(_O.READ), (OK, UNKNOWN_ID)),
        ],
    ),
    Case(
        "offset-fetch-by-id",
        10,
        _fetch_offsets(every=False),
        _offsets,
        [
            (None, (GROUP, [])),
            (on_group(_O.DESCRIBE), (OK, [(TOPIC, -1, ""), (UNKNOWN_ID, -1, "")])),
            (on_topic(_O.DESCRIBE), (OK, [(OK, 0, ""), (UNKNOWN_ID, -1, "")])),
        ],
    ),
    Case(
        "offset-fetch-all-by-id",
        10,
        _fetch_offsets(every=True),
        _offsets,
        [
            (None, (GROUP, [])),
            (on_group(_O.DESCRIBE), (OK, [])),
            (on_topic(_O.DESCRIBE), (OK, [(OK, 0, "")])),
        ],
    ),
    Case(
        "metadata-by-id-newest",
        13,
        _describe,
        _described,
        [
            (None, [(TOPIC, False, True, 0), (UNKNOWN_ID, False, True, 0)]),
            (on_topic(_O.DESCRIBE), [(OK, True, False, 1), (UNKNOWN_ID, False, True, 0)]),
        ],
    ),
]
"""The part of the table for topic ids."""
