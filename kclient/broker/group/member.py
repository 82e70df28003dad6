"""Member: one consumer in a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from kclient.broker.timer import TimerTask

Protocols = Sequence[tuple[str, bytes]]
"""The assignment strategies a member can use, best first, each with what it tells the leader."""


@attrs.frozen
class JoinedMember:
    """A member as the leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@attrs.frozen
class JoinResult:
    """The answer to a JoinGroup request. Only the leader gets `members`."""

    member_id: str
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    members: Sequence[JoinedMember] = ()
    skip_assignment: bool = False


@attrs.frozen
class SyncResult:
    """The answer to a SyncGroup request."""

    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


JoinCallback = Callable[[JoinResult], None]
SyncCallback = Callable[[SyncResult], None]


@attrs.define(eq=False)
class Member:
    """Guarded by its group's lock. A parked request is one whose callback is set."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    deadline_ms: int = 0
    """Monotonic time by which the member must be heard of again."""
    expiry: TimerTask | None = None
    join_callback: JoinCallback | None = None
    sync_callback: SyncCallback | None = None

    @property
    def is_static(self) -> bool:
        """True if the member has a name that outlives its restarts (KIP-345)."""
        return self.instance_id is not None

    @property
    def awaits_join(self) -> bool:
        """True while its JoinGroup request is parked."""
        return self.join_callback is not None

    @property
    def awaits_sync(self) -> bool:
        """True while its SyncGroup request is parked."""
        return self.sync_callback is not None

    def matches(self, protocols: Protocols) -> bool:
        """True if these are the protocols that it has."""
        return list(self.protocols) == list(protocols)

    def metadata_for(self, protocol_name: str) -> bytes:
        """Return its metadata for the leader under this protocol; empty for a protocol it does not have."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: set[str]) -> str:
        """Its favourite among `candidates`, of which it has at least one."""
        return next(name for name, _ in self.protocols if name in candidates)

    def answer_join(self, result: JoinResult) -> None:
        """Answer a parked JoinGroup request, if there is one."""
        callback, self.join_callback = self.join_callback, None
        if callback is not None:
            callback(result)

    def answer_sync(self, result: SyncResult) -> None:
        """Answer a parked SyncGroup request, if there is one."""
        callback, self.sync_callback = self.sync_callback, None
        if callback is not None:
            callback(result)
