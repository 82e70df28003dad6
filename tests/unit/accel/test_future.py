"""Future of the reference body: the handle that the sender of a record gets."""

from __future__ import annotations

import pytest

from kclient._accel.reference.future import Future
from kclient._accel.shared.batch_result import BatchResult
from kclient._accel.shared.future import KafkaFuture

ABOUT = (1000, 2, 3)


def failed_by_record() -> BatchResult:
    result = BatchResult("t", 0)
    result.complete(-1, error=RuntimeError("batch"), record_error=KeyError)
    return result


def test_it_is_a_kafka_future_without_room_for_more() -> None:
    future = Future(BatchResult("t", 0), 0, ABOUT)
    assert isinstance(future, KafkaFuture)
    assert not hasattr(future, "__dict__")


def test_what_is_known_is_told_without_waiting() -> None:
    result = BatchResult("t", 0)
    future = Future(result, 4, ABOUT)
    assert (future.metadata(), future.resolved_error()) == (("t", 0, -1, 1000, 2, 3), None)
    result.complete(10)
    assert (future.metadata(), future.resolved_error()) == (("t", 0, 14, 1000, 2, 3), None)


def test_of_a_failed_batch_each_has_its_own_error_and_metadata_all_the_same() -> None:
    result = failed_by_record()
    future = Future(result, 7, ABOUT)
    with pytest.raises(KeyError, match="7"):
        future.result(0)
    assert isinstance(future.resolved_error(), KeyError)
    assert future.metadata()[2] == -1


def test_it_stands_for_its_record_wherever_that_has_gone() -> None:
    whole, first, second = (BatchResult("t", 0) for _ in range(3))
    futures = [Future(whole, index, ABOUT) for index in range(4)]
    whole.replace_with([(0, first), (3, second)])
    assert [future.resolve() for future in futures] == [(first, 0), (first, 1), (first, 2), (second, 0)]
    second.complete(50)
    assert [future.done() for future in futures] == [False, False, False, True]
    assert futures[3].exception(0) is None
    with pytest.raises(TimeoutError):
        futures[2].exception(0)


def test_its_record_failed_although_the_rest_of_a_batch_that_was_cut_up_did_not() -> None:
    whole, first, second = (BatchResult("t", 0) for _ in range(3))
    good, bad = Future(whole, 0, ABOUT), Future(whole, 1, ABOUT)
    whole.replace_with([(0, first), (1, second)])
    first.complete(3)
    error = RuntimeError("no")
    second.complete(-1, error=error)
    assert good.result(0)[2] == 3
    assert bad.exception(0) is error
    assert bad.resolved_error() is error


def test_a_callback_is_added_where_its_record_is_now() -> None:
    whole, part = BatchResult("t", 0), BatchResult("t", 0)
    future = Future(whole, 0, ABOUT)
    whole.replace_with([(0, part)])
    seen: list[Future] = []
    future.add_done_callback(seen.append)
    assert not seen
    part.complete(1)
    assert seen == [future]


@pytest.mark.parametrize("known", [False, True])
def test_its_text_names_the_partition_and_the_outcome(known: bool) -> None:
    result = failed_by_record() if known else BatchResult("t", 0)
    said = "failed with KeyError(2)" if known else "not done"
    assert repr(Future(result, 2, ABOUT)) == f"<Future of a record for t-0: {said}>"
