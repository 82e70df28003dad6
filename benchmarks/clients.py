"""The clients that are compared, with the operations of each."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from benchmarks.shapes import READING as READING_SHAPES
from benchmarks.shapes import SHAPES

FIRST = ("produce", "consume", "columns", "arrow", "round_trip", "busy")
OPERATIONS = (*FIRST, *SHAPES)
# Those that read what is already in a topic, and those that measure time and not throughput.
COLUMNAR = ("columns", "arrow")
READING = ("consume", *COLUMNAR, *READING_SHAPES)
LATENCY = ("round_trip", "busy")


@attrs.frozen
class Client:
    """One that is compared: `module` in benchmarks/peers.

    `share` is the part of the records that it is given: the slow ones would take most of the time, and a rate needs no
    more. `warm_up` are records that it gets before those that count, for each that counts: a JVM compiles meanwhile.
    """

    module: str
    operations: tuple[str, ...]
    environment: Mapping[str, str] = attrs.Factory(dict)
    share: float = 1.0
    warm_up: float = 0.0


CLIENTS: Mapping[str, Client] = {
    "kclient": Client("kclient", OPERATIONS, {"KCLIENT_IMPL": "c"}),
    "kclient_pure": Client("kclient", FIRST, {"KCLIENT_IMPL": "python"}),
    "confluent": Client("confluent", ("produce", "consume", *LATENCY, *SHAPES)),
    "confluent_defaults": Client("confluent_defaults", ("consume",), share=0.5),
    "java": Client("java", ("produce", "consume")),
    "java_warm": Client("java", ("produce", "consume"), warm_up=1.0),
    "aiokafka": Client("aiokafka", ("produce", "consume", "round_trip"), share=0.2),
    "kafka_python": Client("kafka_python", ("produce", "consume", "round_trip"), share=0.2),
}
