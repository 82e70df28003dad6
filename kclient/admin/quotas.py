"""Client quotas (KIP-546): limits for users, client ids and addresses, and the filters that find them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import attrs

from kclient.admin.internals.fields import of_type
from kclient.utils.code_enum import CodeEnum


def _plain(entries: Any) -> Any:
    return dict(entries) if isinstance(entries, Mapping) else entries


def _items(entries: Any) -> frozenset[tuple[str, Any]]:
    return frozenset(entries.items())


@attrs.frozen
class ClientQuotaEntity:
    """The one that a quota is for: names by type, None for the default of a type.

    `ClientQuotaEntity({ClientQuotaEntity.USER: "alice", ClientQuotaEntity.CLIENT_ID: None})` is every client of alice
    that has no quota of its own.
    """

    USER: ClassVar[str] = "user"
    CLIENT_ID: ClassVar[str] = "client-id"
    IP: ClassVar[str] = "ip"

    entries: Mapping[str, str | None] = attrs.field(converter=_plain, eq=_items)

    def __attrs_post_init__(self) -> None:
        entries: object = self.entries
        if not isinstance(entries, Mapping):
            raise TypeError(f"ClientQuotaEntity: entries must map types to names, not be {entries!r}")
        for kind, name in entries.items():
            if not isinstance(kind, str) or not isinstance(name, str | None):
                raise TypeError(
                    f"ClientQuotaEntity: entries must map str to str or None, not {kind!r} to {name!r}"
                )
        if not entries:
            raise ValueError("ClientQuotaEntity: entries must not be empty")

    def __str__(self) -> str:
        return ", ".join(
            f"default {kind}" if name is None else f"{kind} {name}"
            for kind, name in sorted(self.entries.items())
        )


class QuotaMatchType(CodeEnum):
    """The names of a type that a component takes."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@attrs.frozen
class ClientQuotaFilterComponent:
    """The part of a filter that is about one type; made by its class methods."""

    entity_type: str = attrs.field(validator=of_type(str))
    match_type: QuotaMatchType = attrs.field(validator=of_type(QuotaMatchType))
    match: str | None = attrs.field(default=None, validator=of_type(str, optional=True))

    @classmethod
    def of_entity(cls, entity_type: str, entity_name: str) -> Self:
        """The entity of that name."""
        if not isinstance(entity_name, str):
            raise TypeError(f"{cls.__name__}: entity_name must be a str, not {entity_name!r}")
        return cls(entity_type, QuotaMatchType.EXACT, entity_name)

    @classmethod
    def of_default_entity(cls, entity_type: str) -> Self:
        """The default of the type."""
        return cls(entity_type, QuotaMatchType.DEFAULT)

    @classmethod
    def of_entity_type(cls, entity_type: str) -> Self:
        """Every entity of the type, the default included."""
        return cls(entity_type, QuotaMatchType.SPECIFIED)


@attrs.frozen
class ClientQuotaFilter:
    """Finds entities that match all components; a `strict` one only those that have no other types. By default all."""

    components: tuple[ClientQuotaFilterComponent, ...] = ()
    strict: bool = attrs.field(default=False, validator=of_type(bool))

    def __attrs_post_init__(self) -> None:
        components: object = self.components
        if not isinstance(components, tuple):
            raise TypeError(f"ClientQuotaFilter: components must be a tuple, not {components!r}")
        for component in components:
            if not isinstance(component, ClientQuotaFilterComponent):
                raise TypeError(
                    f"ClientQuotaFilter: components must be ClientQuotaFilterComponents; {component!r} is none"
                )

    @classmethod
    def contains(cls, components: Iterable[ClientQuotaFilterComponent]) -> Self:
        """Entities that match `components`, whatever other types they have."""
        return cls(tuple(components))

    @classmethod
    def contains_only(cls, components: Iterable[ClientQuotaFilterComponent]) -> Self:
        """Entities that match `components` and have no other types."""
        return cls(tuple(components), strict=True)

    @classmethod
    def all(cls) -> Self:
        """Every entity that has a quota."""
        return cls()


@attrs.frozen
class ClientQuotaAlteration:
    """Changes an entity's quotas: new values by name, None to take one away. Names are the broker's, as
    "producer_byte_rate".
    """

    entity: ClientQuotaEntity = attrs.field(validator=of_type(ClientQuotaEntity))
    ops: Mapping[str, float | None] = attrs.field(converter=_plain, eq=_items)

    def __attrs_post_init__(self) -> None:
        ops: object = self.ops
        if not isinstance(ops, Mapping):
            raise TypeError(f"ClientQuotaAlteration: ops must map names to numbers or None, not be {ops!r}")
        for key, value in ops.items():
            if not isinstance(key, str):
                raise TypeError(f"ClientQuotaAlteration: ops must have names of quotas as keys, not {key!r}")
            if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
                raise TypeError(f"ClientQuotaAlteration: ops: {key} must be a number or None, not {value!r}")
            if value is not None and not _is_finite(value):
                raise ValueError(f"ClientQuotaAlteration: ops: {key} must be finite, not {value}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int that no double can hold
        return False
