"""Interrupting calls: by signals at random moments, and wherever one can come."""

from __future__ import annotations

import contextlib
import dis
import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakSet

import kclient

R = TypeVar("R")
_CHECKED = frozenset({"CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD", "RESUME"})
# The callback of a weak reference: what is raised there Python only reports, and nobody is interrupted.
_UNHEARD: CodeType = WeakSet()._remove.__code__  # type: ignore[attr-defined]  # it is private
_PACKAGE = str(Path(kclient.__file__).parent)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage of other tests from being finalized here: what is raised in a finalizer, Python only reports."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Storm:
    """Sends this thread SIGUSR1 again and again; the handler raises KeyboardInterrupt inside of `functions` only.

    Outside of them the test's own bookkeeping would be what is interrupted. `raised` counts.
    """

    def __init__(self, *functions: Callable[..., Any], pause_s: float = 0.002) -> None:
        self._codes: set[CodeType] = {function.__code__ for function in functions}
        self._pause_s = pause_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._blow, args=(threading.get_ident(),), name="storm")
        self.raised = 0

    def _blow(self, target: int) -> None:
        while not self._over.wait(self._pause_s):
            signal.pthread_kill(target, signal.SIGUSR1)

    def _handle(self, _number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code is _UNHEARD:
                return
            if frame.f_code in self._codes:
                self.raised += 1
                raise KeyboardInterrupt
            frame = frame.f_back

    def __enter__(self) -> Self:
        self._collection = _no_collection()
        self._collection.__enter__()
        self._before = signal.signal(signal.SIGUSR1, self._handle)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        signal.signal(signal.SIGUSR1, self._before)
        self._collection.__exit__(kind, error, trace)


def interrupted_after(delay_s: float, function: Callable[..., R], *arguments: Any) -> R:
    """Call `function`, with one KeyboardInterrupt `delay_s` later, for a call that takes longer than that."""
    target = threading.get_ident()
    over = threading.Event()
    raised = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal raised
        if not raised:
            raised = True
            raise KeyboardInterrupt

    def send() -> None:
        # Again and again: a signal that comes as the thread is about to wait is seen only with the next one.
        over.wait(delay_s)
        while not over.is_set():
            signal.pthread_kill(target, signal.SIGUSR1)
            over.wait(0.02)

    with _no_collection():
        before = signal.signal(signal.SIGUSR1, interrupt)
        sender = threading.Thread(target=send, name="interrupt")
        try:
            sender.start()
            return function(*arguments)
        finally:
            over.set()
            sender.join()
            signal.signal(signal.SIGUSR1, before)


def _interrupt() -> None:
    raise KeyboardInterrupt


def interrupted_at(
    point: int,
    function: Callable[..., R],
    *arguments: Any,
    by: Callable[[], object] = _interrupt,
    **named: Any,
) -> R:
    """Call `function`, and `by` at the `point`-th moment at which a signal's handler could run in kclient.

    It raises a KeyboardInterrupt, if nothing else is given.

    That is where the interpreter looks for signals: at the beginning of functions, after calls of functions that are
    not Python's own, and where loops begin again. Anywhere else, such as between the end of a `with` block's body
    and the release of its lock, nothing can happen.
    """
    left = point
    returned = False  # from a function of Python's own since the last opcode

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return None
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        code = frame.f_code.co_code
        handlers = dis._parse_exception_table(frame.f_code)  # type: ignore[attr-defined]
        previous = ""
        previous_handler: int | None = None

        def handler_of(offset: int) -> int | None:
            return next((entry.target for entry in handlers if entry.start <= offset < entry.end), None)

        def on_opcode(frame: FrameType, event: str, _argument: Any) -> Any:
            nonlocal left, previous, previous_handler, returned
            if event == "return":
                returned = True
            if event == "opcode":
                # A signal is seen at the end of the call; here, one opcode later, is the same place only where the
                # same handler would catch it: not behind the last call in the body of a `with`.
                handler = handler_of(frame.f_lasti)
                if previous in _CHECKED and not returned and handler == previous_handler:
                    left -= 1
                    if not left:
                        by()
                returned = False
                previous = dis.opname[code[frame.f_lasti]]
                previous_handler = handler
            return on_opcode

        return on_opcode

    with _no_collection():
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            return function(*arguments, **named)
        finally:
            sys.settrace(before)
