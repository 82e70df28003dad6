from __future__ import annotations

from typing import Any, cast

import attrs

from kclient.consumer.config import ConsumerConfig
from kclient.consumer.internals.coordinator.membership import Membership
from kclient.consumer.internals.member_labels import MemberLabels


@attrs.define
class _Generation:
    member_id: str


@attrs.define
class _Member:
    generation: _Generation


def labels_of(**settings: Any) -> MemberLabels:
    return MemberLabels(ConsumerConfig.parse({"bootstrap.servers": "host:1"}, settings))


def test_a_consumer_without_a_group_has_no_labels() -> None:
    assert labels_of().labels() == {}


def test_group_instance_and_rack_come_from_the_settings() -> None:
    made = labels_of(group_id="g", group_instance_id="i", client_rack="r")

    assert made.labels() == {"group_id": "g", "group_instance_id": "i", "client_rack": "r"}


def test_a_member_that_has_left_is_known_by_its_last_id() -> None:
    made = labels_of(group_id="g")
    member = _Member(_Generation(""))
    made.membership = cast(Membership, member)
    assert made.labels() == {"group_id": "g"}
    for member_id in ("m-1", "m-2", ""):
        member.generation = _Generation(member_id)
        assert made.labels() == {"group_id": "g", "group_member_id": member_id or "m-2"}
