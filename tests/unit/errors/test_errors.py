"""Errors: classes with data, found by their code."""

from __future__ import annotations

import copy
import pickle

import pytest

import kclient.errors
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    BootstrapError,
    ConfigError,
    ConnectionFailure,
    CorruptRecordError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    LogTruncationError,
    NoOffsetForPartitionError,
    RecordDeserializationError,
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
        BootstrapError("no", connection=ConnectionFailure(host="b1", port=9092, step="dns", attempts=2)),
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


def test_a_cause_is_told_with_what_it_knows_of_a_connection() -> None:
    cause = BootstrapError("refused", connection=ConnectionFailure(host="b1", step="tcp"))
    error = KafkaTimeoutError("too late").because_of(cause)
    assert error.__cause__ is cause
    assert error.connection is cause.connection
    assert pickle.loads(pickle.dumps(error)).connection == cause.connection
    own = KafkaTimeoutError("too late", connection=ConnectionFailure(host="b2")).because_of(cause)
    assert own.connection == ConnectionFailure(host="b2")
    assert KafkaTimeoutError("too late").because_of(None).__cause__ is None


def test_another_text_changes_nothing_else() -> None:
    error = UnknownServerError("odd", code=999).reworded("t-0: odd")
    assert (type(error), str(error), error.code) == (UnknownServerError, "t-0: odd", 999)
    slow = ThrottlingQuotaExceededError("slow down", throttle_time_ms=250)
    assert slow.reworded("slower").throttle_time_ms == 250
    assert str(slow) == "slow down"


def test_some_errors_are_builtin_errors_too() -> None:
    assert issubclass(KafkaTimeoutError, TimeoutError)
    assert issubclass(ConfigError, ValueError)
    assert issubclass(IllegalStateError, RuntimeError)


def test_all_errors_are_exported_and_drawn_in_the_tree() -> None:
    def below(cls: type[KafkaError]) -> set[type[KafkaError]]:
        return {cls}.union(*(below(sub) for sub in cls.__subclasses__()))

    # Other packages and tests may have subclasses of their own.
    ours = {cls.__name__ for cls in below(KafkaError) if cls.__module__.startswith("kclient.errors.")}
    assert ours <= set(kclient.errors.__all__)
    assert kclient.errors.__all__ == sorted(kclient.errors.__all__)
    drawn = (kclient.errors.__doc__ or "").replace("(", " ").replace(",", " ").split()
    assert ours <= set(drawn)
