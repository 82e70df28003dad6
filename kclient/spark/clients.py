"""The clients of this process, kept from one task or batch to the next.

Spark's Python workers live on between tasks, for about a minute without work. A connection that is there already
saves a task what connecting and finding the leaders takes. Clients with the same settings are the same.

A kind of client is imported where the first one is made: no process of Spark's uses all of them, and each query starts
a process.

Files that settings name are looked for on this machine where a client is made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import attrs

from kclient._accel import in_forked_children
from kclient.spark.shipped_files import files_folder, on_this_machine
from kclient.utils.exit_order import ExitStage, at_exit
from kclient.utils.time import SYSTEM_TIME

if TYPE_CHECKING:
    from kclient.admin import KafkaAdminClient
    from kclient.consumer import KafkaConsumer
    from kclient.producer import KafkaProducer

BytesConsumer: TypeAlias = "KafkaConsumer[bytes, bytes]"
BytesProducer: TypeAlias = "KafkaProducer[bytes, bytes]"
_Key: TypeAlias = tuple[tuple[str, str], ...]

C = TypeVar("C", bound="KafkaAdminClient | BytesProducer")

_IDLE_MS = 5 * 60_000
_MOST_IDLE_CONSUMERS = 64


@attrs.define
class _Idle:
    """A consumer that nobody uses, and since when."""

    key: _Key
    consumer: BytesConsumer
    since_ms: int


class _Clients:
    """All of them. Thread-safe."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.idle: list[_Idle] = []
        self.admins: dict[_Key, KafkaAdminClient] = {}
        self.producers: dict[_Key, BytesProducer] = {}

    def take(self, key: _Key) -> BytesConsumer | None:
        now_ms = SYSTEM_TIME.monotonic_ms()
        with self.lock:
            found = next((each for each in reversed(self.idle) if each.key == key), None)
            expired = [each for each in self.idle if each is not found and now_ms - each.since_ms > _IDLE_MS]
            gone = [*expired, *([found] if found else [])]
            self.idle = [each for each in self.idle if not any(each is other for other in gone)]
        for each in expired:
            each.consumer.close(0)
        return found.consumer if found else None

    def give_back(self, key: _Key, consumer: BytesConsumer) -> None:
        with self.lock:
            self.idle.append(_Idle(key, consumer, SYSTEM_TIME.monotonic_ms()))
            surplus = self.idle.pop(0) if len(self.idle) > _MOST_IDLE_CONSUMERS else None
        if surplus is not None:
            surplus.consumer.close(0)

    def close(self) -> None:
        with self.lock:
            closing: list[BytesConsumer | KafkaAdminClient | BytesProducer] = [
                *(each.consumer for each in self.idle),
                *self.admins.values(),
                *self.producers.values(),
            ]
            self.idle = []
            self.admins.clear()
            self.producers.clear()
        for client in closing:
            client.close(0)


_clients = _Clients()


@contextmanager
def leased_consumer(settings: Mapping[str, str]) -> Iterator[BytesConsumer]:
    """A consumer that is nobody else's until the block ends. After an error it is closed, as its state is unknown."""
    from kclient.consumer import KafkaConsumer

    clients, key = _clients, _key(settings)
    consumer = clients.take(key) or KafkaConsumer(on_this_machine(settings))
    try:
        yield consumer
    except BaseException:
        consumer.close(0)
        raise
    consumer.unsubscribe()  # or it would go on fetching
    clients.give_back(key, consumer)


def shared_admin(settings: Mapping[str, str]) -> KafkaAdminClient:
    """The admin client with these settings; not to be closed."""
    from kclient.admin import KafkaAdminClient

    return _shared(_clients.admins, settings, KafkaAdminClient)


@contextmanager
def questioned_admin(settings: Mapping[str, str]) -> Iterator[KafkaAdminClient]:
    """The admin client with these settings, for questions; after an error the next ones go to a new one."""
    try:
        yield shared_admin(settings)
    except BaseException:
        drop_admin(settings)
        raise


def shared_producer(settings: Mapping[str, str]) -> BytesProducer:
    """The producer with these settings; not to be closed, but dropped after an error."""
    from kclient.producer import KafkaProducer

    return _shared(_clients.producers, settings, KafkaProducer)


def drop_admin(settings: Mapping[str, str]) -> None:
    """Close the admin client with these settings, so that the next one begins anew."""
    _drop(_clients.admins, settings)


def drop_producer(settings: Mapping[str, str]) -> None:
    """Close the producer with these settings without waiting for what it has not delivered."""
    _drop(_clients.producers, settings)


def _shared(known: dict[_Key, C], settings: Mapping[str, str], make: Callable[[Mapping[str, str]], C]) -> C:
    key = _key(settings)
    with _clients.lock:
        if key not in known:
            known[key] = make(on_this_machine(settings))
        return known[key]


def _drop(known: dict[_Key, C], settings: Mapping[str, str]) -> None:
    with _clients.lock:
        client = known.pop(_key(settings), None)
    if client is not None:
        client.close(0)


def close_all() -> None:
    """Close every client that is not leased."""
    _clients.close()


def _key(settings: Mapping[str, str]) -> _Key:
    # A file of the same name may be another one where another session has shipped it.
    return (*sorted(settings.items()), ("", str(files_folder())))


def _forget_in_child() -> None:
    # The parent's connections are not ours, and its lock may have been held by a thread that is not here.
    global _clients
    _clients = _Clients()


in_forked_children(_forget_in_child)
at_exit(ExitStage.CLIENTS, close_all)
