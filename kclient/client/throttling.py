"""The answers that ask the client, and not the broker, to hold its peace (KIP-219)."""

from __future__ import annotations

from typing import Any

from kclient.protocol.api_keys import ApiKeys

# Before these versions a broker that throttles delays its answer, and has done so when it arrives; waiting
# once more would count the same time twice. APIs that are not named here are younger than that change.
_CLIENT_WAITS_FROM = {
    ApiKeys.PRODUCE: 6,
    ApiKeys.FETCH: 8,
    ApiKeys.LIST_OFFSETS: 3,
    ApiKeys.METADATA: 6,
    ApiKeys.OFFSET_COMMIT: 4,
    ApiKeys.OFFSET_FETCH: 4,
    ApiKeys.FIND_COORDINATOR: 2,
    ApiKeys.JOIN_GROUP: 3,
    ApiKeys.HEARTBEAT: 2,
    ApiKeys.LEAVE_GROUP: 2,
    ApiKeys.SYNC_GROUP: 2,
    ApiKeys.DESCRIBE_GROUPS: 2,
    ApiKeys.LIST_GROUPS: 2,
    ApiKeys.API_VERSIONS: 2,
    ApiKeys.CREATE_TOPICS: 3,
    ApiKeys.DELETE_TOPICS: 2,
    ApiKeys.DELETE_RECORDS: 1,
    ApiKeys.INIT_PRODUCER_ID: 1,
    ApiKeys.ADD_PARTITIONS_TO_TXN: 1,
    ApiKeys.ADD_OFFSETS_TO_TXN: 1,
    ApiKeys.END_TXN: 1,
    ApiKeys.TXN_OFFSET_COMMIT: 1,
    ApiKeys.DESCRIBE_ACLS: 1,
    ApiKeys.CREATE_ACLS: 1,
    ApiKeys.DELETE_ACLS: 1,
    ApiKeys.DESCRIBE_CONFIGS: 2,
    ApiKeys.ALTER_CONFIGS: 1,
    ApiKeys.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKeys.DESCRIBE_LOG_DIRS: 1,
    ApiKeys.CREATE_PARTITIONS: 1,
    ApiKeys.CREATE_DELEGATION_TOKEN: 1,
    ApiKeys.RENEW_DELEGATION_TOKEN: 1,
    ApiKeys.EXPIRE_DELEGATION_TOKEN: 1,
    ApiKeys.DESCRIBE_DELEGATION_TOKEN: 1,
    ApiKeys.DELETE_GROUPS: 1,
}


def client_throttle_ms(api_key: ApiKeys, version: int, response: Any) -> int:
    """The time for which to send nothing to the broker that gave `response`; 0 if it does not ask for that."""
    throttle_ms: int = getattr(response, "throttle_time_ms", 0)
    if throttle_ms <= 0 or version < _CLIENT_WAITS_FROM.get(api_key, 0):
        return 0
    return throttle_ms
