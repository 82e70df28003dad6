"""Wrong arguments of values that are made without a client."""

from __future__ import annotations

from typing import Any

from kclient.common.offsets import OffsetAndMetadata

_WRONG = (TypeError, ValueError)

VALUES: list[tuple[str, Any, str, tuple[type[Exception], ...], list[Any]]] = [
    ("OffsetAndMetadata", lambda b, x: OffsetAndMetadata(x), "offset", _WRONG, [-1, "1", 1.5, None, True]),
    (
        "OffsetAndMetadata",
        lambda b, x: OffsetAndMetadata(1, x),
        "metadata",
        _WRONG,
        [None, b"m", 5, "\ud800"],
    ),
    (
        "OffsetAndMetadata",
        lambda b, x: OffsetAndMetadata(1, "", x),
        "leader_epoch",
        _WRONG,
        [-1, 2**31, "1", 1.5, True],
    ),
]
