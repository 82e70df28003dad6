"""Finders of modules in zip files, which a Python worker of Spark's need not read again before each task."""

from __future__ import annotations

import sys
from zipimport import zipimporter


def forget_zip_finders() -> None:
    """Drop them from Python's cache, at the end of a task. What is imported stays; the next import makes its finder.

    PySpark 4.0 calls `importlib.invalidate_caches` before every task. Up to Python 3.12 each finder then reads the
    whole directory of its zip file at once, and PySpark itself is one, with a finder for each of its packages: 120 ms
    and more, of a task that may read for 5.
    """
    cache = sys.path_importer_cache
    for path in [path for path, finder in cache.items() if isinstance(finder, zipimporter)]:
        del cache[path]
