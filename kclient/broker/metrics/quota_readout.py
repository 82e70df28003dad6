"""Metrics of quotas that are in use: what is taken of each, and how long its owners are held back."""

from __future__ import annotations

from kclient.broker.metrics.readout import Readout
from kclient.broker.quota.quota_managers import QuotaManagers


def read_quotas(out: Readout, quotas: QuotaManagers) -> None:
    """Read all of it out. For any thread."""
    for group, name, manager, description in (
        ("server.Produce", "byte-rate", quotas.produce, "Bytes written a second"),
        ("server.Fetch", "byte-rate", quotas.fetch, "Bytes of records read a second"),
        ("server.Request", "request-time", quotas.request, "Percent of the time of a handler"),
        ("server.ControllerMutation", "tokens", quotas.mutation, "Partitions that may be made or deleted"),
    ):
        for one in manager.usage():
            tags = {"user": one.user, "client-id": one.client_id}
            out.gauge(group, name, one.used, description, **tags)
            held = one.throttle_time_avg_ms
            out.gauge(group, "throttle-time", held, "Mean time in ms for which they are held back", **tags)
    for each in quotas.connections.usage():
        rate = "Connections of an address a second"
        out.gauge("server.socket-server-metrics", "connection-accept-rate", each.used, rate, ip=each.address)
