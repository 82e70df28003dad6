"""Metrics of requests, connections, network threads and handlers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from kclient.broker.apis.registry import served_apis
from kclient.broker.metrics.readout import Readout
from kclient.broker.metrics.request_metrics import ApiMetrics, RequestTimes
from kclient.broker.network.socket_server import SocketServer
from kclient.broker.request_handler import RequestHandlerPool
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys

_REQUESTS = "network.RequestMetrics"
_SOCKETS = "network.SocketServer"
_CONNECTIONS = "server.socket-server-metrics"
_NS_PER_MS = 1_000_000

_PARTS: Sequence[tuple[str, Callable[[RequestTimes], float], str]] = (
    ("RequestQueueTimeMs", lambda one: one.queued_ns / _NS_PER_MS, "Time of requests in the queue"),
    ("LocalTimeMs", lambda one: one.handled_ns / _NS_PER_MS, "Time of requests with their handler"),
    ("RemoteTimeMs", lambda one: one.waited_ns / _NS_PER_MS, "Time that requests waited for others"),
    ("ThrottleTimeMs", lambda one: one.throttled_ms, "Time for which clients were held back"),
    ("ResponseQueueTimeMs", lambda one: one.answer_queued_ns / _NS_PER_MS, "Time of answers in the queue"),
    ("ResponseSendTimeMs", lambda one: one.sent_ns / _NS_PER_MS, "Time to write answers"),
    ("RequestBytes", lambda one: one.request_bytes, "Bytes of requests"),
    ("ResponseBytes", lambda one: one.response_bytes, "Bytes of answers"),
)


def read_network(out: Readout, server: SocketServer, handlers: RequestHandlerPool) -> None:
    """Read all of it out. For any thread."""
    by_api: dict[int, list[ApiMetrics]] = {}
    for requests in server.request_metrics():
        for api, metrics in dict(requests.by_api).items():
            by_api.setdefault(api, []).append(metrics)
    for api, found in sorted(by_api.items()):
        _read_api(out, served_apis()[api].key.title, found)
        if api == ApiKeys.FETCH:
            _read_api(out, "FetchConsumer", found)  # there are no followers
    queue = server.request_channel
    out.gauge("network.RequestChannel", "RequestQueueSize", len(queue), "Requests that no handler has taken")
    idle = handlers.idle.share()
    out.gauge(
        "server.KafkaRequestHandlerPool", "RequestHandlerAvgIdlePercent", idle, "Idle share of the handlers"
    )
    _read_processors(out, server)
    memory = server.request_memory
    out.gauge(_SOCKETS, "MemoryPoolUsed", memory.held, "Bytes of all requests")
    if memory.max_bytes >= 0:
        free = memory.max_bytes - memory.held
        out.gauge(_SOCKETS, "MemoryPoolAvailable", free, "Bytes left of queued.max.request.bytes")


def _read_api(out: Readout, request: str, found: Sequence[ApiMetrics]) -> None:
    for version, count in _summed(one.versions for one in found):
        out.counter(_REQUESTS, "RequestsPerSec", count, "Requests", request=request, version=str(version))
    for code, count in _summed(one.errors for one in found):
        out.counter(
            _REQUESTS, "ErrorsPerSec", count, "Error codes in answers", request=request, error=_name(code)
        )
    times = [one.total_time for one in found]
    out.times(
        _REQUESTS, "TotalTimeMs", times, "Time from the request to the end of its answer", request=request
    )
    kept = [RequestTimes._make(parts) for one in found for parts in one.kept.copy()]
    for name, value, description in _PARTS:
        out.values(_REQUESTS, name, [value(one) for one in kept], description, request=request)


def _read_processors(out: Readout, server: SocketServer) -> None:
    shares = []
    waiting = 0
    for processor in server.processors:
        number = str(processor.id)
        shares.append(processor.idle.share())
        waiting += processor.response_queue_size
        out.gauge(
            "network.Processor",
            "IdlePercent",
            shares[-1],
            "Idle share of the thread",
            networkProcessor=number,
        )
        tags = {"listener": processor.listener_name, "networkProcessor": number}
        counts = processor.connections
        out.gauge(_CONNECTIONS, "connection-count", counts.created - counts.closed, "Connections now", **tags)
        out.total(_CONNECTIONS, "connection-creation-total", counts.created, "Connections that came", **tags)
        out.total(_CONNECTIONS, "connection-close-total", counts.closed, "Connections that ended", **tags)
        failed = counts.failed_authentications
        out.total(_CONNECTIONS, "failed-authentication-total", failed, "Clients that were refused", **tags)
    average = sum(shares) / len(shares)
    out.gauge(_SOCKETS, "NetworkProcessorAvgIdlePercent", average, "Idle share of the network threads")
    out.gauge(
        "network.RequestChannel", "ResponseQueueSize", waiting, "Answers that are not being written yet"
    )


def _summed(counts: Iterable[dict[int, int]]) -> list[tuple[int, int]]:
    total: Counter[int] = Counter()
    for each in counts:
        total.update(each.copy())
    return sorted((key, count) for key, count in total.items() if count)


def _name(code: int) -> str:
    try:
        return Errors(code).name
    except ValueError:
        return str(code)
