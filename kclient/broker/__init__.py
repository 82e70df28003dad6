"""The embedded broker: a single-node Kafka that speaks the real protocol and keeps its data in Kafka's own
files.
"""

from __future__ import annotations

from kclient.broker.config import BrokerConfig
from kclient.broker.embedded import EmbeddedKafka
from kclient.broker.kafka_broker import KafkaBroker

__all__ = ["BrokerConfig", "EmbeddedKafka", "KafkaBroker"]
