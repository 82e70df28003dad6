"""Both bodies of a batch write the same bytes, refuse the same with the same words, and keep what they promise."""

from __future__ import annotations

import base64
import gc
import itertools
import pickle
import sys
import threading
import time
import tracemalloc
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.accel.batches import (
    BODIES,
    Driver,
    both,
    columns,
    limits,
    more,
    native,
    outcome,
    positions,
    same,
    steps,
)
from harness.golden import golden_lines
from kclient._accel import BatchResult
from kclient.compress import CompressionType, compress
from kclient.errors import KafkaError

places = st.tuples(
    st.one_of(st.integers(-1, 2**63 - 1), st.just(-(2**63)), st.just(2**63)),
    st.one_of(st.integers(-1, 32767), st.sampled_from([-32769, 32768])),
    st.one_of(st.integers(-1, 2**31 - 1), st.sampled_from([2**31, -(2**31) - 1])),
)


@more
@given(limits, steps, places, st.integers(-3, 0x7F), st.sampled_from(list(CompressionType)), places)
def test_the_same_steps_write_the_same_bytes(
    limit: int, done: list[Any], place: Any, attributes: int, codec: CompressionType, next_place: Any
) -> None:
    drivers = both(limit, done)
    same(drivers, lambda driver: outcome(lambda: driver.batch.restamp(1, 1, 1)))
    body = same(drivers, lambda driver: bytes(driver.batch.freeze()))
    same(drivers, lambda driver: driver.step("append", 1, None, b"late", None, False))
    same(drivers, lambda driver: driver.step("append_many", 1, None, [b"late"], 0, 1))
    same(drivers, lambda driver: driver.step("append_columns", None, None, None, 0, 1))
    compressed = None if codec is CompressionType.NONE else compress(codec, body)
    attributes = attributes & ~7 | codec
    same(drivers, lambda driver: driver.step("close", *place, attributes, compressed))
    same(drivers, Driver.wire)
    same(drivers, lambda driver: driver.step("close", *place, attributes, compressed))
    same(drivers, lambda driver: outcome(lambda: bytes(driver.batch.freeze())))
    same(drivers, lambda driver: driver.step("restamp", *next_place))
    same(drivers, Driver.wire)
    same(drivers, lambda driver: outcome(lambda: [record[:4] for record in driver.batch.records()]))
    same(drivers, lambda driver: driver.result.complete(1000))
    same(drivers, lambda driver: [future.result(0) for future in driver.futures])
    same(drivers, lambda driver: driver.told)
    same(drivers, lambda driver: driver.step("release"))
    for use in (
        Driver.wire,
        lambda driver: bytes(driver.batch.freeze()),
        lambda driver: driver.step("restamp", 1, 1, 1),
    ):
        same(drivers, use)
    same(drivers, lambda driver: driver.step("close", 1, 1, 1, 0))


@more
@given(steps, st.integers(0, 3000), st.sampled_from(list(CompressionType)), st.booleans())
@example([("append", t, None, None, None, False) for t in (0, -1, 2**63 - 1)], 0, CompressionType.NONE, False)
def test_splitting_makes_the_same_parts(
    done: list[Any], limit: int, codec: CompressionType, damaged: bool
) -> None:
    drivers = both(1 << 40, done)
    if not drivers[0].batch.count:
        return
    body = bytes(drivers[0].batch.freeze())
    compressed = None if codec is CompressionType.NONE else compress(codec, body[:-1] if damaged else body)
    parts = []
    for driver in drivers:
        driver.batch.close(7, 8, 9, codec, compressed)
        made = outcome(driver.batch.split, limit, lambda body=driver.body: BatchResult("t", 3))
        if isinstance(made, tuple):
            assert damaged
            parts.append(made)
            continue
        for i, part in enumerate(made):
            assert type(part) is driver.body.BatchBuilder
            part.close(7, 8, i, 0)
            part.result.complete(100 * i)
        parts.append([b"".join(part.views()) for part in made])
    assert parts[0] == parts[1]
    if isinstance(parts[0], list):
        same(drivers, lambda driver: [future.result(0) for future in driver.futures])
        same(drivers, lambda driver: driver.told)


