"""Values of the settings of the authorizer, as in server.properties."""

from __future__ import annotations

import attrs

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The value of `authorizer.class.name` for the authorizer that there is."""


@attrs.frozen
class AuthorizerName:
    """Nothing, or the name of Kafka's class. A name is only compared, never imported."""

    def __call__(self, value: object) -> object:
        if value not in {"", STANDARD_AUTHORIZER}:
            raise ValueError(f"it must be empty or {STANDARD_AUTHORIZER}")
        return value

    def describe(self) -> str:
        return f"[empty, {STANDARD_AUTHORIZER}]"


@attrs.frozen
class Principals:
    """Principals such as `User:alice;User:bob`."""

    def __call__(self, value: object) -> object:
        principals(str(value))
        return value

    def describe(self) -> str:
        return "principals separated by ;"


def principals(text: str) -> frozenset[str]:
    """Parse principals such as `User:alice;User:bob`. Raises ValueError."""
    found = frozenset(each for each in map(str.strip, text.split(";")) if each)
    for each in found:
        if ":" not in each:
            raise ValueError(f"{each!r} is no principal such as User:alice")
    return found
