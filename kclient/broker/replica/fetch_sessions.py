"""Incremental fetch sessions (KIP-227): the broker remembers what a client reads, so that neither side repeats it."""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence

import attrs

from kclient.broker.replica.fetching import FetchKey, PartitionFetch, PartitionFetched
from kclient.errors import Errors
from kclient.utils.time import Time

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
_MAX_INT = (1 << 31) - 1


def next_epoch(epoch: int) -> int:
    """The epoch of the request after the one with `epoch`."""
    return 1 if epoch == _MAX_INT else epoch + 1


@attrs.define(eq=False)
class _CachedPartition:
    """One partition of a session: the client's request for it, and the offsets it was last told."""

    fetch: PartitionFetch
    high_watermark: int = -1
    log_start_offset: int = -1

    def has_news(self, result: PartitionFetched) -> bool:
        """Return True if the client must be told of `result`, and remember what it is told."""
        news = (
            len(result.records) > 0
            or result.error is not None
            or result.diverging_epoch is not None
            or result.high_watermark != self.high_watermark
            or result.log_start_offset != self.log_start_offset
        )
        # After an error the client knows nothing for sure; the next success is news whatever it says.
        failed = result.error is not None
        self.high_watermark = -1 if failed else result.high_watermark
        self.log_start_offset = -1 if failed else result.log_start_offset
        return news


@attrs.define(eq=False)
class FetchSession:
    """One client's partitions, in the order in which they are read. Its lock guards all of it."""

    id: int
    partitions: OrderedDict[FetchKey, _CachedPartition]
    uses_topic_ids: bool
    """True if its requests name topics by their ids: all of them, or none."""
    last_used_ms: int
    epoch: int = attrs.field(default=next_epoch(INITIAL_EPOCH), init=False)
    lock: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    def update(self, fetches: Sequence[PartitionFetch], forgotten: Collection[FetchKey]) -> None:
        """Apply what an incremental request changes."""
        for fetch in fetches:
            cached = self.partitions.get(fetch.key)
            if cached is None:
                self.partitions[fetch.key] = _CachedPartition(fetch)
            else:
                cached.fetch = fetch
        for key in forgotten:
            self.partitions.pop(key, None)


@attrs.frozen
class FetchAnswer:
    """The contents of the response."""

    session_id: int
    error_code: int
    results: Sequence[tuple[PartitionFetch, PartitionFetched]]


@attrs.define(eq=False)
class FetchContext:
    """One request's view of its session, if it has one. Used by one thread at a time."""

    _cache: FetchSessionCache
    fetches: Sequence[PartitionFetch]
    """The partitions to read."""
    _uses_topic_ids: bool
    _session: FetchSession | None = None
    _epoch: int = 0
    _keep: bool = False
    error_code: int = 0
    """Not 0 if the request does not fit its session; then nothing is read."""

    def answer(self, results: Sequence[PartitionFetched]) -> FetchAnswer:
        """Return the part of `results`, one for each of `fetches`, that the client is told, and its session's id."""
        if self.error_code:
            return FetchAnswer(NO_SESSION, self.error_code, ())
        session = self._session
        if session is None:
            session_id = NO_SESSION
            if self._keep:
                session_id = self._cache.open(self.fetches, results, uses_topic_ids=self._uses_topic_ids)
            return FetchAnswer(session_id, 0, list(zip(self.fetches, results, strict=True)))
        with session.lock:
            if session.epoch != self._epoch:
                # Another request used the session while this one waited; its answer would contradict ours.
                return FetchAnswer(session.id, int(Errors.INVALID_FETCH_SESSION_EPOCH), ())
            told = []
            for fetch, result in zip(self.fetches, results, strict=True):
                key = fetch.key
                cached = session.partitions.get(key)
                if cached is None or not cached.has_news(result):
                    continue
                told.append((fetch, result))
                if len(result.records):
                    # To the end of the line: when the limit on bytes cuts a response short, those that got
                    # nothing come first next time.
                    session.partitions.move_to_end(key)
            return FetchAnswer(session.id, 0, told)


class FetchSessionCache:
    """All sessions, at most `slots`. Thread-safe.

    A new one takes the place of the one unused for longest, if that is at least `eviction_ms`; otherwise the
    client goes without and sends full requests.
    """

    def __init__(self, slots: int, eviction_ms: int, time: Time) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._time = time
        self._lock = threading.Lock()
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # least recently used first

    def __len__(self) -> int:
        return len(self._sessions)

    def context(
        self,
        session_id: int,
        epoch: int,
        fetches: Sequence[PartitionFetch],
        forgotten: Collection[FetchKey],
        *,
        uses_topic_ids: bool = False,
    ) -> FetchContext:
        """Find out what a request with these fields reads."""
        if epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
            if session_id != NO_SESSION:
                self._remove(session_id)
            return FetchContext(self, fetches, uses_topic_ids, keep=epoch == INITIAL_EPOCH)
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None:
                return self._refused(Errors.FETCH_SESSION_ID_NOT_FOUND)
            session.last_used_ms = self._time.monotonic_ms()
            self._sessions.move_to_end(session_id)
        with session.lock:
            if session.epoch != epoch:
                return self._refused(Errors.INVALID_FETCH_SESSION_EPOCH)
            if session.uses_topic_ids != uses_topic_ids:
                return self._refused(Errors.FETCH_SESSION_TOPIC_ID_ERROR)
            session.update(fetches, forgotten)
            session.epoch = next_epoch(epoch)
            wanted = [cached.fetch for cached in session.partitions.values()]
            if wanted:
                return FetchContext(self, wanted, uses_topic_ids, session, session.epoch)
        self._remove(session_id)  # nothing left to remember
        return FetchContext(self, (), uses_topic_ids)

    def open(
        self,
        fetches: Sequence[PartitionFetch],
        results: Sequence[PartitionFetched],
        *,
        uses_topic_ids: bool = False,
    ) -> int:
        """A new session's id, NO_SESSION if there is no room for one or nothing to remember."""
        if not fetches:
            return NO_SESSION
        partitions: OrderedDict[FetchKey, _CachedPartition] = OrderedDict()
        for fetch, result in zip(fetches, results, strict=True):
            cached = partitions[fetch.key] = _CachedPartition(fetch)
            cached.has_news(result)
        now_ms = self._time.monotonic_ms()
        with self._lock:
            if len(self._sessions) >= self._slots and not self._evict(now_ms):
                return NO_SESSION
            session_id = random.randint(1, _MAX_INT)
            while session_id in self._sessions:
                session_id = random.randint(1, _MAX_INT)
            self._sessions[session_id] = FetchSession(session_id, partitions, uses_topic_ids, now_ms)
            return session_id

    def _refused(self, error: Errors) -> FetchContext:
        return FetchContext(self, (), uses_topic_ids=False, error_code=int(error))

    def _evict(self, now_ms: int) -> bool:
        if not self._sessions:
            return False  # no slots at all
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.last_used_ms < self._eviction_ms:
            return False
        del self._sessions[oldest.id]
        return True

    def _remove(self, session_id: int) -> None:
        with self._lock:
            self._sessions.pop(session_id, None)
