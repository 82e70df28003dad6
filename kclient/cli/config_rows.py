"""Settings as `kclient configs` prints them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

import attrs

from kclient.cli.common import print_table
from kclient.cli.config_arguments import Changes, Entity


@attrs.frozen
class Row:
    """One setting of one entity."""

    names: Mapping[str, str | None]
    """The entity: names by type, None for a default."""
    name: str
    value: str | float | None
    source: str | None = None
    sensitive: bool = False


def print_rows(rows: Iterable[Row], output: str) -> None:
    """Print settings, as a table or as an object a line."""
    if output == "json":
        for row in rows:
            shown = {
                "entity": dict(row.names),
                "name": row.name,
                "value": row.value,
                "source": row.source,
                "sensitive": row.sensitive,
            }
            print(json.dumps(shown, ensure_ascii=False))
        return
    print_table(
        ["ENTITY", "NAME", "VALUE", "SOURCE"],
        [
            [str(Entity(dict(row.names))), row.name, "[hidden]" if row.sensitive else row.value, row.source]
            for row in rows
        ],
    )


def print_changes(entity: Entity, changes: Changes, output: str) -> None:
    """Print the names of what was set and deleted, never the values."""
    if output == "json":
        print(json.dumps({"entity": entity.names, "set": [*changes.added], "deleted": [*changes.deleted]}))
        return
    done = [f"set {', '.join(changes.added)}"] if changes.added else []
    done += [f"deleted {', '.join(changes.deleted)}"] if changes.deleted else []
    print(f"Changed {entity}: {'; '.join(done)}.")
