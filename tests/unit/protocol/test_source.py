"""Lines, blocks and runs of the source that encoder and decoder writers share."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.common.uuid import Uuid
from kclient.protocol import wire
from kclient.protocol.guard import uuid
from kclient.protocol.schema import Message, Structure, message, structure
from kclient.protocol.schema import wire as field
from kclient.protocol.source import Source
from kclient.protocol.wire import Array


@structure
class Inner(Structure):
    number: int = field(wire.Int32, "0+", default=-1)
    name: str = field(wire.String, "0+")


@message(kind="data", versions="0-3", flexible="2+")
class Given(Message):
    number: int = field(wire.Int32, "0+", default=7)
    text: str | None = field(wire.String, "0+", nullable="0+", default=None)
    topic_id: Uuid = field(wire.UUID, "0+")
    items: list[int] = field(Array(wire.Int8), "0+")
    inner: Inner = field(Inner, "0+")


@message(kind="data", versions="0-1", flexible="none")
class Plain(Message):
    pass


class Noted(Source):
    """Writes a waiting run as one line."""

    def flush(self) -> None:
        codes, values = self.take_run()
        if codes:
            self.line(f"{codes}({', '.join(values)})")

    def add(self, code: str, value: str) -> None:
        self._run.append((code, value))


def source(cls: type[Message] = Given, version: int = 3) -> Noted:
    return Noted(cls, version, "def f():")


def test_lines_are_indented_by_the_blocks_they_are_in() -> None:
    made = source()
    made.indent("if a:")
    made.block("if b:", "c", "d")
    made.line("e")
    made.dedent()
    made.line("f")
    assert (
        made.text() == "def f():\n    if a:\n        if b:\n            c\n            d\n        e\n    f\n"
    )


def test_a_run_is_taken_once_and_in_order() -> None:
    made = source()
    made.add("i", "x")
    made.add("16s", "y")
    assert made.take_run() == ("i16s", ["x", "y"])
    assert made.take_run() == ("", [])


def test_what_waits_at_the_end_of_a_block_is_written_inside_of_it() -> None:
    made = source()
    made.indent("if a:")
    made.add("i", "x")
    made.dedent()
    made.line("b")
    assert made.text() == "def f():\n    if a:\n        i(x)\n    b\n"


@pytest.mark.parametrize(
    ("cls", "version", "flexible"), [(Given, 1, False), (Given, 2, True), (Given, 3, True), (Plain, 1, False)]
)
def test_versions_are_flexible_from_the_declared_one_on(
    cls: type[Message], version: int, flexible: bool
) -> None:
    assert source(cls, version).flexible is flexible


def test_a_constant_is_in_the_scope_under_its_name() -> None:
    made = source()
    assert made.constant("LIMIT", 5) == "LIMIT"
    assert made.scope == {"LIMIT": 5}


@pytest.mark.parametrize(
    ("name", "value", "differs"),
    [
        ("number", 7, False),
        ("number", 0, True),
        ("text", None, False),
        ("text", "", True),
        ("topic_id", Uuid.ZERO, False),
        ("topic_id", Uuid(bytes(16)), False),
        ("topic_id", uuid(b"u" * 16), True),
        ("items", [], False),
        ("items", [0], True),
        ("inner", Inner(), False),
        ("inner", Inner(number=0), True),
        ("inner", Inner(name="n"), True),
        ("inner", Inner(unknown_tagged_fields={0: b""}), True),
        ("inner", Inner(unknown_tagged_fields={}), False),
    ],
)
def test_a_value_differs_from_the_default_of_its_field_and_from_nothing_else(
    name: str, value: Any, differs: bool
) -> None:
    (declared,) = (each for each in Given.FIELDS if each.name == name)
    expression = source().differs("value", declared)
    assert bool(eval(expression, {"value": value, "NO_UUID": Uuid.ZERO})) is differs
