"""JoinGroup (11), versions 0 to 9: become a member of a group, or take part in its rebalance.

Versions: 0 has no rebalance timeout; from 4 on a new member first gets an id to come back with (KIP-394); 5
brought static members (KIP-345), 9 a leader that skips the assignment. Behaviour: answered when the next
generation begins. Access: READ on the group.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.group.member import JoinRequest, join_failure
from kclient.common.acl import AclOperation, ResourceType
from kclient.errors import Errors
from kclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse


def join_group(call: ApiCall, request: JoinGroupRequest) -> None:
    """Park the request with the coordinator."""

    def answer(response: JoinGroupResponse) -> None:
        if response.protocol_name is None and call.version < 7:
            response.protocol_name = ""  # these versions cannot say null
        call.respond(response)

    if not call.authorized(AclOperation.READ, ResourceType.GROUP, request.group_id):
        answer(join_failure("", Errors.GROUP_AUTHORIZATION_FAILED))
        return
    call.broker.groups.join(
        JoinRequest(
            group_id=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            client_id=call.client_id or "",
            client_host=call.client_host,
            rebalance_timeout_ms=request.session_timeout_ms
            if call.version == 0
            else request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=[(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols],
            reason=f"({request.reason[:255]!r})" if request.reason else "",
            requires_known_id=call.version >= 4,
            can_skip_assignment=call.version >= 9,
        ),
        answer,
    )
