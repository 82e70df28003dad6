"""DescribeCluster (60), version 0: the brokers.

Access: none needed; DESCRIBE on the cluster for being told what else the client may do.
"""

from __future__ import annotations

from kclient.broker.apis.call import ApiCall
from kclient.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)


def describe_cluster(call: ApiCall, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """Describe this broker."""
    broker = call.broker
    response = DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[
            DescribeClusterBroker(broker_id=broker.node_id, host=call.endpoint.host, port=call.endpoint.port)
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = call.authorized_cluster_operations()
    return response
