"""Rules for the names of topics."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kclient.errors import InvalidTopicError

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def validate_topic_name(name: str) -> None:
    """Raise InvalidTopicError if no topic can have this name. Names become directories, so this is a safeguard too."""
    if name in {"", ".", ".."} or not _LEGAL.fullmatch(name):
        raise InvalidTopicError(
            "A topic's name has 1 to 249 characters out of a-z, A-Z, 0-9, '.', '_' and '-', and is not '.' or '..'"
        )


def colliding_topic(name: str, existing: Iterable[str]) -> str | None:
    """The topic that metrics could not tell from `name` because they write '.' as '_'; None if there is none."""
    if "." not in name and "_" not in name:
        return None
    seen_as = name.replace(".", "_")
    return next((other for other in existing if other != name and other.replace(".", "_") == seen_as), None)
