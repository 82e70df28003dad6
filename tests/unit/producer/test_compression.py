"""A producer's codec with its level, and the size it expects batches to have."""

from __future__ import annotations

import pytest

from kclient.compress import LEVELS, CompressionType, compress
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.compression import Compressor

DATA = memoryview(b"".join(b"value %d of many, " % number for number in range(2000)))
NOISE = memoryview(bytes(range(256)))
"""Bytes that no codec makes smaller."""


def compressor(codec: CompressionType, **settings: object) -> Compressor:
    config = ProducerConfig.parse({"bootstrap.servers": "host:1", "compression.type": codec.label}, settings)
    return Compressor.from_config(config)


@pytest.mark.parametrize("codec", CompressionType)
def test_every_codec_can_be_chosen_by_its_name(codec: CompressionType) -> None:
    made = compressor(codec)
    assert (made.codec, made.attributes) == (codec, int(codec))
    expected = None if codec is CompressionType.NONE else compress(codec, DATA)
    assert made.compress("t", DATA) == expected


@pytest.mark.parametrize("codec", [each for each in CompressionType if each in LEVELS])
def test_the_level_of_a_codec_is_that_of_its_own_setting(codec: CompressionType) -> None:
    levels = LEVELS.get(codec)
    assert levels is not None
    made = compressor(codec, **{f"compression_{codec.label}_level": levels.highest})
    assert made.compress("t", DATA) == compress(codec, DATA, levels.highest)
    assert compress(codec, DATA, levels.highest) != compress(codec, DATA)


def test_a_new_topic_is_expected_not_to_be_compressed_at_all() -> None:
    made = compressor(CompressionType.GZIP)
    assert made.ratio("t") == 1.0
    assert made.uncompressed_limit("t", 1000, 10_000) == 1000


def test_the_expected_ratio_improves_slowly_with_what_is_seen() -> None:
    made = compressor(CompressionType.GZIP)
    for _ in range(3):
        made.compress("t", DATA)
    assert made.ratio("t") == pytest.approx(1.0 - 3 * 0.005)
    assert made.ratio("other") == 1.0


def test_the_expected_ratio_is_never_better_than_what_was_seen_last() -> None:
    made = compressor(CompressionType.GZIP)
    observed = len(compress(CompressionType.GZIP, DATA)) / len(DATA)
    for _ in range(500):
        made.compress("t", DATA)
    assert made.ratio("t") == pytest.approx(observed)


def test_a_worse_batch_is_followed_at_once() -> None:
    made = compressor(CompressionType.GZIP)
    for _ in range(100):
        made.compress("t", DATA)
    assert made.ratio("t") == pytest.approx(0.5)
    made.compress("t", NOISE)
    assert made.ratio("t") == len(compress(CompressionType.GZIP, NOISE)) / len(NOISE) > 1


def test_a_batch_may_hold_as_much_more_as_compression_is_expected_to_save() -> None:
    made = compressor(CompressionType.GZIP)
    for _ in range(100):
        made.compress("t", DATA)
    # With five per cent to spare, as a batch that turns out too large has to be split.
    assert made.uncompressed_limit("t", 1050, 10_000) == pytest.approx(2000, abs=1)
    assert made.uncompressed_limit("t", 1050, 1500) == 1500


def test_a_batch_never_holds_less_than_its_size_because_compression_made_things_worse() -> None:
    made = compressor(CompressionType.GZIP)
    made.compress("t", NOISE)
    assert made.uncompressed_limit("t", 1000, 10_000) == 1000


def test_without_a_codec_the_limit_is_the_batch_size() -> None:
    made = compressor(CompressionType.NONE)
    assert made.uncompressed_limit("t", 1000, 10_000) == 1000
    assert made.uncompressed_limit("t", 1000, 500) == 500


def test_after_a_batch_that_was_too_large_nothing_is_expected_of_compression() -> None:
    made = compressor(CompressionType.GZIP)
    for _ in range(100):
        made.compress("t", DATA)
        made.compress("other", DATA)
    made.reset("t")
    assert (made.ratio("t"), made.ratio("other")) == (1.0, pytest.approx(0.5))


def test_an_empty_batch_is_compressed_without_a_division_by_zero() -> None:
    made = compressor(CompressionType.GZIP)
    assert made.compress("t", memoryview(b"")) == compress(CompressionType.GZIP, b"")
