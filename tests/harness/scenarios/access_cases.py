"""Rights of users, one after the other, and what a broker with Kafka's authorizer answers with each of them."""

from __future__ import annotations

from collections.abc import Sequence

from harness.scenarios import access_requests as ask
from harness.scenarios.access_requests import CLUSTER
from harness.scenarios.access_table import Case, Right, on_cluster, on_group, on_topic
from kclient.admin import (
    AclOperation,
    ResourceType,
)
from kclient.protocol.messages import alter_configs as legacy
from kclient.protocol.messages import describe_producers as producers
from kclient.protocol.messages import incremental_alter_configs as incremental
from kclient.protocol.messages import (
    list_groups,
    metadata,
)
from kclient.protocol.messages import offset_fetch as committed
from kclient.protocol.messages.delete_groups import DeleteGroupsRequest
from kclient.protocol.messages.describe_cluster import DescribeClusterRequest
from kclient.protocol.messages.describe_groups import DescribeGroupsRequest
from kclient.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kclient.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.sync_group import SyncGroupRequest

OK, UNKNOWN_TOPIC, UNKNOWN_MEMBER, TOPIC, GROUP = 0, 3, 25, 29, 30
TRANSACTIONAL_ID, GROUP_NOT_FOUND, MEMBER_ID_REQUIRED, NO_CREDENTIAL = 53, 69, 79, 91
INVALID_REQUEST = 42
NOT_TOLD = -(2**31)
_O, _R = AclOperation, ResourceType


_BOTH_DENIED = (TOPIC, TOPIC)


def _both(operation: AclOperation, absent: int = UNKNOWN_TOPIC) -> Sequence[tuple[Right | None, object]]:
    """Nothing is said of either topic, then of the one that is there, then that the other one is not."""
    return [
        (None, _BOTH_DENIED),
        (on_topic(operation), (OK, TOPIC)),
        (on_topic(operation, "{n}"), (OK, absent)),
    ]


_DENIED_PAGE = [("none", TOPIC, 0, NOT_TOLD), ("there", TOPIC, 0, NOT_TOLD)]
_THERE = ("there", OK, 1, ask.bits(_O.DESCRIBE))
_PAGES: Sequence[tuple[Right | None, object]] = [
    (None, (_DENIED_PAGE, None)),
    (on_topic(_O.DESCRIBE), ([_DENIED_PAGE[0], _THERE], None)),
    (on_topic(_O.DESCRIBE, "{n}"), ([("none", UNKNOWN_TOPIC, 0, ask.bits(_O.DESCRIBE)), _THERE], None)),
]

