"""Loggers that put the client's identity in front of every line."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_speaker: ContextVar[str] = ContextVar("kclient.speaker", default="")


class _PrefixAdapter(logging.LoggerAdapter[logging.Logger]):
    def __init__(self, logger: logging.Logger, prefix: str) -> None:
        super().__init__(logger, {})
        self._prefix = prefix
        # Only a line with arguments is %-formatted, after the prefix was put in front.
        self._formatted = prefix.replace("%", "%%")

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if self.isEnabledFor(level):
            kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
            self.logger.log(level, f"{self._formatted if args else self._prefix}{msg}", *args, **kwargs)


class _SpeakerFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        prefix = _speaker.get()
        if prefix:
            # Only a line with arguments is %-formatted later.
            record.msg = f"{prefix.replace('%', '%%') if record.args else prefix}{record.msg}"
        return True


_SPEAKER = _SpeakerFilter("kclient.speaker")


def shared_logger(name: str) -> logging.Logger:
    """The logger called `name`, for code that works for any client and is told of none, such as settings.

    Its lines begin with the prefix of the context whose `speaking` block they come from, if any. Thread-safe.
    """
    logger = logging.getLogger(name)
    logger.addFilter(_SPEAKER)  # the same one again changes nothing
    return logger


class LogContext:
    """Makes loggers `kclient.*` whose lines begin with a prefix such as `[Producer clientId=p-1] `. Thread-safe."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    def logger(self, name: str) -> _PrefixAdapter:
        """The logger called `name` (normally the module's `__name__`) with this context's prefix."""
        return _PrefixAdapter(logging.getLogger(name), self.prefix)

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """While it lasts, what this thread logs with a `shared_logger` begins with this context's prefix."""
        token = _speaker.set(self.prefix)
        try:
            yield
        finally:
            _speaker.reset(token)


Logger = _PrefixAdapter


_MOST_CAUSES = 1000  # that are remembered: a cause may have the address of a peer in it


class RepeatedWarning:
    """Warns once for a cause that repeats, then again with a count, once in an interval at most. Used by one thread.

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
            if len(self._counts) >= _MOST_CAUSES:
                del self._counts[next(iter(self._counts))]  # the one that came first
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
