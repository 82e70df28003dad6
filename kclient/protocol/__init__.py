"""Kafka's wire protocol: the messages, their codecs for every version, and the frames around them."""

from __future__ import annotations

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.codec import (
    decode,
    decode_prefix,
    decode_versioned,
    encode,
    encode_buffers,
    encode_versioned,
)

__all__ = [
    "ApiKeys",
    "decode",
    "decode_prefix",
    "decode_versioned",
    "encode",
    "encode_buffers",
    "encode_versioned",
]
