"""Builds the codec of a message at one version: Python source made from the declaration, compiled at first use.

Generated code beats composed closures three to four times: fields of fixed size that follow each other become one
`struct` call (together with the length that comes next), arrays of structs become inlined loops, and what a version
lacks costs nothing. The source is in `linecache` as `<kclient codec ProduceRequest v9>`, so tracebacks, debuggers and
profilers show it.

Generated functions:

- `encode(o1, out, refs)` appends message `o1` to the bytearray `out`. Large `records` go to `refs` as (position in
  `out`, buffer) instead, unless `refs` is None.
- `decode(buf, pos, end, budget)` returns the message at `pos` and the position after it. Its first loop variable
  names say what they hold: `o1`, `o2`, ... are structs by depth, `n` a length, `q` the end of a value.

Memory while decoding hostile bytes: a count is checked against the bytes that are left before anything is
allocated for it, and each array charges `budget` for the objects it is about to make (see `guard`).
"""

from __future__ import annotations

import linecache
import struct
import threading
from typing import Any

from kclient.common.uuid import Uuid
from kclient.errors import UnsupportedVersionError
from kclient.protocol import guard
from kclient.protocol.schema import Codec, Field, Message, Structure
from kclient.protocol.wire import (
    UUID,
    VARINTS,
    Array,
    Bytes,
    Records,
    String,
    WireType,
    read_numbers,
    read_size,
    unsigned_varint,
)

REFERENCE_ABOVE = 1024
"""`records` of more bytes than this are handed on by reference; below, copying is cheaper than another buffer."""

_lock = threading.Lock()


def build(cls: type[Message], version: int) -> tuple[Codec, Codec]:
    """The encoder and decoder of `cls` at `version`, kept in `cls.ENCODERS` and `cls.DECODERS`.

    Raises UnsupportedVersionError for a version that the message does not have. Thread-safe.
    """
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise UnsupportedVersionError(
            f"{cls.__name__} has versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not {version}"
        )
    with _lock:
        if version not in cls.DECODERS:
            encoder, decoder = EncoderSource(cls, version), DecoderSource(cls, version)
            source = encoder.text() + "\n\n" + decoder.text()
            name = f"<kclient codec {cls.__name__} v{version}>"
            linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
            scope = {**_COMMON, **encoder.scope, **decoder.scope}
            exec(compile(source, name, "exec"), scope)
            cls.ENCODERS[version] = scope["encode"]
            cls.DECODERS[version] = scope["decode"]
        return cls.ENCODERS[version], cls.DECODERS[version]


_COMMON: dict[str, Any] = {
    "NO_UUID": Uuid.ZERO,
    "VARINTS": VARINTS,
    "bad_count": guard.bad_count,
    "bad_size": guard.bad_size,
    "bad_tag": guard.bad_tag,
    "lacks_field": guard.lacks_field,
    "lacks_tags": guard.lacks_tags,
    "new": object.__new__,
    "over_budget": guard.over_budget,
    "read_numbers": read_numbers,
    "read_size": read_size,
    "read_tag": guard.read_tag,
    "read_tag_count": guard.read_tag_count,
    "read_unknown_tags": guard.read_unknown_tags,
    "unsigned_varint": unsigned_varint,
    "uuid": guard.uuid,
    "write_numbers": guard.write_numbers,
    "write_tags": guard.write_tags,
}


class _Source:
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
            return f"{expression} is not NO_UUID and {expression} != NO_UUID"
        if isinstance(field.kind, WireType):
            return f"{expression} != {default!r}"
        return f"{expression} != {self.constant(f'{field.kind.__name__}_default', field.kind())}"


