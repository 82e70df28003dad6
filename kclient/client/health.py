"""Health: how a client stands at one moment, for probes and for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from kclient.client.broker_connection import BrokerConnection
from kclient.client.kafka_client import KafkaClient
from kclient.client.metadata import Metadata


@attrs.frozen(kw_only=True)
class ClientHealth:
    """State of a client at one moment. Immutable; taking it asks no broker and waits for nothing."""

    client_id: str
    reasons: tuple[str, ...] = ()
    """Faults, each with the setting to look at; empty for a client that is well."""
    connections: tuple[BrokerConnection, ...] = ()
    metadata_age_ms: int | None = None
    """Milliseconds since brokers described the cluster last, None if none has yet."""
    last_error: str | None = None
    """The error that keeps the description of the cluster from being renewed, None after a success."""

    @property
    def healthy(self) -> bool:
        """True if nothing is known to be wrong."""
        return not self.reasons

    def to_dict(self) -> dict[str, Any]:
        """Return everything in a form that `json.dumps` takes, `healthy` included."""
        fields = attrs.asdict(self, value_serializer=lambda _object, _field, value: _plain(value))
        return {"healthy": self.healthy, **fields}


def connection_reasons(client: KafkaClient, connections: Iterable[BrokerConnection]) -> list[str]:
    """Return why no broker answers, if none of the `connections` says that one does."""
    refused = client.connections.any_authentication_error()
    if refused is not None:
        return [f"A broker refuses who the client is: {refused}"]
    failure = client.connection_failure()
    # One that was closed for being idle is no worse than an open one.
    if failure is None or any(each.failure is None for each in connections):
        return []
    return [f"No broker can be reached: {failure}"]


def common_health(client_id: str, client: KafkaClient, metadata: Metadata, now_ms: int) -> dict[str, Any]:
    """Return the fields of ClientHealth but its reasons."""
    error = metadata.last_error
    return {
        "client_id": client_id,
        "connections": tuple(client.describe_connections()),
        "metadata_age_ms": metadata.age_ms(now_ms),
        "last_error": None if error is None else str(error),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): each for key, each in value.items()}
    return list(value) if isinstance(value, tuple) else value
