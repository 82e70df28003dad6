"""A consumer behind a bad network, called at random for a long time."""

from __future__ import annotations

import random
import time

import pytest

from harness.broker.proxied import proxied_broker
from harness.soak.random_calls import RandomCalls


@pytest.mark.soak(seconds=300)
def test_whatever_a_consumer_did_it_reads_what_it_is_subscribed_to_and_misses_nothing(
    seconds: float, rng: random.Random
) -> None:
    with proxied_broker() as (proxy, direct), RandomCalls(direct, proxy, "classic", rng) as calls:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            calls.round()
        assert not calls.missed()
    print(f"{calls.rounds} rounds")
