"""ApiVersions: which versions of which APIs a broker speaks."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int16, Int32, Int64, String


@message(api_key=ApiKeys.API_VERSIONS, kind="request", versions="0-5", flexible="3+")
class ApiVersionsRequest(Message):
    """The first request on a connection. Version 3 names the client software (KIP-511), 5 the node it means
    to reach.
    """

    client_software_name: str = wire(String, "3+", ignorable=True)
    client_software_version: str = wire(String, "3+", ignorable=True)
    cluster_id: str | None = wire(String, "5+", nullable="5+", default=None, ignorable=True)
    node_id: int = wire(Int32, "5+", default=-1, ignorable=True)


@structure
class ApiVersion(Structure):
    api_key: int = wire(Int16, "0+")
    min_version: int = wire(Int16, "0+")
    max_version: int = wire(Int16, "0+")


@structure
class SupportedFeatureKey(Structure):
    name: str = wire(String, "3+")
    min_version: int = wire(Int16, "3+")
    max_version: int = wire(Int16, "3+")


@structure
class FinalizedFeatureKey(Structure):
    name: str = wire(String, "3+")
    max_version_level: int = wire(Int16, "3+")
    min_version_level: int = wire(Int16, "3+")


@message(api_key=ApiKeys.API_VERSIONS, kind="response", versions="0-5", flexible="3+")
class ApiVersionsResponse(Message):
    """A broker that does not know the request's version answers in version 0, with error 35 and its range."""

    error_code: int = wire(Int16, "0+")
    api_keys: list[ApiVersion] = wire(Array(ApiVersion), "0+")
    throttle_time_ms: int = wire(Int32, "1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = wire(
        Array(SupportedFeatureKey), "3+", tag=0, ignorable=True
    )
    # -1 if the broker does not know.
    finalized_features_epoch: int = wire(Int64, "3+", tag=1, default=-1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = wire(
        Array(FinalizedFeatureKey), "3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = wire(Bool, "3+", tag=3, ignorable=True)
