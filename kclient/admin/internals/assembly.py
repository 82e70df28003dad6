"""Puts the inside of an admin client together, for whichever facade uses it."""

from __future__ import annotations

from kclient.admin.config import AdminConfig
from kclient.admin.internals.driver import AdminDriver
from kclient.client.assembly import build_network_client
from kclient.client.client_metrics import ClientMetrics
from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.time import Time

_MAX_IN_FLIGHT = 5


class _BrokersAlone(Metadata):
    """Operations ask for the topics they need; the client itself keeps track of brokers only."""

    def topics_to_request(self) -> list[str]:
        return []


def build_driver(
    config: AdminConfig,
    backoff: ExponentialBackoff,
    metrics: ClientMetrics,
    telemetry: ClientTelemetry,
    time: Time,
) -> AdminDriver:
    """The driver that `config` describes; its I/O thread is not started.

    Raises BootstrapError if no bootstrap server can be resolved.
    """
    log_context = config.log_context()
    metadata = _BrokersAlone(MetadataSchedule.from_config(config), log_context=log_context, time=time)
    return AdminDriver(
        build_network_client(
            config,
            metadata=metadata,
            max_in_flight=_MAX_IN_FLIGHT,
            metrics=metrics.network,
            telemetry=telemetry,
            time=time,
        ),
        metadata,
        client_id=config.client_id,
        request_timeout_ms=config.request_timeout_ms,
        retry_backoff=backoff,
        retries=config.retries,
        time=time,
        log_context=log_context,
    )
