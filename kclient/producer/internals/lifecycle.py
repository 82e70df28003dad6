"""The I/O thread's life: started, closed, outlived by its producer, surprised by the end of the interpreter."""

from __future__ import annotations

import threading
import time

import attrs

from kclient._accel import in_forked_children
from kclient.errors import KafkaError
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.produce_response import ProduceResponseHandler
from kclient.producer.internals.queued_batches import QueuedBatches
from kclient.producer.internals.sender import Sender
from kclient.utils.exit_order import ExitStage, at_exit
from kclient.utils.log_context import Logger
from kclient.utils.threads import KafkaThread

# Nobody waits longer than this for a program to end, whatever delivery.timeout.ms says.
_MAX_EXIT_MS = 10_000
# For the thread to notice that it is to stop at once. A callback that blocks keeps it from that.
_ABORT_MS = 400

_running: set[IoThread] = set()
_running_lock = threading.Lock()


@attrs.define(eq=False, repr=False)
class IoThread:
    """Runs a sender. Any thread may call the methods."""

    _config: ProducerConfig
    _sender: Sender
    _queued: QueuedBatches
    _responses: ProduceResponseHandler
    log: Logger = attrs.field(init=False)
    _thread: KafkaThread = attrs.field(init=False)
    _ended: bool = attrs.field(default=False, init=False)
    _death: BaseException | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.log = self._config.log_context().logger(__name__)
        self._thread = KafkaThread(f"kclient-producer-{self._config.client_id}", self._run)

    def start(self) -> None:
        """Begin."""
        with _running_lock:
            _running.add(self)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._sender.run()
        except BaseException as error:
            self._death = error
            raise
        finally:
            self._ended = True
            self._queued.incomplete.end()
            with _running_lock:
                _running.discard(self)

    def check(self) -> None:
        """Raise KafkaError if the thread has ended although nobody asked for that, or has left records behind."""
        if self._ended and (not self._sender.closing or self._queued.incomplete):
            raise KafkaError(
                "The producer's I/O thread has ended, so nothing is delivered any more; the log says why. Create a new "
                "producer."
            ) from self._death

    @property
    def exit_timeout_ms(self) -> int:
        """Time that the end of a program waits for this thread."""
        return min(self._config.delivery_timeout_ms, _MAX_EXIT_MS)

    @property
    def is_current(self) -> bool:
        """True if the caller is this thread, which is the one that runs callbacks."""
        return threading.current_thread() is self._thread

    @property
    def alive(self) -> bool:
        """True if the thread has not ended."""
        return self._thread.is_alive()

    @property
    def undelivered(self) -> int:
        """Records without an outcome."""
        return self._queued.incomplete.record_count()

    @property
    def failed(self) -> int:
        """Records that failed, ever."""
        return self._responses.failed_records

    def begin_close(self) -> None:
        """Let the thread send what there is, then end."""
        self._sender.initiate_close()

    def join(self, timeout_ms: int) -> bool:
        """Wait for the end; False if it did not come."""
        self._thread.join(timeout_ms / 1000)
        return not self._thread.is_alive()

    def abort(self, *, report: bool = True) -> bool:
        """End it, giving up what is not delivered; False if a callback keeps it from ending.

        The log says what was given up, unless the caller does.
        """
        self._sender.force_close(report=report)
        return self.is_current or self.join(_ABORT_MS)


def _forget_in_child() -> None:
    # The threads are the parent's, and the lock may have been held by one that does not exist here.
    global _running_lock
    _running.clear()
    _running_lock = threading.Lock()


in_forked_children(_forget_in_child)


def _finish_at_exit() -> None:
    """Flush producers that were never closed: the I/O threads are daemons and end with the interpreter."""
    with _running_lock:
        threads = list(_running)
    failed_before = [thread.failed for thread in threads]
    for thread in threads:
        thread.begin_close()
    started = time.monotonic()
    for thread, failed in zip(threads, failed_before, strict=True):
        elapsed_ms = int((time.monotonic() - started) * 1000)
        if not thread.join(max(thread.exit_timeout_ms - elapsed_ms, 0)):
            thread.abort(report=False)
        # Of those that fail from here on nobody is told any more.
        lost = thread.failed - failed + thread.undelivered
        if lost:
            thread.log.warning(
                "The program ends with %d records undelivered; call close() or flush() before", lost
            )


at_exit(ExitStage.CLIENTS, _finish_at_exit)
