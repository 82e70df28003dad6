"""The hot path behind one list of names, with the choice of body made once.

`IMPL` says which body runs: `"python"`, the reference, or `"c"`, the native one. The environment variable
`KCLIENT_IMPL=python|c` chooses; unset takes the best there is. Asking for one that is not there is an `ImportError`.

The bodies know no policy and nothing of the floors above: what they need from there (codecs, the old record formats,
Kafka's error classes) is plugged into `hooks`. Left alone they raise `ValueError` and builtin `TimeoutError`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kclient._accel.hooks import hooks


def _choose(wanted: str | None) -> str:
    """The name of the body to run, for the value of KCLIENT_IMPL."""
    chosen = wanted or "c"
    if chosen == "python":
        return chosen
    if chosen != "c":
        raise ImportError(f"KCLIENT_IMPL={wanted!r}: the bodies of kclient are named python and c")
    try:
        import kclient._accel.native  # noqa: F401 - whether it can be imported is the question
    except ImportError as error:
        if not wanted:
            return "python"
        raise ImportError(
            f"KCLIENT_IMPL=c asks for the native body of kclient, but this build does not have it: {error}"
        ) from error
    return chosen


IMPL = _choose(os.environ.get("KCLIENT_IMPL"))

if TYPE_CHECKING or IMPL == "python":
    from kclient._accel import pure as _body
else:
    from kclient._accel import native as _body

BatchBuilder = _body.BatchBuilder
BatchResult = _body.BatchResult
FrameMemory = _body.FrameMemory
Future = _body.Future
Lane = _body.Lane
LoneResult = _body.LoneResult
Poller = _body.Poller
PreparedFetch = _body.PreparedFetch
RecordReader = _body.RecordReader
crc32c = _body.crc32c
decode_records = _body.decode_records
encode_record = _body.encode_record
end_of_batches = _body.end_of_batches
hand_over = _body.hand_over
key_partitions = _body.key_partitions
murmur2 = _body.murmur2

__all__ = [
    "IMPL",
    "BatchBuilder",
    "BatchResult",
    "FrameMemory",
    "Future",
    "Lane",
    "LoneResult",
    "Poller",
    "PreparedFetch",
    "RecordReader",
    "crc32c",
    "decode_records",
    "encode_record",
    "end_of_batches",
    "hand_over",
    "hooks",
    "key_partitions",
    "murmur2",
]
