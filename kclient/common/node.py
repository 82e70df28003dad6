"""Node: a broker's id and address."""

from __future__ import annotations

import attrs


@attrs.frozen(cache_hash=True)
class Node:
    """A broker. Immutable. Addresses given by `bootstrap.servers` have negative ids until metadata names them."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id {self.id})"
