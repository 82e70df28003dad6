"""Every line that says so is wrong, and the words after `wrong:` are in what a type checker answers."""

from kclient import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    KafkaShareConsumer,
    ProducerSettings,
    StringSerializer,
)

# Names that are not those of a setting, or of another client.
KafkaProducer(linger_msec=5)  # wrong: "linger_msec"
KafkaConsumer(linger_ms=5)  # wrong: "linger_ms"
KafkaAdminClient(group_id="g")  # wrong: "group_id"
KafkaShareConsumer(auto_offset_reset="earliest")  # wrong: "auto_offset_reset"
KafkaConsumer(key_serializer=str.encode)  # wrong: "key_serializer"

# Values.
KafkaProducer(acks=7)  # wrong: "acks"
KafkaProducer(acks="most")  # wrong: "acks"
KafkaProducer(linger_ms="5")  # wrong: "linger_ms"
KafkaProducer(compression_type="lz5")  # wrong: "compression_type"
KafkaProducer(partitioner_class="sticky")  # wrong: "partitioner_class"
KafkaProducer(partitioner_class=len)  # wrong: "partitioner_class"
KafkaConsumer(auto_offset_reset="first")  # wrong: "auto_offset_reset"
KafkaConsumer(enable_auto_commit="no")  # wrong: "enable_auto_commit"
KafkaConsumer(partition_assignment_strategy=["rnage"])  # wrong: rnage
KafkaConsumer(interceptor_classes=[object()])  # wrong: object
KafkaAdminClient(bootstrap_servers=9092)  # wrong: "bootstrap_servers"
KafkaAdminClient(request_timeout_ms=1.5)  # wrong: "request_timeout_ms"
settings: ProducerSettings = {"linger_msec": 5}  # wrong: "linger_msec"

# Keys and values of other types than the serializers have.
texts = KafkaProducer(value_serializer=StringSerializer())
texts.send("topic", b"bytes")  # wrong: bytes
texts.send("topic", "text", key="text")  # wrong: "send"
plain: KafkaProducer[bytes, bytes] = KafkaProducer(value_serializer=str.encode)  # wrong: str
