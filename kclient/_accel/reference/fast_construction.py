"""Filling records without their constructor."""

from __future__ import annotations

RECORD_FIELDS = (
    "topic",
    "partition",
    "offset",
    "timestamp_ms",
    "timestamp_type",
    "key",
    "value",
    "headers",
    "leader_epoch",
    "serialized_key_size",
    "serialized_value_size",
)


_shells: dict[type, type | None] = {}


def is_plain(record_type: type) -> bool:
    """Return True if an instance is no more than the fields of a record in slots."""
    return has_plain_slots(record_type, RECORD_FIELDS)


def has_plain_slots(kind: type, names: tuple[str, ...]) -> bool:
    """Return True if an instance of an attrs class is no more than these fields in slots.

    Nothing is missed then by filling them without the constructor.
    """
    fields = getattr(kind, "__attrs_attrs__", ())
    new: object = kind.__new__
    return (
        tuple(field.name for field in fields) == names
        and not any(field.converter or field.validator for field in fields)
        and "__slots__" in kind.__dict__
        and new is object.__new__
        # attrs gives this name to its own constructor where the class has another.
        and not any(
            hasattr(kind, name) for name in ("__attrs_init__", "__attrs_pre_init__", "__attrs_post_init__")
        )
    )


def shell_of(record_type: type) -> type | None:
    """A class whose instances can be filled plainly and then be made one of `record_type`; None if there is none.

    The constructor of a frozen class is slow: it goes through object.__setattr__ for every field. An instance of a
    subclass that adds no slots has the same layout; setting its fields where it is made and then its class takes 100
    ns instead of 500. Only for slotted attrs classes of just these fields: others may do more in their constructor.
    """
    if record_type in _shells:
        return _shells[record_type]
    shell = None
    if is_plain(record_type):
        # Setting and deleting both, or Python would still call the slower ones: they share a slot of the type.
        plain = {name: getattr(object, name) for name in ("__init__", "__setattr__", "__delattr__")}
        shell = type(f"_{record_type.__name__}Shell", (record_type,), {"__slots__": (), **plain})
    return _shells.setdefault(record_type, shell)
