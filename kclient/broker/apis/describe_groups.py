"""DescribeGroups (15), versions 0 to 5: groups with their members.

Versions: 3 can ask for permitted operations, 4 brought static members, 5 is flexible. Behaviour: a group that
is not there is Dead, without an error. Access: DESCRIBE on the group.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.group.group import GroupState
from kclient.common.acl import AclOperation, ResourceType
from kclient.errors import Errors, KafkaError
from kclient.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


def describe_groups(call: ApiCall, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Describe each group."""
    described = [_describe(call, group_id) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = call.authorized_operations(ResourceType.GROUP, group.group_id)
    return DescribeGroupsResponse(groups=described)


def _describe(call: ApiCall, group_id: str) -> DescribedGroup:
    if not call.authorized(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        return DescribedGroup(group_id=group_id, error_code=int(Errors.GROUP_AUTHORIZATION_FAILED))
    if not group_id:
        return DescribedGroup(error_code=int(Errors.INVALID_GROUP_ID))
    try:
        group = call.broker.groups.describe(group_id)
    except KafkaError as error:
        return DescribedGroup(group_id=group_id, error_code=Errors.code_for(error))
    return group or DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
