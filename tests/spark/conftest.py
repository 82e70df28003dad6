"""In the folder unit what needs no PySpark, in api what needs no JVM, beside them what needs both."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).parent

sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "kafka"))

# Those in api import PySpark; the ones beside it say that it is missing, and fail for it in CI.
collect_ignore = ["api"] if importlib.util.find_spec("pyspark") is None else []
