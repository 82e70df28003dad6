"""CRC-32C and the varints of records, against Java's."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from harness.golden import golden_lines
from kclient._accel import crc32c
from kclient._accel.reference.hashing import hardware_crc32c, portable_crc32c
from kclient._accel.shared.varint import read_varint, read_varlong, zigzag, zigzag_size

pytestmark = pytest.mark.golden

LINES = list(golden_lines("primitives"))
CHECKSUMS = [line for line in LINES if line["kind"] == "crc32c"]
VARINTS = [line for line in LINES if line["kind"] in ("varint", "varlong")]


@pytest.mark.parametrize("line", CHECKSUMS, ids=lambda line: str(line["crc"]))
def test_crc32c_is_javas_in_every_implementation(line: dict[str, Any]) -> None:
    data = base64.b64decode(line["data"])
    half = len(data) // 2
    for function in (crc32c, hardware_crc32c(), portable_crc32c()):
        assert function(data, 0) == line["crc"]
        assert function(memoryview(data)[half:], function(data[:half], 0)) == line["crc"]


@pytest.mark.parametrize("line", VARINTS, ids=lambda line: f"{line['kind']}-{line['value']}")
def test_varints_are_javas_both_ways(line: dict[str, Any]) -> None:
    encoded = bytes.fromhex(line["hex"])
    assert zigzag(line["value"]) == encoded
    assert zigzag_size(line["value"]) == len(encoded)
    read = read_varint if line["kind"] == "varint" else read_varlong
    raw, end = read(encoded, 0, 0, 0)
    assert (raw >> 1 ^ -(raw & 1), end) == (line["value"], len(encoded))
