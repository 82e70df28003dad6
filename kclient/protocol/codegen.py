"""Builds the codec of a message at one version: Python source made from the declaration, compiled at first use.

Generated code beats composed closures three to four times: fields of fixed size that follow each other become one
`struct` call (together with the length that comes next), arrays of structs become inlined loops, and what a version
lacks costs nothing. The source is in `linecache` as `<kclient codec ProduceRequest v9>`, so tracebacks, debuggers and
profilers show it.

Generated functions:

- `encode(o1, out, refs)` appends message `o1` to the bytearray `out`. Large `records` go to `refs` as (position in
  `out`, buffer) instead, unless `refs` is None.
- `decode(buf, pos, end, budget)` returns the message at `pos` and the position after it. Its first loop variable
  names say what they hold: `o1`, `o2`, ... are structs by depth, `n` a length, `q` the end of a value.

Memory while decoding hostile bytes: a count is checked against the bytes that are left before anything is
allocated for it, and each array charges `budget` for the objects it is about to make (see `guard`).
"""

from __future__ import annotations

import threading
from typing import Any

from kclient.common.uuid import Uuid
from kclient.errors import UnsupportedVersionError
from kclient.protocol import guard
from kclient.protocol.decoder_source import DecoderSource
from kclient.protocol.encoder_source import EncoderSource
from kclient.protocol.schema import Codec, Message
from kclient.protocol.wire import VARINTS, read_numbers, read_size, unsigned_varint
from kclient.utils.generated import compile_source

_lock = threading.Lock()


def build(cls: type[Message], version: int) -> tuple[Codec, Codec]:
    """The encoder and decoder of `cls` at `version`, kept in `cls.ENCODERS` and `cls.DECODERS`.

    Raises UnsupportedVersionError for a version that the message does not have. Thread-safe.
    """
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise UnsupportedVersionError(
            f"{cls.__name__} has versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not {version}"
        )
    with _lock:
        if version not in cls.DECODERS:
            encoder, decoder = EncoderSource(cls, version), DecoderSource(cls, version)
            source = encoder.text() + "\n\n" + decoder.text()
            name = f"<kclient codec {cls.__name__} v{version}>"
            scope = {**_COMMON, **encoder.scope, **decoder.scope}
            compile_source(name, source, scope)
            cls.ENCODERS[version] = scope["encode"]
            cls.DECODERS[version] = scope["decode"]
        return cls.ENCODERS[version], cls.DECODERS[version]


_COMMON: dict[str, Any] = {
    "NO_UUID": Uuid.ZERO,
    "VARINTS": VARINTS,
    "bad_count": guard.bad_count,
    "bad_size": guard.bad_size,
    "bad_tag": guard.bad_tag,
    "lacks_field": guard.lacks_field,
    "lacks_tags": guard.lacks_tags,
    "new": object.__new__,
    "over_budget": guard.over_budget,
    "read_numbers": read_numbers,
    "read_size": read_size,
    "read_tag": guard.read_tag,
    "read_tag_count": guard.read_tag_count,
    "read_unknown_tags": guard.read_unknown_tags,
    "unsigned_varint": unsigned_varint,
    "uuid": guard.uuid,
    "write_numbers": guard.write_numbers,
    "write_tags": guard.write_tags,
}
