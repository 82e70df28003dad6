"""Kafka's own tool finds nothing wrong with what a broker of ours has on disk that was killed again and again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.broker.killing import kill_again_and_again
from harness.real_kafka.node import missing, tool
from harness.requirements import skip_if

_FILES_AT_ONCE = 300


@pytest.mark.heavy
def test_kafkas_tool_finds_what_kills_left_sound(tmp_path: Path) -> None:
    skip_if(missing())
    problems, _ = kill_again_and_again(tmp_path, random.Random(7), rounds=2)
    assert not problems
    logs = sorted(map(str, tmp_path.rglob("0*.log")))
    indexes = sorted(map(str, tmp_path.rglob("*.index")))
    times = sorted(map(str, tmp_path.rglob("*.timeindex")))
    assert len(logs) > 10
    for files, arguments in (
        (logs, ["--deep-iteration"]),
        (indexes, ["--index-sanity-check"]),
        (times, []),
    ):
        assert files
        for begin in range(0, len(files), _FILES_AT_ONCE):
            chosen = ",".join(files[begin : begin + _FILES_AT_ONCE])
            printed = tool("org.apache.kafka.tools.DumpLogSegments", *arguments, "--files", chosen)
            assert printed.count("Dumping ") == len(files[begin : begin + _FILES_AT_ONCE])
            for bad in ("isvalid: false", "Found", "mismatch", "invalid", "Exception"):
                assert bad not in printed, printed
