"""Programs and plugins in Java beside the jars of a Kafka, compiled here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from harness.real_kafka.node import HERE, classpath


def missing_compiler() -> str | None:
    """The reason why nothing in Java can be made here, None if it can."""
    return None if shutil.which("javac") else "javac is not installed (parts of the tests are in Java)"


def compiled(name: str, directory: Path) -> Path:
    """The classes of NAME.java in `directory`."""
    subprocess.run(
        ["javac", "-Xlint:-removal", "-cp", classpath(), "-d", str(directory), str(HERE / f"{name}.java")],
        check=True,
        timeout=120,
    )
    return directory
