"""LeaveGroup (13), versions 0 to 5: members go.

Versions: up to 2 one member, from 3 on many, by id or instance id; 5 brought reasons. Behaviour: each member leaves or
fails by itself; none is known to a group that is not there. Access: READ on the group.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.common.acl import AclOperation, ResourceType
from kclient.errors import Errors, KafkaError, UnknownMemberIdError
from kclient.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse


def leave_group(call: ApiCall, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Tell the coordinator."""
    leaving: list[tuple[str, str | None]] = [(request.member_id, None)]
    if call.version >= 3:
        leaving = [(member.member_id, member.group_instance_id) for member in request.members]
    try:
        call.require(AclOperation.READ, ResourceType.GROUP, request.group_id)
        codes = call.broker.groups.leave(request.group_id, leaving)
    except UnknownMemberIdError as error:
        codes = [Errors.code_for(error)] * len(leaving)
    except KafkaError as error:
        return LeaveGroupResponse(error_code=Errors.code_for(error))
    if call.version < 3:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=code)
            for (member_id, instance_id), code in zip(leaving, codes, strict=True)
        ]
    )
