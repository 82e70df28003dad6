"""ConnectionMetrics: connections of one network thread."""

from __future__ import annotations

import attrs


@attrs.define(eq=False)
class ConnectionMetrics:
    """Counts of connections since the start. Written by the network thread alone, read by any."""

    created: int = 0
    closed: int = 0
    failed_authentications: int = 0
    """Clients that did not prove who they are."""
