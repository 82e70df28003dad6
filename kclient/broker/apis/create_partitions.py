"""CreatePartitions (37), versions 0 to 3: give topics more partitions.

Versions: 3 fails where a quota of mutations is exceeded (KIP-599); before it the client is only held back.
Behaviour: each topic succeeds or fails by itself; one that comes twice is refused and answered once.
Access: ALTER on the topics.
"""

from __future__ import annotations

from collections import Counter

from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.metadata.controller import check_partition_limit
from kclient.broker.quota.mutation_quota_manager import MutationQuota
from kclient.common.acl import AclOperation, ResourceType
from kclient.errors import InvalidRequestError
from kclient.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


def create_partitions(call: ApiCall, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Grow each topic."""
    counts = Counter(topic.name for topic in request.topics)
    topics = {topic.name: topic for topic in request.topics}
    added = sum(_added(call, topic) for topic in topics.values())
    quota = call.mutation_quota(strict_since=3)
    results = [
        _grow(call, topic, quota, request.validate_only, once=counts[name] == 1, added=added)
        for name, topic in topics.items()
    ]
    call.hold_back(quota.throttle_ms)
    return CreatePartitionsResponse(results=results)


def _added(call: ApiCall, topic: CreatePartitionsTopic) -> int:
    known = call.broker.controller.cache.topic(topic.name)
    return 0 if known is None else max(topic.count - known.partition_count, 0)


def _grow(
    call: ApiCall,
    topic: CreatePartitionsTopic,
    quota: MutationQuota,
    validate_only: bool,
    *,
    once: bool,
    added: int,
) -> CreatePartitionsTopicResult:
    assignments = (
        None if topic.assignments is None else [assigned.broker_ids for assigned in topic.assignments]
    )
    result = CreatePartitionsTopicResult(name=topic.name)
    with error_in(result):
        if not once:
            raise InvalidRequestError(f"Topic {topic.name} is in the request more than once")
        call.require(AclOperation.ALTER, ResourceType.TOPIC, topic.name)
        check_partition_limit(added)
        call.broker.controller.create_partitions(
            topic.name, topic.count, assignments, validate_only=validate_only, charge=quota.charge
        )
    return result
