"""Parts of all commands: an argument type, and a run on a real Apache Kafka that may be interrupted."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from benchmarks.broker import long_lived, real_kafka


class Comparison(Protocol):
    """The comparison that a command runs: it tells of its progress, and collects what failed."""

    tell: Callable[[str], None]
    failed: list[str]


# What is deleted goes at once: the next run should not write beside it.
AT_ONCE = {"log.segment.delete.delay.ms": "0"}
C = TypeVar("C", bound=Comparison)


def positive(text: str) -> int:
    """The type of an argument that counts something."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def new_broker(heap: str, **more: Any) -> Any:
    """Return a RealKafka that is as fast as it gets; `more` are its listeners, and settings besides."""
    settings = {**AT_ONCE, **more.pop("settings", {})}
    return real_kafka().RealKafka(heap=heap, settings=settings, java=long_lived(), **more)


def run(
    make: Callable[[str, Callable[[str], None]], C],
    measure: Callable[[C], None],
    show: Callable[[C], None],
    heap: str = "1g",
    broker: Any = None,
) -> int:
    """Measure what `make` makes of the broker's address and of what is to be told, then show it; the exit code.

    What was measured before a Ctrl-C is shown as well. `broker` is a RealKafka that was not started, if it has to be a
    special one.
    """
    interrupted = False
    with broker or new_broker(heap) as kafka:
        started_s = time.monotonic()
        comparison = make(
            kafka.bootstrap_servers,
            lambda text: print(f"{time.monotonic() - started_s:5.0f} s  {text}", file=sys.stderr, flush=True),
        )
        try:
            measure(comparison)
        except KeyboardInterrupt:
            interrupted = True
            comparison.failed.append("interrupted; this is what was measured before")
    show(comparison)
    for text in comparison.failed:
        print(f"FAILED: {text}", file=sys.stderr)
    return 130 if interrupted else 1 if comparison.failed else 0
