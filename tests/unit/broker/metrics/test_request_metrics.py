"""RequestMetrics: what one network thread knows of the requests it has answered."""

from __future__ import annotations

from kclient.broker.metrics.request_metrics import RequestMetrics, RequestTimes
from kclient.broker.metrics.request_record import RequestRecord
from kclient.protocol.api_keys import ApiKeys

MANY = 2000


def record(
    version: int | None = 9, handled_ns: int = 0, errors: dict[int, int] | None = None
) -> RequestRecord:
    made = RequestRecord(1_000_000, 77)
    made.taken_ns, made.handled_ns, made.answered_ns, made.dequeued_ns = (
        1_100_000,
        handled_ns,
        1_600_000,
        1_700_000,
    )
    made.api, made.version = int(ApiKeys.PRODUCE), version
    made.errors = errors or {0: 1}
    made.throttle_ms = 5
    return made


def test_a_request_is_counted_by_version_and_its_codes() -> None:
    metrics = RequestMetrics()
    metrics.record(record(9, errors={0: 3, 2: 1}), 2_000_000, 99)
    metrics.record(record(8, errors={2: 1}), 2_000_000, 99)
    metrics.record(record(9), 2_000_000, 99)
    api = metrics.by_api[ApiKeys.PRODUCE]
    assert api.versions == {9: 2, 8: 1}
    assert api.errors == {0: 4, 2: 2}
    assert (api.total_time.count, api.total_time.total) == (3, 3000)


def test_the_time_has_its_parts() -> None:
    metrics = RequestMetrics()
    metrics.record(record(handled_ns=1_300_000), 2_000_000, 99)
    (parts,) = metrics.by_api[ApiKeys.PRODUCE].kept
    assert RequestTimes._make(parts) == RequestTimes(
        queued_ns=100_000, handled_ns=200_000, waited_ns=300_000, answer_queued_ns=100_000, sent_ns=300_000,
        throttled_ms=5, request_bytes=77, response_bytes=99,
    )  # fmt: skip


def test_a_request_that_was_answered_by_its_handler_has_not_waited() -> None:
    for handled_ns in (
        0,
        1_650_000,
    ):  # the handler was through only when the answer was on its way, or is not yet
        metrics = RequestMetrics()
        metrics.record(record(handled_ns=handled_ns), 2_000_000, 99)
        (parts,) = map(RequestTimes._make, metrics.by_api[ApiKeys.PRODUCE].kept)
        assert (parts.handled_ns, parts.waited_ns) == (500_000, 0)


def test_what_is_no_request_of_an_api_is_not_counted() -> None:
    metrics = RequestMetrics()
    metrics.record(record(version=None), 2_000_000, 0)
    assert metrics.by_api == {}


def test_of_many_requests_no_more_than_the_last_are_kept() -> None:
    metrics = RequestMetrics()
    for size in range(MANY):
        metrics.record(record(), 2_000_000, size)
    kept = [RequestTimes._make(parts).response_bytes for parts in metrics.by_api[ApiKeys.PRODUCE].kept]
    assert kept == list(range(MANY - 512, MANY))
