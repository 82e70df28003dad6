"""Remarks on the options of a query, logged once and not by every process and micro-batch of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping

_log = logging.getLogger(__name__)

_MOST = 1000
# Another one with every micro-batch.
_NUMBERS = ("kclient.write.epoch",)
_said: set[tuple[str, frozenset[tuple[str, str]]]] = set()
_lock = threading.Lock()


def warn_once(remarks: Iterable[str], options: Mapping[str, str]) -> None:
    """Log each remark, unless this process has logged it for the same options before.

    Spark plans all writes of a session in one Python process, each micro-batch of each query anew.
    """
    given = frozenset((name, value) for name, value in options.items() if name not in _NUMBERS)
    for remark in remarks:
        with _lock:
            if (remark, given) in _said:
                continue
            if len(_said) >= _MOST:
                _said.clear()
            _said.add((remark, given))
        _log.warning("%s", remark)
