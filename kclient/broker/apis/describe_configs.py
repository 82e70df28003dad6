"""DescribeConfigs (32), versions 1 to 4: settings of topics and of the broker.

Versions: 3 brought types and documentation, 4 is flexible. Access: DESCRIBE_CONFIGS on the topics or the
cluster.
"""

from __future__ import annotations

from kclient.broker.apis.access import guardian
from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.metadata.broker_settings import ALL_BROKERS
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.topic_settings import (
    described_broker_settings,
    described_common_settings,
    described_settings,
)
from kclient.common.acl import AclOperation
from kclient.errors import InvalidRequestError
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)


def describe_configs(call: ApiCall, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe each resource."""
    return DescribeConfigsResponse(
        results=[_describe(call, request, resource) for resource in request.resources]
    )


def _describe(
    call: ApiCall, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    keys = resource.configuration_keys
    with error_in(result):
        call.require(AclOperation.DESCRIBE_CONFIGS, *guardian(resource.resource_type, resource.resource_name))
        settings = _settings(call, resource)
        result.configs = [setting for setting in settings if keys is None or setting.name in keys]
    for setting in result.configs:
        if not request.include_synonyms:
            setting.synonyms = []
        if not request.include_documentation:
            setting.documentation = None
    return result


def _settings(call: ApiCall, resource: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
    broker = call.broker
    if resource.resource_type == ResourceType.TOPIC:
        broker.controller.cache.existing_topic(resource.resource_name)
        configs = broker.controller.cache.topic_configs(resource.resource_name)
        return described_settings(broker.controller.settings, broker.controller.log_config(configs), configs)
    if resource.resource_type == ResourceType.BROKER:
        if resource.resource_name == str(broker.node_id):
            return described_broker_settings(broker.controller.settings)
        if resource.resource_name == ALL_BROKERS:
            return described_common_settings(broker.controller.settings)
        raise InvalidRequestError(f"There is no broker {resource.resource_name!r}, only {broker.node_id}")
    raise InvalidRequestError(f"Resources of type {resource.resource_type} have no settings here")
