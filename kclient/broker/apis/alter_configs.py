"""AlterConfigs (33), versions 0 to 2: replace all settings of topics.

Behaviour: settings that are not named go back to their defaults, which is why IncrementalAlterConfigs came
after it. Access: ALTER_CONFIGS on the topics.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.apis.resources import topic_overrides
from kclient.errors import InvalidRequestError
from kclient.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def alter_configs(call: ApiCall, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Change each resource."""
    return AlterConfigsResponse(
        responses=[_alter(call, resource, request.validate_only) for resource in request.resources]
    )


def _alter(
    call: ApiCall, resource: AlterConfigsResource, validate_only: bool
) -> AlterConfigsResourceResponse:
    result = AlterConfigsResourceResponse(
        error_message=None, resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    with error_in(result):
        topic_overrides(call, resource.resource_type, resource.resource_name)
        configs: dict[str, str] = {}
        for config in resource.configs:
            if config.value is None:
                raise InvalidRequestError(f"{config.name} has no value")
            configs[config.name] = config.value
        call.broker.controller.alter_configs(resource.resource_name, configs, validate_only=validate_only)
    return result
