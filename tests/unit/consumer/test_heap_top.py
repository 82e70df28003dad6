"""HeapTop: what the records of one poll leave free is there for the next one."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
from kclient.consumer.internals.heap_top import HeapTop

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

top = HeapTop()
for round in range(40):
    if round == 10:
        before = faults()
    records = [bytes(1000) for _ in range(20_000)]  # above any threshold that an import may have left
    if HOLD:
        top.hold()
    del records
print(faults() - before)
"""


def faults(hold: bool) -> int:
    """Page faults of 30 polls of 20,000 records."""
    done = subprocess.run(
        [sys.executable, "-c", f"HOLD = {hold}\n{PROGRAM}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")},
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is about glibc's heap")
def test_polls_of_the_same_size_take_no_fresh_memory() -> None:
    assert faults(hold=False) > 30 * 1000, "this C library gives nothing back, so nothing is shown"
    assert faults(hold=True) < 30 * 100
