"""Checksums and hashes."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient._accel import crc32c, murmur2
from kclient._accel.reference import hashing
from kclient._accel.reference.hashing import hardware_crc32c, portable_crc32c

hardware, portable = hardware_crc32c(), portable_crc32c()


@given(st.binary(max_size=3000), st.integers(0, 3000))
def test_hardware_and_portable_checksums_agree_however_the_data_is_cut(data: bytes, cut: int) -> None:
    expected = portable(data, 0)
    assert hardware(data, 0) == expected
    assert crc32c(memoryview(data)[cut:], crc32c(bytearray(data[:cut]))) == expected


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_without_the_hardware_package_an_import_error_leads_to_the_portable_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "crc32c", ModuleType("crc32c"))
    with pytest.raises(ImportError):
        hardware_crc32c()


@pytest.mark.parametrize(
    ("key", "hashed"), [(b"21", -973932308), (b"foobar", -790332482), (b"abc", 479470107)]
)
def test_murmur2_is_that_of_the_default_partitioner(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"abc", 479470107),
        (b"", 275646681),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    ],
)
def test_the_reference_bodys_murmur2_is_javas_whatever_body_runs(key: bytes, hashed: int) -> None:
    assert hashing.murmur2(key) == hashed


def test_the_reference_bodys_checksum_goes_on_from_that_of_the_bytes_before() -> None:
    assert hashing.crc32c(b"") == 0
    assert hashing.crc32c(b"6789", hashing.crc32c(b"12345")) == 0xE3069283