@pytest.mark.golden
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_batches_of_javas_client_come_out_the_same(codec: str) -> None:
    compared = 0
    for line in golden_lines("record_batches"):
        for given_batch in line.get("inputs", ()):
            if given_batch["magic"] != 2 or given_batch["codec"] != codec or not given_batch["records"]:
                continue
            done = [
                (
                    "append",
                    record["timestamp"],
                    *(
                        None if record[part] is None else base64.b64decode(record[part])
                        for part in ("key", "value")
                    ),
                    [
                        (name, None if text is None else base64.b64decode(text))
                        for name, text in record["headers"]
                    ],
                    False,
                )
                for record in given_batch["records"]
            ]
            drivers = both(1 << 40, done)
            number = CompressionType.for_name(codec)
            body = same(drivers, lambda driver: bytes(driver.batch.freeze()))
            compressed = None if codec == "none" else compress(number, body)
            place = (given_batch["producerId"], given_batch["producerEpoch"], given_batch["baseSequence"])
            for driver in drivers:
                driver.batch.close(*place, number, compressed)
            same(drivers, Driver.wire)
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.LZ4])
def test_bytes_in_flight_stay_what_they_are(body: Any, codec: CompressionType) -> None:
    driver = Driver(body, 1000)
    driver.step("append", 5, b"k", b"v" * 50, None, False)
    compressed = None if codec is CompressionType.NONE else compress(codec, driver.batch.freeze())
    driver.batch.close(1, 2, 3, codec, compressed)
    views = driver.batch.views()
    assert all(view.readonly for view in views)
    before = driver.wire()
    driver.batch.restamp(1, 3, 0)
    restamped = driver.wire()
    more_views = driver.batch.views()
    driver.batch.restamp(1, 4, 0)
    driver.batch.release()
    del driver
    gc.collect()
    assert b"".join(views) == before != restamped
    assert b"".join(more_views) == restamped


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_memory_is_what_the_limit_says_and_goes_with_the_last_view(body: Any) -> None:
    value = b"v" * 1000
    body.BatchBuilder("t", 0, 100, BatchResult("t", 0), 0).append(1, None, value, None)
    tracemalloc.start()
    try:
        batch = body.BatchBuilder("t", 0, 100_000, BatchResult("t", 0), 0)
        while batch.append(1, None, value, None):
            assert tracemalloc.get_traced_memory()[0] < 115_000  # a bytearray takes an eighth more
        batch.close(-1, -1, -1, 0)
        views = batch.views()
        batch.release()
        assert tracemalloc.get_traced_memory()[0] > 99_000
        del views
        assert tracemalloc.get_traced_memory()[0] < 5_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_whatever_is_given_is_let_go(body: Any) -> None:
    key, value, content = bytes(bytearray(b"key")), bytes(bytearray(b"value")), bytes(bytearray(b"content"))
    name, result = "".join(["na", "me"]), BatchResult("t", 0)
    values, times = [value, None, "wrong"], array("q", [1, 2])
    offsets, data, bits = array("i", [0, 1, 99]), bytearray(b"ab"), bytearray(b"\xff")

    def callback(metadata: Any, error: Any) -> None:
        raise AssertionError

    watched = (key, value, content, name, values, times, offsets, data, bits, callback, result)

    def use() -> None:
        batch = body.BatchBuilder("t", 0, 300, result, 0)
        for _ in range(50):
            batch.append(1, key, value, [(name, content)], callback)
            batch.append_many(1, values, values, 0, 3)
            batch.append_columns(times, (offsets, data, bits, 0), (offsets, data, None, 0), 0, 2)
            for bad in ((key, "text", None), ("text", value, None), (key, value, [(name, "text")])):
                with pytest.raises(TypeError):
                    batch.append(1, *bad)
                batch.grow_limit(batch.limit + 40)
            with pytest.raises(ValueError, match="timestamp"):
                batch.append(-5, key, value, [(name, content)], callback)
        batch.close(1, 1, 1, 1, content)
        with pytest.raises(KafkaError):
            batch.split(100, None)
        batch.views()
        result._deliveries.clear()

    use()
    gc.collect()
    counts = [sys.getrefcount(each) for each in watched]
    for _ in range(3):
        use()
    gc.collect()
    assert [sys.getrefcount(each) for each in watched] == counts


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_neither_batches_nor_futures_can_be_pickled(body: Any) -> None:
    driver = Driver(body, 1000)
    driver.step("append", 1, None, b"v", None, False)
    for thing in (driver.batch, driver.futures[0]):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(thing)


