"""The file in which a broker keeps what it knows of the producers of a partition."""

from __future__ import annotations

from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import Array, Int16, Int32, Int64, UInt32


@structure
class ProducerEntry(Structure):
    producer_id: int = wire(Int64, "1")
    epoch: int = wire(Int16, "1")
    last_sequence: int = wire(Int32, "1")
    last_offset: int = wire(Int64, "1")
    offset_delta: int = wire(Int32, "1")
    timestamp: int = wire(Int64, "1")
    coordinator_epoch: int = wire(Int32, "1")
    current_txn_first_offset: int = wire(Int64, "1")


@message(kind="data", versions="1", flexible="none")
class ProducerSnapshot(Message):
    """The contents of a `.snapshot` file, after its version."""

    crc: int = wire(UInt32, "1")
    producer_entries: list[ProducerEntry] = wire(Array(ProducerEntry), "1")
