"""UpdateFeatures (57), versions 0 to 2: levels of features, changed (KIP-584, KIP-778).

Versions: 1 brought kinds of changes and checks without a change, 2 has no result for each feature any more. Behaviour:
all is changed or nothing. This broker has one level of metadata.version, and none of the other features of Kafka; the
level of its own format is changed by a newer kclient alone. Access: ALTER on the cluster.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from kclient.broker.apis.call import ApiCall
from kclient.broker.metadata.image.features import METADATA_VERSION_FEATURE
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.metadata_store import FORMAT_FEATURE
from kclient.broker.metadata.record_serde import METADATA_VERSION
from kclient.common.acl import AclOperation, ResourceType
from kclient.errors import Errors, InvalidUpdateVersionError, KafkaError
from kclient.protocol.messages.metadata_records import FeatureLevelRecord
from kclient.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kclient.protocol.schema import Message

_SUPPORTED: Mapping[str, range] = {METADATA_VERSION_FEATURE: range(METADATA_VERSION, METADATA_VERSION + 1)}


class UpgradeType(enum.IntEnum):
    """The change that is wanted, by its number in the protocol."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def update_features(call: ApiCall, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Change all features that are named, or none of them."""
    wanted = {update.feature: update for update in request.feature_updates}

    def plan(image: MetadataImage) -> list[Message]:
        levels = image.features.levels
        for update in wanted.values():
            _check(update)
        return [
            FeatureLevelRecord(name=name, feature_level=update.max_version_level)
            for name, update in wanted.items()
            if levels.get(name, 0) != update.max_version_level and not request.validate_only
        ]

    try:
        call.require(AclOperation.ALTER, ResourceType.CLUSTER)
        call.broker.controller.change(plan)
    except KafkaError as error:
        return UpdateFeaturesResponse(
            error_code=Errors.code_for(error), error_message=f"No feature was changed: {error}"
        )
    response = UpdateFeaturesResponse(error_message=None)
    if call.version < 2:
        response.results = [
            UpdatableFeatureResult(feature=update.feature, error_message=None)
            for update in request.feature_updates
        ]
    return response


def _check(update: FeatureUpdateKey) -> None:
    """Raise InvalidUpdateVersionError for a level that a feature cannot get."""
    name, level = update.feature, update.max_version_level
    if name == FORMAT_FEATURE:
        why = "it is the format of this broker's metadata, which only a newer version of it changes"
    elif update.upgrade_type not in UpgradeType.__members__.values():
        why = f"there is no kind of change {update.upgrade_type}"
    elif name not in _SUPPORTED:
        why = "this broker has no such feature"
    elif level not in _SUPPORTED[name]:
        supported = _SUPPORTED[name]
        why = f"this broker supports the levels {supported[0]} to {supported[-1]}"
    else:
        return
    raise InvalidUpdateVersionError(f"Feature {name!r} cannot get the level {level}: {why}")
