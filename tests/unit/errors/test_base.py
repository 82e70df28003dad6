"""KafkaError: data and numbers that its classes declare, texts, copies."""

from __future__ import annotations

import copy
import pickle
from typing import ClassVar

import pytest

from kclient.errors import (
    AdminError,
    ApiError,
    BufferExhaustedError,
    Errors,
    InvalidMetadataError,
    KafkaError,
    NetworkError,
    RecordDeserializationError,
    RetriableError,
    SslAuthenticationError,
    UnknownTopicOrPartitionError,
)


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


def test_notes_are_kept_by_pickling() -> None:
    error = NetworkError("lost")
    error.add_note("while fetching")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while fetching"]


def test_retriable_and_invalid_metadata_come_from_the_superclass() -> None:
    assert (ApiError.retriable, RetriableError.retriable, RetriableError.invalid_metadata) == (
        False,
        True,
        False,
    )
    assert (InvalidMetadataError.retriable, InvalidMetadataError.invalid_metadata) == (True, True)


class FirstError(ApiError):
    """The first one."""

    place: str | None = None
    shared: ClassVar[int] = 1


class SecondError(FirstError):
    default_message = "The second one."
    more: int = 7


def test_a_class_takes_its_own_data_and_that_of_those_above() -> None:
    error = SecondError(place="here", more=8)
    assert (error.place, error.more, vars(error)) == ("here", 8, {"place": "here", "more": 8})
    with pytest.raises(TypeError, match=r"FirstError\(\) got an unexpected keyword argument 'more'"):
        FirstError(more=8)


def test_what_belongs_to_the_class_alone_is_no_data() -> None:
    for name in ("shared", "default_message", "_data_names"):
        with pytest.raises(TypeError, match=name):
            FirstError(**{name: 2})


def test_without_a_text_it_has_that_of_its_class_and_an_empty_one_stays_empty() -> None:
    assert str(SecondError()) == SecondError().message == "The second one."
    assert str(FirstError()) == ApiError.default_message
    assert str(SecondError("")) == ""


def test_a_class_without_documentation_is_documented_by_its_text() -> None:
    assert FirstError.__doc__ == "The first one."
    assert SecondError.__doc__ == "The second one."


def test_a_class_that_is_refused_its_code_leaves_the_code_where_it_was() -> None:
    with pytest.raises(TypeError, match="code 3"):
        type("TakingError", (ApiError,), {}, code=3)
    assert Errors.error_class(3) is UnknownTopicOrPartitionError


def test_a_copy_is_made_without_calling_the_constructor() -> None:
    class DemandingError(FirstError):
        def __init__(self, *, place: str) -> None:
            super().__init__(f"at {place}", place=place)

    error = DemandingError(place="here")
    error.code = 5
    duplicate = copy.copy(error)
    assert type(duplicate) is DemandingError
    assert (str(duplicate), duplicate.place, duplicate.code) == ("at here", "here", 5)
    duplicate.place = "there"
    assert error.place == "here"


def test_errors_are_told_apart_by_identity() -> None:
    error = FirstError("no", place="here")
    assert error != FirstError("no", place="here")
    assert len({error, copy.copy(error)}) == 2
    assert KafkaError.code is None
