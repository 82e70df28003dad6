"""WriteTxnMarkers: the coordinator has partitions end a transaction."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Bool, Int8, Int16, Int32, Int64, String


@structure
class WritableTxnMarkerTopic(Structure):
    name: str = wire(String, "0+")
    partition_indexes: list[int] = wire(Array(Int32), "0+")


@structure
class WritableTxnMarker(Structure):
    producer_id: int = wire(Int64, "0+")
    producer_epoch: int = wire(Int16, "0+")
    transaction_result: bool = wire(Bool, "0+")
    topics: list[WritableTxnMarkerTopic] = wire(Array(WritableTxnMarkerTopic), "0+")
    coordinator_epoch: int = wire(Int32, "0+")
    transaction_version: int = wire(Int8, "2+", ignorable=True)


@message(api_key=ApiKeys.WRITE_TXN_MARKERS, kind="request", versions="1-2", flexible="1+")
class WriteTxnMarkersRequest(Message):
    """Sent between brokers."""

    markers: list[WritableTxnMarker] = wire(Array(WritableTxnMarker), "0+")


@structure
class WritableTxnMarkerPartitionResult(Structure):
    partition_index: int = wire(Int32, "0+")
    error_code: int = wire(Int16, "0+")


@structure
class WritableTxnMarkerTopicResult(Structure):
    name: str = wire(String, "0+")
    partitions: list[WritableTxnMarkerPartitionResult] = wire(Array(WritableTxnMarkerPartitionResult), "0+")


@structure
class WritableTxnMarkerResult(Structure):
    producer_id: int = wire(Int64, "0+")
    topics: list[WritableTxnMarkerTopicResult] = wire(Array(WritableTxnMarkerTopicResult), "0+")


@message(api_key=ApiKeys.WRITE_TXN_MARKERS, kind="response", versions="1-2", flexible="1+")
class WriteTxnMarkersResponse(Message):
    """An error code for each partition."""

    markers: list[WritableTxnMarkerResult] = wire(Array(WritableTxnMarkerResult), "0+")
