"""Produce requests that are acknowledged when the disk has what they brought."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial

from kclient.broker.replica.delayed_produce import ProduceOutcome
from kclient.broker.replica.partition import Partition
from kclient.errors import KafkaError, UnknownServerError


def when_durable(
    outcomes: Mapping[Partition, ProduceOutcome],
    log: logging.LoggerAdapter[logging.Logger],
    act: Callable[[], None],
) -> None:
    """Call `act` once, when all that was appended is on disk as far as that is asked for; at once if it is not.

    An outcome whose partition failed meanwhile has the error by then. The partitions are waited for together.
    """
    waiting = {
        partition: outcome for partition, outcome in outcomes.items() if partition.log.flusher.commits_later
    }
    if not waiting:
        act()
        return
    lock = threading.Lock()
    left = len(waiting)

    def done(partition: Partition, error: BaseException | None) -> None:
        nonlocal left
        if error is not None:
            log.error("Appending to %s failed: %s", partition.tp, error)
            waiting[partition].fail(error if isinstance(error, KafkaError) else UnknownServerError())
        with lock:
            left -= 1
            last = left == 0
        if last:
            act()

    for partition, outcome in waiting.items():
        partition.log.flusher.commit.when_durable(outcome.last_offset + 1, partial(done, partition))
