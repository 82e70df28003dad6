"""The readiness selector: selectors2, or the standard library's where that cannot be imported.

selectors2 2.0.2 takes `Mapping` from `collections`, where Python 3.10 no longer has it, so the name is lent
to `collections` while the import runs. Both libraries have the same interface; no other module knows which
one is in use.
"""

from __future__ import annotations

import collections
import collections.abc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectors2 import EVENT_READ, EVENT_WRITE, BaseSelector, DefaultSelector
else:
    _lent = not hasattr(collections, "Mapping")
    if _lent:
        collections.Mapping = collections.abc.Mapping
    try:
        from selectors2 import EVENT_READ, EVENT_WRITE, BaseSelector, DefaultSelector
    except (ImportError, AttributeError):
        from selectors import EVENT_READ, EVENT_WRITE, BaseSelector, DefaultSelector
    finally:
        if _lent:
            del collections.Mapping

__all__ = ["EVENT_READ", "EVENT_WRITE", "BaseSelector", "DefaultSelector"]
