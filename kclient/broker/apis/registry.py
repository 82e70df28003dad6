"""The APIs that the broker serves, with the versions and the function of each."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from kclient.protocol.api_keys import ApiKeys

_MODULES = (
    "alter_configs",
    "api_versions",
    "create_partitions",
    "create_topics",
    "delete_groups",
    "delete_records",
    "delete_topics",
    "describe_cluster",
    "describe_configs",
    "describe_groups",
    "describe_log_dirs",
    "describe_producers",
    "fetch",
    "find_coordinator",
    "heartbeat",
    "incremental_alter_configs",
    "init_producer_id",
    "join_group",
    "leave_group",
    "list_groups",
    "list_offsets",
    "metadata",
    "offset_commit",
    "offset_delete",
    "offset_fetch",
    "offset_for_leader_epoch",
    "produce",
    "sync_group",
)

Handler = Callable[..., Any]
H = TypeVar("H", bound=Handler)


@attrs.frozen
class ServedApi:
    """An API, the versions its handler understands, and the handler."""

    key: ApiKeys
    min_version: int
    max_version: int
    handler: Handler

    @property
    def advertised_min_version(self) -> int:
        """The lowest version that clients are told of; see `ApiKeys.advertised_min_version`."""
        return min(self.min_version, self.key.advertised_min_version)

    def serves(self, version: int) -> bool:
        """True if requests of `version` can be handled."""
        return self.min_version <= version <= self.max_version


_served: dict[int, ServedApi] = {}


def handles(key: ApiKeys, min_version: int, max_version: int) -> Callable[[H], H]:
    """Register the decorated function as the handler of `key` in these versions.

    It is called as `handler(call, request)` with an `ApiCall` and the decoded message. It returns the
    response, or None if it answers later (or already has) through `call`. What it raises closes the
    connection.
    """

    def register(handler: H) -> H:
        if key in _served:
            raise ValueError(f"{key.name} has two handlers")
        _served[key] = ServedApi(key, min_version, max_version, handler)
        return handler

    return register


def served_apis() -> Mapping[int, ServedApi]:
    """Every API that is served, by its number. Imports the handlers at the first call."""
    for module in _MODULES:
        importlib.import_module(f"kclient.broker.apis.{module}")
    return _served
