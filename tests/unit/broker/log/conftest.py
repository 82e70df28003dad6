"""Every test of the log gets a place to keep one in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.broker.logs import LogBed


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[LogBed]:
    root = tmp_path / "data"
    root.mkdir()
    made = LogBed(root)
    yield made
    made.close()
