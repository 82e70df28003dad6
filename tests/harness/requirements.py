"""Programs and packages that not every machine has."""

from __future__ import annotations

import os

import pytest


def skip_if(missing: str | None) -> None:
    """Skip the test for this reason, if there is one; in CI that is a failure."""
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)
