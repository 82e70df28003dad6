"""Settings of the whole suite.

Tests live in folders without `__init__.py` and are imported by path; what they share is the package `harness`.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What a check compared is told there as well, not in test modules alone.
pytest.register_assert_rewrite("harness")

# For the package benchmarks. Last, so that the sources here never come before an installed kclient.
sys.path.append(str(Path(__file__).parent.parent))

# A job that a script runs in the background ignores Ctrl-C, and so would all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no fault of the code: how long an example takes says nothing here.
settings.register_profile("kclient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kclient")


def pytest_report_header() -> str:
    import kclient._accel

    return f"kclient: {kclient._accel.IMPL} implementation"
