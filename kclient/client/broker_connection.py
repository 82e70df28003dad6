"""BrokerConnection: a connection as others see it."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class BrokerConnection:
    """The connection to a broker. Immutable."""

    node_id: int
    """Id of the connection; below 0 for the first ones, which are to bootstrap servers."""
    host: str
    port: int
    state: str
    """`ready`, `connecting`, `disconnected` and the like."""
    since_ms: int
    """Milliseconds since it began, or since it ended."""
    failure: str | None
    """The reason why the last attempt to connect failed, None if it did not."""
