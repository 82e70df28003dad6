"""IncrementalAlterConfigs (44), versions 0 and 1: change single settings of topics, and dynamic ones of brokers
(KIP-339, KIP-226).

Access: ALTER_CONFIGS on the topics or the cluster.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.resources import altered, check_dynamic
from kclient.broker.metadata.broker_settings import is_dynamic
from kclient.broker.metadata.topic_settings import described_broker_settings
from kclient.errors import InvalidConfigurationError, InvalidRequestError
from kclient.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_LISTS = frozenset({"cleanup.policy", "log.cleanup.policy"})


class Operation(enum.IntEnum):
    """The change to make to a setting, by its number in the protocol."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def incremental_alter_configs(
    call: ApiCall, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change each resource."""

    def changed(changes: Sequence[AlterableConfig], overrides: Mapping[str, str]) -> dict[str, str]:
        effective = call.broker.controller.log_config(overrides).to_topic_configs()
        return _changed(overrides, effective, changes)

    def changed_of_broker(changes: Sequence[AlterableConfig], overrides: Mapping[str, str]) -> dict[str, str]:
        # To take away what cannot be set is no error, as with Kafka.
        check_dynamic(change.name for change in changes if change.config_operation != Operation.DELETE)
        current = described_broker_settings(call.broker.controller.settings)
        effective = {setting.name: setting.value or "" for setting in current}
        dynamic = [each for each in changes if is_dynamic(each.name)]
        effective |= {each.name: "" for each in dynamic if each.name not in effective}  # of listeners
        return _changed(overrides, effective, dynamic)

    return IncrementalAlterConfigsResponse(
        responses=altered(call, request, AlterConfigsResourceResponse, changed, changed_of_broker)
    )


def _changed(
    overrides: Mapping[str, str], effective: Mapping[str, str], changes: Sequence[AlterableConfig]
) -> dict[str, str]:
    if len({change.name for change in changes}) != len(changes):
        raise InvalidRequestError("A setting is in the request more than once")
    configs = dict(overrides)
    for change in changes:
        if change.name not in effective:
            raise InvalidConfigurationError(f"There is no setting {change.name}")
        if change.config_operation == Operation.DELETE:
            configs.pop(change.name, None)
            continue
        if change.value is None:
            raise InvalidRequestError(f"{change.name} has no value")
        if change.config_operation == Operation.SET:
            configs[change.name] = change.value
        elif change.config_operation in {Operation.APPEND, Operation.SUBTRACT}:
            if change.name not in _LISTS:
                raise InvalidConfigurationError(
                    f"{change.name} is no list that could be added to or taken from"
                )
            configs[change.name] = _merged(effective[change.name], change)
        else:
            raise InvalidRequestError(f"There is no operation {change.config_operation}")
    return configs


def _merged(current: str, change: AlterableConfig) -> str:
    given = [item.strip() for item in (change.value or "").split(",")]
    items = [item for item in current.split(",") if item and item not in given]
    if change.config_operation == Operation.APPEND:
        items += given
    return ",".join(items)
