"""Records that are gone: an error that says what may be set, or a warning."""

from __future__ import annotations

import logging
import pickle

import pytest

from kclient.errors import KafkaError
from kclient.spark.data_loss import DataLossError, report_data_loss


def test_a_query_that_may_not_lose_anything_ends_and_is_told_how_to_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(DataLossError) as lost:
        report_data_loss(True, "t-0 has nothing below 5.")
    assert str(lost.value).startswith("t-0 has nothing below 5. ")
    assert "failOnDataLoss=false" in str(lost.value)
    assert not caplog.records


def test_a_query_that_may_goes_on_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    report_data_loss(False, "t-0 has 100% less.")
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith("t-0 has 100% less. ")


def test_the_error_comes_from_the_executor_whole_and_is_not_tried_again() -> None:
    # Executors hand their errors to the driver by pickling.
    error = pickle.loads(pickle.dumps(DataLossError("gone")))
    assert (type(error), str(error)) == (DataLossError, "gone")
    assert isinstance(error, KafkaError)
    assert not error.retriable
