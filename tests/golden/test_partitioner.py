"""Hashes that place keys and groups, against Java's."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from helpers import golden_lines

from kclient._accel import murmur2

pytestmark = pytest.mark.golden

KEYS = [line for line in golden_lines("partitioner") if line["kind"] == "murmur2"]


@pytest.mark.parametrize("line", KEYS, ids=lambda line: f"{len(base64.b64decode(line['key']))}-bytes")
def test_murmur2_places_a_key_as_java_does(line: dict[str, Any]) -> None:
    hashed = murmur2(base64.b64decode(line["key"]))
    assert hashed == line["murmur2"]
    assert hashed & 0x7FFFFFFF == line["positive"]
    for partitions, partition in line["partitions"].items():
        assert (hashed & 0x7FFFFFFF) % int(partitions) == partition
