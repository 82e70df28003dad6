"""The base of the encoder and decoder writers: lines of source, and runs of fields that become one call."""

from __future__ import annotations

from typing import Any

from kclient.protocol.schema import Field, Message
from kclient.protocol.wire import UUID, Array, WireType


class Source:
    """Lines of a function under construction, with the run of fixed-size fields that waits to become one call."""

    def __init__(self, cls: type[Message], version: int, head: str) -> None:
        self.cls = cls
        self.version = version
        self.flexible = cls.FLEXIBLE_FROM is not None and version >= cls.FLEXIBLE_FROM
        self.scope: dict[str, Any] = {}
        self.depth = 1
        self._indent = 1
        self._lines = [head]
        self._run: list[tuple[str, str]] = []

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    def indent(self, text: str) -> None:
        """Begin a block with the line `text`."""
        self.line(text)
        self._indent += 1

    def block(self, head: str, *lines: str) -> None:
        """Write a block of `lines` under the line `head`."""
        self.indent(head)
        for text in lines:
            self.line(text)
        self._indent -= 1

    def dedent(self) -> None:
        self.flush()
        self._indent -= 1

    def take_run(self) -> tuple[str, list[str]]:
        """The format and the expressions of the fields that wait; afterwards none do."""
        codes = "".join(code for code, _ in self._run)
        values = [value for _, value in self._run]
        self._run.clear()
        return codes, values

    def flush(self) -> None:
        raise NotImplementedError

    def constant(self, name: str, value: object) -> str:
        self.scope[name] = value
        return name

    def differs(self, expression: str, field: Field) -> str:
        """An expression that is true if the value is not the field's default."""
        default = field.default
        if default is None:
            return f"{expression} is not None"
        if isinstance(field.kind, Array):
            return expression
        if field.kind is UUID:
            return f"({expression} is not NO_UUID and {expression} != NO_UUID)"
        if isinstance(field.kind, WireType):
            return f"{expression} != {default!r}"
        # Field by field, because the generated `__eq__` of a struct costs more than writing it.
        parts = [self.differs(f"{expression}.{inner.name}", inner) for inner in field.kind.FIELDS]
        return " or ".join([*parts, f"{expression}.unknown_tagged_fields"])
