"""Member: one consumer in a group; and the request with which it comes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from kclient.broker.timer import TimerTask
from kclient.errors import Errors
from kclient.protocol.messages.join_group import JoinGroupResponse
from kclient.protocol.messages.sync_group import SyncGroupResponse

Protocols = Sequence[tuple[str, bytes]]
"""The assignment strategies a member can use, best first, each with what it tells the leader."""


@attrs.frozen
class JoinRequest:
    """A member that wants to join. `requires_known_id` and `can_skip_assignment` come with newer versions."""

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    reason: str = ""
    requires_known_id: bool = False
    can_skip_assignment: bool = False


JoinCallback = Callable[[JoinGroupResponse], None]
SyncCallback = Callable[[SyncGroupResponse], None]


@attrs.define(eq=False)
class Member:
    """Guarded by its group's lock. A parked request is one whose callback is set."""

    member_id: str
    instance_id: str | None
    """The name of a static member, which outlives its restarts (KIP-345)."""
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
    def awaits_join(self) -> bool:
        """True while its JoinGroup request is parked."""
        return self.join_callback is not None

    @property
    def awaits_sync(self) -> bool:
        """True while its SyncGroup request is parked."""
        return self.sync_callback is not None

    def metadata_for(self, protocol_name: str) -> bytes:
        """Return its metadata for the leader under this protocol; empty for a protocol it does not have."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")

    def answer_join(self, response: JoinGroupResponse) -> None:
        """Answer a parked JoinGroup request, if there is one."""
        callback, self.join_callback = self.join_callback, None
        if callback is not None:
            callback(response)

    def answer_sync(self, response: SyncGroupResponse) -> None:
        """Answer a parked SyncGroup request, if there is one."""
        callback, self.sync_callback = self.sync_callback, None
        if callback is not None:
            callback(response)

    def fail_join(self, error: Errors) -> None:
        """Answer a parked JoinGroup request, if there is one, with an error."""
        self.answer_join(join_failure(self.member_id, error))

    def fail_sync(self, error: Errors) -> None:
        """Answer a parked SyncGroup request, if there is one, with an error."""
        self.answer_sync(SyncGroupResponse(error_code=int(error)))


def join_failure(member_id: str, error: int) -> JoinGroupResponse:
    """The answer to a JoinGroup request that failed with this code."""
    return JoinGroupResponse(member_id=member_id, error_code=int(error), protocol_name=None)
