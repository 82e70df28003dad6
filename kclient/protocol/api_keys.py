"""Every API of Kafka's protocol: its number, the versions that clients offer, and its kind."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, Self

__all__ = ["ApiKeys"]


class _Api(NamedTuple):
    min_version: int
    max_version: int
    flexible_from: int | None
    cluster_action: bool
    forwardable: bool
    latest_version_unstable: bool
    on_broker_listener: bool


def _api(
    number: int,
    versions: str | None = None,
    *,
    flexible: int | None = None,
    cluster_action: bool = False,
    forwardable: bool = False,
    unstable: bool = False,
    broker: bool = True,
) -> tuple[int, _Api]:
    """An API with its stable versions, None if it is no longer spoken."""
    low, high = map(int, versions.split("-")) if versions else (0, -1)
    on_broker = broker and versions is not None
    return number, _Api(low, high, flexible, cluster_action, forwardable, unstable, on_broker)


class ApiKeys(IntEnum):
    """The APIs, by the number that a request header begins with.

    An API without versions (`max_version` below `min_version`) is one that Kafka 4 removed.
    """

    min_version: int
    """The oldest version that can be sent."""
    max_version: int
    """The newest stable version, which is what a client offers."""
    flexible_from: int | None
    """The first version with tagged fields (KIP-482), None if there is none."""
    cluster_action: bool
    """True if only brokers and controllers may call it."""
    forwardable: bool
    """True if a broker passes it on to the controller."""
    latest_version_unstable: bool
    """True if there is one more version after `max_version`, which is not offered yet."""
    on_broker_listener: bool
    """True if brokers, and not only controllers, answer it."""

    def __new__(cls, number: int, api: _Api) -> Self:
        made = int.__new__(cls, number)
        made._value_ = number
        made.__dict__.update(api._asdict())
        return made

    PRODUCE = _api(0, "3-13", flexible=9)
    FETCH = _api(1, "4-18", flexible=12)
    LIST_OFFSETS = _api(2, "1-11", flexible=6)
    METADATA = _api(3, "0-13", flexible=9)
    LEADER_AND_ISR = _api(4, cluster_action=True)
    STOP_REPLICA = _api(5, cluster_action=True)
    UPDATE_METADATA = _api(6, cluster_action=True)
    CONTROLLED_SHUTDOWN = _api(7, cluster_action=True)
    OFFSET_COMMIT = _api(8, "2-10", flexible=8)
    OFFSET_FETCH = _api(9, "1-10", flexible=6)
    FIND_COORDINATOR = _api(10, "0-6", flexible=3)
    JOIN_GROUP = _api(11, "0-9", flexible=6)
    HEARTBEAT = _api(12, "0-4", flexible=4)
    LEAVE_GROUP = _api(13, "0-5", flexible=4)
    SYNC_GROUP = _api(14, "0-5", flexible=4)
    DESCRIBE_GROUPS = _api(15, "0-6", flexible=5)
    LIST_GROUPS = _api(16, "0-5", flexible=3)
    SASL_HANDSHAKE = _api(17, "0-1")
    API_VERSIONS = _api(18, "0-5", flexible=3)
    CREATE_TOPICS = _api(19, "2-7", flexible=5, forwardable=True)
    DELETE_TOPICS = _api(20, "1-6", flexible=4, forwardable=True)
    DELETE_RECORDS = _api(21, "0-2", flexible=2)
    INIT_PRODUCER_ID = _api(22, "0-5", flexible=2, unstable=True)
    OFFSET_FOR_LEADER_EPOCH = _api(23, "2-4", flexible=4)
    ADD_PARTITIONS_TO_TXN = _api(24, "0-5", flexible=3)
    ADD_OFFSETS_TO_TXN = _api(25, "0-4", flexible=3)
    END_TXN = _api(26, "0-5", flexible=3)
    WRITE_TXN_MARKERS = _api(27, "1-2", flexible=1, cluster_action=True)
    TXN_OFFSET_COMMIT = _api(28, "0-6", flexible=3)
    DESCRIBE_ACLS = _api(29, "1-3", flexible=2)
    CREATE_ACLS = _api(30, "1-3", flexible=2, forwardable=True)
    DELETE_ACLS = _api(31, "1-3", flexible=2, forwardable=True)
    DESCRIBE_CONFIGS = _api(32, "1-4", flexible=4)
    ALTER_CONFIGS = _api(33, "0-2", flexible=2, forwardable=True)
    ALTER_REPLICA_LOG_DIRS = _api(34, "1-2", flexible=2)
    DESCRIBE_LOG_DIRS = _api(35, "1-5", flexible=2)
    SASL_AUTHENTICATE = _api(36, "0-2", flexible=2)
    CREATE_PARTITIONS = _api(37, "0-3", flexible=2, forwardable=True)
    CREATE_DELEGATION_TOKEN = _api(38, "1-3", flexible=2, forwardable=True)
    RENEW_DELEGATION_TOKEN = _api(39, "1-2", flexible=2, forwardable=True)
    EXPIRE_DELEGATION_TOKEN = _api(40, "1-2", flexible=2, forwardable=True)
    DESCRIBE_DELEGATION_TOKEN = _api(41, "1-3", flexible=2)
    DELETE_GROUPS = _api(42, "0-3", flexible=2)
    ELECT_LEADERS = _api(43, "0-2", flexible=2, forwardable=True)
    INCREMENTAL_ALTER_CONFIGS = _api(44, "0-1", flexible=1, forwardable=True)
    ALTER_PARTITION_REASSIGNMENTS = _api(45, "0-1", flexible=0, forwardable=True)
    LIST_PARTITION_REASSIGNMENTS = _api(46, "0-0", flexible=0, forwardable=True)
    OFFSET_DELETE = _api(47, "0-0")
    DESCRIBE_CLIENT_QUOTAS = _api(48, "0-1", flexible=1)
    ALTER_CLIENT_QUOTAS = _api(49, "0-1", flexible=1, forwardable=True)
    DESCRIBE_USER_SCRAM_CREDENTIALS = _api(50, "0-0", flexible=0)
    ALTER_USER_SCRAM_CREDENTIALS = _api(51, "0-0", flexible=0, forwardable=True)
    VOTE = _api(52, "0-2", flexible=0, cluster_action=True, broker=False)
    BEGIN_QUORUM_EPOCH = _api(53, "0-1", flexible=1, cluster_action=True, broker=False)
    END_QUORUM_EPOCH = _api(54, "0-1", flexible=1, cluster_action=True, broker=False)
    DESCRIBE_QUORUM = _api(55, "0-2", flexible=0, cluster_action=True, forwardable=True)
    ALTER_PARTITION = _api(56, "2-3", flexible=2, cluster_action=True, broker=False)
    UPDATE_FEATURES = _api(57, "0-2", flexible=0, cluster_action=True, forwardable=True)
    ENVELOPE = _api(58, "0-0", flexible=0, cluster_action=True, broker=False)
    FETCH_SNAPSHOT = _api(59, "0-1", flexible=0, broker=False)
    DESCRIBE_CLUSTER = _api(60, "0-2", flexible=0)
    DESCRIBE_PRODUCERS = _api(61, "0-0", flexible=0)
    BROKER_REGISTRATION = _api(62, "0-4", flexible=0, cluster_action=True, broker=False)
    BROKER_HEARTBEAT = _api(63, "0-2", flexible=0, cluster_action=True, broker=False)
    UNREGISTER_BROKER = _api(64, "0-0", flexible=0, forwardable=True)
    DESCRIBE_TRANSACTIONS = _api(65, "0-0", flexible=0)
    LIST_TRANSACTIONS = _api(66, "0-2", flexible=0)
    ALLOCATE_PRODUCER_IDS = _api(67, "0-0", flexible=0, cluster_action=True, forwardable=True, broker=False)
    CONSUMER_GROUP_HEARTBEAT = _api(68, "0-1", flexible=0)
    CONSUMER_GROUP_DESCRIBE = _api(69, "0-1", flexible=0)
    CONTROLLER_REGISTRATION = _api(70, "0-0", flexible=0, broker=False)
    GET_TELEMETRY_SUBSCRIPTIONS = _api(71, "0-0", flexible=0)
    PUSH_TELEMETRY = _api(72, "0-0", flexible=0)
    ASSIGN_REPLICAS_TO_DIRS = _api(73, "0-0", flexible=0, broker=False)
    LIST_CONFIG_RESOURCES = _api(74, "0-1", flexible=0)
    DESCRIBE_TOPIC_PARTITIONS = _api(75, "0-0", flexible=0)
    SHARE_GROUP_HEARTBEAT = _api(76, "1-1", flexible=0)
    SHARE_GROUP_DESCRIBE = _api(77, "1-1", flexible=0)
    SHARE_FETCH = _api(78, "1-2", flexible=0)
    SHARE_ACKNOWLEDGE = _api(79, "1-2", flexible=0)
    ADD_RAFT_VOTER = _api(80, "0-1", flexible=0, forwardable=True)
    REMOVE_RAFT_VOTER = _api(81, "0-0", flexible=0, forwardable=True)
    UPDATE_RAFT_VOTER = _api(82, "0-0", flexible=0, broker=False)
    INITIALIZE_SHARE_GROUP_STATE = _api(83, "0-0", flexible=0, cluster_action=True)
    READ_SHARE_GROUP_STATE = _api(84, "0-0", flexible=0, cluster_action=True)
    WRITE_SHARE_GROUP_STATE = _api(85, "0-1", flexible=0, cluster_action=True)
    DELETE_SHARE_GROUP_STATE = _api(86, "0-0", flexible=0, cluster_action=True)
    READ_SHARE_GROUP_STATE_SUMMARY = _api(87, "0-1", flexible=0, cluster_action=True)
    STREAMS_GROUP_HEARTBEAT = _api(88, "0-1", flexible=0)
    STREAMS_GROUP_DESCRIBE = _api(89, "0-1", flexible=0)
    DESCRIBE_SHARE_GROUP_OFFSETS = _api(90, "0-1", flexible=0)
    ALTER_SHARE_GROUP_OFFSETS = _api(91, "0-0", flexible=0)
    DELETE_SHARE_GROUP_OFFSETS = _api(92, "0-0", flexible=0)
    STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE = _api(93, "0-0", flexible=0)
    UNREGISTER_CONTROLLER = _api(94, "0-0", flexible=0, forwardable=True)

    @classmethod
    def for_id(cls, number: int) -> ApiKeys | None:
        """The API of this number, or None if there is none that this client knows."""
        return _BY_NUMBER.get(number)

    @property
    def title(self) -> str:
        """The name as the messages have it: `InitProducerId`."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def advertised_min_version(self) -> int:
        """The oldest version that a broker's answer to ApiVersions names.

        It is 0 for Produce although versions below 3 are refused: some older clients take codecs to be missing
        when they do not see the versions that brought them (KAFKA-18659).
        """
        return 0 if self is ApiKeys.PRODUCE else self.min_version

    def request_header_version(self, version: int) -> int:
        """The version of the header before a request of this version, known or not."""
        return 2 if self.flexible_from is not None and version >= self.flexible_from else 1

    def response_header_version(self, version: int) -> int:
        """The version of the header before a response of this version.

        Always 0 for ApiVersions: the client does not know yet what the broker can write (KIP-511).
        """
        if self is ApiKeys.API_VERSIONS:
            return 0
        return 1 if self.flexible_from is not None and version >= self.flexible_from else 0


_BY_NUMBER: dict[int, ApiKeys] = {int(api): api for api in ApiKeys}
