"""The loop of a program that reads records, works on them and writes what comes of it."""

from __future__ import annotations

import typing

from kclient.utils import lazy

if typing.TYPE_CHECKING:
    from kclient.processing.loop import run
    from kclient.processing.outcome import Processed
else:
    __getattr__, __dir__ = lazy.names(
        __name__,
        {
            "kclient.processing.loop": ("run",),
            "kclient.processing.outcome": ("Processed",),
        },
    )

__all__ = ["Processed", "run"]
