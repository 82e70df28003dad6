"""SyncGroup (14), versions 0 to 5: the leader brings the assignment, everyone else gets it.

Versions: 3 brought static members, 5 protocol names to compare. Behaviour: answered when the leader's
assignment is stored. Access: READ on the group.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.group.group_types import SyncRequest
from kclient.broker.group.member import SyncResult
from kclient.errors import Errors
from kclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync_group(call: ApiCall, request: SyncGroupRequest) -> SyncGroupResponse | None:
    """Park the request with the coordinator."""
    if call.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=int(Errors.INCONSISTENT_GROUP_PROTOCOL))

    def answer(result: SyncResult) -> None:
        call.respond(
            SyncGroupResponse(
                error_code=result.error_code,
                protocol_type=result.protocol_type,
                protocol_name=result.protocol_name,
                assignment=result.assignment,
            )
        )

    call.broker.groups.sync(
        SyncRequest(
            request.group_id,
            request.generation_id,
            request.member_id,
            request.group_instance_id,
            request.protocol_type,
            request.protocol_name,
            {assigned.member_id: bytes(assigned.assignment) for assigned in request.assignments},
        ),
        answer,
    )
    return None
