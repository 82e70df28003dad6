"""Loggers that put the client's identity in front of every line."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any


class _PrefixAdapter(logging.LoggerAdapter[logging.Logger]):
    def __init__(self, logger: logging.Logger, prefix: str) -> None:
        super().__init__(logger, {})
        self._prefix = prefix.replace("%", "%%")  # the line is %-formatted after the prefix is put in front

    def process(self, msg: object, kwargs: MutableMapping[str, Any]) -> tuple[str, MutableMapping[str, Any]]:
        return f"{self._prefix}{msg}", kwargs


class LogContext:
    """Makes loggers `kclient.*` whose lines begin with a prefix such as `[Producer clientId=p-1] `. Thread-safe."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    def logger(self, name: str) -> _PrefixAdapter:
        """The logger called `name` (normally the module's `__name__`) with this context's prefix."""
        return _PrefixAdapter(logging.getLogger(name), self.prefix)


Logger = _PrefixAdapter


class RepeatedWarning:
    """Warns once for a cause that repeats, then again with a count at growing intervals. Used by one thread.

    A broker that is down for hours makes a client fail thousands of times; the log should hold the first time, a
    few reminders, and the number of repeats.
    """

    __slots__ = ("_counts", "_interval_ms", "_logger")

    def __init__(self, logger: logging.Logger | Logger, interval_ms: int = 60_000) -> None:
        self._logger = logger
        self._interval_ms = interval_ms
        self._counts: dict[str, tuple[int, int]] = {}  # cause -> (repeats not yet told, when last told)

    def warn(self, cause: str, message: str, now_ms: int) -> None:
        """Log `message` if `cause` is new or was last told an interval ago; count it otherwise."""
        known = self._counts.get(cause)
        if known is None:
            self._counts[cause] = (0, now_ms)
            self._logger.warning("%s", message)
            return
        repeats, told_ms = known
        if now_ms - told_ms < self._interval_ms:
            self._counts[cause] = (repeats + 1, told_ms)
            return
        self._counts[cause] = (0, now_ms)
        self._logger.warning(
            "%s (%d more times in the last %d s)", message, repeats, (now_ms - told_ms) // 1000
        )

    def clear(self, cause: str) -> None:
        """Forget `cause`: it is over, so the next time is news again."""
        self._counts.pop(cause, None)
