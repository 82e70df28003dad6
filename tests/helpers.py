"""What tests of every package share."""

from __future__ import annotations

import contextlib
import gc
import gzip
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parent
SCHEMAS = TESTS / "golden" / "schemas"


def wait_until(condition: Callable[[], object], timeout_s: float = 10.0, what: str = "the condition") -> None:
    """Wait until `condition()` is true; fail with `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {timeout_s} s")
        time.sleep(0.005)


def open_descriptors() -> set[tuple[str, str]]:
    """Return the open descriptors of this process: their numbers, and the files, sockets and pipes behind them."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the one that lists them, or closed since
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


@contextlib.contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Fail if threads or descriptors that the block opened are there after it.

    Brokers that tests share run in this process, too, and open a file now and then, for their checkpoints:
    hence what is seen afterwards has some seconds to go away.
    """
    gc.collect()
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    yield
    gc.collect()
    left: set[object] = set()

    def nothing_is_left() -> bool:
        nonlocal left
        left = (set(threading.enumerate()) - threads) | (open_descriptors() - descriptors)
        return not left

    with contextlib.suppress(AssertionError):
        wait_until(nothing_is_left)
    assert not left, f"left behind: {left}"


def skip_if(missing: str | None) -> None:
    """Skip the test for this reason, if there is one; in CI that is a failure."""
    import pytest  # programs that tests start use this file, too, and should start fast

    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(missing, pytrace=False)
        pytest.skip(missing)


def golden_dir() -> Path:
    """Where the golden vectors are: `KCLIENT_GOLDEN`, or the copy in tests/golden/data."""
    return Path(os.environ.get("KCLIENT_GOLDEN") or TESTS / "golden" / "data")


def golden_lines(name: str) -> Iterator[dict[str, Any]]:
    """The entries of `name.jsonl` or `name.jsonl.gz`."""
    plain = golden_dir() / f"{name}.jsonl"
    if plain.exists():
        with plain.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)
        return
    with gzip.open(golden_dir() / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def golden_table(name: str) -> Any:
    """The contents of `name.json`."""
    return json.loads((golden_dir() / f"{name}.json").read_text(encoding="utf-8"))
