"""ListGroups (16), versions 0 to 5: all groups.

Versions: 4 filters by state (KIP-518), 5 by type (KIP-848). Filters do not mind upper and lower case.
Access: DESCRIBE on the cluster or the groups.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.common.acl import AclOperation, ResourceType
from kclient.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def list_groups(call: ApiCall, request: ListGroupsRequest) -> ListGroupsResponse:
    """List the groups that pass the filters, of those that the client may see."""
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    every = call.authorized(AclOperation.DESCRIBE, ResourceType.CLUSTER, log_denied=False)
    return ListGroupsResponse(
        groups=[
            group
            for group in call.broker.groups.list()
            if (every or _is_visible(call, group.group_id))
            and (not states or group.group_state.lower() in states)
            and (not types or group.group_type in types)
        ]
    )


def _is_visible(call: ApiCall, group_id: str) -> bool:
    return call.authorized(AclOperation.DESCRIBE, ResourceType.GROUP, group_id, log_denied=False)
