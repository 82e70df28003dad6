"""The hot path behind one list of names, with the choice of body made once.

`IMPL` says which body runs: `"python"`, the reference, or `"c"`, the native one. The environment variable
`KCLIENT_IMPL=python|c` chooses; unset takes the best there is: the native one if it was built, and the interpreter has
its lock (GIL), by which that is thread-safe. Asking for one that is not there is an `ImportError`; one that was built
and cannot be imported, without being asked for, is a `RuntimeWarning`.

The bodies know no policy and nothing of the floors above: what they need from there (codecs, the old record formats,
Kafka's error classes) is installed in `hooks`. Left alone they raise `ValueError` and builtin `TimeoutError`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from kclient._accel.shared import forks
from kclient._accel.shared.batch_input import Column
from kclient._accel.shared.callbacks import belongs_to_caller
from kclient._accel.shared.columns import BinaryColumn, Columns
from kclient._accel.shared.forks import in_forked_children
from kclient._accel.shared.future import KafkaFuture
from kclient._accel.shared.hooks import hooks
from kclient._accel.shared.locks import holder_test, interrupting_text
from kclient._accel.shared.readiness import EVENT_READ, EVENT_WRITE, DefaultSelector
from kclient._accel.shared.records import decode_records
from kclient._accel.shared.varint import zigzag_size


def _has_gil() -> bool:
    """True if the interpreter has its lock; before Python 3.13 there is none without."""
    is_enabled: Callable[[], bool] | None = getattr(sys, "_is_gil_enabled", None)
    return is_enabled is None or is_enabled()


def _extensions() -> list[str]:
    """The files of the native body, for whichever interpreter they were built."""
    from pathlib import Path

    directory = Path(__file__).parent / "native"
    return sorted(path.name for suffix in ("so", "pyd") for path in directory.glob(f"*.{suffix}"))


def _choose(wanted: str | None) -> str:
    """The name of the body to run, for the value of KCLIENT_IMPL."""
    chosen = wanted or "c"
    if chosen == "python":
        return chosen
    if chosen != "c":
        raise ImportError(f"KCLIENT_IMPL={wanted!r}: the bodies of kclient are named python and c")
    if not _has_gil():
        if not wanted:
            return "python"
        raise ImportError(
            "KCLIENT_IMPL=c asks for the native body of kclient, which needs the interpreter lock (GIL), and this "
            "interpreter runs without it: set PYTHON_GIL=1, or leave KCLIENT_IMPL out"
        )
    try:
        import kclient._accel.native  # noqa: F401 - whether it can be imported is the question
    except ImportError as error:
        if not wanted:
            built = _extensions()
            if built:
                warnings.warn(
                    f"kclient runs in Python alone, which is slower: its native body was built ({', '.join(built)}), "
                    f"but cannot be imported: {error}. KCLIENT_IMPL=python asks for that without this warning.",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return "python"
        raise ImportError(
            f"KCLIENT_IMPL=c asks for the native body of kclient, but this build does not have it: {error}"
        ) from error
    return chosen


IMPL = _choose(os.environ.get("KCLIENT_IMPL"))

if TYPE_CHECKING or IMPL == "python":
    from kclient._accel import reference as _body
    from kclient._accel.reference import *
else:
    from kclient._accel import native as _body
    from kclient._accel.native import *

__all__ = [
    "EVENT_READ",
    "EVENT_WRITE",
    "IMPL",
    "BinaryColumn",
    "Column",
    "Columns",
    "DefaultSelector",
    "KafkaFuture",
    "belongs_to_caller",
    "decode_records",
    "forks",
    "holder_test",
    "hooks",
    "in_forked_children",
    "interrupting_text",
    "zigzag_size",
]
__all__ += _body.__all__
