"""Spellings that type checkers let pass, among them all that the documentation shows."""

import json
from typing import Any, assert_type

from kclient import (
    AcknowledgeType,
    AdminSettings,
    ConsumerRecord,
    ConsumerSettings,
    JsonDeserializer,
    JsonSerializer,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    KafkaShareConsumer,
    Partitioner,
    ProducerInterceptor,
    ProducerRecord,
    ProducerSettings,
    RecordMetadata,
    RoundRobinPartitioner,
    StringDeserializer,
    StringSerializer,
)
from kclient.consumer import ByDuration, ConsumerInterceptor, RangeAssignor

SERVERS = "localhost:9092"


class Watch:
    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None) -> None: ...


# Settings come as a mapping, from a file, as keywords, or as a mapping and keywords.
KafkaProducer({"bootstrap.servers": SERVERS, "linger.ms": "5"})
KafkaProducer("client.properties", client_id="orders")
KafkaProducer(bootstrap_servers=["localhost:9092", "localhost:9093"])
KafkaProducer(bootstrap_servers=("localhost:9092",), linger_ms=0, acks=1)
unchecked: dict[str, Any] = {"acks": "all"}
KafkaProducer(unchecked)
KafkaProducer(**unchecked)

# Settings that several places share.
shared: ProducerSettings = {"bootstrap_servers": SERVERS, "acks": "all", "compression_type": "zstd"}
KafkaProducer(**shared)
KafkaProducer(shared, batch_size=65_536)
reading: ConsumerSettings = {"bootstrap_servers": SERVERS, "group_id": None}
KafkaConsumer(**reading)
managing: AdminSettings = {"bootstrap_servers": SERVERS, "request_timeout_ms": 5_000}
KafkaAdminClient(**managing)

# Words, numbers that are words, classes and objects.
interceptors: list[ProducerInterceptor] = [Watch()]
KafkaProducer(acks=-1, partitioner_class=RoundRobinPartitioner)
KafkaProducer(acks="0", partitioner_class="round_robin", interceptor_classes=[Watch])
partitioner: Partitioner = RoundRobinPartitioner()
KafkaProducer(partitioner_class=partitioner, interceptor_classes=interceptors, transactional_id=None)
KafkaConsumer(auto_offset_reset=ByDuration("by_duration:P7D"), isolation_level="read_committed")
KafkaConsumer(partition_assignment_strategy="roundrobin", interceptor_classes=[ConsumerInterceptor])
KafkaConsumer(partition_assignment_strategy=[RangeAssignor, "roundrobin"])

# Without serializers, keys and values are bytes; with them, what these take and give.
assert_type(KafkaProducer(), KafkaProducer[bytes, bytes])
assert_type(KafkaProducer(key_serializer=None), KafkaProducer)
assert_type(KafkaProducer(key_serializer=StringSerializer()), KafkaProducer[str, bytes])
assert_type(KafkaProducer(value_serializer=str.encode), KafkaProducer[bytes, str])
assert_type(KafkaProducer(value_serializer=JsonSerializer()), KafkaProducer[bytes, Any])
assert_type(KafkaConsumer(), KafkaConsumer[bytes, bytes])
assert_type(KafkaConsumer(key_deserializer=StringDeserializer()), KafkaConsumer[str, bytes])
assert_type(KafkaConsumer(value_deserializer=JsonDeserializer()), KafkaConsumer[bytes, Any])
assert_type(KafkaConsumer(value_deserializer=lambda data: data.decode()), KafkaConsumer[bytes, str])
# A function without annotations says nothing of its argument, and a file nothing of its serializers.
KafkaProducer[bytes, dict[str, int]](value_serializer=lambda value: json.dumps(value).encode()).send(
    "t", {"a": 1}
)
sharing = KafkaShareConsumer(group_id="g", value_deserializer=StringDeserializer())
assert_type(sharing, KafkaShareConsumer[bytes, str])
for shared_record in sharing.poll(100):
    sharing.acknowledge(shared_record)
    sharing.acknowledge(shared_record, AcknowledgeType.REJECT)
    sharing.acknowledge("t", 0, shared_record.offset, AcknowledgeType.RENEW)
texts: KafkaConsumer[str, str] = KafkaConsumer("client.properties")


def names(record: ConsumerRecord[bytes, str]) -> str:
    return record.value or ""
