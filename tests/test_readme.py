"""Every block of README.md runs."""

from __future__ import annotations

import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.broker import EmbeddedKafka

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
SHELL = [text.strip() for language, text in BLOCKS if language == "bash"]
ELSEWHERE = {"make demo", "pip install ."}  # tests/test_packaging.py runs these in a fresh copy of the tree


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers


def test_every_block_is_of_a_kind_that_is_run_here() -> None:
    assert {language for language, _ in BLOCKS} == {"python", "bash"}


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_a_python_block_runs(servers: str, number: int, tmp_path: Path) -> None:
    script = tmp_path / "block.py"
    # Blocks build on each other (one produces what another consumes), so each repeats those before it.
    script.write_text(
        PYTHON[0].replace("localhost:9092", servers) + PYTHON[number].replace("localhost:9092", servers)
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("block", SHELL)
def test_a_shell_block_runs(servers: str, block: str, tmp_path: Path) -> None:
    if block in ELSEWHERE:
        assert block in {"make demo", "pip install ."}
        return
    if block == "make test":
        # This test is part of it; that the target stands is all there is to see from inside.
        subprocess.run(["make", "-n", "test"], cwd=ROOT, check=True, capture_output=True)
        return
    if block.startswith("kclient broker"):
        _broker_block(block, tmp_path)
        return
    script = re.sub(r"kclient (\w+)", rf"{sys.executable} -m kclient \1 --bootstrap-server {servers}", block)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert "3 delivered, 0 failed" in done.stderr
    assert sorted(done.stdout.splitlines()[1:4]) == ["one", "three", "two"]
    assert '"value": "one"' in done.stdout


def _broker_block(block: str, directory: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = shlex.split(block.replace("9092", str(port)).replace("./kafka-data", str(directory / "data")))
    with subprocess.Popen(
        [sys.executable, "-m", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == f"listening on 127.0.0.1:{port}\n"
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(30) == 0
    assert (directory / "data" / "meta.properties").exists()
