"""A guess at the release of a broker, from what it says of itself in ApiVersions."""

from __future__ import annotations

from typing import Final

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.api_versions import ApiVersionsResponse

# The highest level of the feature metadata.version that each release knows, from Kafka's MetadataVersion.
_LEVELS: Final = (
    (7, "3.3"),
    (8, "3.4"),
    (11, "3.5"),
    (14, "3.6"),
    (19, "3.7"),
    (20, "3.8"),
    (21, "3.9"),
    (25, "4.0"),
    (27, "4.1"),
    (29, "4.2"),
    (30, "4.3"),
    (33, "4.4"),
)
# For brokers without that feature, which have ZooKeeper: what each release was the first to have.
_FIRST: Final = (
    ("3.9", ApiKeys.FETCH, 17),
    ("3.8", ApiKeys.PRODUCE, 11),
    ("3.7", ApiKeys.FETCH, 16),
    ("3.6", ApiKeys.ADD_PARTITIONS_TO_TXN, 4),
    ("3.5", ApiKeys.FETCH, 15),
    ("3.3", ApiKeys.DESCRIBE_ACLS, 3),
    ("3.2", ApiKeys.JOIN_GROUP, 9),
    ("3.1", ApiKeys.FETCH, 13),
    ("3.0", ApiKeys.LIST_OFFSETS, 7),
    ("2.8", ApiKeys.PRODUCE, 9),
    ("2.7", ApiKeys.FETCH, 12),
    ("2.6", ApiKeys.LIST_GROUPS, 4),
    ("2.5", ApiKeys.JOIN_GROUP, 7),
    ("2.4", ApiKeys.PRODUCE, 8),
    ("2.3", ApiKeys.FETCH, 11),
    ("2.2", ApiKeys.LIST_OFFSETS, 5),
    ("2.1", ApiKeys.FETCH, 10),
    ("2.0", ApiKeys.FETCH, 8),
    ("1.1", ApiKeys.FETCH, 7),
    ("1.0", ApiKeys.METADATA, 5),
    ("0.11", ApiKeys.METADATA, 4),
)


def release_of(response: ApiVersionsResponse) -> str:
    """Return the release of Kafka that speaks as this broker does; others, such as Redpanda, speak like one."""
    level = next((f.max_version for f in response.supported_features if f.name == "metadata.version"), None)
    if level is not None:
        return next(
            (release for highest, release in _LEVELS if level <= highest), f"newer than {_LEVELS[-1][1]}"
        )
    highest = {api.api_key: api.max_version for api in response.api_keys}
    return next((release for release, api, version in _FIRST if highest.get(api, -1) >= version), "0.10")
