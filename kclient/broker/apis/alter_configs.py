"""AlterConfigs (33), versions 0 to 2: replace all settings of topics, or all dynamic ones of brokers.

Behaviour: settings that are not named go back to their defaults, which is why IncrementalAlterConfigs came
after it. Access: ALTER_CONFIGS on the topics or the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.resources import altered, check_dynamic
from kclient.errors import InvalidRequestError
from kclient.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def alter_configs(call: ApiCall, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Change each resource."""
    return AlterConfigsResponse(
        responses=altered(call, request, AlterConfigsResourceResponse, _replaced, _replaced_of_broker)
    )


def _replaced_of_broker(given: Sequence[AlterableConfig], overrides: Mapping[str, str]) -> dict[str, str]:
    check_dynamic(config.name for config in given)
    return _replaced(given, overrides)


def _replaced(given: Sequence[AlterableConfig], _overrides: Mapping[str, str]) -> dict[str, str]:
    if len({config.name for config in given}) != len(given):
        raise InvalidRequestError("A setting is in the request more than once")
    configs: dict[str, str] = {}
    for config in given:
        if config.value is None:
            raise InvalidRequestError(f"{config.name} has no value")
        configs[config.name] = config.value
    return configs
