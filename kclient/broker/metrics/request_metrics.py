"""RequestMetrics: requests, errors and times of every API, as one network thread has seen them."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from kclient.broker.metrics.error_counts import ONE_SUCCESS
from kclient.broker.metrics.histogram import Histogram
from kclient.broker.metrics.request_record import RequestRecord

_KEPT = 512  # requests of an API, of which the parts of the total time are known


class RequestTimes(NamedTuple):
    """The parts of the time that a request took, in ns, and its sizes."""

    queued_ns: int
    handled_ns: int
    waited_ns: int
    """After its handler was through, for something to happen."""
    answer_queued_ns: int
    sent_ns: int
    throttled_ms: int
    request_bytes: int
    response_bytes: int


class ApiMetrics:
    """Requests of one API. Written by one thread, read by any."""

    __slots__ = ("errors", "kept", "total_time", "versions")

    def __init__(self) -> None:
        self.versions: dict[int, int] = {}
        """Requests by version; those that the API has bound them."""
        self.errors: dict[int, int] = {0: 0}
        """Error codes in answers, 0 included; the codes of the protocol bound them."""
        self.total_time = Histogram()
        self.kept: deque[tuple[int, ...]] = deque(maxlen=_KEPT)
        """The last requests, each with what `RequestTimes` is made of."""


class RequestMetrics:
    """Requests of all APIs that are served, which bound it. Without a lock: each network thread has its own.

    `record` is called by that thread once a request, so it does no more than count; sums over threads, shares and
    percentiles are made when somebody asks.
    """

    __slots__ = ("by_api",)

    def __init__(self) -> None:
        self.by_api: dict[int, ApiMetrics] = {}
        """By the number of the API."""

    def record(self, record: RequestRecord, sent_ns: int, response_bytes: int) -> None:
        """Count a request that is done with: its answer was written, or there is none."""
        version = record.version
        if version is None:
            return  # it was none of an API that is served
        api = self.by_api.get(record.api)
        if api is None:
            api = self.by_api[record.api] = ApiMetrics()
        api.versions[version] = api.versions.get(version, 0) + 1
        if record.errors is ONE_SUCCESS:
            api.errors[0] += 1
        else:
            for code, count in record.errors.items():
                api.errors[code] = api.errors.get(code, 0) + count
        arrived_ns, taken_ns = record.arrived_ns, record.taken_ns
        handled_ns, answered_ns, dequeued_ns = record.handled_ns, record.answered_ns, record.dequeued_ns
        # The handler's thread says that it is through perhaps only after the answer has left.
        if not 0 < handled_ns < answered_ns:
            handled_ns = answered_ns
        api.total_time.record((sent_ns - arrived_ns) // 1000)
        api.kept.append((
            taken_ns - arrived_ns, handled_ns - taken_ns, answered_ns - handled_ns, dequeued_ns - answered_ns,
            sent_ns - dequeued_ns, record.throttle_ms, record.request_bytes, response_bytes,
        ))  # fmt: skip

    def take_in(self, other: RequestMetrics) -> None:
        """Count the requests of a thread that has ended as well."""
        for number, ended in other.by_api.items():
            api = self.by_api.setdefault(number, ApiMetrics())
            for counts, more in ((api.versions, ended.versions), (api.errors, ended.errors)):
                for key, count in more.items():
                    counts[key] = counts.get(key, 0) + count
            api.total_time.take_in(ended.total_time)

    def rotate(self) -> None:
        """Begin a window of the times. For any thread."""
        for api in list(self.by_api.values()):
            api.total_time.rotate()
