"""Brokers and connections for the tests of the broker's packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from harness.broker.wire import Wire
from kclient.broker.embedded import EmbeddedKafka


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    """A broker for all tests of a module: each uses topics and groups of its own."""
    with EmbeddedKafka(offsets_topic_num_partitions=2) as running:
        yield running


@pytest.fixture
def wire(kafka: EmbeddedKafka) -> Iterator[Wire]:
    """A connection to `kafka`."""
    with Wire(kafka.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def connect(kafka: EmbeddedKafka) -> Iterator[Callable[[], Wire]]:
    """Makes more connections."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Wire(kafka.bootstrap_servers))
