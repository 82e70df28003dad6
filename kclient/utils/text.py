"""Text for people."""

from __future__ import annotations


def host_and_port(host: str, port: int) -> str:
    """Return `host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def counted(number: int, thing: str) -> str:
    """Return `number` with what it counts: 1 record, 2 records."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"
