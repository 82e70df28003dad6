"""A batch that the broker finds too large goes out again in parts."""

from __future__ import annotations

import pytest

from harness.producer.model import ready_producer
from kclient._accel import hooks
from kclient.errors import (
    CorruptRecordError,
    ErrorCode,
    RecordTooLargeError,
)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_batch_too_large_is_split_and_its_records_keep_futures_and_order(codec: str) -> None:
    told: list[int] = []
    m = ready_producer(compression_type=codec)
    futures = [m.send(b"%d" % i * 50, callback=lambda md, e: told.append(md.offset)) for i in range(8)]
    m.run()
    m.broker.fail("t", ErrorCode.MESSAGE_TOO_LARGE)
    m.answer()
    m.settle()
    assert [future.result(0).offset for future in futures] == list(range(8))
    assert m.broker.log("t").values == [b"%d" % i * 50 for i in range(8)]
    assert told == list(range(8))
    assert m.accumulator.pool.available == m.accumulator.pool.total


def test_records_that_cannot_be_decompressed_for_a_split_fail_with_the_refusal_and_give_memory_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    m = ready_producer(compression_type="gzip")
    futures = [m.send(b"%d" % i * 50) for i in range(8)]
    m.run()
    damage = CorruptRecordError("not what was written")
    monkeypatch.setattr(hooks, "decompress", lambda codec, data, most: (b"", damage))
    m.broker.fail("t", ErrorCode.MESSAGE_TOO_LARGE)
    m.answer()
    m.settle()
    for future in futures:
        error = future.exception(0)
        assert isinstance(error, RecordTooLargeError)
        assert error.__cause__ is damage
    assert m.accumulator.pool.available == m.accumulator.pool.total
    assert not len(m.accumulator.queued.incomplete)
    assert "cannot be split" in caplog.text
    # The partition goes on.
    after = m.send(b"after")
    m.run()
    m.settle()
    assert after.exception(0) is None


def test_splitting_ends_with_single_records_that_fail() -> None:
    m = ready_producer()
    futures = [m.send(b"x" * 100) for _ in range(5)]
    m.broker.fail("t", ErrorCode.MESSAGE_TOO_LARGE, times=50)
    m.run()
    m.settle()
    assert all(isinstance(future.exception(0), RecordTooLargeError) for future in futures)
    assert m.accumulator.pool.available == m.accumulator.pool.total
