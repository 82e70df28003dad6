"""Compressed payloads of Java's client and of other writers, broken ones among them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from harness.golden import golden_lines
from kclient.compress import CompressionType, DecompressionError, compress, decompress

pytestmark = pytest.mark.golden

LINES = list(golden_lines("compression"))
JAVA = [line for line in LINES if line["kind"] == "java"]
FOREIGN = [line for line in LINES if line["kind"] == "foreign"]
MAX_BYTES = 64 * 1024 * 1024


def java_name(line: dict[str, Any]) -> str:
    kind, length = line["input_kind"], line["input_length"]
    return f"{line['codec']}-magic{line['magic']}-level{line['level']}-{kind}-{length}-by-{line['chunk']}"


def foreign_name(line: dict[str, Any]) -> str:
    return f"{line['codec']}-magic{line['magic']}-{line['name']}"


@pytest.mark.parametrize("line", JAVA, ids=java_name)
def test_what_java_compresses_is_read(line: dict[str, Any]) -> None:
    codec = CompressionType.for_name(line["codec"])
    payload = base64.b64decode(line["payload"])
    assert decompress(codec, payload, MAX_BYTES, line["magic"]) == base64.b64decode(line["input"])


@pytest.mark.parametrize("line", JAVA, ids=java_name)
def test_the_same_input_comes_back_from_our_own_compression(line: dict[str, Any]) -> None:
    codec = CompressionType.for_name(line["codec"])
    given = base64.b64decode(line["input"])
    payload = compress(codec, given, line["level"], line["magic"])
    assert decompress(codec, payload, MAX_BYTES, line["magic"]) == given


@pytest.mark.parametrize("line", FOREIGN, ids=foreign_name)
def test_payloads_of_others_are_read_or_refused_as_java_does(line: dict[str, Any]) -> None:
    codec = CompressionType.for_name(line["codec"])
    payload = base64.b64decode(line["payload"])
    if line["exception"] is None:
        assert decompress(codec, payload, MAX_BYTES, line["magic"]) == base64.b64decode(line["output"])
    else:
        with pytest.raises(DecompressionError):
            decompress(codec, payload, MAX_BYTES, line["magic"])
