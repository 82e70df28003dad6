"""DescribeCluster: brokers, controller and id of a cluster."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int8, Int16, Int32, String


@message(api_key=ApiKeys.DESCRIBE_CLUSTER, kind="request", versions="0-2", flexible="0+")
class DescribeClusterRequest(Message):
    """Version 1 can ask for controllers (KIP-919)."""

    include_cluster_authorized_operations: bool = wire(Bool, "0+")
    endpoint_type: int = wire(Int8, "1+", default=1)
    include_fenced_brokers: bool = wire(Bool, "2+")


@structure
class DescribeClusterBroker(Structure):
    broker_id: int = wire(Int32, "0+")
    host: str = wire(String, "0+")
    port: int = wire(Int32, "0+")
    rack: str | None = wire(String, "0+", nullable="0+", default=None)
    is_fenced: bool = wire(Bool, "2+")


@message(api_key=ApiKeys.DESCRIBE_CLUSTER, kind="response", versions="0-2", flexible="0+")
class DescribeClusterResponse(Message):
    """The nodes, with the operations the caller may use."""

    throttle_time_ms: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")
    error_message: str | None = wire(String, "0+", nullable="0+", default=None)
    endpoint_type: int = wire(Int8, "1+", default=1)
    cluster_id: str = wire(String, "0+")
    controller_id: int = wire(Int32, "0+", default=-1)
    brokers: list[DescribeClusterBroker] = wire(Array(DescribeClusterBroker), "0+")
    cluster_authorized_operations: int = wire(Int32, "0+", default=-(2**31))
