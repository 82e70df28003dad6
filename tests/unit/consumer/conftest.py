"""Consumers that a test drives by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

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
