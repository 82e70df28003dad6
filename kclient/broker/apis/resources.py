"""Parts that several handlers share: kinds of resources, codes by partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from kclient.broker.apis.access import BROKER_LOGGER, guardian
from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.metadata.broker_settings import ALL_BROKERS, CERTIFICATES, is_dynamic
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.topic_names import validate_topic_name
from kclient.common.acl import AclOperation
from kclient.common.topic_partition import TopicPartition
from kclient.errors import InvalidRequestError
from kclient.protocol.api_keys import ApiKeys

Change: TypeAlias = Callable[[Sequence[Any], Mapping[str, str]], dict[str, str]]


def check_dynamic(names: Iterable[str]) -> None:
    """Raise InvalidRequestError if any of these settings of a broker is not changed while it runs."""
    fixed = sorted(name for name in set(names) if not is_dynamic(name))
    if not CERTIFICATES.isdisjoint(fixed):
        names_of_listeners = ", ".join(
            f"listener.name.LISTENER.{name}" for name in fixed if name in CERTIFICATES
        )
        raise InvalidRequestError(f"These configs can be updated for a listener alone: {names_of_listeners}")
    if fixed:
        raise InvalidRequestError(f"Cannot update these configs dynamically: {', '.join(fixed)}")


def altered(
    call: ApiCall,
    request: Any,
    result_class: type[Any],
    change: Change,
    change_broker: Change,
) -> list[Any]:
    """Give each topic and broker of a request the settings that are made of what is asked for and of those it has.

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
            if kind == BROKER_LOGGER and call.key is ApiKeys.ALTER_CONFIGS:
                # Loggers came with IncrementalAlterConfigs; here they are unknown, whatever the client's rights.
                raise InvalidRequestError(f"There is no resource type {kind}")
            call.require(AclOperation.ALTER_CONFIGS, *guardian(kind, name))
            controller = call.broker.controller
            if kind == ResourceType.BROKER:
                if name not in {ALL_BROKERS, str(call.broker.node_id)}:
                    raise InvalidRequestError(f"There is no broker {name!r}, only {call.broker.node_id}")
                wanted = partial(change_broker, resource.configs)
                controller.alter_broker_configs(name, wanted, validate_only=request.validate_only)
            elif kind == ResourceType.TOPIC:
                if not name:
                    raise InvalidRequestError("Topics have no settings that are common to all of them")
                validate_topic_name(name)
                wanted = partial(change, resource.configs)
                controller.alter_configs(name, wanted, validate_only=request.validate_only)
            else:
                raise InvalidRequestError(f"Resources of type {kind} have no settings here")
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
