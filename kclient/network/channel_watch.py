"""ChannelWatch: what a Poller watches for a Selector's channels, and receives for them while it waits."""

from __future__ import annotations

from kclient._accel import Poller
from kclient.network.channel import KafkaChannel


class ChannelWatch:
    """Keeps a Poller in step with what channels want to hear of, and has it receive their large frames.

    A large frame comes in many pieces; the Poller takes them without a round of the loop for each. What it has taken is
    accounted before anything else is done with the channel, or the stream is torn. Belongs to the thread of its
    Selector.
    """

    __slots__ = ("_poller", "to_expect")

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self.to_expect: list[KafkaChannel] = []
        """The channels whose next frame `expect_answers` may have received as a whole."""

    def update(self, channel: KafkaChannel) -> None:
        """Watch for what the channel wants to hear of now.

        Raises OSError or KafkaError if it wants nothing and what was received for it ends its connection.
        """
        interest = channel.wanted_events()
        if interest == channel.interest:
            return
        sock = channel.transport.sock
        if not interest:
            try:
                # A poll that a signal ended has told of nothing; what it received belongs to the frame that goes on
                # later.
                if channel.expecting:
                    self.take_received(channel)
            finally:
                self.forget(channel)
            return
        if channel.interest:
            self._poller.modify(sock, interest, channel)
        else:
            self._poller.register(sock, interest, channel)
        channel.interest = interest

    def forget(self, channel: KafkaChannel) -> None:
        """Watch the channel no longer."""
        if channel.interest:
            self._poller.unregister(channel.transport.sock)
            channel.interest = 0

    def expect(self, channel: KafkaChannel, memory: memoryview, *, ahead: bool = False) -> None:
        """Have polls receive into `memory`: the rest of a frame, or, `ahead`, the whole of the next one."""
        channel.expecting = True
        self._poller.expect(channel.transport.sock, memory, ahead)

    def expect_answers(self) -> None:
        """Have polls receive what comes next as a whole, if the last frame was large: fetches follow each other."""
        channels, self.to_expect = self.to_expect, []
        for channel in channels:
            # One that was closed meanwhile is not ready.
            if channel.ready and not channel.muted and not channel.expecting:
                memory = channel.expected_ahead()
                if memory is not None:
                    self.expect(channel, memory, ahead=True)

    def take_received(self, channel: KafkaChannel) -> None:
        """Account what polls have received. Raises OSError or KafkaError if that ends the connection."""
        channel.expecting = False
        channel.received(self._poller.taken(channel.transport.sock))
