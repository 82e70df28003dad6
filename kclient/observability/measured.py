"""Measured: what is asked of a client whose metrics go elsewhere."""

from __future__ import annotations

from typing import Protocol

from kclient.metrics import Measurement


class Measured(Protocol):
    """A client with metrics: KafkaProducer, KafkaConsumer, KafkaAdminClient."""

    def measurements(self) -> list[Measurement]:
        """Return every metric with its value now."""
