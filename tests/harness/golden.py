"""Golden vectors, made by the Java client, and Kafka's own message schemas."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
