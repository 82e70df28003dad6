"""Fixtures and helpers that every test may use.

Tests live in folders without `__init__.py` and are imported by path, so what they share is imported from the top of
this folder: `from helpers import wait_until`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# A busy machine is no fault of the code: how long an example takes says nothing here.
settings.register_profile("kclient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kclient")


def pytest_report_header() -> str:
    import kclient._accel

    return f"kclient: {kclient._accel.IMPL} implementation"
