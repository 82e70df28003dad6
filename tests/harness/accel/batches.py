"""Both bodies of a batch, steps to take with them, and everything that can be seen of what comes of it."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import kclient.record  # noqa: F401 - plugs in the codecs
from kclient._accel import BatchResult, reference
from kclient.errors import KafkaError

native = pytest.importorskip("kclient._accel.native", reason="the native body is not built")

BODIES = [reference, native]
MAX = 2**63 - 1

more = settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])

contents = (
    st.none() | st.binary(max_size=20) | st.sampled_from([b"x" * size for size in (62, 63, 64, 100, 130)])
)
values = st.one_of(*[contents] * 20, st.sampled_from([b"x" * size for size in (8190, 8191, 8192)]))
wrong = st.sampled_from(["text", 5, bytearray(b"b"), memoryview(b"m"), [b"l"]])
timestamps = st.one_of(
    st.integers(1000, 1010), st.integers(-1, MAX), st.sampled_from([-1, 0, MAX - 1, MAX, 63, 64, 2**31])
)
no_timestamps = st.sampled_from(["1", 1.5, b"", (1,)])
bad_timestamps = st.sampled_from([-2, -(2**63), 2**63, 2**70, -(2**70)])
names = st.text(max_size=6) | st.sampled_from(["ключ", "鍵", "\0", "n" * 130])
headers = st.one_of(
    st.none(),
    st.just(()),
    st.lists(st.tuples(names, contents), max_size=3),
    st.lists(st.tuples(names, contents)).map(tuple),
)
bad_headers = st.sampled_from(
    [
        *([(b"name", b"")], [("name", "text")], [("\ud800", None)], [("n", b"", 1)], [("n",)], ["n"], [5], 5),
        [("\ud800", None), (b"name", b"")],
        [("\ud800", 5), ("n", b"")],
    ]
)

appends = st.tuples(st.just("append"), timestamps, contents, values, headers, st.booleans())
bad_appends = st.one_of(
    st.tuples(st.just("append"), timestamps, wrong, contents, headers, st.booleans()),
    st.tuples(st.just("append"), timestamps, contents, wrong, headers, st.booleans()),
    st.tuples(st.just("append"), timestamps, contents, contents, bad_headers, st.booleans()),
    st.tuples(st.just("append"), bad_timestamps, contents, contents, headers, st.booleans()),
    # With several faults the first one counts.
    st.tuples(
        st.just("append"),
        timestamps | bad_timestamps | no_timestamps,
        contents | wrong,
        contents | wrong,
        headers | bad_headers,
        st.booleans(),
    ),
)
lists = st.lists(st.one_of(*[contents] * 8, wrong), max_size=12)
positions = st.integers(-1, 14)
many = st.tuples(
    st.just("append_many"),
    st.one_of(timestamps, timestamps, timestamps, bad_timestamps | no_timestamps),
    st.none() | lists,
    lists | lists.map(tuple),
    positions,
    positions,
)


@st.composite
def columns(draw: st.DrawFn, count: int) -> Any:
    """A column of `count` strings, sound or hostile."""
    if draw(st.integers(0, 4)) == 0:
        return None
    strings = draw(st.lists(contents, min_size=count, max_size=count))
    data = draw(st.binary(max_size=3))
    offsets = [len(data)]
    first_bit = draw(st.integers(0, 9))
    bits = bytearray(draw(st.binary(min_size=(first_bit + count + 7) // 8, max_size=8 + count)))
    for i, string in enumerate(strings):
        data += string or b""
        offsets.append(len(data))
        at = first_bit + i
        bits[at >> 3] = bits[at >> 3] & ~(1 << (at & 7)) | (string is not None) << (at & 7)
    if draw(st.integers(0, 3)) == 0:
        offsets[draw(st.integers(0, count))] = draw(
            st.sampled_from([-1, -(2**31), 2**31 - 1, len(data) + 1, 0, 1])
        )
    if draw(st.integers(0, 9)) == 0:
        first_bit = draw(st.sampled_from([-1, 2**40, 8 * len(bits)]))
    code = draw(st.sampled_from("iiqqlIbd"))
    kept = array(code, [abs(offset) % 100 for offset in offsets] if code in "Ibd" else offsets)
    validity = None if draw(st.booleans()) else bytes(bits)
    return kept, draw(st.sampled_from([bytes, bytearray, memoryview]))(data), validity, first_bit


@st.composite
def column_appends(draw: st.DrawFn) -> tuple[Any, ...]:
    count = draw(st.integers(0, 10))
    # Always given: two clocks would differ.
    times = array("q", draw(st.lists(st.integers(-2, 5), min_size=count, max_size=count)))
    start, stop = draw(positions), draw(positions)
    return "append_columns", times, draw(columns(count)), draw(columns(count)), start, stop


grows = st.tuples(st.just("grow_limit"), st.integers(0, 20_000))
steps = st.lists(
    st.one_of(appends, appends, appends, bad_appends, many, column_appends(), grows), max_size=25
)
limits = st.one_of(st.integers(0, 400), st.sampled_from([1000, 16384, 1 << 20, 1 << 40]))


_KNOWN_WORDS = ("must be", "records", "lie outside", "interpreted as an integer", "to unpack", "not iterable")


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call, or what it raised: its type, and for errors of ours its words."""
    try:
        return call(*arguments)
    except (TypeError, ValueError, OverflowError, KafkaError) as error:
        known = any(words in str(error) for words in _KNOWN_WORDS)
        return type(error).__name__, str(error) if known else None


class Driver:
    """A batch of one body, and everything that can be seen of what is done to it."""

    def __init__(self, body: Any, limit: int) -> None:
        self.body = body
        self.result = BatchResult("t", 3)
        self.batch = body.BatchBuilder("t", 3, limit, self.result, 77)
        self.futures: list[Any] = []
        self.told: list[Any] = []

    def facts(self) -> Any:
        batch = self.batch
        return (
            (batch.topic, batch.partition, batch.created_ms, batch.limit, batch.count, batch.closed),
            (batch.size, batch.uncompressed_size, batch.max_timestamp_ms),
        )

    def step(self, name: str, *arguments: Any) -> Any:
        if name == "append":
            *record, called_back = arguments
            callback = (lambda metadata, error: self.told.append((metadata, error))) if called_back else None
            found = outcome(self.batch.append, *record, callback)
            if isinstance(found, self.body.Future):
                self.futures.append(found)
                found = "future"
        else:
            found = outcome(getattr(self.batch, name), *arguments)
        return found, self.facts()

    def wire(self) -> Any:
        return outcome(lambda: b"".join(self.batch.views()))


def both(limit: int, done: list[tuple[Any, ...]]) -> list[Driver]:
    """A batch of each body after the same steps, which came out the same."""
    drivers = [Driver(body, limit) for body in BODIES]
    for step in done:
        one, other = (driver.step(*step) for driver in drivers)
        assert one == other, step
    assert drivers[0].result is not drivers[1].result
    return drivers


def same(drivers: list[Driver], look: Callable[[Driver], Any]) -> Any:
    one, other = (look(driver) for driver in drivers)
    assert one == other
    return one
