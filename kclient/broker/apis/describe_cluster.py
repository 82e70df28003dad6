"""DescribeCluster (60), versions 0 to 2: the brokers.

Versions: 1 can ask for controllers (KIP-919), which is refused where brokers listen, as Kafka does; 2 can ask for
fenced brokers as well: there are none. Access: DESCRIBE on the cluster.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.broker.apis.resources import CLUSTER_OPERATIONS
from kclient.errors import Errors
from kclient.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS, _CONTROLLERS = 1, 2


def describe_cluster(call: ApiCall, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe this broker."""
    broker = call.broker
    if request.endpoint_type != _BROKERS:
        known = request.endpoint_type == _CONTROLLERS
        return DescribeClusterResponse(
            error_code=int(Errors.MISMATCHED_ENDPOINT_TYPE if known else Errors.UNSUPPORTED_ENDPOINT_TYPE),
            error_message=f"Brokers listen here, not endpoints of type {request.endpoint_type}",
        )
    response = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[
            DescribeClusterBroker(broker_id=broker.node_id, host=call.endpoint.host, port=call.endpoint.port)
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
