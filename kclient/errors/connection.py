"""Places where connections to brokers failed, as data for those who handle errors."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

__all__ = ["ConnectionFailure", "ConnectionStep"]

ConnectionStep: TypeAlias = Literal["dns", "tcp", "proxy", "tls", "sasl", "api_versions", "request"]
"""The part of setting up a connection that failed; `request` is its use."""


@attrs.frozen(kw_only=True)
class ConnectionFailure:
    """The place and the step at which a connection to a broker failed. Immutable, can be pickled."""

    host: str | None = None
    """The broker's host, as bootstrap.servers or the broker itself names it."""
    port: int = -1
    address: str | None = None
    """The IP address that was connected to: that of the proxy if there is one, None if no name was resolved."""
    proxy: str | None = None
    """The proxy that led to the broker, without its password."""
    step: ConnectionStep = "tcp"
    attempts: int = 0
    """The number of tries since there was last a connection."""
    elapsed_ms: int = 0
    """The time since the first of these attempts."""
    setting: str | None = None
    """The setting to look at first; one of the broker's if that is `advertised.listeners`."""
