"""A subscription: which metrics brokers want of a client, how often, and how compressed (KIP-714)."""

from __future__ import annotations

import attrs

from kclient.client.telemetry.payload import telemetry_name
from kclient.common.uuid import Uuid
from kclient.compress import CompressionType, compress
from kclient.errors import UnsupportedCompressionTypeError
from kclient.metrics import MetricName
from kclient.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse

_ALL = "*"
_SHORTEST_INTERVAL_MS = 100  # whatever a broker says: its own lower limit


@attrs.frozen
class TelemetrySubscription:
    """The answer of a broker. Immutable.

    A metric is wanted if its name in telemetry begins with one of `prefixes`; `*` stands for all.
    """

    client_instance_id: Uuid
    id: int
    codecs: tuple[CompressionType, ...]
    push_interval_ms: int
    max_bytes: int
    delta: bool
    prefixes: tuple[str, ...]

    @classmethod
    def from_response(cls, response: GetTelemetrySubscriptionsResponse) -> TelemetrySubscription:
        """Return what the answer says; codecs that nobody here knows are left out."""
        known = {int(codec) for codec in CompressionType}
        return cls(
            client_instance_id=response.client_instance_id,
            id=response.subscription_id,
            codecs=tuple(CompressionType(n) for n in response.accepted_compression_types if n in known),
            push_interval_ms=max(response.push_interval_ms, _SHORTEST_INTERVAL_MS),
            max_bytes=response.telemetry_max_bytes,
            delta=response.delta_temporality,
            prefixes=tuple(response.requested_metrics),
        )

    def wants(self, name: MetricName) -> bool:
        """Return True if the metric is asked for."""
        return _ALL in self.prefixes or telemetry_name(name).startswith(self.prefixes)

    def compressed(self, payload: bytes) -> tuple[CompressionType, bytes]:
        """Return the payload in the first of the codecs that is installed here, and which one that is."""
        for codec in self.codecs:
            try:
                return codec, compress(codec, payload)
            except UnsupportedCompressionTypeError:
                continue
        return CompressionType.NONE, payload
