"""Names of a package that are imported when they are first used (PEP 562).

Whoever needs one client pays for no other: Spark, for instance, starts a Python process for each query.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any


def names(
    package: str, homes: Mapping[str, Collection[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `package`, whose names come from the modules `homes` when they are first used.

    Its submodules are attributes as well, as they are where everything is imported at once. Thread-safe.
    """
    home_of = {name: module for module, found in homes.items() for name in found}

    def get(name: str) -> Any:
        if name in home_of:
            value = getattr(importlib.import_module(home_of[name]), name)
            setattr(sys.modules[package], name, value)
            return value
        submodule = f"{package}.{name}"
        # Of a name with dots find_spec would import the first part, and fail in its own way.
        if name.startswith("__") or "." in name or importlib.util.find_spec(submodule) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(submodule)

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return get, listed
