"""The contents of control records, and what else Kafka serialises in the manner of its messages."""

from __future__ import annotations

from kclient.common.uuid import Uuid
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Bool, Int16, Int32, Int64, String, UInt16


@message(kind="data", versions="0", flexible="none")
class ControlRecordTypeSchema(Message):
    """The key of a control record, after its version."""

    type: int = wire(Int16, "0+")


@message(kind="data", versions="0", flexible="none")
class EndTxnMarker(Message):
    """The value of a transaction marker."""

    coordinator_epoch: int = wire(Int32, "0+")


@message(kind="data", versions="0", flexible="none")
class AbortedTxn(Message):
    """An entry of a transaction index."""

    producer_id: int = wire(Int64, "0+")
    first_offset: int = wire(Int64, "0+")
    last_offset: int = wire(Int64, "0+")
    last_stable_offset: int = wire(Int64, "0+")


@structure
class LeaderChangeMessageVoter(Structure):
    voter_id: int = wire(Int32, "0+")
    voter_directory_id: Uuid = wire(UUID, "1+")


@message(kind="data", versions="0-1", flexible="0+")
class LeaderChangeMessage(Message):
    """Written by a new leader of the metadata quorum."""

    version: int = wire(Int16, "0+")
    leader_id: int = wire(Int32, "0+")
    voters: list[LeaderChangeMessageVoter] = wire(Array(LeaderChangeMessageVoter), "0+")
    granting_voters: list[LeaderChangeMessageVoter] = wire(Array(LeaderChangeMessageVoter), "0+")


@message(kind="data", versions="0", flexible="0+")
class SnapshotHeaderRecord(Message):
    """The first record of a metadata snapshot."""

    version: int = wire(Int16, "0+")
    last_contained_log_timestamp: int = wire(Int64, "0+")


@message(kind="data", versions="0", flexible="0+")
class SnapshotFooterRecord(Message):
    """The last record of a metadata snapshot."""

    version: int = wire(Int16, "0+")


@message(kind="data", versions="0", flexible="0+")
class KRaftVersionRecord(Message):
    """The version of the quorum protocol (KIP-853)."""

    version: int = wire(Int16, "0+")
    k_raft_version: int = wire(Int16, "0+")


@structure
class Endpoint(Structure):
    name: str = wire(String, "0+")
    host: str = wire(String, "0+")
    port: int = wire(UInt16, "0+")


@structure
class KRaftVersionFeature(Structure):
    min_supported_version: int = wire(Int16, "0+")
    max_supported_version: int = wire(Int16, "0+")


@structure
class VotersRecordVoter(Structure):
    voter_id: int = wire(Int32, "0+")
    voter_directory_id: Uuid = wire(UUID, "0+")
    endpoints: list[Endpoint] = wire(Array(Endpoint), "0+")
    k_raft_version_feature: KRaftVersionFeature = wire(KRaftVersionFeature, "0+")


@message(kind="data", versions="0", flexible="0+")
class VotersRecord(Message):
    """The voters of the metadata quorum (KIP-853)."""

    version: int = wire(Int16, "0+")
    voters: list[VotersRecordVoter] = wire(Array(VotersRecordVoter), "0+")


@message(kind="data", versions="0", flexible="0+")
class DefaultPrincipalData(Message):
    """A principal, as a broker passes it on in Envelope."""

    type: str = wire(String, "0+")
    name: str = wire(String, "0+")
    token_authenticated: bool = wire(Bool, "0+")
