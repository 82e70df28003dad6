"""Rules for the name of a topic."""

from __future__ import annotations

import re

from kclient.errors import InvalidTopicError

_MAX_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic(topic: object, argument: str = "topic") -> None:
    """Raise TypeError or InvalidTopicError, with the argument's name, for what no broker would take."""
    if not isinstance(topic, str):
        raise TypeError(f"{argument}: a topic's name must be a str, not {type(topic).__name__}")
    if topic in {"", ".", ".."} or len(topic) > _MAX_LENGTH or not _LEGAL.fullmatch(topic):
        raise InvalidTopicError(
            f"{argument}: {topic[:300]!r} is not a topic name: it has 1 to {_MAX_LENGTH} characters of a-z, A-Z, 0-9, "
            "'.', '_' and '-', and is not '.' or '..'"
        )
