"""Golden vectors, made by the Java client, and Kafka's own message schemas."""

from __future__ import annotations

import gzip
import json
import os
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from kclient.protocol import messages
from kclient.protocol.schema import Message

_GOLDEN = Path(__file__).parent.parent / "golden"
SCHEMAS = _GOLDEN / "schemas"


def golden_dir() -> Path:
    """The folder of the golden vectors: `KCLIENT_GOLDEN`, or the copy in tests/golden/data."""
    return Path(os.environ.get("KCLIENT_GOLDEN") or _GOLDEN / "data")


def golden_lines(name: str) -> Iterator[dict[str, Any]]:
    """The entries of `name.jsonl` or `name.jsonl.gz`."""
    plain = golden_dir() / f"{name}.jsonl"
    if plain.exists():
        with plain.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
        return
    with gzip.open(golden_dir() / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def golden_table(name: str) -> Any:
    """The contents of `name.json`."""
    return json.loads((golden_dir() / f"{name}.json").read_text(encoding="utf-8"))


def message_classes() -> dict[str, type[Message]]:
    """Every message that kclient declares, by its name in Kafka's schema."""
    modules = [
        import_module(f"{messages.__name__}.{each.name}") for each in pkgutil.iter_modules(messages.__path__)
    ]
    found = (value for module in modules for value in vars(module).values())
    return {
        cls.__name__: cls
        for cls in found
        if isinstance(cls, type) and issubclass(cls, Message) and cls is not Message
    }
