"""FindCoordinator (10), versions 0 to 6: which broker coordinates a group.

Versions: 1 brought kinds of keys and error messages, 3 is flexible, 4 takes many keys, 6 knows share groups,
which are not served. Behaviour: this
broker, for every group; makes the topic of offsets if need be. Transactional ids are refused, with an error
that no client retries. Access: DESCRIBE on the group.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall, error_in
from kclient.errors import InvalidGroupIdError, InvalidRequestError, UnsupportedVersionError
from kclient.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_GROUP = 0
_TRANSACTION = 1


def find_coordinator(call: ApiCall, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Name this broker."""
    if call.version >= 4:
        return FindCoordinatorResponse(
            coordinators=[_find(call, request.key_type, key) for key in request.coordinator_keys]
        )
    found = _find(call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(call: ApiCall, key_type: int, key: str) -> Coordinator:
    found = Coordinator(key=key, node_id=-1, port=-1)
    with error_in(found):
        if key_type == _TRANSACTION:
            raise UnsupportedVersionError("This broker does not serve transactions")
        if key_type != _GROUP:
            raise InvalidRequestError(f"There are no coordinators of kind {key_type}")
        if not key:
            raise InvalidGroupIdError("The group id is empty")
        call.broker.groups.coordinator_partition(key)
        found.node_id = call.broker.node_id
        found.host, found.port = call.endpoint.host, call.endpoint.port
    return found
