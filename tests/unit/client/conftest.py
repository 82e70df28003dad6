from __future__ import annotations

import pytest

from harness.network.client_parts import ClientParts


@pytest.fixture
def parts() -> ClientParts:
    return ClientParts()
