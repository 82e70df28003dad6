"""Errors that the client finds by itself: what they are to handlers, and the reason a failed record is told with."""

from __future__ import annotations

import copy
import pickle

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    BootstrapError,
    BufferExhaustedError,
    ClientClosedError,
    CommitFailedError,
    ConcurrentModificationError,
    CorrelationIdMismatchError,
    DisconnectError,
    ErrorCode,
    ForkedClientError,
    IllegalStateError,
    InvalidOffsetError,
    KafkaError,
    KafkaTimeoutError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RecordDeserializationError,
    RetriableCommitFailedError,
    SerializationError,
    StaleMetadataError,
    WakeupError,
)


def undecodable(cause: BaseException | None) -> RecordDeserializationError:
    try:
        raise RecordDeserializationError("The value cannot be deserialized.", offset=7) from cause
    except RecordDeserializationError as error:
        return error


class TestRecordDeserializationError:
    def test_it_is_told_with_what_the_deserializer_raised(self) -> None:
        error = undecodable(KeyError("name"))
        assert str(error) == "The value cannot be deserialized. The reason: KeyError: 'name'"
        assert error.message == str(error)

    def test_without_a_cause_there_is_no_reason(self) -> None:
        assert str(undecodable(None)) == "The value cannot be deserialized."

    def test_what_was_handled_meanwhile_is_no_reason(self) -> None:
        try:
            raise ValueError("something else")
        except ValueError:
            assert "something else" not in str(RecordDeserializationError("Bad."))

    def test_the_reason_stays_out_of_the_text_that_is_copied_with_the_data(self) -> None:
        error = undecodable(ValueError("no"))
        for duplicate in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert duplicate.args == ("The value cannot be deserialized.",)
            assert duplicate.offset == 7
            duplicate.__cause__ = ValueError("no")
            assert str(duplicate) == str(error)


@pytest.mark.parametrize(
    ("cls", "caught_as"),
    [
        (ClientClosedError, IllegalStateError),
        (ForkedClientError, IllegalStateError),
        (ConcurrentModificationError, RuntimeError),
        (RecordDeserializationError, SerializationError),
        (BufferExhaustedError, TimeoutError),
        (BootstrapError, KafkaTimeoutError),
        (NoOffsetForPartitionError, InvalidOffsetError),
        (LogTruncationError, OffsetOutOfRangeError),
    ],
)
def test_it_is_caught_by_those_who_expect_its_kind(cls: type[KafkaError], caught_as: type[Exception]) -> None:
    with pytest.raises(caught_as):
        raise cls


@pytest.mark.parametrize(
    ("cls", "retriable", "invalid_metadata"),
    [
        (DisconnectError, True, False),
        (RetriableCommitFailedError, True, False),
        (BufferExhaustedError, True, False),
        (StaleMetadataError, True, True),
        (CommitFailedError, False, False),
        (CorrelationIdMismatchError, False, False),
        (WakeupError, False, False),
        (AdminError, False, False),
    ],
)
def test_handlers_know_whether_another_try_can_help(
    cls: type[KafkaError], retriable: bool, invalid_metadata: bool
) -> None:
    assert (cls.retriable, cls.invalid_metadata) == (retriable, invalid_metadata)


def test_no_broker_says_any_of_them() -> None:
    assert LogTruncationError.code is None  # though that of the class above is a number
    assert OffsetOutOfRangeError.code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_what_is_not_said_is_shared_by_all_and_cannot_be_changed() -> None:
    tp = TopicPartition("t", 0)
    with pytest.raises(TypeError):
        AdminError().results["a"] = 1  # type: ignore[index]
    with pytest.raises(TypeError):
        LogTruncationError().divergent_offsets[tp] = 1  # type: ignore[index]
    assert NoOffsetForPartitionError().topic_partitions == frozenset()
