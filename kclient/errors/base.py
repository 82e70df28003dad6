"""The root of all errors, the classes that give errors their meaning, and the registry of wire codes.

An error is a class with data: what a handler needs to decide (`code`, `retriable`, `invalid_metadata`) are
attributes of the class, what happened this time are attributes of the instance.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

from kclient.errors.connection import ConnectionFailure

__all__ = [
    "ApiError",
    "ApplicationRecoverableError",
    "InvalidConfigurationError",
    "InvalidMetadataError",
    "KafkaError",
    "RefreshRetriableError",
    "RetriableError",
]


_CLASS_BY_CODE: dict[int, type[KafkaError]] = {}


def _rebuild(cls: type[KafkaError], args: tuple[object, ...], state: dict[str, object]) -> KafkaError:
    # Neither __init__ nor positional data: an error unpickles even if its class gained fields since.
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class KafkaError(Exception):
    """Anything that can go wrong between an application and Kafka.

    The constructor takes a message (the class has a default) and, as keywords, the data the class declares as
    annotated attributes. Errors compare by identity, can be pickled and copied with their data, and are safe
    to hand from one thread to another.
    """

    code: int | None = None
    """Number of the error in Kafka's protocol; None for an error that never crosses the wire."""
    retriable: bool = False
    """True if trying the same again later can succeed."""
    invalid_metadata: bool = False
    """True if the metadata of the cluster is out of date and has to be fetched again before the next try."""
    connection: ConnectionFailure | None = None
    """The connection to a broker that failed, and how far it came, if that is what happened or why it took too long."""
    default_message: ClassVar[str] = "The Kafka client met an error."

    _data_names: ClassVar[frozenset[str]] = frozenset({"connection"})

    def __init_subclass__(cls, *, code: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A subclass is an error of its own: it never inherits the number of its parent.
        cls.code = code
        cls._data_names = cls._data_names.union(
            name for name, hint in inspect.get_annotations(cls).items() if "ClassVar" not in str(hint)
        )
        if not cls.__doc__:
            cls.__doc__ = cls.default_message
        if code is not None:
            known = _CLASS_BY_CODE.setdefault(code, cls)
            if known is not cls:
                raise TypeError(f"{cls.__name__}: error code {code} already belongs to {known.__name__}")

    def __init__(self, message: str | None = None, **data: object) -> None:
        super().__init__(self.default_message if message is None else message)
        for name, value in data.items():
            if name not in self._data_names:
                raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {name!r}")
            setattr(self, name, value)

    @property
    def message(self) -> str:
        """The text of the error."""
        return str(self)

    def reworded(self, message: str) -> Self:
        """The same error, with its code and its data, and with another text."""
        error = type(self)(message)
        error.__dict__.update(self.__dict__)
        return error

    def because_of(self, cause: KafkaError | None) -> Self:
        """This error with its cause, if there is one, and with what that knows of a connection."""
        if cause is not None:
            self.__cause__ = cause
            if self.connection is None:
                self.connection = cause.connection
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


class ApiError(KafkaError):
    """An error that a broker answers with, or that stands for one."""

    default_message = "The broker refused the request."


class RetriableError(ApiError):
    """A passing error: the same request can succeed later. The client retries these by itself."""

    retriable = True
    default_message = "The request failed for now; try it again."


class RefreshRetriableError(RetriableError):
    """A passing error, after which leaders or coordinators have to be looked up again before the retry."""

    default_message = "The request went to the wrong broker; look up the right one and try again."


class InvalidMetadataError(RefreshRetriableError):
    """A passing error which shows that the client's picture of the cluster is out of date."""

    invalid_metadata = True
    default_message = "The metadata of the cluster is out of date; refresh it and try again."


class ApplicationRecoverableError(ApiError):
    """The client instance cannot go on, but the application can: close this instance and create a new one."""

    default_message = "This client can no longer be used; close it and create a new one."


class InvalidConfigurationError(ApiError, code=40):
    """The broker refuses what the client or the topic is configured to do; retrying does not help."""

    default_message = (
        "The broker finds the configuration invalid; correct the value and send the request again."
    )
