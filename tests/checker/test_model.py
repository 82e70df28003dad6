"""Histories of a model that keeps its promises are clean; with one promise broken, that is found."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.checker.model import Model
from harness.checker.mutations import MUTATIONS, Mutation
from harness.checker.report import check, report


@given(st.integers(0, 2**32), st.integers(1, 300))
@settings(max_examples=150)
def test_what_a_right_cluster_does_has_no_anomalies(seed: int, steps: int) -> None:
    model = Model(random.Random(seed))
    model.run(steps)
    history = model.log.history()
    anomalies = check(history)
    assert anomalies == [], report(history, anomalies)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
@given(st.integers(0, 2**32), st.integers(50, 300))
@settings(max_examples=25)
def test_a_promise_that_is_broken_is_found(mutation: Mutation, seed: int, steps: int) -> None:
    rng = random.Random(seed)
    model = Model(rng)
    model.run(steps)
    history = model.log.history()
    expected = mutation(history, rng)
    assume(expected is not None)
    anomalies = check(history)
    assert expected in {anomaly.kind for anomaly in anomalies}, report(history, anomalies)
