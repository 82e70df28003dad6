"""UpdateFeatures: change the finalized features of a cluster."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int8, Int16, Int32, String


@structure
class FeatureUpdateKey(Structure):
    feature: str = wire(String, "0+")
    max_version_level: int = wire(Int16, "0+")
    allow_downgrade: bool = wire(Bool, "0")
    upgrade_type: int = wire(Int8, "1+", default=1)


@message(api_key=ApiKeys.UPDATE_FEATURES, kind="request", versions="0-2", flexible="0+")
class UpdateFeaturesRequest(Message):
    """Version 1 brought upgrade types and dry runs (KIP-584)."""

    timeout_ms: int = wire(Int32, "0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = wire(Array(FeatureUpdateKey), "0+")
    validate_only: bool = wire(Bool, "1+")


@structure
class UpdatableFeatureResult(Structure):
    feature: str = wire(String, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")


@message(api_key=ApiKeys.UPDATE_FEATURES, kind="response", versions="0-2", flexible="0+")
class UpdateFeaturesResponse(Message):
    """Version 2 has no error code for each feature any more."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+")
    results: list[UpdatableFeatureResult] = wire(Array(UpdatableFeatureResult), "0-1", ignorable=True)
