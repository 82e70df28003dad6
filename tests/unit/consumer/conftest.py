"""Consumers that a test drives by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harness.consumer.consumer_group import ConsumerGroupModel
from harness.consumer.model import ConsumerModel


@pytest.fixture
def make_rig() -> Iterator[Callable[..., ConsumerModel]]:
    rigs: list[ConsumerModel] = []

    def make(**settings: object) -> ConsumerModel:
        rig = ConsumerModel(**settings)
        rigs.append(rig)
        return rig

    yield make
    for rig in rigs:
        rig.consumer.close(0)


@pytest.fixture
def rig(make_rig: Callable[..., ConsumerModel]) -> ConsumerModel:
    """A consumer in a group, without auto-commit."""
    return make_rig(group_id="g", enable_auto_commit=False)


@pytest.fixture
def make_member(make_rig: Callable[..., ConsumerModel]) -> Callable[..., ConsumerGroupModel]:
    """Make a consumer with group.protocol=consumer, without auto-commit, and its coordinator."""

    def make(**settings: object) -> ConsumerGroupModel:
        usual = {"group_id": "g", "group_protocol": "consumer", "enable_auto_commit": False}
        return ConsumerGroupModel(make_rig(**{**usual, **settings}))

    return make


@pytest.fixture
def group(make_member: Callable[..., ConsumerGroupModel]) -> ConsumerGroupModel:
    """The coordinator of such a consumer."""
    return make_member()
