"""Declarations of messages: `@message` and `@structure` on the classes, `wire()` on their fields.

Declarations are checked when the class is created, so a mistake in one is an import error and never a wrong byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

import attrs

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.wire import Array, Bool, Bytes, Float64, Records, WireType

T = TypeVar("T", bound="Structure")
Kind = Literal["request", "response", "header", "data", "coordinator-key", "coordinator-value", "metadata"]
Codec = Callable[..., Any]

_OPEN = 0x7FFF
_KEY = "kclient.wire"


@attrs.frozen
class Versions:
    """A range of message versions; empty when `high < low`."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Parse `"3"`, `"1-4"`, `"2+"` or `"none"`."""
        if text == "none":
            return NONE
        low, dash, high = text.removesuffix("+").partition("-")
        return cls(int(low), int(high) if dash else _OPEN if text.endswith("+") else int(low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def within(self, other: Versions) -> bool:
        """Return True if every version of this range is in `other`."""
        return self.low > self.high or (other.low <= self.low and self.high <= other.high)


NONE = Versions(0, -1)


@attrs.frozen
class Field:
    """The declaration of one field."""

    name: str
    kind: WireType | Array | type[Structure]
    versions: Versions
    nullable: Versions
    tag: int | None
    default: object
    ignorable: bool
    flexible: bool

    def new_default(self) -> object:
        """A default value of its own: lists and structs are never shared between messages."""
        if self.default is None:
            return None
        if isinstance(self.kind, Array):
            return []
        if isinstance(self.kind, WireType):
            return self.default
        return self.kind()

    def element(self) -> WireType | type[Any]:
        """The type of the elements of an array; otherwise the type itself."""
        return self.kind.of if isinstance(self.kind, Array) else self.kind


def _check_field(cls: type, field: Field, hint: str) -> None:
    """Hold the annotation, the default and the versions of a field against each other."""
    element = field.element()
    python = element.python if isinstance(element, WireType) else element.__name__
    if isinstance(field.kind, Array):
        _require(
            element not in (Bool, Float64, Records), cls, field.name, "has elements that no message needs"
        )
        python = f"list[{python}]"
    can_be_null = field.nullable != NONE or element is Records
    expected = f"{python} | None" if can_be_null else python
    _require(hint == expected, cls, field.name, f"should be annotated {expected!r}, not {hint!r}")
    _require(field.nullable.within(field.versions), cls, field.name, "is nullable in versions that lack it")
    if isinstance(field.kind, WireType):
        _require(field.nullable == NONE or field.kind.nullable, cls, field.name, "has a type without null")
        _require(
            field.default is not None or can_be_null,
            cls,
            field.name,
            "has None for its default and is not nullable",
        )
        if field.kind.code is not None and python == "int":
            bits = field.kind.size * 8
            low, high = (0, 1 << bits) if field.kind.code.isupper() else (-1 << (bits - 1), 1 << (bits - 1))
            _require(
                isinstance(field.default, int) and low <= field.default < high,
                cls,
                field.name,
                "has a bad default",
            )
        elif field.kind is Float64:
            _require(isinstance(field.default, float), cls, field.name, "has a bad default")


def _require(condition: bool, cls: type, name: str, what: str) -> None:
    if not condition:
        raise TypeError(f"{cls.__name__}.{name} {what}")


@dataclass_transform(kw_only_default=True)
def structure(cls: type[T]) -> type[T]:
    """Make a class with `wire()` fields a slotted attrs class that codecs can be built for."""
    made: Any = attrs.define(weakref_slot=False, kw_only=True)(cls)
    fields = [
        attrs.evolve(attribute.metadata[_KEY], name=attribute.name)
        for attribute in attrs.fields(made)
        if _KEY in attribute.metadata
    ]
    hints = cls.__annotations__
    for field in fields:
        _check_field(cls, field, hints[field.name])
    tags = sorted(field.tag for field in fields if field.tag is not None)
    _require(tags == list(range(len(tags))), cls, "tags", f"should be 0, 1, 2, ... and are {tags}")
    made.FIELDS = tuple(fields)
    result: type[T] = made
    return result


@structure
class Structure:
    """Base of all messages and of the structs in them. Not safe for changes from two threads at once.

    Every field has the default of Kafka's schema and is given by keyword.
    """

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    unknown_tagged_fields: dict[int, bytes] | None = attrs.field(default=None, repr=False)
    """Tagged fields that this client does not know, by tag (KIP-482): kept by decode and written by encode."""


@structure
class Message(Structure):
    """Base of what can be encoded by itself: requests, responses, headers and the contents of special records."""

    API_KEY: ClassVar[ApiKeys | None] = None
    KIND: ClassVar[Kind]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    """The newest version that can be encoded, which may be one that brokers do not offer yet."""
    FLEXIBLE_FROM: ClassVar[int | None]
    """First version with compact types and tagged fields (KIP-482); None if there is none."""
    ENCODERS: ClassVar[dict[int, Codec]]
    DECODERS: ClassVar[dict[int, Codec]]


def _size_only(value: object) -> str:
    # Neither payloads nor secrets may reach a log through the repr of a message.
    return "None" if value is None else f"<{len(value)} bytes>"  # type: ignore[arg-type]


def wire(
    type: WireType | Array | type[Structure],  # noqa: A002
    versions: str,
    *,
    nullable: str = "none",
    tag: int | None = None,
    default: object = ...,
    ignorable: bool = False,
    flexible: bool = True,
) -> Any:
    """Declare a field: its type and the versions that have it.

    `nullable` are the versions in which it may be None, `tag` makes it a tagged field, `default` replaces the type's
    own. A value other than the default is left out of versions without the field if it is `ignorable`, and refused
    there otherwise. `flexible=False` keeps a string in its old form in all versions.
    """
    if default is ...:
        if isinstance(type, WireType):
            default = type.default
        else:
            default = attrs.Factory(list if isinstance(type, Array) else type)
    field = Field(
        "", type, Versions.parse(versions), Versions.parse(nullable), tag, default, ignorable, flexible
    )
    return attrs.field(
        default=default,
        metadata={_KEY: field},
        repr=_size_only if type in (Bytes, Records) else True,
    )


@dataclass_transform(kw_only_default=True)
def message(
    *, kind: Kind, versions: str, flexible: str, api_key: ApiKeys | None = None
) -> Callable[[type[T]], type[T]]:
    """Make a class the declaration of a message with these versions, of which `flexible` are the flexible ones."""

    def declare(cls: type[T]) -> type[T]:
        made = structure(cls)
        assert issubclass(made, Message)
        valid, compact = Versions.parse(versions), Versions.parse(flexible)
        made.API_KEY = api_key
        made.KIND = kind
        made.MIN_VERSION, made.MAX_VERSION = valid.low, valid.high
        made.FLEXIBLE_FROM = None if compact == NONE else compact.low
        made.ENCODERS, made.DECODERS = {}, {}
        _require(
            valid.low <= valid.high < _OPEN, cls, "versions", f"should be a closed range, not {versions}"
        )
        _require(compact == NONE or compact.high == _OPEN, cls, "flexible", "should be open at its end")
        _check_tags(made, made, compact)
        return made

    return declare


def _check_tags(owner: type[Message], cls: type[Structure], flexible: Versions) -> None:
    for field in cls.FIELDS:
        if field.tag is not None:
            _require(
                field.versions.within(flexible),
                owner,
                field.name,
                "is tagged in a version that is not flexible",
            )
        element = field.element()
        if not isinstance(element, WireType):
            _check_tags(owner, element, flexible)
