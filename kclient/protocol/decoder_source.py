"""Writes the source of a message's decoder for one version; see `codegen` for what it looks like."""

from __future__ import annotations

import struct

from kclient.protocol import guard
from kclient.protocol.schema import Field, Message, Structure
from kclient.protocol.source import Source
from kclient.protocol.wire import UUID, Array, Bytes, Records, String, WireType


class DecoderSource(Source):
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
                self.default(target, field)
            elif field.tag is not None:
                self.default(target, field)
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
        self.block("if n > 127:", "n, pos = read_tag_count(buf, pos - 1)")
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
        self.block(f"if {unknown} is None:", f"{unknown} = {{}}")
        self.line(f"{unknown}[{tag}] = bytes(buf[pos:{stop}])")
        self.line(f"pos = {stop}")
        self._indent -= 2

    def default(self, target: str, field: Field) -> None:
        """Set a field to its default, to a list or struct of its own."""
        if field.default is None:
            self.line(f"{target} = None")
        elif isinstance(field.kind, Array):
            self.line(f"{target} = []")
        elif field.kind is UUID:
            self.line(f"{target} = NO_UUID")
        elif isinstance(field.kind, WireType):
            self.line(f"{target} = {field.default!r}")
        else:
            # Without the constructor, which costs as much as all the rest of a small struct.
            inner = "d" if target[0] == "o" else target.partition(".")[0] + "d"
            self.line(f"{target} = {inner} = new({self.constant(field.kind.__name__, field.kind)})")
            for each in field.kind.FIELDS:
                self.default(f"{inner}.{each.name}", each)
            self.line(f"{inner}.unknown_tagged_fields = None")

    def check_budget(self) -> None:
        self.block("if budget < 0:", "raise over_budget()")

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
                self.block("if n < 0:", f"{target} = None")
                self.indent("else:")
            self.line(f"{target} = {inner} = new({self.constant(kind.__name__, kind)})")
            self.structure(inner, kind)
            if nullable:
                self.dedent()
            self.depth -= 1

    def length(self, code: str, *, compact: bool) -> None:
        """Read a length into `n`; a compact one is one more, and `long` has to see to its other bytes."""
        self._run.append(("B" if compact else code, "n"))
        self.flush()

    def long(self) -> None:
        self.block("if n > 127:", "n, pos = read_size(buf, pos - 1)")

    def sized(self, target: str, kind: WireType, *, nullable: bool, compact: bool) -> None:
        self.length("h" if kind is String else "i", compact=compact)
        if compact:
            self.long()
        stop = "q = pos + n - 1" if compact else "q = pos + n"
        if nullable:
            self.block("if n <= 0:" if compact else "if n < 0:", f"{target} = None")
            self.indent("else:")
        self.line(stop)
        self.block(
            "if q > end:" if nullable else "if not pos <= q <= end:",
            f"raise bad_size('{target.partition('.')[2] or 'element'}', q - pos, end - pos)",
        )
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
        least_length = 1 if compact else 0
        self.block(f"if n == {least_length}:", f"{target} = []")
        if nullable:
            self.block("elif n == 0:" if compact else "elif n < 0:", f"{target} = None")
        self.indent("else:")
        if compact:
            self.long()
            self.line("n -= 1")
        element = kind.of
        name = target.partition(".")[2]
        items = f"a{self.depth}"
        least = least_size(element, self.version, flexible=self.flexible)
        bound = f"n < 0 or n * {least or 1} > end - pos" + ("" if least else f" or n > {guard.MAX_EMPTY}")
        self.block(f"if {bound}:", f"raise bad_count('{name}', n, end - pos)")
        self.line(f"budget -= n * {guard.cost(element)}")
        self.check_budget()
        is_number = isinstance(element, WireType) and element.code is not None and element is not UUID
        if not is_number:
            self.line(f"{target} = {items} = []")
        if isinstance(element, WireType) and element.code is not None and element is not UUID:
            self.line(f"{target} = read_numbers('{element.code}', {element.size}, buf, pos, n)")
            self.line(f"pos += n * {element.size}")
        elif element is UUID:
            self.block("for _ in range(n):", f"{items}.append(uuid(bytes(buf[pos:pos + 16])))", "pos += 16")
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
        self._indent -= 1


def least_size(kind: WireType | Array | type[Structure], version: int, *, flexible: bool) -> int:
    """Return the least number of bytes that a value of this type can take at this version."""
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
