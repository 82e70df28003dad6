"""The columns that a reader returns and a writer takes."""

from __future__ import annotations

from typing import Any

import attrs


@attrs.frozen
class OutputColumn:
    """A column of the output: which of the source's columns it is, its name there, and whether it may be null."""

    column: str
    name: str
    nullable: bool


@attrs.frozen
class SinkColumns:
    """The columns that become records, and the topic of all of them unless a column says it. Can be pickled."""

    names: tuple[str, ...]
    topic: str | None

    def select(self, batch: Any) -> Any:
        """A record batch with these columns alone."""
        return batch.select(list(self.names))
