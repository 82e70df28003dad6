"""Listeners and poll loops of the classic protocol, and all that they may do, on the embedded broker."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from harness.scenarios.listeners import CASES, Table


@pytest.mark.parametrize("face", ["eager", "cooperative"])
@pytest.mark.parametrize("case", CASES)
def test_a_member(servers: str, case: str, face: str) -> None:
    with ExitStack() as stack:
        CASES[case](Table(servers, face, stack))
