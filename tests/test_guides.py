"""The programs of docs/observability.md and docs/processing.md run as they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.guides import python_blocks, run_block

BLOCKS = [
    pytest.param(block, id=f"{name}-{number}")
    for name in ("observability", "processing")
    for number, block in enumerate(python_blocks(f"docs/{name}.md"))
]


@pytest.mark.heavy
@pytest.mark.parametrize("block", BLOCKS)
def test_a_program_of_the_guide_runs(block: str, tmp_path: Path) -> None:
    run_block(block, tmp_path)
