"""Parts that several handlers share: kinds of resources, codes by partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from kclient.broker.apis.access import guardian
from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.common.acl import AclOperation
from kclient.common.topic_partition import TopicPartition
from kclient.errors import InvalidRequestError


def altered(
    call: ApiCall,
    request: Any,
    result_class: type[Any],
    change: Callable[[Sequence[Any], Mapping[str, str]], dict[str, str]],
) -> list[Any]:
    """Give each topic of a request the settings that `change` makes of what is asked for and of those it has.

    One that comes twice is refused wherever it comes.
    """
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    results = []
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        result = result_class(error_message=None, resource_type=kind, resource_name=name)
        with error_in(result):
            if times[kind, name] > 1:
                raise InvalidRequestError("Each resource must appear at most once")
            call.require(AclOperation.ALTER_CONFIGS, *guardian(kind, name))
            if kind == ResourceType.BROKER:
                raise InvalidRequestError("The settings of this broker can only be changed by a restart")
            if kind != ResourceType.TOPIC:
                raise InvalidRequestError(f"Resources of type {kind} have no settings here")
            wanted = partial(change, resource.configs)
            call.broker.controller.alter_configs(name, wanted, validate_only=request.validate_only)
        results.append(result)
    return results


def coded(
    topics: Iterable[Any], codes: Mapping[TopicPartition, int], topic_class: type[Any], part_class: type[Any]
) -> list[Any]:
    """The topics of a request again, as the response has them: each partition with its error code."""
    return [
        topic_class(
            name=topic.name,
            partitions=[
                part_class(
                    partition_index=given.partition_index,
                    error_code=codes[TopicPartition(topic.name, given.partition_index)],
                )
                for given in topic.partitions
            ],
        )
        for topic in topics
    ]