CASES: Sequence[Case] = [
    Case("produce", 9, ask.produce, ask.produced, _both(_O.WRITE)),
    Case("fetch", 12, ask.fetch, lambda s, a: ask.by_topic(s, a.responses, "topic"), _both(_O.READ)),
    Case("list-offsets", 7, ask.list_ends, lambda s, a: ask.by_topic(s, a.topics), _both(_O.DESCRIBE)),
    Case("list-offsets-read", 7, ask.list_ends, lambda s, a: ask.by_topic(s, a.topics), _both(_O.READ)),
    Case(
        "list-offsets-twice",
        7,
        ask.list_ends_twice,
        ask.listed_ends,
        [
            (None, [(0, TOPIC, -1), (0, TOPIC, -1), (1, TOPIC, -1)]),
            (on_topic(_O.DESCRIBE), [(0, INVALID_REQUEST, -1), (1, UNKNOWN_TOPIC, -1)]),
        ],
    ),
    Case("metadata", 12, ask.describe_topics(), lambda s, a: ask.by_name(s, a.topics), _both(_O.DESCRIBE)),
    Case("metadata-write", 4, ask.describe_topics(), lambda s, a: ask.by_name(s, a.topics), _both(_O.WRITE)),
    Case(
        "metadata-all",
        12,
        lambda scene: metadata.MetadataRequest(topics=None),
        lambda scene, answer: [(t.name, t.error_code) for t in answer.topics if t.name == scene.name],
        [(None, []), (on_topic(_O.DESCRIBE), [("metadata-all", OK)])],
    ),
    Case(
        "metadata-by-id",
        12,
        lambda scene: metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(name=None, topic_id=scene.topic_id)]
        ),
        lambda scene, answer: [(t.name, t.error_code, t.topic_id == scene.topic_id) for t in answer.topics],
        [(None, [(None, TOPIC, True)]), (on_topic(_O.DESCRIBE), [("metadata-by-id", OK, True)])],
    ),
    Case(
        "describe-topic-partitions",
        0,
        ask.page(),
        ask.paged,
        _PAGES,
    ),
    Case(
        "describe-topic-partitions-all",
        0,
        ask.page(every=True),
        ask.paged,
        [(None, ([], None)), (on_topic(_O.DESCRIBE), ([_THERE], None))],
    ),
    Case(
        "describe-topic-partitions-from",
        0,
        ask.page(limit=1, first=0),
        ask.paged,
        [
            *_PAGES[:2],
            (on_topic(_O.DESCRIBE, "{n}"), ([_THERE], ("none", 0))),
        ],
    ),
    Case(
        "auto-create",
        12,
        ask.describe_topics(create=True),
        ask.created,
        [
            (None, _BOTH_DENIED),
            (on_topic(_O.DESCRIBE, "{n}"), _BOTH_DENIED),
            (on_topic(_O.CREATE, "{n}"), (TOPIC, OK)),
        ],
    ),
    Case(
        "auto-create-cluster",
        12,
        ask.describe_topics(create=True),
        ask.created,
        [
            (on_cluster(_O.CREATE), _BOTH_DENIED),
            (on_topic(_O.DESCRIBE, "{n}"), (TOPIC, OK)),
        ],
    ),
    Case(
        "metadata-operations",
        10,
        ask.describe_topics(operations=True),
        ask.operations,
        [
            (None, (0, NOT_TOLD)),
            (on_topic(_O.DESCRIBE), (0, ask.bits(_O.DESCRIBE))),
            (on_topic(_O.READ), (0, ask.bits(_O.READ, _O.DESCRIBE))),
            (
                on_topic(_O.ALTER_CONFIGS),
                (0, ask.bits(_O.READ, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS)),
            ),
            # Whoever may not describe the cluster is not told what else may be done with it.
            (
                on_cluster(_O.IDEMPOTENT_WRITE),
                (0, ask.bits(_O.READ, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS)),
            ),
            (
                on_cluster(_O.DESCRIBE),
                (
                    ask.bits(_O.IDEMPOTENT_WRITE, _O.DESCRIBE),
                    ask.bits(_O.READ, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
                ),
            ),
            (
                on_cluster(_O.ALL),
                (8096, ask.bits(_O.READ, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS)),
            ),
            (on_topic(_O.ALL), (8096, 3576)),
        ],
    ),
    Case(
        "describe-cluster",
        0,
        lambda scene: DescribeClusterRequest(include_cluster_authorized_operations=True),
        lambda scene, answer: (answer.error_code, answer.cluster_authorized_operations, len(answer.brokers)),
        [
            (None, (OK, 0, 1)),
            (on_cluster(_O.CREATE), (OK, 0, 1)),
            (on_cluster(_O.ALTER), (OK, ask.bits(_O.CREATE, _O.ALTER, _O.DESCRIBE), 1)),
        ],
    ),
    Case(
        "offset-commit",
        8,
        ask.commit,
        lambda scene, answer: ask.by_topic(scene, answer.topics),
        [
            (None, (GROUP, GROUP)),
            (on_group(_O.READ), _BOTH_DENIED),
            (on_topic(_O.READ), (OK, TOPIC)),
            (on_topic(_O.READ, "{n}"), (OK, UNKNOWN_TOPIC)),
        ],
    ),
    Case(
        "offset-fetch",
        8,
        ask.fetch_offsets(every=False),
        ask.group_offsets,
        [
            (None, (GROUP, {})),
            (on_group(_O.DESCRIBE), (OK, {"offset-fetch": (TOPIC, -1), "offset-fetch-none": (TOPIC, -1)})),
            (on_topic(_O.READ), (OK, {"offset-fetch": (OK, 0), "offset-fetch-none": (TOPIC, -1)})),
        ],
    ),
    Case(
        "offset-fetch-all",
        8,
        ask.fetch_offsets(every=True),
        ask.group_offsets,
        [
            (None, (GROUP, {})),
            (on_group(_O.DESCRIBE), (OK, {})),
            (on_topic(_O.DESCRIBE), (OK, {"offset-fetch-all": (OK, 0)})),
        ],
    ),
    Case(
        "offset-fetch-old",
        7,
        lambda scene: committed.OffsetFetchRequest(
            group_id=scene.name,
            topics=[committed.OffsetFetchRequestTopic(name=scene.name, partition_indexes=[0])],
        ),
        lambda scene, answer: (answer.error_code, [t.partitions[0].error_code for t in answer.topics][:1]),
        [
            (on_group(_O.READ), (OK, [TOPIC])),
            (on_topic(_O.READ), (OK, [OK])),
        ],
    ),
    Case(
        "find-coordinator",
        4,
        lambda scene: FindCoordinatorRequest(key_type=0, coordinator_keys=[scene.name]),
        lambda scene, answer: answer.coordinators[0].error_code,
        [(None, GROUP), (on_group(_O.DESCRIBE), OK)],
    ),
    Case(
        "find-coordinator-old",
        2,
        lambda scene: FindCoordinatorRequest(key_type=0, key=scene.name),
        lambda scene, answer: (answer.error_code, answer.node_id == scene.node_id),
        [(None, (GROUP, False)), (on_group(_O.READ), (OK, True))],
    ),
    Case(
        "find-transaction-coordinator",
        4,
        lambda scene: FindCoordinatorRequest(key_type=1, coordinator_keys=[scene.name]),
        lambda scene, answer: answer.coordinators[0].error_code,
        [(None, TRANSACTIONAL_ID)],
    ),
    Case("join-group", 9, ask.join, ask.code, [(None, GROUP), (on_group(_O.READ), MEMBER_ID_REQUIRED)]),
    Case(
        "sync-group",
        5,
        lambda scene: SyncGroupRequest(
            group_id=scene.name, member_id="m", protocol_type="consumer", protocol_name="range"
        ),
        ask.code,
        [(None, GROUP), (on_group(_O.READ), UNKNOWN_MEMBER)],
    ),
    Case(
        "heartbeat",
        4,
        lambda scene: HeartbeatRequest(group_id=scene.name, member_id="m"),
        ask.code,
        [(None, GROUP), (on_group(_O.READ), UNKNOWN_MEMBER)],
    ),
    Case(
        "leave-group",
        5,
        ask.leave,
        lambda scene, answer: (answer.error_code, [member.error_code for member in answer.members]),
        [(None, (GROUP, [])), (on_group(_O.READ), (OK, [UNKNOWN_MEMBER]))],
    ),
    Case(
        "leave-no-group",
        3,
        ask.leave,
        lambda scene, answer: (answer.error_code, [member.error_code for member in answer.members]),
        [(None, (GROUP, [])), (on_group(_O.READ), (OK, [UNKNOWN_MEMBER]))],
    ),
    Case(
        "describe-groups",
        5,
        lambda scene: DescribeGroupsRequest(groups=[scene.name], include_authorized_operations=True),
        lambda scene, answer: [(g.error_code, g.group_state, g.authorized_operations) for g in answer.groups],
        [
            (None, [(GROUP, "", NOT_TOLD)]),
            (on_group(_O.DESCRIBE), [(OK, "Empty", ask.bits(_O.DESCRIBE))]),
            (on_group(_O.DELETE), [(OK, "Empty", ask.bits(_O.DELETE, _O.DESCRIBE))]),
            (on_group(_O.ALL), [(OK, "Empty", 3400)]),
        ],
    ),
    Case(
        "list-groups",
        5,
        lambda scene: list_groups.ListGroupsRequest(),
        ask.listed,
        [(None, []), (on_group(_O.DESCRIBE), ["list-groups"])],
    ),
    Case(
        "list-groups-cluster",
        5,
        lambda scene: list_groups.ListGroupsRequest(),
        ask.listed,
        [(None, []), (on_cluster(_O.DESCRIBE), ["list-groups-cluster"])],
    ),
    Case(
        "delete-groups",
        2,
        lambda scene: DeleteGroupsRequest(groups_names=[scene.none]),
        lambda scene, answer: [result.error_code for result in answer.results],
        [(None, [GROUP]), ((_O.DELETE, _R.GROUP, "{n}"), [GROUP_NOT_FOUND])],
    ),
    Case(
        "offset-delete",
        0,
        ask.delete_offsets,
        ask.deleted_offsets,
        [
            (None, (GROUP, ())),
            (on_group(_O.DELETE), (OK, _BOTH_DENIED)),
            (on_topic(_O.READ, "{n}"), (OK, (TOPIC, UNKNOWN_TOPIC))),
            (on_topic(_O.READ), (OK, (OK, UNKNOWN_TOPIC))),
        ],
    ),
    Case(
        "create-topics",
        7,
        ask.create,
        ask.created_topic,
        [(None, (TOPIC, OK, -1, False)), (on_topic(_O.CREATE, "{n}"), (OK, TOPIC, -1, False))],
    ),
    Case(
        "create-topics-cluster",
        7,
        ask.create,
        ask.created_topic,
        [
            (on_topic(_O.DESCRIBE_CONFIGS, "{n}"), (TOPIC, OK, -1, False)),
            (on_cluster(_O.CREATE), (OK, OK, 1, True)),
        ],
    ),
    Case(
        "delete-topics",
        6,
        ask.delete,
        lambda scene, answer: ask.by_name(scene, answer.responses),
        [
            (None, _BOTH_DENIED),
            (on_topic(_O.DESCRIBE), _BOTH_DENIED),
            (on_topic(_O.DESCRIBE, "{n}"), (TOPIC, UNKNOWN_TOPIC)),
            (on_topic(_O.DELETE), (OK, UNKNOWN_TOPIC)),
        ],
    ),
    Case(
        "delete-topics-by-id",
        6,
        ask.delete_by_id,
        ask.deleted_by_id,
        [
            (None, (TOPIC, False, True)),
            (on_topic(_O.DESCRIBE), (TOPIC, True, False)),
            (on_topic(_O.DELETE), (OK, True, False)),
        ],
    ),
    Case(
        "delete-topics-cluster",
        6,
        ask.delete,
        lambda scene, answer: ask.by_name(scene, answer.responses),
        [(on_cluster(_O.DELETE), (OK, UNKNOWN_TOPIC))],
    ),
    Case("create-partitions", 3, ask.grow, lambda s, a: ask.by_name(s, a.results), _both(_O.ALTER)),
    Case("delete-records", 2, ask.delete_records, lambda s, a: ask.by_topic(s, a.topics), _both(_O.DELETE)),
    Case(
        "describe-producers",
        0,
        lambda scene: producers.DescribeProducersRequest(
            topics=[producers.TopicRequest(name=name, partition_indexes=[0]) for name in scene.topics]
        ),
        lambda scene, answer: ask.by_topic(scene, answer.topics),
        _both(_O.READ),
    ),
    Case("epochs", 4, ask.find_epochs, lambda s, a: ask.by_topic(s, a.topics, "topic"), _both(_O.DESCRIBE)),
    Case(
        "epochs-of-brokers",
        4,
        ask.find_epochs,
        lambda scene, answer: ask.by_topic(scene, answer.topics, "topic"),
        [(None, _BOTH_DENIED), (on_cluster(_O.CLUSTER_ACTION), (OK, UNKNOWN_TOPIC))],
    ),
    Case(
        "describe-configs",
        4,
        ask.describe_configs,
        ask.described_configs,
        [
            (None, [(TOPIC, False), (TOPIC, False), (CLUSTER, False)]),
            (on_topic(_O.DESCRIBE_CONFIGS), [(OK, True), (TOPIC, False), (CLUSTER, False)]),
            (on_topic(_O.ALTER_CONFIGS, "{n}"), [(OK, True), (UNKNOWN_TOPIC, False), (CLUSTER, False)]),
            (on_cluster(_O.DESCRIBE_CONFIGS), [(OK, True), (UNKNOWN_TOPIC, False), (OK, True)]),
        ],
    ),
    *(
        Case(
            name,
            version,
            ask.alter(module, request),
            ask.altered,
            [
                (None, (TOPIC, True)),
                (on_topic(_O.ALTER_CONFIGS), (OK, True)),
                (on_cluster(_O.ALTER_CONFIGS), (OK, False)),
            ],
        )
        for name, version, module, request in (
            ("alter-configs", 2, legacy, legacy.AlterConfigsRequest),
            ("incremental-alter-configs", 1, incremental, incremental.IncrementalAlterConfigsRequest),
        )
    ),
    Case(
        "describe-log-dirs",
        4,
        lambda scene: DescribeLogDirsRequest(topics=None),
        lambda scene, answer: (answer.error_code, bool(answer.results)),
        [(None, (CLUSTER, False)), (on_cluster(_O.DESCRIBE), (OK, True))],
    ),
    *(
        Case(
            name,
            4,
            lambda scene: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000),
            lambda scene, answer: (answer.error_code, answer.producer_id >= 0),
            [(None, (CLUSTER, False)), (right, (OK, True))],
        )
        for name, right in (
            ("idempotent-write", on_cluster(_O.IDEMPOTENT_WRITE)),
            ("idempotent-write-any-topic", on_topic(_O.WRITE)),
            ("idempotent-write-all", on_topic(_O.ALL)),
        )
    ),
    Case(
        "init-transactional-id",
        4,
        lambda scene: InitProducerIdRequest(transactional_id=scene.name, transaction_timeout_ms=1000),
        ask.code,
        [(on_cluster(_O.IDEMPOTENT_WRITE), TRANSACTIONAL_ID)],
    ),
    Case(
        "describe-scram",
        0,
        # Of all users a real broker never tells anybody that he may not see them.
        lambda scene: DescribeUserScramCredentialsRequest(users=[UserName(name=scene.none)]),
        ask.code,
        [(None, CLUSTER), (on_cluster(_O.DESCRIBE), OK)],
    ),
    Case(
        "alter-scram",
        0,
        ask.unsalted,
        lambda scene, answer: [(result.user, result.error_code) for result in answer.results],
        [
            (None, [("alter-scram-other", CLUSTER)]),
            (on_cluster(_O.ALTER), [("alter-scram-other", NO_CREDENTIAL)]),
        ],
    ),
    Case("describe-acls", 3, ask.find_acls, ask.code, [(None, CLUSTER), (on_cluster(_O.DESCRIBE), OK)]),
    Case(
        "create-acls",
        3,
        ask.create_acl,
        lambda scene, answer: [result.error_code for result in answer.results],
        [(None, [CLUSTER]), (on_cluster(_O.ALTER), [OK])],
    ),
    Case(
        "delete-acls",
        3,
        ask.delete_acl,
        lambda scene, answer: [result.error_code for result in answer.filter_results],
        [(None, [CLUSTER]), (on_cluster(_O.ALTER), [OK])],
    ),
]
"""The part of the table for topics and groups by their names, and for all that is older."""
