"""The calls of a share consumer that may have to wait, as steps."""

from __future__ import annotations

import logging
from typing import Any, TypeVar

from kclient.consumer.acknowledge import AcknowledgementCommitCallback
from kclient.consumer.internals.arguments import checked_timeout
from kclient.consumer.internals.requests import Request
from kclient.consumer.internals.share.acknowledgements import Results
from kclient.consumer.internals.share.core import ShareCore
from kclient.consumer.types import ConsumerRecord, ConsumerRecords
from kclient.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from kclient.utils.steps import Pause, Steps
from kclient.utils.time import Timer

T = TypeVar("T")

log = logging.getLogger(__name__)

_GRACE_MS = 250
"""The time after the deadline in which the I/O thread may still say why something did not happen in time."""
_FOR_EVER_MS = 2**31 - 1


class ShareCalls:
    """All of a share consumer that waits, for a face that takes the steps in its own way. Used by one caller at a time.

    A face is what the application calls. It lets one caller in at a time, and takes back (`ShareCore.undo_last`) what
    steps that read have handed out if their caller does not get it.
    """

    def __init__(self, core: ShareCore) -> None:
        self._core = core
        self.in_callback = False

    def check_not_in_callback(self) -> None:
        """Raise IllegalStateError inside the acknowledgement commit callback, as in Java."""
        if self.in_callback:
            raise IllegalStateError(
                "A KafkaShareConsumer cannot be used by its acknowledgement commit callback, except for wakeup()"
            )

    # Reading.

    def records(self, timer: Timer) -> Steps[ConsumerRecords[Any, Any]]:
        """The records that can be handed out, as soon as there are any; no records when `timer` has expired."""
        core = self._core
        core.got_last()
        began_ms = timer.started_ms
        yield from self._tell_outcomes()
        if core.subscription.has_nothing():
            raise IllegalStateError("There is nothing to poll: call subscribe() first")
        core.begin_poll(began_ms)
        core.metrics.polled(began_ms)
        while True:
            seen = core.changes.count
            if core.wakeup.pending or core.queue or core.settled:
                yield from self._do_what_is_due()
            core.metadata.raise_any_error()
            found = core.next_records()
            if found is not None:
                return found
            if timer.is_expired():
                return ConsumerRecords({})
            # Who waits inside poll() is alive, however long there is nothing to read.
            wait_ms = min(timer.remaining_ms(), core.config.max_poll_interval_ms // 2)
            began_ms = timer.now_ms()
            yield Pause(core.changes.next(seen), core.time.timer(wait_ms))
            now_ms = timer.now_ms()
            core.metrics.waited(now_ms - began_ms)
            core.alive(now_ms)

    def next_record(self) -> Steps[ConsumerRecord[Any, Any]]:
        """The next record; waits as long as it takes."""
        core = self._core
        core.got_last()
        while True:
            core.wakeup.raise_if_pending()
            record = core.next_waiting()
            if record is not None:
                return record
            yield from self.records(core.time.timer(_FOR_EVER_MS))
            core.keep_waiting()

    def _do_what_is_due(self) -> Steps[None]:
        core = self._core
        core.wakeup.raise_if_pending()
        core.queue.run_calls()
        yield from self._tell_outcomes()
        core.queue.raise_error()

    # Acknowledging.

    def commit(self, timer: Timer) -> Steps[Results]:
        """Tell the brokers what was said, and return what each partition's broker made of it."""
        core = self._core
        yield from self._tell_outcomes()
        core.accept_all()
        acknowledged = core.take_acknowledged()
        if not acknowledged:
            return {}
        request = core.commit(acknowledged, timer.deadline_ms)
        core.wakeup.begin_wait(request)
        try:
            yield Pause(request, core.time.timer(timer.remaining_ms() + _GRACE_MS))
        finally:
            core.wakeup.end_wait()
        if request.done():
            results = dict(request.result())
        else:
            late = KafkaTimeoutError(
                f"The acknowledgements were not answered within {timer.timeout_ms} ms; they are on their way still"
            )
            results = {each.partition: late for each in acknowledged} | dict(request.results)
        yield from self._tell_outcomes()
        return results

    def commit_in_background(self) -> Steps[None]:
        """Tell the brokers what was said, without waiting for their answers."""
        yield from self._tell_outcomes()
        self._core.accept_all()
        self._core.commit_in_background()

    def _tell_outcomes(self) -> Steps[None]:
        """Let the callback hear of all outcomes that there are; its first error is raised when it has."""
        core = self._core
        first: Exception | None = None
        while core.settled and (outcome := core.next_outcome()) is not None:
            callback = core.callback
            assert callback is not None
            self.in_callback = True
            try:
                partition, offsets, error = outcome
                yield from self.call_callback(callback, {partition: offsets}, error)
            except Exception as raised:
                first = first or raised
            finally:
                self.in_callback = False
        if first is not None:
            raise first

    def call_callback(
        self, callback: AcknowledgementCommitCallback, offsets: Any, error: KafkaError | None
    ) -> Steps[None]:
        """Call the application's callback. For a face with callbacks to be awaited to override: the only place."""
        callback(offsets, error)
        yield from ()  # nothing to wait for here

    # Leaving.

    def unsubscribe(self, timer: Timer) -> Steps[None]:
        """Leave the group. What the application has stays its own to acknowledge."""
        core = self._core
        yield from self._quietly(
            core.unsubscribe(timer.deadline_ms), min(timer.remaining_ms(), core.config.request_timeout_ms)
        )

    def close(self, timer: Timer) -> Steps[BaseException | None]:
        """Tell what was acknowledged, end the sessions and leave; returns what the application's own code raised.

        The face ends the I/O thread then, also if these steps did not come to their end.
        """
        core = self._core
        core.wakeup.closing = True
        ended = core.end_sessions(core.take_acknowledged(), timer.deadline_ms)
        yield from self._quietly(ended, timer.remaining_ms())
        yield from self.unsubscribe(timer)
        return (yield from self.tell_last())

    def tell_last(self) -> Steps[BaseException | None]:
        """Let the callback hear of what is left, for the last time; returns what it raised."""
        try:
            yield from self._tell_outcomes()
        except Exception as error:
            return error
        return None

    def _quietly(self, request: Request[None], timeout_ms: int) -> Steps[None]:
        """Wait for what is done as well as it can be."""
        yield Pause(request, self._core.time.timer(timeout_ms))
        if not request.done():
            log.info(
                "[ShareConsumer clientId=%s] Not everything was ended in time", self._core.config.client_id
            )

    def timer(self, timeout_ms: int | None) -> Timer:
        """The deadline of a call: its own, or that of default.api.timeout.ms."""
        return self._core.time.timer(checked_timeout(timeout_ms, self._core.config.default_api_timeout_ms))
