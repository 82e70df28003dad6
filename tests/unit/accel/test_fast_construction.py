"""Classes of records that can be filled without their constructor, and those that cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from kclient._accel.reference.fast_construction import RECORD_FIELDS, has_plain_slots, is_plain, shell_of
from kclient.consumer.types import ConsumerRecord

NAMES = ("a", "b")


def made(**settings: Any) -> type:
    fields = {name: attrs.field() for name in NAMES}
    return attrs.make_class("Made", fields, **{"slots": True, **settings})


def with_method(name: str, method: Callable[..., Any]) -> type:
    return attrs.define(type("Made", (), {"__annotations__": {"a": int, "b": int}, name: method}))


class Plain:
    def __init__(self) -> None:
        self.a = self.b = 1


class Slotted:
    __slots__ = NAMES


def test_slots_of_just_these_fields_in_this_order_are_plain() -> None:
    assert has_plain_slots(made(), NAMES)
    assert has_plain_slots(made(frozen=True), NAMES)
    assert not has_plain_slots(made(), ("b", "a"))
    assert not has_plain_slots(made(), ("a",))


@pytest.mark.parametrize(
    "kind",
    [
        Plain,
        Slotted,
        made(slots=False),
        attrs.make_class("Made", {"a": attrs.field(converter=int), "b": attrs.field()}, slots=True),
        attrs.make_class(
            "Made", {"a": attrs.field(validator=attrs.validators.gt(0)), "b": attrs.field()}, slots=True
        ),
        with_method("__attrs_pre_init__", lambda self: None),
        with_method("__attrs_post_init__", lambda self: None),
        with_method("__init__", lambda self, *_: None),
        with_method("__new__", lambda cls, *_: object.__new__(cls)),
    ],
    ids=["plain", "slots", "dict", "converter", "validator", "before", "after", "constructor", "new"],
)
def test_a_class_whose_instances_are_more_or_made_otherwise_is_not(kind: type) -> None:
    assert not has_plain_slots(kind, NAMES)


def test_a_subclass_that_has_a_dict_again_is_not_plain() -> None:
    class Below(made()):  # type: ignore[misc]
        pass

    assert not has_plain_slots(Below, NAMES)


def test_the_consumers_record_is_plain_and_others_are_not() -> None:
    assert is_plain(ConsumerRecord)
    assert tuple(field.name for field in attrs.fields(ConsumerRecord)) == RECORD_FIELDS
    assert not is_plain(made())


def test_a_shell_is_filled_field_by_field_and_becomes_one_of_the_frozen_class() -> None:
    shell = shell_of(ConsumerRecord)
    assert shell is not None
    one: Any = shell()
    for name in RECORD_FIELDS:
        setattr(one, name, name)
    one.__class__ = ConsumerRecord
    assert one == ConsumerRecord(*RECORD_FIELDS)  # type: ignore[arg-type]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.offset = 3
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        del one.offset


def test_there_is_one_shell_of_a_class_and_none_of_a_class_that_is_not_plain() -> None:
    assert shell_of(ConsumerRecord) is shell_of(ConsumerRecord)
    assert shell_of(Plain) is None
    assert shell_of(Plain) is None
