"""Measured: what is asked of a client or a broker whose metrics go elsewhere."""

from __future__ import annotations

from typing import Protocol

from kclient.metrics import Measurement


class Measured(Protocol):
    """A source of metrics: KafkaProducer, KafkaConsumer, KafkaAdminClient, and the broker."""

    def measurements(self) -> list[Measurement]:
        """Return every metric with its value now."""
