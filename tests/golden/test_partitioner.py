"""Hashes that place keys and groups, against Java's."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from harness.golden import golden_lines
from kclient._accel import murmur2
from kclient.broker.group.group_store import java_abs, java_hash

pytestmark = pytest.mark.golden

KEYS = [line for line in golden_lines("partitioner") if line["kind"] == "murmur2"]


@pytest.mark.parametrize("line", KEYS, ids=lambda line: f"{len(base64.b64decode(line['key']))}-bytes")
def test_murmur2_places_a_key_as_java_does(line: dict[str, Any]) -> None:
    hashed = murmur2(base64.b64decode(line["key"]))
    assert hashed == line["murmur2"]
    assert hashed & 0x7FFFFFFF == line["positive"]
    for partitions, partition in line["partitions"].items():
        assert (hashed & 0x7FFFFFFF) % int(partitions) == partition


COORDINATED = [line for line in golden_lines("partitioner") if line["kind"] == "coordinator"]


@pytest.mark.parametrize("line", COORDINATED, ids=lambda line: str(line["hashCode"]))
def test_a_group_is_placed_on_a_coordinator_as_java_does(line: dict[str, Any]) -> None:
    hashed = java_hash(line["id"])
    assert (hashed, java_abs(hashed)) == (line["hashCode"], line["abs"])
    assert java_abs(hashed) % 50 == line["partition_of_50"]