class EncoderSource(_Source):
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
                self.indent(f"if {self.differs(where, field)}:")
                self.line(f"raise lacks_field('{cls.__name__}.{field.name}', {self.version})")
                self._indent -= 1
        for field in present:
            if field.tag is None:
                self.value(f"{owner}.{field.name}", field)
        tagged = sorted((f for f in present if f.tag is not None), key=lambda f: f.tag or 0)
        self.tags(owner, cls, tagged)

    def tags(self, owner: str, cls: type[Structure], tagged: list[Field]) -> None:
        self.flush()
        unknown = f"{owner}.unknown_tagged_fields"
        if not self.flexible:
            self.indent(f"if {unknown}:")
            self.line(f"raise lacks_tags('{cls.__name__}', {self.version})")
            self._indent -= 1
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
        self.indent(f"if {known} or {unknown}:" if tagged else f"if {unknown}:")
        self.line(f"write_tags(out, {known if tagged else None}, {unknown}, {first_unknown})")
        self._indent -= 1
        self.indent("else:")
        self.line("out.append(0)")
        self._indent -= 1

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
                self.indent(f"if {inner} is None:")
                self.line("out += b'\\xff'")
                self._indent -= 1
                self.indent("else:")
                self.line("out += b'\\x01'")
                self.structure(inner, kind)
                self.dedent()
            else:
                self.structure(inner, kind)
            self.depth -= 1

    def length(self, code: str, *, compact: bool) -> None:
        """Write the length `n`."""
        if compact:
            self.flush()
            self.line("n += 1")
            self.line("out += VARINTS[n] if n < 128 else unsigned_varint(n)")
        else:
            self._run.append((code, "n"))
            self.flush()

    def sized(self, value: str, kind: WireType, *, nullable: bool, compact: bool) -> None:
        code = "h" if kind is String else "i"
        encoded = ".encode()" if kind is String else ""
        if nullable:
            self.line(f"s = {value}")
            self.indent("if s is None:")
            self.line("s, n = b'', -1")
            self._indent -= 1
            self.indent("else:")
            if encoded:
                self.line("s = s.encode()")
            self.line("n = len(s)")
            self._indent -= 1
        else:
            self.line(f"s = {value}{encoded}")
            self.line("n = len(s)")
        self.length(code, compact=compact)
        if kind is Records:
            self.indent(f"if refs is not None and n > {REFERENCE_ABOVE}:")
            self.line("refs.append((len(out), s))")
            self._indent -= 1
            self.indent("else:")
            self.line("out += s")
            self._indent -= 1
        else:
            self.line("out += s")

    def array(self, value: str, kind: Array, *, nullable: bool, compact: bool) -> None:
        items = f"a{self.depth}"
        self.line(f"{items} = {value}")
        if nullable:
            self.flush()
            self.indent(f"if {items} is None:")
            self.line("out += b'\\0'" if compact else "out += b'\\xff\\xff\\xff\\xff'")
            self._indent -= 1
            self.indent("else:")
        self.line(f"n = len({items})")
        self.length("i", compact=compact)
        element = kind.of
        if isinstance(element, WireType) and element.code is not None and element is not UUID:
            self.indent(f"if {items}:")
            self.line(f"out += write_numbers('{element.code}', {items})")
            self._indent -= 1
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


