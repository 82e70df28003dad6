"""DeleteGroups (42), versions 0 to 2: delete groups without members. Access: DELETE on the group."""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.registry import handles
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


@handles(ApiKeys.DELETE_GROUPS, 0, 2)
def delete_groups(call: ApiCall, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """Delete each group."""
    return DeleteGroupsResponse(results=[_delete(call, group_id) for group_id in request.groups_names])


def _delete(call: ApiCall, group_id: str) -> DeletableGroupResult:
    try:
        call.broker.groups.delete(group_id)
    except KafkaError as error:
        return DeletableGroupResult(group_id=group_id, error_code=Errors.code_for(error))
    return DeletableGroupResult(group_id=group_id)
