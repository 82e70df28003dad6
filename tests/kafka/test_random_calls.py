"""A consumer behind a bad network, called at random, beside a real broker."""

from __future__ import annotations

import random

import pytest

from harness.network.proxy import FaultProxy
from harness.real_kafka.broker import RealKafka
from harness.seeds import new_seed
from harness.soak.random_calls import RandomCalls


@pytest.mark.parametrize(("protocol", "rounds"), [("classic", 40), ("consumer", 15)])
def test_whatever_a_consumer_did_it_reads_what_it_is_subscribed_to_and_misses_nothing(
    kafka: RealKafka, kafka_proxy: FaultProxy, protocol: str, rounds: int
) -> None:
    with RandomCalls(kafka.bootstrap_servers, kafka_proxy, protocol, random.Random(new_seed())) as calls:
        while calls.rounds < rounds:
            calls.round()
        assert not calls.missed()
