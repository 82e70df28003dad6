"""Adds bytecode to the zip that Spark's Python processes import PySpark from.

Without it each of them compiles all that it imports, for more than a second, and a test starts several. Where the
machine is slow that is most of the ten seconds that Spark gives a process to report. Run by the Python whose PySpark
is meant.
"""

from __future__ import annotations

import importlib.util
import py_compile
import tempfile
import zipfile
from pathlib import Path

SPEC = importlib.util.find_spec("pyspark")
assert SPEC is not None
PACKAGE = Path(SPEC.origin or "").parent

with (
    zipfile.ZipFile(PACKAGE / "python" / "lib" / "pyspark.zip", "a", zipfile.ZIP_DEFLATED) as archive,
    tempfile.TemporaryDirectory() as folder,
):
    compiled = Path(folder) / "module.pyc"
    there = set(archive.namelist())
    for name in there:
        source = PACKAGE.parent / name
        if name.endswith(".py") and f"{name}c" not in there and source.exists():
            # The archive and the installed files have other times, so nothing is compared with them.
            unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
            py_compile.compile(str(source), str(compiled), invalidation_mode=unchecked, doraise=True)
            archive.write(compiled, f"{name}c")