def test_many_are_what_they_are_one_by_one() -> None:
    values = [b"%d" % i * (i % 30) for i in range(1000)]
    keys = [None if i % 3 else b"k%d" % i for i in range(1000)]
    offsets = array("q", [0])
    for value in values:
        offsets.append(offsets[-1] + len(value))
    for body in BODIES:
        single, listed, columnar = (Driver(body, 4000).batch for _ in range(3))
        for key, value in zip(keys, values, strict=True):
            if single.append(9, key, value, None) is None:
                break
        assert listed.append_many(9, keys, values, 0, 1000) == (0, single.count)
        key_offsets, key_data, bits = array("i", [0]), b"", bytearray(125)
        for i, key in enumerate(keys):
            key_data += key or b""
            key_offsets.append(len(key_data))
            bits[i >> 3] |= (key is not None) << (i & 7)
        taken = columnar.append_columns(
            array("q", [9] * 1000),
            (key_offsets, key_data, bits, 0),
            (offsets, b"".join(values), None, 0),
            0,
            1000,
        )
        assert taken == (0, single.count)
        assert bytes(single.freeze()) == bytes(listed.freeze()) == bytes(columnar.freeze())


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_what_is_wrong_further_on_ends_the_run_before_it_and_is_told_when_it_is_the_first(body: Any) -> None:
    batch = Driver(body, 1000).batch
    values = [b"a", b"b", "c"]
    assert batch.append_many(1, None, values, 0, 3) == (0, 2)
    with pytest.raises(TypeError, match=r"values\[2\] must be bytes or None, not str"):
        batch.append_many(1, None, values, 2, 3)
    with pytest.raises(TypeError, match=r"keys\[2\] must be bytes or None, not str"):
        batch.append_many(1, values, values, 2, 3)
    hostile = (array("i", [0, 1, 5]), b"ab", None, 0)
    assert batch.append_columns(None, None, hostile, 0, 2) == (2, 1)
    with pytest.raises(ValueError, match="the offsets of row 1 of values lie outside of its data"):
        batch.append_columns(None, None, hostile, 1, 2)
    assert batch.append_columns(array("q", [5, -7]), None, None, 0, 2) == (3, 1)
    with pytest.raises(ValueError, match="-7"):
        batch.append_columns(array("q", [5, -7]), None, None, 1, 2)
    assert batch.count == 4


FAULTY: dict[str, list[Any]] = {
    "timestamp_ms": [5, -2, 2**63 - 1, 2**70, "1"],
    "key": [b"k", "text", 5],
    "value": [b"v", "text", bytearray(b"v")],
    "headers": [
        None,
        *([("\ud800", b"")], [("\ud800", b""), (1, b"")], [("n", "text")], ["n"], 5),
    ],
}


@pytest.mark.parametrize("first_ms", [None, -1, 7], ids=["first", "after none", "after some"])
def test_of_several_faults_of_a_record_both_bodies_tell_the_same(first_ms: int | None) -> None:
    for record in itertools.product(*FAULTY.values()):
        drivers = both(1000, [] if first_ms is None else [("append", first_ms, None, b"first", None, False)])
        same(drivers, lambda driver, record=record: driver.step("append", *record, False))


