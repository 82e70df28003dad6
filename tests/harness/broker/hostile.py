"""Requests that no client would send: right by their declaration and full of odd values, or wrong in any byte."""

from __future__ import annotations

import contextlib
import random
from typing import Any

from harness.broker.wire import batch
from kclient.broker.apis.registry import ServedApi
from kclient.common.uuid import Uuid
from kclient.protocol.codec import decode, encode
from kclient.protocol.header import request_buffers
from kclient.protocol.registry import request_class
from kclient.protocol.schema import Field, Structure
from kclient.protocol.wire import Array, Records

NAMES = (
    "t", "t", "t", "g", "", ".", "bad name/\0", "x" * 250, "ä" * 200, "__consumer_offsets", "1", "range", "consumer",
    "cleanup.policy", "compact", "retention.ms", "max.message.bytes", "segment.bytes", "-1", "SCRAM-SHA-256",
    "2", "num.network.threads", "listener.name.plaintext.num.network.threads",
    "listener.name.plaintext.ssl.keystore.key", "listener.name.x.max.connections",
    "ssl.keystore.location", "producer.id.expiration.ms",
)  # fmt: skip
_NUMBERS = (0, 1, 2, 3, -1, -2)
_PLAUSIBLE: dict[str, tuple[Any, ...]] = {
    "acks": (-1, 0, 1), "transactional_id": (None,), "timeout_ms": (1000,), "index": (0, 1), "partition": (0, 1),
    "partition_index": (0, 1), "partition_indexes": ([0], [1, 0]), "topic": ("t",), "name": ("t",),
    "max_wait_ms": (0,), "min_bytes": (0, 1), "max_bytes": (1 << 20,), "partition_max_bytes": (1 << 20, 100),
    "session_id": (0,), "session_epoch": (-1, 0), "replica_id": (-1,), "current_leader_epoch": (-1,),
    "last_fetched_epoch": (-1,), "fetch_offset": (0, 1), "timestamp": (-1, -2, 0), "group_id": ("g",),
    "generation_id": (-1,), "generation_id_or_member_epoch": (-1,), "member_id": ("",),
    "group_instance_id": (None, "i"), "session_timeout_ms": (300,), "rebalance_timeout_ms": (300,),
    "protocol_type": ("consumer",), "assignments": ([],), "num_partitions": (1, 2, -1), "replication_factor": (1, -1),
    "count": (3, 4), "committed_offset": (0, 5), "committed_leader_epoch": (-1,), "offset": (0, -1),
    "resource_type": (2, 2, 4), "resource_name": ("t", "t", "1", ""),
    "config_operation": (0, 1, 2, 3), "leader_epoch": (0, 1),
    "key": ("g",), "key_type": (0,), "producer_id": (-1,), "producer_epoch": (-1,), "mechanism": (1, 2),
    "iterations": (4096,), "components": ([],), "topic_names": (["t"],),
}  # fmt: skip
"""Values with which a request comes through, by the names of fields."""


class HostileRequests:
    """Makes requests of the APIs; the seed decides on all of them."""

    def __init__(self, apis: list[ServedApi], seed: int) -> None:
        self._apis = apis
        self._random = random.Random(seed)

    def frame(self) -> bytes:
        """The next one, with its length; half of them are damaged somewhere."""
        chance = self._random
        while True:
            api = chance.choice(self._apis)
            version = chance.randint(api.min_version, api.max_version)
            message = self._structure(request_class(api.key), version)
            try:
                frame = b"".join(request_buffers(message, version, chance.getrandbits(31), "hostile"))
            except Exception:
                continue  # such values the version cannot say
            return self._damaged(frame) if chance.random() < 0.5 else frame

    def messages(self, version: int, count: int) -> list[Any]:
        """Return whole requests of one version as a broker reads them."""
        made: list[Any] = []
        while len(made) < count:
            cls = request_class(self._random.choice(self._apis).key)
            with contextlib.suppress(Exception):  # such values the version cannot say
                made.append(decode(cls, version, encode(self._structure(cls, version), version)))
        return made

    def _structure(self, cls: type[Any], version: int) -> Any:
        return cls(
            **{field.name: self._value(field, version) for field in cls.FIELDS if version in field.versions}
        )

    def _value(self, field: Field, version: int) -> Any:
        chance = self._random
        plausible = _PLAUSIBLE.get(field.name, ())
        if plausible and chance.random() < 0.9:
            value = chance.choice(plausible)
            if value is not None or version in field.nullable:
                return value
        if version in field.nullable and chance.random() < 0.1:
            return None
        if isinstance(field.kind, Array):
            return [self._element(field, version) for _ in range(chance.choice((0, 1, 1, 1, 2, 3)))]
        return self._element(field, version)

    def _element(self, field: Field, version: int) -> Any:
        chance = self._random
        element = field.element()
        if isinstance(element, type) and issubclass(element, Structure):
            return self._structure(element, version)
        if element is Records:
            return self._records()
        python = element.python  # type: ignore[union-attr] - no structure
        if python == "int":
            limit = 1 << (element.size * 8 - 1)  # type: ignore[union-attr]
            # Others would rightly wait so long, and their connections with them.
            longest = 300 if "wait" in field.name or "rebalance" in field.name else limit - 1
            return chance.choice((*_NUMBERS, longest, -limit))
        if python == "bool":
            return chance.random() < 0.5
        if python == "str":
            return chance.choice(NAMES)
        if python == "bytes":
            return chance.choice((b"", b"\0", b"\0\0\0\0\0\1\0\1t", chance.randbytes(40), b"\xff" * 300))
        if python == "Uuid":
            return chance.choice((Uuid.ZERO, Uuid.random()))
        return 0.5

    def _records(self) -> bytes:
        chance = self._random
        records = batch(*(chance.randbytes(chance.randint(0, 40)) for _ in range(chance.randint(1, 4))))
        way = chance.randrange(6)
        if way == 1:
            return records[: chance.randrange(len(records))]
        if way == 2:
            return self._flipped(records)
        return records + records if way == 3 else records

    def _damaged(self, frame: bytes) -> bytes:
        """Wrong bytes anywhere; mostly with a length that is right, so that it is read."""
        chance = self._random
        body = self._flipped(frame[4:])
        way = chance.randrange(5)
        at = chance.randrange(len(body))
        if way == 0:
            body = body[:at]
        elif way == 1:
            body = body[:at] + chance.randbytes(chance.randint(1, 9)) + body[at:]
        length = len(body)
        if chance.random() < 0.1:
            length = chance.choice((0, -1, 1, length + 1, 1 << 30, (1 << 31) - 1, -(1 << 31)))
        return length.to_bytes(4, "big", signed=True) + body

    def _flipped(self, data: bytes) -> bytes:
        chance = self._random
        flipped = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 8))):
            flipped[chance.randrange(len(flipped))] = chance.choice(
                (0, 1, 0x7F, 0x80, 0xFF, chance.getrandbits(8))
            )
        return bytes(flipped)
