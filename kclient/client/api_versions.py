"""The versions of each API that a broker and this client have in common (KIP-35, KIP-511)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import attrs

from kclient._version import __version__
from kclient.errors import SchemaError, UnsupportedVersionError
from kclient.errors.codes import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_response
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

CLIENT_SOFTWARE_NAME = "kclient"
MAX_TRIES = 3


class NodeApiVersions:
    """The API versions that one broker supports on one connection. Immutable."""

    __slots__ = ("_ranges", "_usable")

    def __init__(self, ranges: Mapping[int, tuple[int, int]]) -> None:
        # A range that is upside down supports nothing.
        self._ranges = {key: bounds for key, bounds in ranges.items() if 0 <= bounds[0] <= bounds[1]}
        self._usable: dict[tuple[ApiKeys, int | None, int | None], int] = {}

    @classmethod
    def from_response(cls, response: ApiVersionsResponse) -> NodeApiVersions:
        """The contents of an ApiVersions answer."""
        return cls({api.api_key: (api.min_version, api.max_version) for api in response.api_keys})

    @classmethod
    def all_of_ours(cls, apis: Iterable[ApiKeys] = ApiKeys) -> NodeApiVersions:
        """A broker that supports exactly what this client does, for tests."""
        return cls({api.value: (api.min_version, api.max_version) for api in apis})

    def range_of(self, api_key: ApiKeys) -> tuple[int, int] | None:
        """The broker's lowest and highest version of an API, None if it does not have it."""
        return self._ranges.get(api_key)

    def usable_version(
        self, api_key: ApiKeys, min_version: int | None = None, max_version: int | None = None
    ) -> int:
        """The highest version that the broker, this client and the bounds allow.

        Raises UnsupportedVersionError that names both sides' ranges if there is none.
        """
        asked = (api_key, min_version, max_version)
        known = self._usable.get(asked)
        if known is not None:
            return known
        low = api_key.min_version if min_version is None else max(min_version, api_key.min_version)
        high = api_key.max_version if max_version is None else min(max_version, api_key.max_version)
        theirs = self._ranges.get(api_key)
        if theirs is None:
            raise UnsupportedVersionError(f"The broker does not support {api_key.name} at all")
        version = min(high, theirs[1])
        if version < max(low, theirs[0]):
            raise UnsupportedVersionError(
                f"The broker supports versions {theirs[0]} to {theirs[1]} of {api_key.name}, needed is one of "
                f"{low} to {high}"
            )
        self._usable[asked] = version
        return version


@attrs.frozen
class FinalizedFeatures:
    """The levels of features that all brokers of a cluster have agreed on (KIP-584), and since when. Immutable."""

    epoch: int = -1
    levels: Mapping[str, int] = attrs.field(factory=dict)

    def updated(self, response: ApiVersionsResponse) -> FinalizedFeatures:
        """Return what an ApiVersions answer says, if that is later than this."""
        if response.finalized_features_epoch <= self.epoch:
            return self
        return FinalizedFeatures(
            response.finalized_features_epoch,
            {feature.name: feature.max_version_level for feature in response.finalized_features},
        )


class ApiVersionsNegotiation:
    """Asks one broker for its versions: newest first, three tries at most. Used by one thread.

    An answer with error 35 carries a range to choose from and is tried again on the same connection. A broker
    that closes the connection or answers in a form nobody can read gets version 0 on the next connection. The
    broker may be another one by then (a rolling upgrade), so what was learnt is used for one connection and
    no longer.
    """

    __slots__ = ("_tries", "version")

    def __init__(self) -> None:
        self.version = ApiKeys.API_VERSIONS.max_version
        self._tries = 0

    @property
    def exhausted(self) -> bool:
        """True if no more tries are left."""
        return self._tries >= MAX_TRIES

    def request(self, cluster_id: str | None = None, broker_id: int | None = None) -> ApiVersionsRequest:
        """The message of the next try. A broker that is not `broker_id` of `cluster_id` refuses it (KIP-1242)."""
        self._tries += 1
        request = ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE_NAME, client_software_version=__version__.replace("+", "-")
        )
        if cluster_id is not None and broker_id is not None:
            request.cluster_id, request.node_id = cluster_id, broker_id
        return request

    def failed(self) -> None:
        """The connection ended before the answer, or the answer could not be read."""
        self.version = 0

    def unsupported(self, response: ApiVersionsResponse) -> bool:
        """The answer had error 35; returns whether to ask again, on this connection, by another version."""
        if self.exhausted or self.version == 0:
            return False
        ours = ApiKeys.API_VERSIONS
        theirs = next((api.max_version for api in response.api_keys if api.api_key == ours), 0)
        self.version = max(min(theirs, ours.max_version, self.version - 1), 0)
        return True

    def restart(self) -> None:
        """It is settled, or given up for now: the next connection starts with the newest version again."""
        self.version = ApiKeys.API_VERSIONS.max_version
        self._tries = 0


def parse_api_versions_response(version: int, frame: memoryview) -> ApiVersionsResponse:
    """Decode an ApiVersions answer to a question in `version`.

    A broker that does not know `version` answers in version 0 with error 35. Raises SchemaError if it is neither.
    """
    try:
        return cast(ApiVersionsResponse, parse_response(ApiKeys.API_VERSIONS, version, frame)[1])
    except SchemaError:
        if version == 0:
            raise
        response = cast(ApiVersionsResponse, parse_response(ApiKeys.API_VERSIONS, 0, frame)[1])
        if response.error_code != Errors.UNSUPPORTED_VERSION:
            raise
        return response
