"""Parts that handlers share: settings of topics that are altered one by one, and codes by partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.resources import (
    ResourceType,
    altered,
    coded,
)
from kclient.common.topic_partition import TopicPartition
from kclient.errors import PolicyViolationError
from kclient.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
)
from kclient.protocol.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

UNKNOWN_TOPIC, INVALID_TOPIC, INVALID_CONFIG, INVALID_REQUEST, POLICY_VIOLATION = 3, 17, 40, 42, 44

Change = Callable[[Sequence[AlterableConfig], Mapping[str, str]], dict[str, str]]


def taken_over(asked: Sequence[AlterableConfig], _: Mapping[str, str]) -> dict[str, str]:
    return {config.name: config.value or "" for config in asked}


def alter(
    handlers: Handlers, *resources: tuple[int, str], change: Change = taken_over, **fields: Any
) -> list[AlterConfigsResourceResponse]:
    """Ask for retention.ms=5 in all of them."""
    asked = [
        AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[AlterableConfig(name="retention.ms", value="5")]
        )
        for kind, name in resources
    ]
    request = AlterConfigsRequest(resources=asked, **fields)
    call, _ = handlers.call(request, 2)
    results: list[AlterConfigsResourceResponse] = altered(
        call, request, AlterConfigsResourceResponse, change, change
    )
    return results


def configs(handlers: Handlers, name: str = "t") -> dict[str, str]:
    return dict(handlers.topics.cache.topic_configs(name))


def test_each_resource_succeeds_or_fails_by_itself(handlers: Handlers) -> None:
    handlers.topics.create()
    topic = ResourceType.TOPIC
    results = alter(handlers, (topic, "none"), (ResourceType.BROKER, "2"), (8, "x"), (topic, "t"))
    assert [result.error_code for result in results] == [UNKNOWN_TOPIC, INVALID_REQUEST, INVALID_REQUEST, 0]
    assert [result.resource_name for result in results] == ["none", "2", "x", "t"]
    assert "There is no broker" in (results[1].error_message or "")
    assert "type 8" in (results[2].error_message or "")
    assert results[3].error_message is None
    assert configs(handlers) == {"retention.ms": "5"}


@pytest.mark.parametrize(("name", "code"), [("", INVALID_REQUEST), ("a/b", INVALID_TOPIC)])
def test_a_topic_that_cannot_be_is_not_merely_unknown(handlers: Handlers, name: str, code: int) -> None:
    assert [result.error_code for result in alter(handlers, (ResourceType.TOPIC, name))] == [code]


def test_a_change_is_made_of_what_the_topic_has_and_of_what_is_asked_for(handlers: Handlers) -> None:
    handlers.topics.create(configs={"flush.ms": "9"})
    seen: list[tuple[dict[str, str], list[str]]] = []

    def change(asked: Sequence[AlterableConfig], overrides: Mapping[str, str]) -> dict[str, str]:
        seen.append((dict(overrides), [config.name for config in asked]))
        return {**overrides, "retention.ms": "7"}

    alter(handlers, (ResourceType.TOPIC, "t"), change=change)
    assert seen == [({"flush.ms": "9"}, ["retention.ms"])]
    assert configs(handlers) == {"flush.ms": "9", "retention.ms": "7"}


def test_a_change_that_cannot_be_is_told_and_not_made(handlers: Handlers) -> None:
    handlers.topics.create()

    def forbidden(*_: object) -> dict[str, str]:
        raise PolicyViolationError("not this one")

    (result,) = alter(handlers, (ResourceType.TOPIC, "t"), change=forbidden)
    assert (result.error_code, result.error_message) == (POLICY_VIOLATION, "not this one")
    (result,) = alter(handlers, (ResourceType.TOPIC, "t"), change=lambda *_: {"retention.ms": "soon"})
    assert result.error_code == INVALID_CONFIG
    assert configs(handlers) == {}


def test_a_change_that_is_only_validated_is_not_made(handlers: Handlers) -> None:
    handlers.topics.create()
    (result,) = alter(handlers, (ResourceType.TOPIC, "t"), validate_only=True)
    assert result.error_code == 0
    (result,) = alter(
        handlers, (ResourceType.TOPIC, "t"), change=lambda *_: {"no.such": "1"}, validate_only=True
    )
    assert result.error_code == INVALID_CONFIG
    assert configs(handlers) == {}


def test_no_resources_have_no_results(handlers: Handlers) -> None:
    assert alter(handlers) == []


def test_codes_are_told_in_the_order_of_the_request_however_often_a_partition_comes() -> None:
    asked = [
        OffsetDeleteRequestTopic(
            name=name, partitions=[OffsetDeleteRequestPartition(partition_index=number) for number in numbers]
        )
        for name, numbers in (("b", [2, 0, 2]), ("a", []), ("b", [0]))
    ]
    codes = {TopicPartition("b", 0): 7, TopicPartition("b", 2): 0, TopicPartition("c", 0): 9}
    topics = coded(asked, codes, OffsetDeleteResponseTopic, OffsetDeleteResponsePartition)
    assert [
        (topic.name, [(part.partition_index, part.error_code) for part in topic.partitions])
        for topic in topics
    ] == [("b", [(2, 0), (0, 7), (2, 0)]), ("a", []), ("b", [(0, 7)])]


def test_a_partition_without_a_code_is_an_error_and_not_a_success() -> None:
    asked = [OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=1)])]
    with pytest.raises(KeyError):
        coded(asked, {}, OffsetDeleteResponseTopic, OffsetDeleteResponsePartition)
