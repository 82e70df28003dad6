"""The messages that the I/O thread leaves for the application's thread to find in its next call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

import attrs

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.events import RebalanceCallback
from kclient.errors import FencedInstanceIdError, KafkaError

OnCommit = Callable[[Mapping[TopicPartition, OffsetAndMetadata], "KafkaError | None"], object]


@attrs.frozen
class FinishedCommit:
    """A commit that nobody waited for, with its outcome. Immutable."""

    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    error: KafkaError | None
    on_commit: OnCommit | None
    automatic: bool


class Mailbox:
    """Callbacks to carry out, errors to raise, commits to tell of. Thread-safe; posting wakes the application."""

    __slots__ = ("_callbacks", "_commits", "_errors", "_final_error", "_notify", "posts")

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._callbacks: deque[RebalanceCallback] = deque()
        self._commits: deque[FinishedCommit] = deque()
        self._errors: deque[KafkaError] = deque()
        self._final_error: KafkaError | None = None
        self.posts = 0
        """Counts what was ever posted; for who looks often, and has found nothing left before."""

    @property
    def has_mail(self) -> bool:
        """True if there is anything to look at."""
        return bool(self._callbacks or self._errors or self._commits or self._final_error)

    def post_callback(self, callback: RebalanceCallback) -> None:
        """A change of the assignment to carry out."""
        self._callbacks.append(callback)
        self._posted()

    def post_commit(self, commit: FinishedCommit) -> None:
        """A commit to tell of."""
        self._commits.append(commit)
        self._posted()

    def post_error(self, error: KafkaError) -> None:
        """An error to raise, once; a consumer whose place another one took gets it every time."""
        if isinstance(error, FencedInstanceIdError):
            self._final_error = error
        else:
            self._errors.append(error)
        self._posted()

    def post_death(self, error: BaseException) -> None:
        """The I/O thread is no more."""
        final = KafkaError(f"The consumer's I/O thread died, close the consumer: {error!r}")
        final.__cause__ = error
        self._final_error = final
        self._posted()

    def _posted(self) -> None:
        self.posts += 1
        self._notify()

    def next_callback(self) -> RebalanceCallback | None:
        """The next callback that still is to be carried out; it cannot be cancelled from now on.

        It stays the next one until `finish_callback`, so that a Ctrl-C before it began does not lose it.
        """
        while self._callbacks:
            callback = self._callbacks[0]
            if callback.start():
                return callback
            self._callbacks.popleft()
        return None

    def finish_callback(self, callback: RebalanceCallback) -> None:
        """`callback` was carried out."""
        if self._callbacks and self._callbacks[0] is callback:
            self._callbacks.popleft()

    @property
    def finished_commits(self) -> int:
        """Number of commits there are to tell of."""
        return len(self._commits)

    def next_commit(self) -> FinishedCommit | None:
        """The next commit to tell of."""
        return self._commits.popleft() if self._commits else None

    def raise_error(self) -> None:
        """Raise the next error, if there is one."""
        if self._final_error is not None:
            raise self._final_error
        if self._errors:
            raise self._errors.popleft()
