"""BrokerConnection: a connection as others see it."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class BrokerConnection:
    """The connection to a broker. Immutable."""

    broker_id: int | None
    """Id of the broker, None for an address of `bootstrap.servers`; a broker may have several connections."""
    host: str
    port: int
    state: str
    """`ready`, `connecting`, `disconnected` and the like."""
    since_ms: int
    """Milliseconds since it began, or since it ended."""
    failure: str | None
    """The reason why the last attempt to connect failed, None if it did not."""
