"""Ports for the servers of tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from harness.network.ports import free_port

_TESTS = Path(__file__).parents[2]


def test_no_port_comes_twice() -> None:
    ports = [free_port() for _ in range(300)]

    assert len(set(ports)) == len(ports)


def test_another_process_gets_other_ports() -> None:
    mine = {free_port() for _ in range(50)}
    # From the first port of this process on, so that it meets all of them.
    program = (
        "import itertools, sys; from harness.network import ports; "
        f"ports._turn = itertools.count({min(mine)} - ports._PORTS.start); "
        "print(*(ports.free_port() for _ in range(50)))"
    )

    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=_TESTS, capture_output=True, text=True, check=True
    ).stdout

    assert not mine & {int(port) for port in printed.split()}
