"""Heartbeat (12), versions 0 to 4: a member is alive, and learns whether it has to join again.

Versions: 3 brought static members, 4 is flexible. Access: READ on the group.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall, error_in
from kclient.common.acl import AclOperation, ResourceType
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def heartbeat(call: ApiCall, request: HeartbeatRequest) -> HeartbeatResponse:
    """Tell the coordinator."""
    response = HeartbeatResponse()
    with error_in(response):
        call.require(AclOperation.READ, ResourceType.GROUP, request.group_id)
        call.broker.groups.heartbeat(
            request.group_id, request.generation_id, request.member_id, request.group_instance_id
        )
    return response
