"""SyncGroup (14), versions 0 to 5: the leader brings the assignment, everyone else gets it.

Versions: 3 brought static members, 5 protocol names to compare. Behaviour: answered when the leader's
assignment is stored. Access: READ on the group.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.common.acl import AclOperation, ResourceType
from kclient.errors import Errors
from kclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


def sync_group(call: ApiCall, request: SyncGroupRequest) -> SyncGroupResponse | None:
    """Park the request with the coordinator."""
    if call.version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        return SyncGroupResponse(error_code=int(Errors.INCONSISTENT_GROUP_PROTOCOL))
    if not call.authorized(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return SyncGroupResponse(error_code=int(Errors.GROUP_AUTHORIZATION_FAILED))
    call.broker.groups.sync(request, call.respond)
    return None
