"""Guesses at a broker's release, from its features, or from its APIs where it has none."""

from __future__ import annotations

import pytest

from kclient.cli.broker_release import release_of
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, SupportedFeatureKey


def with_features(**levels: int) -> ApiVersionsResponse:
    features = [
        SupportedFeatureKey(name=name.replace("_", "."), min_version=0, max_version=level)
        for name, level in levels.items()
    ]
    return ApiVersionsResponse(supported_features=features)


@pytest.mark.parametrize(
    ("level", "release"),
    [(1, "3.3"), (7, "3.3"), (8, "3.4"), (19, "3.7"), (21, "3.9"), (22, "4.0"), (30, "4.3"), (33, "4.4")],
)
def test_the_level_of_the_metadata_tells_the_release(level: int, release: str) -> None:
    assert release_of(with_features(kraft_version=1, metadata_version=level)) == release


def test_a_level_that_is_not_known_yet_is_newer() -> None:
    assert release_of(with_features(metadata_version=34)) == "newer than 4.4"


@pytest.mark.parametrize(
    ("apis", "release"),
    [
        ({}, "0.10"),
        ({ApiKeys.METADATA: 4}, "0.11"),
        ({ApiKeys.METADATA: 5, ApiKeys.FETCH: 6}, "1.0"),
        ({ApiKeys.FETCH: 11, ApiKeys.PRODUCE: 7}, "2.3"),
        ({ApiKeys.FETCH: 12, ApiKeys.PRODUCE: 9}, "2.8"),
        ({ApiKeys.FETCH: 17}, "3.9"),
    ],
)
def test_without_features_the_newest_versions_tell(apis: dict[ApiKeys, int], release: str) -> None:
    listed = [ApiVersion(api_key=api, min_version=0, max_version=version) for api, version in apis.items()]
    assert release_of(ApiVersionsResponse(api_keys=listed)) == release
