"""The garbage collector in the Python workers of Spark, and the objects that it need not look at."""

from __future__ import annotations

import gc

from kclient._accel import in_forked_children

_FREEZES_AT = 2
_begun = 0


def task_begins() -> None:
    """Take note of a task of Spark's; from the second one on the collector leaves alone what this process has by then.

    A worker collects all garbage after each task, which means a look at every object: those of PySpark, PyArrow and the
    clients, tens of thousands that stay as long as the process does. With small tasks that was a worker's main work.
    Right after such a collection there is no garbage among them. They are freed as ever when nobody refers to them.
    """
    global _begun
    _begun += 1
    if _begun == _FREEZES_AT:
        gc.freeze()


def _forget_in_child() -> None:
    global _begun
    _begun = 0


in_forked_children(_forget_in_child)
