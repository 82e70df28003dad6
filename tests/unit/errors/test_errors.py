"""Errors: classes with data, found by their code."""

from __future__ import annotations

import copy
import pickle

import pytest

import kclient.errors
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    ApiError,
    AuthorizationError,
    BootstrapError,
    BufferExhaustedError,
    ConfigError,
    CorruptRecordError,
    Errors,
    IllegalStateError,
    InvalidMetadataError,
    KafkaError,
    KafkaTimeoutError,
    LogTruncationError,
    NetworkError,
    NoOffsetForPartitionError,
    RecordDeserializationError,
    RetriableError,
    SslAuthenticationError,
    ThrottlingQuotaExceededError,
    UnknownServerError,
)

CLASSES = sorted(
    (cls for cls in vars(kclient.errors).values() if isinstance(cls, type) and issubclass(cls, KafkaError)),
    key=lambda cls: cls.__name__,
)
TP = TopicPartition("orders", 3)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_can_be_made_without_arguments_and_says_something(cls: type[KafkaError]) -> None:
    error = cls()
    assert str(error) == error.message == cls.default_message
    assert str(error).endswith((".", "?"))
    assert "default_message" in vars(cls)
    assert cls.__doc__


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_survives_pickling_and_copying(cls: type[KafkaError]) -> None:
    for duplicate in (pickle.loads(pickle.dumps(cls("what happened"))), copy.copy(cls("what happened"))):
        assert type(duplicate) is cls
        assert str(duplicate) == "what happened"


@pytest.mark.parametrize(
    "error",
    [
        RecordDeserializationError(
            "bad", topic_partition=TP, offset=7, which="key", key=b"k", value=None, headers=(("h", None),)
        ),
        NoOffsetForPartitionError("none", topic_partitions=frozenset({TP})),
        LogTruncationError("cut", offsets={TP: 9}, divergent_offsets={TP: 5}),
        AdminError("partly", results={"a": 1}, errors={"b": CorruptRecordError("bad")}),
        BootstrapError("no", host="b1", port=9092, step="dns", elapsed_ms=5, setting="request.timeout.ms"),
        ThrottlingQuotaExceededError("slow down", throttle_time_ms=250),
        UnknownServerError("odd", code=999),
    ],
    ids=lambda error: type(error).__name__,
)
def test_data_is_kept_by_pickling(error: KafkaError) -> None:
    duplicate = pickle.loads(pickle.dumps(error))
    assert str(duplicate) == str(error)
    assert vars(duplicate).keys() == vars(error).keys() != set()
    assert str(vars(duplicate)) == str(vars(error))


def test_notes_are_kept_by_pickling() -> None:
    error = NetworkError("lost")
    error.add_note("while fetching")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while fetching"]


def test_data_that_a_class_does_not_declare_is_refused() -> None:
    with pytest.raises(TypeError, match=r"NetworkError\(\) got an unexpected keyword argument 'offset'"):
        NetworkError("lost", offset=1)
    with pytest.raises(TypeError, match="retriable"):
        NetworkError("lost", retriable=False)


def test_data_that_is_not_given_has_the_default_of_the_class() -> None:
    error = RecordDeserializationError("bad", offset=1)
    assert (error.topic_partition, error.offset, error.which, error.key) == (None, 1, "value", None)
    assert AdminError().results == {}


def test_a_code_can_belong_to_one_class_only() -> None:
    with pytest.raises(TypeError, match="code 3 already belongs to UnknownTopicOrPartitionError"):

        class AnotherError(ApiError, code=3):
            pass


def test_a_subclass_does_not_take_over_the_code_of_its_parent() -> None:
    assert BufferExhaustedError.code is None
    assert SslAuthenticationError.code is None
    assert BufferExhaustedError.retriable


def test_success_is_no_error() -> None:
    assert Errors.for_code(0) is None
    assert Errors.error_class(0) is None


def test_the_brokers_own_text_replaces_the_default() -> None:
    assert str(Errors.for_code(87, "no key")) == "no key"
    assert "compacted" in str(Errors.for_code(87, ""))


@pytest.mark.parametrize("code", [-32768, -2, 137, 999, 32767])
def test_an_unknown_code_keeps_its_number_and_says_it(code: int) -> None:
    error = Errors.for_code(code, "from the future")
    assert isinstance(error, UnknownServerError)
    assert error.code == code
    assert str(code) in str(error)
    assert "from the future" in str(error)
    assert not error.retriable
    duplicate = pickle.loads(pickle.dumps(error))
    assert duplicate.code == code
    assert Errors.code_for(error) == code
    assert Errors.error_class(code) is UnknownServerError
    assert UnknownServerError.code == -1
    assert Errors.name_of(code) == f"UNKNOWN({code})"


def test_the_code_for_an_error_without_one_is_that_of_the_nearest_class_above() -> None:
    assert Errors.code_for(BufferExhaustedError()) == Errors.REQUEST_TIMED_OUT
    assert Errors.code_for(AuthorizationError()) == Errors.INVALID_CONFIG
    assert Errors.code_for(IllegalStateError()) == Errors.UNKNOWN_SERVER_ERROR
    assert Errors.code_for(ZeroDivisionError()) == Errors.UNKNOWN_SERVER_ERROR


def test_some_errors_are_builtin_errors_too() -> None:
    assert issubclass(KafkaTimeoutError, TimeoutError)
    assert issubclass(ConfigError, ValueError)
    assert issubclass(IllegalStateError, RuntimeError)


def test_retriable_and_invalid_metadata_come_from_the_superclass() -> None:
    assert (ApiError.retriable, RetriableError.retriable, RetriableError.invalid_metadata) == (
        False,
        True,
        False,
    )
    assert (InvalidMetadataError.retriable, InvalidMetadataError.invalid_metadata) == (True, True)


def test_all_errors_are_exported_and_drawn_in_the_tree() -> None:
    def below(cls: type[KafkaError]) -> set[type[KafkaError]]:
        return {cls}.union(*(below(sub) for sub in cls.__subclasses__()))

    # Other packages and tests may have subclasses of their own.
    ours = {cls.__name__ for cls in below(KafkaError) if cls.__module__.startswith("kclient.errors.")}
    assert ours <= set(kclient.errors.__all__)
    assert kclient.errors.__all__ == sorted(kclient.errors.__all__)
    drawn = (kclient.errors.__doc__ or "").replace("(", " ").replace(",", " ").split()
    assert ours <= set(drawn)