@pytest.mark.parametrize(
    ("keys", "values", "stop"),
    [
        (None, 5, 1),
        ([5], ["text"], 1),
        ([b"k"], ["text"], 1),
        (None, [], 1),
        ("k", [b"v"], 2),
        ([5], [b"v"], 1),
    ],
)
def test_of_several_faults_of_many_records_both_bodies_tell_the_same(
    keys: Any, values: Any, stop: int
) -> None:
    for timestamp_ms in FAULTY["timestamp_ms"]:
        drivers = both(1000, [("append", -1, None, b"first", None, False)])
        same(drivers, lambda driver, at=timestamp_ms: driver.step("append_many", at, keys, values, 0, stop))


def test_without_timestamps_all_have_that_of_now() -> None:
    for body in BODIES:
        for call in (
            lambda batch: batch.append(None, None, b"v", None),
            lambda batch: batch.append_many(None, None, [b"v"], 0, 1),
            lambda batch: batch.append_columns(None, None, None, 0, 1),
        ):
            batch = Driver(body, 1000).batch
            before = time.time_ns() // 1_000_000
            call(batch)
            assert before <= batch.max_timestamp_ms <= time.time_ns() // 1_000_000


class _Liar(list[Any]):
    def __len__(self) -> int:
        return 1000


class _Reentrant:
    """Headers that use the batch while it is used."""

    def __init__(self, act: Callable[[], object]) -> None:
        self.act = act

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        self.act()
        yield "name", b"value"


def test_a_list_that_lies_about_its_length_is_not_believed() -> None:
    batch = Driver(native, 1000).batch
    with pytest.raises(ValueError, match="there are fewer"):
        batch.append_many(1, None, _Liar([b"a"]), 0, 500)
    with pytest.raises(ValueError, match="there are fewer"):
        batch.append_many(1, _Liar([b"a"]), [b"a"] * 3, 0, 3)
    assert batch.count == 0


@pytest.mark.parametrize("what", ["append", "close", "freeze", "release"])
def test_headers_that_use_the_batch_meanwhile_do_it_no_harm(what: str) -> None:
    driver = Driver(native, 1000)
    batch = driver.batch
    batch.append(1, None, b"before", None)
    act = {
        "append": lambda: batch.append(1, None, b"x" * 900, None),
        "close": lambda: batch.close(-1, -1, -1, 0),
        "freeze": batch.freeze,
        "release": batch.release,
    }[what]
    found = batch.append(1, b"key", b"value", _Reentrant(act), lambda metadata, error: None)
    assert (found is None) == (what != "append" or batch.count == 2)
    assert batch.size <= 1000


def test_a_callback_for_a_result_that_is_complete_already_runs_at_once() -> None:
    for body in BODIES:
        driver = Driver(body, 1000)
        driver.result.complete(5)
        driver.step("append", 1, None, b"v", None, True)
        assert driver.told == [(("t", 3, 5, 1, -1, 1), None)]


def test_hundreds_of_threads_worth_of_appends_and_a_close_lose_no_callback() -> None:
    for _ in range(10):
        driver = Driver(native, 1 << 30)
        driver.step("append", 1, None, b"first", None, True)
        start = threading.Barrier(4)

        def append(driver: Driver = driver, start: threading.Barrier = start) -> None:
            start.wait()
            while driver.step("append", 1, None, b"v", None, True)[0] == "future":
                pass

        threads = [threading.Thread(target=append) for _ in range(3)]
        for thread in threads:
            thread.start()
        start.wait()
        driver.batch.close(-1, -1, -1, 0)
        count = driver.batch.count
        driver.result.complete(0)
        for thread in threads:
            thread.join()
        assert len(driver.told) == len(driver.futures) == count == driver.batch.count
        assert sorted(metadata[2] for metadata, _ in driver.told) == list(range(count))


@given(columns(7), st.integers(-1, 2**40), positions, positions)
def test_keys_go_to_the_same_partitions(keys: Any, count: int, start: int, stop: int) -> None:
    if keys is not None:
        found = [
            outcome(lambda body=body: list(body.key_partitions(keys, start, stop, count))) for body in BODIES
        ]
        assert found[0] == found[1]
