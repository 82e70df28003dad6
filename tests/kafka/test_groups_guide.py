"""The programs of docs/groups.md run as they stand, on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.guides import python_blocks, run_block
from harness.real_kafka.broker import RealKafka


@pytest.mark.heavy
@pytest.mark.parametrize("number", range(len(python_blocks("docs/groups.md"))))
def test_a_program_of_the_guide_runs(kafka: RealKafka, tmp_path: Path, number: int) -> None:
    block = python_blocks("docs/groups.md")[number]
    run_block(block.replace("localhost:9092", kafka.bootstrap_servers), tmp_path)
