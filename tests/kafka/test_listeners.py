"""Listeners and poll loops, and all that they may do, by every protocol, on a real Kafka."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from harness.real_kafka.broker import RealKafka
from harness.scenarios.listeners import CASES, FACES, Table


@pytest.mark.heavy
@pytest.mark.parametrize(
    "face",
    # The classic protocol runs on the embedded broker as well, and faster.
    [
        face if face == "consumer" else pytest.param(face, marks=[pytest.mark.soak, pytest.mark.long])
        for face in FACES
    ],
)
@pytest.mark.parametrize("case", CASES)
def test_a_member(kafka: RealKafka, case: str, face: str) -> None:
    with ExitStack() as stack:
        CASES[case](Table(kafka.bootstrap_servers, face, stack))
