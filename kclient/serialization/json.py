"""Values as JSON text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs

from kclient.serialization.base import Headers


@attrs.frozen
class JsonSerializer:
    """Any value of JSON's types as compact UTF-8 text.

    `default` turns objects of other types into such values, `sort_keys` gives equal objects equal bytes (worth
    having for keys). NaN and infinities are errors, as JSON does not have them.
    """

    default: Callable[[Any], Any] | None = None
    sort_keys: bool = False

    def serialize(self, _topic: str, data: Any, _headers: Headers) -> bytes:
        return json.dumps(
            data,
            default=self.default,
            sort_keys=self.sort_keys,
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
        ).encode("utf-8")


@attrs.frozen
class JsonDeserializer:
    """The value that JSON text in UTF-8 stands for."""

    def deserialize(self, _topic: str, data: bytes, _headers: Headers) -> Any:
        return json.loads(data.decode("utf-8"))
