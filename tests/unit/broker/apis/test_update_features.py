"""Levels of features: the one that the broker has is confirmed, everything else refused."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.update_features import update_features
from kclient.broker.metadata.record_serde import METADATA_VERSION
from kclient.errors import Errors
from kclient.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
VERSION = "metadata.version"


def update(handlers: Handlers, *updates: tuple[str, int, int], version: int = 1) -> Any:
    request = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ]
    )
    before = handlers.broker.controller.cache.image.features.levels
    answer = handlers.ask(update_features, request, version)
    assert handlers.broker.controller.cache.image.features.levels == before
    return answer


@pytest.mark.parametrize("version", [1, 2])
def test_the_level_that_a_feature_has_can_be_asked_for(handlers: Handlers, version: int) -> None:
    answer = update(handlers, (VERSION, METADATA_VERSION, UPGRADE), version=version)
    assert (answer.error_code, answer.error_message) == (0, None)
    told = [(each.feature, each.error_code) for each in answer.results]
    assert told == ([(VERSION, 0)] if version == 1 else [])


@pytest.mark.parametrize(
    ("name", "level", "kind", "why"),
    [
        (VERSION, METADATA_VERSION - 1, UPGRADE, "supports the levels"),
        (VERSION, METADATA_VERSION - 1, SAFE_DOWNGRADE, "supports the levels"),
        (VERSION, METADATA_VERSION - 1, UNSAFE_DOWNGRADE, "supports the levels"),
        (VERSION, METADATA_VERSION + 1, UPGRADE, "supports the levels"),
        (VERSION, -1, UPGRADE, "supports the levels"),
        (VERSION, METADATA_VERSION, 0, "no kind of change 0"),
        (VERSION, METADATA_VERSION, 9, "no kind of change 9"),
        ("transaction.version", 2, UPGRADE, "no such feature"),
        ("no.such.feature", 0, UPGRADE, "no such feature"),
        ("kclient.metadata", 2, UPGRADE, "the format of this broker's metadata"),
        ("kclient.metadata", 0, UNSAFE_DOWNGRADE, "the format of this broker's metadata"),
    ],
)
def test_any_other_level_and_feature_is_refused(
    handlers: Handlers, name: str, level: int, kind: int, why: str
) -> None:
    answer = update(handlers, (VERSION, METADATA_VERSION, UPGRADE), (name, level, kind))
    assert answer.error_code == Errors.INVALID_UPDATE_VERSION
    assert why in answer.error_message
    assert answer.results == []
