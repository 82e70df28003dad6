"""Forks of the process: how many there were, and the repairs that a forked child needs."""

from __future__ import annotations

import os
from collections.abc import Callable

generation = 0
"""The number of forks between this process and the one that imported kclient; cheaper to compare than process ids."""


def in_forked_children(function: Callable[[], object]) -> None:
    """Call `function` in every child that is forked from now on, before anything else runs there.

    Nothing to do where processes cannot be forked, as on Windows.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def _after_fork_in_child() -> None:
    global generation
    generation += 1


in_forked_children(_after_fork_in_child)
