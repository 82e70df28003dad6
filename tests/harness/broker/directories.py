"""Directories of brokers from outside: what is in them, and harm done to them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def fingerprint(root: Path) -> dict[str, tuple[int, int, str]]:
    """Mode, time of the last change in ns and a hash of the content, of `root` and of everything below it."""
    found = {}
    for path in [root, *root.rglob("*")]:
        status = os.lstat(path)
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path.relative_to(root))] = (status.st_mode, status.st_mtime_ns, content)
    return found


def last_segment(partition: Path) -> Path:
    """The file of batches that a partition's log ends with."""
    return max(partition.glob("*.log"))


def flip_bit(path: Path, position: int) -> None:
    """Change one bit of the file."""
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)
