"""The end of the process comes in stages, whoever came first."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
from kclient.utils.exit_order import ExitStage, at_exit

def broken():
    raise RuntimeError("no")

at_exit(ExitStage.CLIENTS, lambda: print("client 1"))
at_exit(ExitStage.BROKERS, lambda: print("broker"))
at_exit(ExitStage.CLIENTS, broken)
at_exit(ExitStage.CLIENTS, lambda: print("client 2"))
"""


def test_clients_end_before_brokers_latest_first_and_an_error_stops_nobody() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.split("\n")[:3] == ["client 2", "client 1", "broker"]
    assert "Closing clients at exit failed" in ended.stderr


def test_what_finalizers_remove_is_still_there_while_brokers_end() -> None:
    script = (
        "import weakref\n"
        "from kclient.utils.exit_order import ExitStage, at_exit\n"
        "at_exit(ExitStage.BROKERS, lambda: print('broker'))\n"
        "weakref.finalize(ExitStage, print, 'directory')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert ended.stdout.split() == ["broker", "directory"]