class DecoderSource(_Source):
    """Writes `decode`."""

    def __init__(self, cls: type[Message], version: int) -> None:
        super().__init__(cls, version, "def decode(buf, pos, end, budget):")
        self._after_run: list[str] = []
        if _has_records(cls):
            self.line("view = memoryview(buf)")
        self.line(f"o1 = new({self.constant(cls.__name__, cls)})")
        self.structure("o1", cls)
        self.flush()
        self.line("return o1, pos")

    def flush(self) -> None:
        codes, targets = self.take_run()
        if codes == "B":
            self.line(f"{targets[0]} = buf[pos]")
            self.line("pos += 1")
        elif codes:
            layout = struct.Struct(">" + codes)
            name = "unpack_" + codes.replace("16s", "U").replace("?", "o")
            self.scope[name] = layout.unpack_from
            self.line(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {name}(buf, pos)")
            self.line(f"pos += {layout.size}")
        for text in self._after_run:
            self.line(text)
        self._after_run.clear()

    def structure(self, owner: str, cls: type[Structure]) -> None:
        tagged = []
        for field in cls.FIELDS:
            target = f"{owner}.{field.name}"
            if self.version not in field.versions:
                self.line(f"{target} = {self.default(field)}")
            elif field.tag is not None:
                self.line(f"{target} = {self.default(field)}")
                tagged.append(field)
            else:
                self.value(target, field)
        unknown = f"{owner}.unknown_tagged_fields"
        self.line(f"{unknown} = None")
        if not self.flexible:
            return
        self._run.append(("B", "n"))
        self.flush()
        self.indent("if n:")
        self.indent("if n > 127:")
        self.line("n, pos = read_tag_count(buf, pos - 1)")
        self._indent -= 1
        self.line(f"budget -= n * {guard.TAG_COST}")
        self.check_budget()
        if tagged:
            self.tags(owner, unknown, tagged)
        else:
            self.line(f"{unknown}, pos = read_unknown_tags(buf, pos, end, n)")
        self._indent -= 1

    def tags(self, owner: str, unknown: str, tagged: list[Field]) -> None:
        tag, stop = f"tag{self.depth}", f"stop{self.depth}"
        self.line(f"{tag} = -1")
        self.indent("for _ in range(n):")
        self.line(f"{tag}, pos, {stop} = read_tag(buf, pos, end, {tag})")
        word = "if"
        for field in tagged:
            self.indent(f"{word} {tag} == {field.tag}:")
            self.value(f"{owner}.{field.name}", field)
            self.flush()
            self.indent(f"if pos != {stop}:")
            self.line(f"raise bad_tag('{field.name}', {tag})")
            self._indent -= 2
            word = "elif"
        self.indent("else:")
        self.indent(f"if {unknown} is None:")
        self.line(f"{unknown} = {{}}")
        self._indent -= 1
        self.line(f"{unknown}[{tag}] = bytes(buf[pos:{stop}])")
        self.line(f"pos = {stop}")
        self._indent -= 2

    def default(self, field: Field) -> str:
        if field.default is None:
            return "None"
        if isinstance(field.kind, Array):
            return "[]"
        if field.kind is UUID:
            return "NO_UUID"
        if isinstance(field.kind, WireType):
            return repr(field.default)
        return f"{self.constant(field.kind.__name__, field.kind)}()"

    def check_budget(self) -> None:
        self.indent("if budget < 0:")
        self.line("raise over_budget()")
        self._indent -= 1

    def value(self, target: str, field: Field) -> None:
        kind = field.kind
        nullable = self.version in field.nullable or kind is Records
        compact = self.flexible and field.flexible
        if isinstance(kind, WireType):
            if kind is UUID:
                local = f"u{len(self._run)}"
                self._run.append(("16s", local))
                self._after_run.append(f"{target} = uuid({local})")
            elif kind.code is not None:
                self._run.append((kind.code, target))
            else:
                self.sized(target, kind, nullable=nullable, compact=compact)
        elif isinstance(kind, Array):
            self.array(target, kind, nullable=nullable, compact=compact)
        else:
            self.depth += 1
            inner = f"o{self.depth}"
            if nullable:
                self._run.append(("b", "n"))
                self.flush()
                self.indent("if n < 0:")
                self.line(f"{target} = None")
                self._indent -= 1
                self.indent("else:")
            self.line(f"{target} = {inner} = new({self.constant(kind.__name__, kind)})")
            self.structure(inner, kind)
            if nullable:
                self.dedent()
            self.depth -= 1

    def length(self, code: str, *, compact: bool) -> None:
        """Read a length into `n`; a compact one is one more than the length."""
        self._run.append(("B" if compact else code, "n"))
        self.flush()
        if compact:
            self.indent("if n > 127:")
            self.line("n, pos = read_size(buf, pos - 1)")
            self._indent -= 1

    def sized(self, target: str, kind: WireType, *, nullable: bool, compact: bool) -> None:
        self.length("h" if kind is String else "i", compact=compact)
        stop = "q = pos + n - 1" if compact else "q = pos + n"
        if nullable:
            self.indent("if n <= 0:" if compact else "if n < 0:")
            self.line(f"{target} = None")
            self._indent -= 1
            self.indent("else:")
        self.line(stop)
        self.indent("if q > end:" if nullable else "if not pos <= q <= end:")
        self.line(f"raise bad_size('{target.partition('.')[2] or 'element'}', q - pos, end - pos)")
        self._indent -= 1
        if kind is String:
            self.line(self.store(target, "str(buf[pos:q], 'utf-8', 'replace')"))
        elif kind is Bytes:
            self.line(self.store(target, "bytes(buf[pos:q])"))
        else:
            self.line(self.store(target, "view[pos:q]"))
        self.line("pos = q")
        if nullable:
            self._indent -= 1

    @staticmethod
    def store(target: str, expression: str) -> str:
        # The elements of an array have no attribute to go to: their target is the list's append.
        return f"{target} = {expression}" if "." in target else f"{target}({expression})"

    def array(self, target: str, kind: Array, *, nullable: bool, compact: bool) -> None:
        self.length("i", compact=compact)
        if nullable:
            self.indent("if n == 0:" if compact else "if n < 0:")
            self.line(f"{target} = None")
            self._indent -= 1
            self.indent("else:")
        if compact:
            self.line("n -= 1")
        element = kind.of
        name = target.partition(".")[2]
        items = f"a{self.depth}"
        least = least_size(element, self.version, flexible=self.flexible)
        if isinstance(element, WireType) and element.code is not None and element is not UUID:
            items = target
        else:
            target = f"{target} = {items}"
        self.line(f"{target} = []")
        self.indent("if n:")
        bound = f"n < 0 or n * {least or 1} > end - pos" + ("" if least else f" or n > {guard.MAX_EMPTY}")
        self.indent(f"if {bound}:")
        self.line(f"raise bad_count('{name}', n, end - pos)")
        self._indent -= 1
        self.line(f"budget -= n * {guard.cost(element)}")
        self.check_budget()
        if isinstance(element, WireType) and element.code is not None and element is not UUID:
            self.line(f"{items} = read_numbers('{element.code}', {element.size}, buf, pos, n)")
            self.line(f"pos += n * {element.size}")
        elif element is UUID:
            self.indent("for _ in range(n):")
            self.line(f"{items}.append(uuid(bytes(buf[pos:pos + 16])))")
            self.line("pos += 16")
            self._indent -= 1
        elif isinstance(element, WireType):
            self.line(f"add = {items}.append")
            self.indent("for _ in range(n):")
            self.sized("add", element, nullable=False, compact=compact)
            self._indent -= 1
        else:
            self.depth += 1
            inner = f"o{self.depth}"
            self.indent("for _ in range(n):")
            self.line(f"{inner} = new({self.constant(element.__name__, element)})")
            self.structure(inner, element)
            self.flush()
            self.line(f"{items}.append({inner})")
            self._indent -= 1
            self.depth -= 1
        self._indent -= 2 if nullable else 1


def least_size(kind: WireType | Array | type[Structure], version: int, *, flexible: bool) -> int:
    """How few bytes a value of this type can take at this version."""
    if isinstance(kind, WireType):
        return 1 if flexible and kind.code is None else kind.size
    if isinstance(kind, Array):
        return 1 if flexible else 4
    size = 1 if flexible else 0
    for field in kind.FIELDS:
        if version in field.versions and field.tag is None:
            is_structure = not isinstance(field.kind, WireType | Array)
            if is_structure and version in field.nullable:
                size += 1
            else:
                size += least_size(field.kind, version, flexible=flexible and field.flexible)
    return size


def _has_records(cls: type[Structure]) -> bool:
    for field in cls.FIELDS:
        element = field.element()
        if element is Records or (not isinstance(element, WireType) and _has_records(element)):
            return True
    return False
