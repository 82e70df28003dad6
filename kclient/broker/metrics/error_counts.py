"""Error codes in a response, counted as `errorCounts()` of Kafka's responses does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from kclient.protocol.schema import Structure
from kclient.protocol.wire import Array
from kclient.utils.generated import compile_source

ONE_SUCCESS: Mapping[int, int] = MappingProxyType({0: 1})
"""The counts of most responses."""

_CODES = frozenset({"error_code", "partition_error_code"})

_readers: dict[tuple[type[Structure], int], Callable[[Any], Mapping[int, int]]] = {}
# The versions of all responses bound it.


def error_counts(message: Structure, version: int) -> Mapping[int, int]:
    """Return how often each code, 0 included, stands in a response of this version."""
    key = type(message), version
    reader = _readers.get(key)
    if reader is None:
        reader = _readers[key] = _compiled(*key)
    return reader(message)


def _compiled(cls: type[Structure], version: int) -> Callable[[Any], Mapping[int, int]]:
    """Return a function that walks over the codes; made from the declaration, as the codecs are, to be quick."""
    scope: dict[str, Any] = {"summed": _summed}
    compile_source(f"<kclient error codes {cls.__name__} v{version}>", _source(cls, version), scope)
    reader: Callable[[Any], Mapping[int, int]] = scope["read"]
    return reader


def _source(cls: type[Structure], version: int) -> str:
    body = "\n".join(_walk(cls, version, "message", 1))
    return f"def read(message):\n    errors = []\n    successes = 0\n{body}\n    return summed(successes, errors)\n"


def _walk(cls: type[Structure], version: int, name: str, depth: int) -> Iterator[str]:
    indent = "    " * depth
    for field in cls.FIELDS:
        if version not in field.versions:
            continue
        value, element = f"{name}.{field.name}", field.element()
        if field.name in _CODES:
            yield f"{indent}if {value}:"
            yield f"{indent}    errors.append({value})"
            yield f"{indent}else:"
            yield f"{indent}    successes += 1"
        elif isinstance(element, type) and issubclass(element, Structure):
            inner = list(_walk(element, version, f"m{depth}", depth + 1))
            values = (
                f"{value} or ()"
                if isinstance(field.kind, Array)
                else f"() if {value} is None else ({value},)"
            )
            if inner:
                yield f"{indent}for m{depth} in {values}:"
                yield from inner


def _summed(successes: int, errors: list[int]) -> Mapping[int, int]:
    if not errors and successes == 1:
        return ONE_SUCCESS
    counts = {0: successes} if successes else {}
    for code in errors:
        counts[code] = counts.get(code, 0) + 1
    return counts
