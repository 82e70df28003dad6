"""Settings of topics, brokers, groups and the like: reading, changing and finding them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kclient.admin.internals.context import OperationContext, said_of_each, settle_each
from kclient.admin.internals.driver import Role, Target
from kclient.admin.internals.steps import Operation, accepted_answer_of
from kclient.admin.resource_configs import (
    AlterConfigOp,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kclient.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kclient.protocol.messages.list_config_resources import ListConfigResourcesRequest

_FIRST_WITH_DOCUMENTATION = 3


def describe_configs(
    context: OperationContext,
    resources: Sequence[ConfigResource],
    include_synonyms: bool,
    include_documentation: bool,
) -> Operation[dict[ConfigResource, dict[str, ConfigEntry]]]:
    """DescribeConfigs at the broker that a resource is about, else at any broker."""
    batches = _by_target(resources)
    answers = yield [
        context.call(
            ApiKeys.DESCRIBE_CONFIGS,
            DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=each.type, resource_name=each.name, configuration_keys=None
                    )
                    for each in batch
                ],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            ),
            target,
            min_version=_FIRST_WITH_DOCUMENTATION if include_documentation else None,
        )
        for target, batch in batches.items()
    ]
    outcomes: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
    for batch, answer in zip(batches.values(), answers, strict=True):
        found = answer if isinstance(answer, KafkaError) else answer.results
        for resource, result in _said(batch, found).items():
            if isinstance(result, KafkaError):
                outcomes[resource] = result
            else:
                outcomes[resource] = {entry.name: _entry(entry) for entry in result.configs}
    return settle_each(resources, outcomes, "Describing settings")


def incremental_alter_configs(
    context: OperationContext, configs: Mapping[ConfigResource, Sequence[AlterConfigOp]], validate_only: bool
) -> Operation[dict[ConfigResource, None]]:
    """IncrementalAlterConfigs at the broker that a resource is about, else at any broker, which forwards it."""
    batches = _by_target(configs)
    answers = yield [
        context.call(
            ApiKeys.INCREMENTAL_ALTER_CONFIGS,
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=each.type,
                        resource_name=each.name,
                        configs=[
                            AlterableConfig(name=op.name, config_operation=op.op_type, value=op.value)
                            for op in configs[each]
                        ],
                    )
                    for each in batch
                ],
                validate_only=validate_only,
            ),
            target,
        )
        for target, batch in batches.items()
    ]
    outcomes: dict[ConfigResource, KafkaError | None] = {}
    for batch, answer in zip(batches.values(), answers, strict=True):
        found = answer if isinstance(answer, KafkaError) else answer.responses
        for resource, result in _said(batch, found).items():
            outcomes[resource] = result if isinstance(result, KafkaError) else None
    return settle_each(configs, outcomes, "Altering settings")


def list_config_resources(
    context: OperationContext, types: Collection[ConfigResourceType]
) -> Operation[list[ConfigResource]]:
    """ListConfigResources at any broker. Its first version knows subscriptions to clients' metrics alone."""
    first_version = None if set(types) == {ConfigResourceType.CLIENT_METRICS} else 1

    def build(version: int) -> ListConfigResourcesRequest:
        return ListConfigResourcesRequest(resource_types=[int(each) for each in types] if version else [])

    answer = yield from accepted_answer_of(
        context.call(ApiKeys.LIST_CONFIG_RESOURCES, build, min_version=first_version)
    )
    return [
        ConfigResource(ConfigResourceType(each.resource_type), each.resource_name)
        for each in answer.config_resources
    ]


def _by_target(resources: Iterable[ConfigResource]) -> dict[Target, list[ConfigResource]]:
    grouped: dict[Target, list[ConfigResource]] = {}
    for each in resources:
        target = Target(Role.NODE, node_id=int(each.name)) if each.is_of_one_broker else Target()
        grouped.setdefault(target, []).append(each)
    return grouped


def _said(batch: Sequence[ConfigResource], found: Sequence[Any] | KafkaError) -> dict[ConfigResource, Any]:
    """The entry of an answer for each resource, or its error."""
    if isinstance(found, KafkaError):
        return dict.fromkeys(batch, found)
    said = {
        ConfigResource(ConfigResourceType(each.resource_type), each.resource_name): Errors.for_code(
            each.error_code, each.error_message
        )
        or each
        for each in found
    }
    return said_of_each(batch, said)


def _entry(entry: Any) -> ConfigEntry:
    return ConfigEntry(
        entry.name,
        entry.value,
        ConfigSource(entry.config_source),
        entry.is_sensitive,
        entry.read_only,
        ConfigType(entry.config_type),
        entry.documentation,
        tuple(ConfigSynonym(each.name, each.value, ConfigSource(each.source)) for each in entry.synonyms),
    )
