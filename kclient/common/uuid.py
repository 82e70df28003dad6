"""Uuid: Kafka's 16-byte identifiers, written as 22 characters of URL-safe base64."""

from __future__ import annotations

import base64
import re
import uuid as _uuid
from typing import ClassVar

import attrs

# base64.urlsafe_b64decode takes the two characters of plain base64 too, and passes over what is in neither.
_TEXT = re.compile(r"[A-Za-z0-9_-]{22}")


@attrs.frozen(order=True, cache_hash=True, repr=False)
class Uuid:
    """An identifier of a topic, a directory or a member (KIP-516). Immutable."""

    ZERO: ClassVar[Uuid]

    bytes: bytes

    def __attrs_post_init__(self) -> None:
        if len(self.bytes) != 16:
            raise ValueError(f"A Uuid has 16 bytes, not {len(self.bytes)}")

    @classmethod
    def random(cls) -> Uuid:
        """A new random identifier whose text does not begin with a dash, so that it is usable in file names."""
        while True:
            made = cls(_uuid.uuid4().bytes)
            if not str(made).startswith("-"):
                return made

    @classmethod
    def from_base64(cls, text: str) -> Uuid:
        """Parse the 22-character form; raises ValueError for anything else."""
        if _TEXT.fullmatch(text) is None:
            raise ValueError(f"{text!r} is not a Uuid: it should have 22 characters of URL-safe base64")
        return cls(base64.urlsafe_b64decode(text + "=="))

    def __repr__(self) -> str:
        return f"Uuid({self})"

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self.bytes).rstrip(b"=").decode()


Uuid.ZERO = Uuid(b"\0" * 16)
