"""The APIs that the broker serves, with the versions and the function of each."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import attrs

from kclient.protocol.api_keys import ApiKeys

_VERSIONS: Mapping[ApiKeys, tuple[int, int]] = {
    ApiKeys.ALTER_CLIENT_QUOTAS: (0, 1),
    ApiKeys.ALTER_CONFIGS: (0, 2),
    ApiKeys.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKeys.API_VERSIONS: (0, 4),
    ApiKeys.CREATE_ACLS: (1, 3),
    ApiKeys.CREATE_PARTITIONS: (0, 3),
    ApiKeys.CREATE_TOPICS: (2, 7),
    ApiKeys.DELETE_ACLS: (1, 3),
    ApiKeys.DELETE_GROUPS: (0, 2),
    ApiKeys.DELETE_RECORDS: (0, 2),
    ApiKeys.DELETE_TOPICS: (1, 6),
    ApiKeys.DESCRIBE_ACLS: (1, 3),
    ApiKeys.DESCRIBE_CLIENT_QUOTAS: (0, 1),
    ApiKeys.DESCRIBE_CLUSTER: (0, 2),
    ApiKeys.DESCRIBE_CONFIGS: (1, 4),
    ApiKeys.DESCRIBE_GROUPS: (0, 6),
    ApiKeys.DESCRIBE_LOG_DIRS: (1, 5),
    ApiKeys.DESCRIBE_PRODUCERS: (0, 0),
    ApiKeys.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
    ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKeys.FETCH: (4, 18),
    ApiKeys.FIND_COORDINATOR: (0, 6),
    ApiKeys.HEARTBEAT: (0, 4),
    ApiKeys.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKeys.INIT_PRODUCER_ID: (0, 5),
    ApiKeys.JOIN_GROUP: (0, 9),
    ApiKeys.LEAVE_GROUP: (0, 5),
    ApiKeys.LIST_GROUPS: (0, 5),
    ApiKeys.LIST_OFFSETS: (1, 11),
    ApiKeys.METADATA: (0, 13),
    ApiKeys.OFFSET_COMMIT: (2, 10),
    ApiKeys.OFFSET_DELETE: (0, 0),
    ApiKeys.OFFSET_FETCH: (1, 10),
    ApiKeys.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    ApiKeys.PRODUCE: (3, 13),
    ApiKeys.SASL_AUTHENTICATE: (0, 2),
    ApiKeys.SASL_HANDSHAKE: (0, 1),
    ApiKeys.SYNC_GROUP: (0, 5),
    ApiKeys.UPDATE_FEATURES: (0, 2),
}
"""The lowest and the highest version of each. The handler is the function called like the API in the module of that
name."""


@attrs.frozen
class ServedApi:
    """An API and the versions that its handler understands."""

    key: ApiKeys
    min_version: int
    max_version: int

    @property
    def handler(self) -> Callable[..., Any]:
        """The function to call as `handler(call, request)`, with an `ApiCall` and the decoded message.

        It returns the response, or None if it answers later (or already has) through `call`. An error that it raises
        is logged, as one that nobody expected, and answered with its code; an UnreadableRequestError closes the
        connection. Its module is imported at the first use.
        """
        return _handler(self.key)

    @property
    def advertised_min_version(self) -> int:
        """The lowest version that clients are told of; see `ApiKeys.advertised_min_version`."""
        return min(self.min_version, self.key.advertised_min_version)

    def serves(self, version: int) -> bool:
        """True if requests of `version` can be handled."""
        return self.min_version <= version <= self.max_version


@cache
def served_apis() -> Mapping[int, ServedApi]:
    """Every API that is served, by its number."""
    return {int(key): ServedApi(key, *versions) for key, versions in _VERSIONS.items()}


def load_handlers() -> None:
    """Import the handlers of all APIs, so that no request waits for its own."""
    for key in _VERSIONS:
        _handler(key)


@cache
def _handler(key: ApiKeys) -> Callable[..., Any]:
    name = key.name.lower()
    handler: Callable[..., Any] = getattr(importlib.import_module(f"kclient.broker.apis.{name}"), name)
    return handler
