"""A consumer behind a bad network, called at random for a long time."""

from __future__ import annotations

import random
import time

import pytest

from harness.network.ports import closed_port
from harness.network.proxy import FaultProxy
from harness.soak.random_calls import RandomCalls
from kclient.broker.embedded import EmbeddedKafka


@pytest.mark.soak(seconds=300)
def test_whatever_a_consumer_did_it_reads_what_it_is_subscribed_to_and_misses_nothing(
    seconds: float, rng: random.Random
) -> None:
    port = closed_port()
    with FaultProxy(("127.0.0.1", port)) as proxy:
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy.port}",
        }
        with (
            EmbeddedKafka(settings),
            RandomCalls(f"127.0.0.1:{port}", proxy, "classic", rng) as calls,
        ):
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                calls.round()
            assert not calls.missed()
    print(f"{calls.rounds} rounds")
