"""Parts of the questions for access that handlers ask by `ApiCall`: errors, operations, kinds of resources."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from kclient.broker.metadata.image.configurations import ResourceType as ConfiguredType
from kclient.common.acl import CLUSTER_NAME, AclOperation, ResourceType
from kclient.errors import (
    AuthorizationError,
    ClusterAuthorizationError,
    GroupAuthorizationError,
    InvalidRequestError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
)

_O = AclOperation
_R = ResourceType

ERRORS: Mapping[ResourceType, type[AuthorizationError]] = {
    _R.TOPIC: TopicAuthorizationError,
    _R.GROUP: GroupAuthorizationError,
    _R.CLUSTER: ClusterAuthorizationError,
    _R.TRANSACTIONAL_ID: TransactionalIdAuthorizationError,
}
"""The errors for those who have no access to a resource of a type."""

OPERATIONS: Mapping[ResourceType, tuple[AclOperation, ...]] = {
    _R.TOPIC: (
        *(_O.READ, _O.WRITE, _O.CREATE, _O.DELETE, _O.ALTER, _O.DESCRIBE),
        *(_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    ),
    _R.GROUP: (_O.READ, _O.DELETE, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    _R.CLUSTER: (
        *(_O.CREATE, _O.ALTER, _O.DESCRIBE, _O.CLUSTER_ACTION),
        *(_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS, _O.IDEMPOTENT_WRITE),
    ),
}
"""All that makes sense for resources of a type (KIP-430)."""


class _Everything(Container[str]):
    def __contains__(self, name: object) -> bool:
        return True


EVERYTHING: Container[str] = _Everything()
"""Every name."""


def bits(operations: Iterable[AclOperation]) -> int:
    """Return operations as one number, as responses have them: a bit for each."""
    return sum(1 << operation for operation in operations)


BROKER_LOGGER = 8
_CLIENT_METRICS = 16
_CONFIGURED_GROUP = 32
_OF_THE_CLUSTER = frozenset({int(ConfiguredType.BROKER), BROKER_LOGGER, _CLIENT_METRICS})


def guardian(configured_type: int, name: str) -> tuple[ResourceType, str]:
    """Return the resource whose rules say who may see and alter the settings of another one.

    For what has no rules of its own, such as brokers, that is the cluster. Raises InvalidRequestError if nothing of
    that type has settings in Kafka.
    """
    if configured_type == ConfiguredType.TOPIC:
        return ResourceType.TOPIC, name
    if configured_type == _CONFIGURED_GROUP:
        return ResourceType.GROUP, name
    if configured_type not in _OF_THE_CLUSTER:
        raise InvalidRequestError(f"There is no resource type {configured_type}")
    return ResourceType.CLUSTER, CLUSTER_NAME
