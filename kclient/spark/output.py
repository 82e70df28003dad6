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
    local_times: bool = False
    """True if the column `timestamp` has local times (timestamp_ntz), which are meant in the session's time zone."""

    def select(self, batch: Any) -> Any:
        """A record batch with these columns alone. To be called in a task."""
        chosen = batch.select(list(self.names))
        if not self.local_times:
            return chosen
        from kclient.spark.local_times import session_zone, with_instants

        return with_instants(chosen, "timestamp", session_zone())
