"""Errors that an application's callbacks raise, and the way they go."""

from __future__ import annotations

import threading


def belongs_to_caller(error: BaseException) -> bool:
    """True if `error`, raised by a callback, goes on to whoever caused the call after it was logged.

    That is what a signal handler may have raised in the middle of the callback (a Ctrl-C, the end of the program), and
    those run on the main thread alone. On every other thread even `sys.exit()` is the callback's own doing: it must not
    end an I/O thread, on which all others rely.
    """
    return not isinstance(error, Exception) and threading.current_thread() is threading.main_thread()
