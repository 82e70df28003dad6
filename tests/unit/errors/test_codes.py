"""Errors: from a number of the protocol to an error, and back."""

from __future__ import annotations

import pickle

import pytest

from kclient.errors import (
    AuthorizationError,
    BufferExhaustedError,
    ErrorCode,
    Errors,
    IllegalStateError,
    RetriableError,
    UnknownServerError,
)


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


def test_every_error_is_a_new_one_with_the_default_text_unless_there_is_another() -> None:
    first, second = Errors.for_code(3), Errors.for_code(3)
    assert first is not None
    assert second is not None
    assert first is not second
    assert str(first) == type(first).default_message
    first.code = 77
    assert (second.code, type(first).code) == (3, 3)


def test_every_name_but_none_has_a_class_of_its_own() -> None:
    codes = [code for code in Errors if code is not Errors.NONE]
    classes = [Errors.error_class(code) for code in codes]
    assert [cls and cls.code for cls in classes] == codes
    assert len(set(classes)) == len(codes)


def test_the_number_of_an_error_itself_comes_before_that_of_its_class() -> None:
    error = BufferExhaustedError()
    error.code = 55
    assert Errors.code_for(error) == 55


def test_of_several_classes_above_the_first_one_with_a_number_counts() -> None:
    class SeveralError(IllegalStateError, BufferExhaustedError):
        pass

    class PlainError(RetriableError):
        pass

    assert Errors.code_for(SeveralError()) == Errors.REQUEST_TIMED_OUT
    assert Errors.code_for(PlainError()) == -1


def test_what_is_no_error_of_kafkas_is_an_unknown_one_also_if_it_has_a_number() -> None:
    class NumberedError(Exception):
        code = 3

    assert Errors.code_for(NumberedError()) == -1
    assert Errors.code_for(KeyboardInterrupt()) == -1


def test_a_name_is_found_for_a_plain_number() -> None:
    assert ErrorCode.name_of(-1) == "UNKNOWN_SERVER_ERROR"
    assert ErrorCode.name_of(0) == "NONE"
    assert ErrorCode.name_of(100) == "UNKNOWN_TOPIC_ID"


def test_an_unknown_code_without_a_text_says_what_may_help() -> None:
    assert str(Errors.for_code(999)).endswith("which this client does not know; a newer client may.")
    assert str(Errors.for_code(999, "")) == str(Errors.for_code(999))
