"""The records section of a batch taken apart: what is in a record, and what is said of one that is malformed."""

from __future__ import annotations

import itertools

import pytest

from kclient._accel.reference.batch import encode_record
from kclient._accel.shared.records import RawRecord, decode_portions, decode_records
from kclient._accel.shared.varint import zigzag


def frame(body: bytes) -> bytes:
    """A record of this body, with its size in front."""
    return zigzag(len(body)) + body


def body(key: bytes = b"\1", value: bytes = b"\1", headers: bytes = b"\0", front: bytes = b"\0\0\0") -> bytes:
    """Attributes, timestamp and offset delta; key; value; headers: each as it is written."""
    return front + key + value + headers


def one(data: bytes) -> RawRecord:
    [found] = decode_records(data, 1)
    return found


def test_a_record_has_its_size_deltas_contents_and_headers() -> None:
    data = encode_record(-3, 70, b"key", b"value" * 30, (("name", b"1"), ("", None)))
    assert one(data) == (len(data) - 2, -3, 70, b"key", b"value" * 30, (("name", b"1"), ("", None)))


def test_attributes_of_a_record_mean_nothing() -> None:
    assert one(frame(body(front=b"\xff\0\0")))[1:] == (0, 0, None, None, ())


def test_numbers_in_more_bytes_than_they_need_are_read() -> None:
    long_zero, long_two = b"\x80\x80\0", b"\x84\x80\0"
    found = one(frame(b"\0" + long_zero + long_zero + long_two + b"kk" + long_two + b"vv" + long_zero))
    assert found[1:] == (0, 0, b"kk", b"vv", ())


def test_any_negative_size_is_a_null() -> None:
    found = one(frame(body(key=zigzag(-100), value=zigzag(-9000), headers=b"\2\2n" + zigzag(-5))))
    assert found[3:] == (None, None, (("n", None),))


def test_a_headers_name_that_is_no_utf_8_is_made_valid() -> None:
    assert one(frame(body(headers=b"\2\4\xffa\0")))[5] == (("\ufffda", b""),)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (zigzag(-1), "record 0 has an impossible size"),
        (zigzag(7) + body(), "record 0 has an impossible size"),
        (zigzag(2**31 - 1) + body(), "record 0 has an impossible size"),
        (b"\xff" * 6, "more than 5 bytes"),
        (frame(body(key=b"\x06kk")), "record 0 is cut off"),
        (frame(body(value=zigzag(2**30))), "record 0 is cut off"),
        (frame(body() + b"\0"), "record 0 does not end where its size says"),
        (frame(b""), "record 0 is cut off"),
        (frame(body(front=b"\0" + b"\xff" * 10 + b"\0")), "more than 10 bytes"),
        (frame(body(headers=zigzag(-1))), "impossible number of headers"),
        (frame(body(headers=zigzag(4) + b"\0\0")), "impossible number of headers"),
        (frame(body(headers=zigzag(2**31 - 1))), "impossible number of headers"),
        (frame(body(headers=b"\2\1\0")), "a header has an impossible size"),
        (frame(body(headers=b"\2\x0ana\0")), "a header has an impossible size"),
        (frame(body(headers=b"\2\2n\x08v")), "record 0 does not end where its size says"),
        (frame(body()) + b"??", "2 bytes follow the last record"),
        (b"", "record 0 is cut off"),
    ],
)
def test_a_malformed_record_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        list(decode_records(data, 1))


def test_the_records_before_a_malformed_one_are_read_and_it_is_named_by_its_number() -> None:
    found: list[RawRecord] = []
    with pytest.raises(ValueError, match="record 2 has an impossible size"):
        found.extend(decode_records(encode_record(0, 0, None, b"v", ()) * 2 + zigzag(-1), 5))
    assert [record[4] for record in found] == [b"v", b"v"]


def test_more_records_than_there_are_is_told_at_the_end_of_those() -> None:
    records = decode_records(encode_record(0, 0, None, b"v", ()) * 40, 2**31 - 1)
    assert len(list(itertools.islice(records, 40))) == 40
    with pytest.raises(ValueError, match="record 40 is cut off"):
        next(records)


def test_a_negative_number_of_records_is_refused_and_none_is_none() -> None:
    with pytest.raises(ValueError, match="the batch claims -1 records"):
        list(decode_records(b"", -1))
    assert list(decode_records(b"", 0)) == []


@pytest.mark.parametrize("cause", [None, EOFError()])
@pytest.mark.parametrize("cut", [0, 1, 2, 3, 50])
def test_where_bytes_are_missing_the_error_that_stopped_decompressing_is_raised(
    cut: int, cause: BaseException | None
) -> None:
    data = encode_record(0, 0, b"key", b"value" * 20, ())
    stopped = OSError("no more")
    if cause is not None:  # setting it to None hides the context as well
        stopped.__cause__ = cause
    records = decode_records(data + data[:cut], 2, stopped)
    next(records)
    with pytest.raises(OSError, match="no more") as caught:
        next(records)
    assert caught.value is stopped
    assert stopped.__cause__ is cause
    # Nothing of how that was found out is in the traceback.
    assert stopped.__context__ is None or stopped.__suppress_context__


def test_what_is_malformed_before_that_is_told_for_itself() -> None:
    with pytest.raises(ValueError, match="record 0 has an impossible size"):
        list(decode_records(zigzag(-1), 2, OSError("no more")))
    with pytest.raises(ValueError, match="does not end where its size says"):
        list(decode_records(frame(body() + b"\0"), 2, OSError("no more")))


def test_portions_of_records_without_runs_get_longer_and_longer() -> None:
    # Sizes that differ from one to the next.
    data = b"".join(encode_record(0, i, None, bytes(i % 2), ()) for i in range(32 + 256 + 100))
    assert [len(list(portion)) for portion in decode_portions(data, 388)] == [32, 256, 100]  # type: ignore[arg-type]
