"""DescribeGroups (15), versions 0 to 6: groups with their members.

Versions: 3 can ask for permitted operations, 4 brought static members, 5 is flexible, 6 has messages. Behaviour:
a group that is not there is Dead, before version 6 without an error (KIP-1043). Access: DESCRIBE on the group.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.resources import GROUP_OPERATIONS
from kclient.broker.group.group import GroupState
from kclient.errors import Errors, KafkaError
from kclient.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_MISSING_FROM = 6


def describe_groups(call: ApiCall, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    """Describe each group."""
    described = [_describe(call, group_id) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in described:
            group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)


def _describe(call: ApiCall, group_id: str) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(error_code=int(Errors.INVALID_GROUP_ID))
    try:
        group = call.broker.groups.describe(group_id)
    except KafkaError as error:
        message = str(error) if call.version >= _MISSING_FROM else None
        return DescribedGroup(group_id=group_id, error_code=Errors.code_for(error), error_message=message)
    if group is not None:
        return group
    missing = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    if call.version >= _MISSING_FROM:
        missing.error_code = int(Errors.GROUP_ID_NOT_FOUND)
        missing.error_message = f"Group {group_id} not found."
    return missing
