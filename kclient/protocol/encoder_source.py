"""Writes the source of a message's encoder for one version; see `codegen` for what it looks like."""

from __future__ import annotations

import struct

from kclient.protocol.schema import Field, Message, Structure
from kclient.protocol.source import Source
from kclient.protocol.wire import UUID, Array, Records, String, WireType

REFERENCE_ABOVE = 1024
"""`records` of more bytes than this are handed on by reference; below, copying is cheaper than another buffer."""


class EncoderSource(Source):
    """Writes `encode`."""

    def __init__(self, cls: type[Message], version: int) -> None:
        super().__init__(cls, version, "def encode(o1, out, refs):")
        self.structure("o1", cls)
        self.flush()

    def flush(self) -> None:
        codes, values = self.take_run()
        if codes:
            name = "pack_" + codes.replace("16s", "U").replace("?", "o")
            self.scope[name] = struct.Struct(">" + codes).pack
            self.line(f"out += {name}({', '.join(values)})")

    def structure(self, owner: str, cls: type[Structure]) -> None:
        present = [field for field in cls.FIELDS if self.version in field.versions]
        for field in cls.FIELDS:
            if field not in present and not field.ignorable:
                where = f"{owner}.{field.name}"
                self.block(
                    f"if {self.differs(where, field)}:",
                    f"raise lacks_field('{cls.__name__}.{field.name}', {self.version})",
                )
        for field in present:
            if field.tag is None:
                self.value(f"{owner}.{field.name}", field)
        tagged = sorted((f for f in present if f.tag is not None), key=lambda f: f.tag or 0)
        self.tags(owner, cls, tagged)

    def tags(self, owner: str, cls: type[Structure], tagged: list[Field]) -> None:
        self.flush()
        unknown = f"{owner}.unknown_tagged_fields"
        if not self.flexible:
            self.block(f"if {unknown}:", f"raise lacks_tags('{cls.__name__}', {self.version})")
            return
        known = f"tags{self.depth}"
        if tagged:
            self.line(f"{known} = None")
        for field in tagged:
            value, outer = f"{owner}.{field.name}", f"out{self.depth}"
            self.indent(f"if {self.differs(value, field)}:")
            self.line(f"{outer}, out = out, bytearray()")
            self.value(value, field)
            self.flush()
            self.line(f"{known} = {known} or []")
            self.line(f"{known}.append(({field.tag}, out))")
            self.line(f"out = {outer}")
            self.dedent()
        first_unknown = max((field.tag + 1 for field in tagged if field.tag is not None), default=0)
        self.block(
            f"if {known} or {unknown}:" if tagged else f"if {unknown}:",
            f"write_tags(out, {known if tagged else None}, {unknown}, {first_unknown})",
        )
        self.block("else:", "out.append(0)")

    def value(self, value: str, field: Field) -> None:
        kind = field.kind
        nullable = self.version in field.nullable or kind is Records
        compact = self.flexible and field.flexible
        if isinstance(kind, WireType):
            if kind.code is not None:
                self._run.append((kind.code, f"{value}.bytes" if kind is UUID else value))
            else:
                self.sized(value, kind, nullable=nullable, compact=compact)
        elif isinstance(kind, Array):
            self.array(value, kind, nullable=nullable, compact=compact)
        else:
            self.depth += 1
            inner = f"o{self.depth}"
            self.flush()
            self.line(f"{inner} = {value}")
            if nullable:
                self.block(f"if {inner} is None:", "out += b'\\xff'")
                self.indent("else:")
                self.line("out += b'\\x01'")
                self.structure(inner, kind)
                self.dedent()
            else:
                self.structure(inner, kind)
            self.depth -= 1

    def length(self, code: str, *, compact: bool) -> None:
        """Write the length `n` (a compact one is one more), in one call with the fields that wait."""
        if not compact:
            self._run.append((code, "n"))
            self.flush()
            return
        if not self._run:
            self.line("out += VARINTS[n] if n < 128 else unsigned_varint(n)")
            return
        waiting = list(self._run)
        self.indent("if n < 128:")
        self._run.append(("B", "n"))
        self.dedent()
        self.indent("else:")
        self._run.extend(waiting)
        self.flush()
        self.line("out += unsigned_varint(n)")
        self._indent -= 1

    def sized(self, value: str, kind: WireType, *, nullable: bool, compact: bool) -> None:
        code = "h" if kind is String else "i"
        encoded = ".encode()" if kind is String else ""
        self.line(f"s = {value}" if nullable else f"s = {value}{encoded}")
        if nullable:
            self.flush()
            self.indent("if s is None:")
            self.line(
                "out.append(0)"
                if compact
                else "out += b'\\xff\\xff'"
                if code == "h"
                else "out += b'\\xff\\xff\\xff\\xff'"
            )
            self._indent -= 1
            self.indent("else:")
            if encoded:
                self.line("s = s.encode()")
        self.line("n = len(s) + 1" if compact else "n = len(s)")
        self.length(code, compact=compact)
        if kind is Records:
            self.block(f"if refs is not None and len(s) > {REFERENCE_ABOVE}:", "refs.append((len(out), s))")
            self.block("else:", "out += s")
        else:
            self.line("out += s")
        if nullable:
            self._indent -= 1

    def array(self, value: str, kind: Array, *, nullable: bool, compact: bool) -> None:
        items = f"a{self.depth}"
        self.line(f"{items} = {value}")
        if nullable:
            self.flush()
            self.block(
                f"if {items} is None:", "out.append(0)" if compact else "out += b'\\xff\\xff\\xff\\xff'"
            )
            self.indent("else:")
        self.line(f"n = len({items}) + 1" if compact else f"n = len({items})")
        self.length("i", compact=compact)
        element = kind.of
        if isinstance(element, WireType) and element.code is not None and element is not UUID:
            self.block(f"if {items}:", f"out += write_numbers('{element.code}', {items})")
        elif isinstance(element, WireType):
            self.indent(f"for item in {items}:")
            if element is UUID:
                self.line("out += item.bytes")
            else:
                self.sized("item", element, nullable=False, compact=compact)
            self.dedent()
        else:
            self.depth += 1
            self.indent(f"for o{self.depth} in {items}:")
            self.structure(f"o{self.depth}", element)
            self.dedent()
            self.depth -= 1
        if nullable:
            self.dedent()
