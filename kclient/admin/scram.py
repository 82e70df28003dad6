"""SCRAM credentials of users (KIP-554), which brokers keep salted and never give away."""

from __future__ import annotations

from typing import NoReturn

import attrs

from kclient.admin.internals.fields import of_type
from kclient.utils.code_enum import CodeEnum

FEWEST_ITERATIONS = 4096
MOST_ITERATIONS = 16_384
"""The limits of Kafka's brokers."""


class ScramMechanism(CodeEnum):
    """A mechanism that users authenticate with. A code that is not known here keeps its number, as `UNKNOWN_3`."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        """The name in settings, as SCRAM-SHA-256."""
        return self.name.replace("_", "-")


@attrs.frozen
class ScramCredentialInfo:
    """A mechanism, and the number of iterations that a password is salted with."""

    mechanism: ScramMechanism = attrs.field(validator=of_type(ScramMechanism))
    iterations: int = attrs.field(default=FEWEST_ITERATIONS, validator=of_type(int))


@attrs.frozen
class UserScramCredentialsDescription:
    """The credentials that a user has, one for each mechanism."""

    name: str
    credential_infos: tuple[ScramCredentialInfo, ...]


@attrs.frozen
class UserScramCredentialUpsertion:
    """Gives a user a password for a mechanism, in place of the one there may be.

    The password is salted here: brokers get what is derived from it, never the password. `salt` is random unless given.
    Neither is in the repr, and pickling is refused.
    """

    user: str = attrs.field(validator=of_type(str))
    credential_info: ScramCredentialInfo = attrs.field(validator=of_type(ScramCredentialInfo))
    password: str = attrs.field(repr=False, validator=of_type(str, secret=True))
    salt: bytes | None = attrs.field(
        default=None, repr=False, validator=of_type(bytes, optional=True, secret=True)
    )

    def __attrs_post_init__(self) -> None:
        kind = type(self).__name__
        if not self.user:
            raise ValueError(f"{kind}: user must not be empty")
        if not self.password:
            raise ValueError(f"{kind}: password must not be empty")
        try:
            self.password.encode()
        except UnicodeEncodeError:  # which would have the password in it
            raise ValueError(f"{kind}: password cannot be written as UTF-8") from None
        mechanism, iterations = self.credential_info.mechanism, self.credential_info.iterations
        if mechanism not in {ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512}:
            raise ValueError(f"{kind}: credential_info: passwords cannot be salted for {mechanism.name}")
        if not FEWEST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise ValueError(
                f"{kind}: credential_info: iterations must be {FEWEST_ITERATIONS} to {MOST_ITERATIONS}, not "
                f"{iterations}"
            )
        if self.salt is not None and not self.salt:
            raise ValueError(f"{kind}: salt must not be empty")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} has a password and is not pickled")


@attrs.frozen
class UserScramCredentialDeletion:
    """Takes a user's password for a mechanism away."""

    user: str = attrs.field(validator=of_type(str))
    mechanism: ScramMechanism = attrs.field(validator=of_type(ScramMechanism))

    def __attrs_post_init__(self) -> None:
        if not self.user:
            raise ValueError(f"{type(self).__name__}: user must not be empty")
