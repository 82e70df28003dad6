"""Repairs that a forked child needs."""

from __future__ import annotations

import os
from collections.abc import Callable


def in_forked_children(function: Callable[[], object]) -> None:
    """Call `function` in every child that is forked from now on, before anything else runs there.

    Nothing to do where processes cannot be forked, as on Windows.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
