"""Settings as keyword arguments. Made by `kclient.config.typed_dicts`."""

from __future__ import annotations

from collections.abc import Sequence

from kclient.config.settings import ClientSettings


class AdminSettings(ClientSettings, total=False):
    """Keyword arguments for the settings of an admin client; docs/configuration.md tells more."""

    bootstrap_controllers: str | Sequence[str]
    """Default: []. The controllers to ask first instead of brokers (KIP-919). Not implemented yet."""
    bootstrap_servers: str | Sequence[str]
    """Default: []. The brokers to ask first, as host:port; embedded://NAME is a broker inside this process."""
    connections_max_idle_ms: int
    """Default: 300000. How long a connection may be unused before it is closed; -1 is for ever."""
    default_api_timeout_ms: int
    """Default: 60000. How long calls without a timeout of their own may take."""
    enable_metrics_push: bool
    """Default: False. Whether metrics are pushed to brokers that ask for them (KIP-714)."""
    retries: int
    """Default: 2147483647. How often a request is sent again; default.api.timeout.ms is the better limit."""
