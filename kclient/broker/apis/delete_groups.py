"""DeleteGroups (42), versions 0 to 2: delete groups without members. Access: DELETE on the group."""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall, error_in
from kclient.common.acl import AclOperation, ResourceType
from kclient.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


def delete_groups(call: ApiCall, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Delete each group."""
    return DeleteGroupsResponse(results=[_delete(call, group_id) for group_id in request.groups_names])


def _delete(call: ApiCall, group_id: str) -> DeletableGroupResult:
    result = DeletableGroupResult(group_id=group_id)
    with error_in(result):
        call.require(AclOperation.DELETE, ResourceType.GROUP, group_id)
        call.broker.groups.delete(group_id)
    return result
