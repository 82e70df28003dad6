"""Settings of the admin client."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import attrs

from kclient.config.client_configs import ClientConfig
from kclient.config.config_def import HIGH, LATER, LOW, MEDIUM
from kclient.config.declare import integer, list_, raise_default, vary
from kclient.config.validators import NoDuplicates, at_least, between

_log = logging.getLogger(__name__)

_INT_MAX = 2**31 - 1


@attrs.frozen(kw_only=True)
class AdminConfig(ClientConfig):
    """The typed settings of an admin client. Immutable; any thread may read it. Made by `parse`, which checks
    them.
    """

    client: ClassVar[str] = "admin client"

    bootstrap_servers: list[str] = vary(ClientConfig, "bootstrap.servers", default=[])
    bootstrap_controllers: list[str] = list_(
        [], HIGH, "The controllers to ask first instead of brokers (KIP-919).", NoDuplicates(), support=LATER
    )
    connections_max_idle_ms: int = vary(ClientConfig, "connections.max.idle.ms", default=300_000)
    enable_metrics_push: bool = vary(ClientConfig, "enable.metrics.push", default=False)
    default_api_timeout_ms: int = integer(
        60_000, MEDIUM, "How long calls without a timeout of their own may take.", at_least(0)
    )
    retries: int = integer(
        _INT_MAX,
        LOW,
        "How often a request is sent again; default.api.timeout.ms is the better limit.",
        between(0, _INT_MAX),
    )

    @classmethod
    def adjust(cls, values: dict[str, Any], given: frozenset[str]) -> None:
        """The admin client's cross-key rules, which are Java's."""
        super().adjust(values, given)
        api, request = "default.api.timeout.ms", "request.timeout.ms"
        if raise_default(values, given, api, values[request], f"{request} ({values[request]})"):
            _log.warning("%s is raised to %s = %s.", api, request, values[request])
