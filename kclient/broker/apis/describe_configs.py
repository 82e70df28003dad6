"""DescribeConfigs (32), versions 1 to 4: settings of topics and of the broker.

Versions: 3 brought types and documentation, 4 is flexible. Behaviour: no names of settings mean all of them; a type of
resource that Kafka does not know refuses the whole request. Access: DESCRIBE_CONFIGS on the topics or the cluster.
"""

from __future__ import annotations

from kclient.broker.apis.access import guardian
from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.metadata.broker_settings import ALL_BROKERS
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.topic_names import validate_topic_name
from kclient.broker.metadata.topic_settings import (
    described_broker_settings,
    described_common_settings,
    described_settings,
)
from kclient.common.acl import AclOperation
from kclient.common.acl import ResourceType as GuardingType
from kclient.errors import Errors, InvalidRequestError
from kclient.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)


def describe_configs(call: ApiCall, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe each resource."""
    try:
        guardians = [
            guardian(resource.resource_type, resource.resource_name) for resource in request.resources
        ]
    except InvalidRequestError as error:
        return DescribeConfigsResponse(results=[_refused(resource, error) for resource in request.resources])
    return DescribeConfigsResponse(
        results=[
            _describe(call, request, resource, guarding)
            for resource, guarding in zip(request.resources, guardians, strict=True)
        ]
    )


def _refused(resource: DescribeConfigsResource, error: InvalidRequestError) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=Errors.code_for(error),
        error_message=str(error),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _describe(
    call: ApiCall,
    request: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
    guarding: tuple[GuardingType, str],
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    keys = resource.configuration_keys
    with error_in(result):
        call.require(AclOperation.DESCRIBE_CONFIGS, *guarding)
        settings = _settings(call, resource)
        result.configs = [setting for setting in settings if not keys or setting.name in keys]
    for setting in result.configs:
        if not request.include_synonyms:
            setting.synonyms = []
        if not request.include_documentation:
            setting.documentation = None
    return result


def _settings(call: ApiCall, resource: DescribeConfigsResource) -> list[DescribeConfigsResourceResult]:
    broker = call.broker
    if resource.resource_type == ResourceType.TOPIC:
        validate_topic_name(resource.resource_name)
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
