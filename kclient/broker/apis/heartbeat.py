"""Heartbeat (12), versions 0 to 4: a member is alive, and learns whether it has to join again.

Versions: 3 brought static members, 4 is flexible. Access: READ on the group.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.registry import handles
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@handles(ApiKeys.HEARTBEAT, 0, 4)
def heartbeat(call: ApiCall, request: HeartbeatRequest) -> HeartbeatResponse:
    """Tell the coordinator."""
    try:
        call.broker.groups.heartbeat(
            request.group_id, request.generation_id, request.member_id, request.group_instance_id
        )
    except KafkaError as error:
        return HeartbeatResponse(error_code=Errors.code_for(error))
    return HeartbeatResponse()
