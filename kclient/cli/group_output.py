"""Output of `kclient groups` and `kclient share-groups`: tables with Kafka's columns, or a JSON object a line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from kclient.cli.common import complain, error_console, print_table
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.errors import AdminError, GroupIdNotFoundError, KafkaError
from kclient.utils.text import host_and_port

Row: TypeAlias = "Mapping[str, Any]"
Columns: TypeAlias = "Mapping[str, str]"
"""Keys of rows with the names that Kafka has for them."""


def print_rows(columns: Columns, rows: Iterable[Row], options: argparse.Namespace) -> None:
    """Print `columns` of rows, or as JSON all that they have."""
    found = list(rows)
    if options.output == "json":
        for row in found:
            print(json.dumps(row, ensure_ascii=False))
        return
    right = [any(type(row[key]) is int for row in found) for key in columns]
    print_table(
        [(name, "right") if number else name for name, number in zip(columns.values(), right, strict=True)],
        [[_cell(row[key]) for key in columns] for row in found],
    )


def _cell(value: Any) -> Any:
    if isinstance(value, Mapping):
        parts = (f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in value.items())
        return ";".join(parts) or None
    return str(value).lower() if isinstance(value, bool) else value


def by_topic(partitions: Collection[TopicPartition] | None) -> dict[str, list[int]]:
    """Numbers of partitions by topic, in order."""
    found: dict[str, list[int]] = {}
    for tp in sorted(partitions or ()):
        found.setdefault(tp.topic, []).append(tp.partition)
    return found


def node_text(node: Node) -> str:
    """Return a broker's address and id."""
    return f"{host_and_port(node.host, node.port)} ({node.id})"


def note(text: str) -> None:
    """Print a remark for people on standard error."""
    error_console().print(text, markup=False, highlight=False)


def of_each(
    call: Callable[[], Mapping[Any, Any]], asked: Sequence[Any]
) -> tuple[dict[Any, Any], dict[Any, KafkaError]]:
    """Results and errors of a call of the admin client about `asked`, whichever way it tells of errors."""
    try:
        return dict(call()), {}
    except AdminError as error:
        return dict(error.results), dict(error.errors)
    except KafkaError as error:
        if len(asked) != 1:
            raise
        return {}, {asked[0]: error}


def complain_of_groups(errors: Mapping[str, KafkaError]) -> int:
    """Say of each group why nothing came of it; the exit code."""
    missing = [group for group, error in errors.items() if isinstance(error, GroupIdNotFoundError)]
    if missing:
        what = "is no group" if len(missing) == 1 else "are no groups"
        complain("error", f"There {what} {', '.join(missing)}")
    for group, error in errors.items():
        if group not in missing:
            text = str(error)
            complain("error", text if group in text else f"{group}: {text}")
    return 1 if errors else 0


def print_deleted(
    deleted: Collection[str], errors: Mapping[str, KafkaError], kind: str, options: argparse.Namespace
) -> int:
    """Say which groups were deleted and which were not; the exit code."""
    if options.output == "json":
        done = {**dict.fromkeys(deleted), **{group: str(error) for group, error in errors.items()}}
        rows = [{"group": g, "deleted": error is None, "error": error} for g, error in done.items()]
        print_rows({}, rows, options)
    elif deleted:
        names = ", ".join(f"'{group}'" for group in deleted)
        print(
            f"These {kind} groups were deleted successfully: {names}"
            if errors
            else f"Deletion of requested {kind} groups ({names}) was successful."
        )
    return complain_of_groups(errors)
