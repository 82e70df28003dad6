"""Membership: what the other parts of a consumer ask of its being a member of a group, by whichever protocol."""

from __future__ import annotations

import abc
from typing import ClassVar

from kclient.common.cluster import Cluster
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.consumer.group_membership_operation import GroupMembershipOperation
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.consumer.internals.coordinator.heartbeat import Heartbeat
from kclient.consumer.internals.rebalance_callback import RebalanceCallback
from kclient.errors import KafkaError
from kclient.utils.futures import CompletableFuture


class Membership(abc.ABC):
    """A member of a group. Belongs to the I/O thread, but for what is said to be for any thread.

    Partitions change hands only by callbacks that the application's thread carries out inside poll(). A protocol
    posts them, and hears by `callback_done` that they are through, while heartbeats go on.
    """

    __slots__ = ()

    PROTOCOL: ClassVar[str]
    """The value of `group.protocol`."""

    heartbeat: Heartbeat
    """The clocks of the member."""
    generation: Generation
    """The member's place in the group as it knows it; to be read, by any thread."""

    # What others ask, from any thread.

    @property
    @abc.abstractmethod
    def state_name(self) -> str:
        """The state of the member, in a word or a few."""

    @property
    @abc.abstractmethod
    def expects_heartbeats(self) -> bool:
        """True if the coordinator takes the member for dead when it hears nothing from it."""

    @property
    @abc.abstractmethod
    def rebalancing(self) -> bool:
        """True if a rebalance is under way in which nothing can be committed."""

    @abc.abstractmethod
    def generation_for_commit(self) -> Generation | None:
        """Under which generation offsets can be committed; None while the member has none."""

    def generation_for_last_commit(self) -> Generation | None:
        """The same for a member that is about to leave, while the group rebalances as well."""
        return self.generation_for_commit()

    def generation_for_lookup(self) -> Generation | None:
        """Under which generation committed offsets are looked up; None where the coordinator does not ask."""
        return None

    @abc.abstractmethod
    def metadata_of(self, generation: Generation) -> ConsumerGroupMetadata:
        """Return the member as transactions name it, with its place as of `generation`."""

    @abc.abstractmethod
    def polled(self, now_ms: int) -> bool:
        """The application, whose thread this is, called poll(); returns whether the I/O thread waits for that."""

    # What happens to the member.

    @abc.abstractmethod
    def poll(self, now_ms: int) -> int:
        """Do and send what is due; returns after how many ms it wants the next turn at the latest."""

    @abc.abstractmethod
    def subscription_changed(self) -> None:
        """The subscription may be another one than the group knows."""

    @abc.abstractmethod
    def metadata_updated(self, cluster: Cluster) -> None:
        """There is a new picture of the cluster, with which the subscribed pattern was matched anew."""

    @abc.abstractmethod
    def request_rejoin(self, reason: str) -> None:
        """Take part in a new rebalance as soon as possible; `reason` is told to the coordinator if it can be."""

    @abc.abstractmethod
    def callback_done(self, callback: RebalanceCallback) -> None:
        """The application has carried out `callback`."""

    @abc.abstractmethod
    def commit_refused(self, code: int, sent: Generation, *, last: bool = False) -> Generation | None:
        """A commit as `sent`, or a lookup of commits, was refused with an error code of the group.

        Returns the place under which it can be sent again, at once if it is another one; None if it has failed. The
        `last` commit of a member that is about to leave is of what it still has, which another place does not change.
        """

    @abc.abstractmethod
    def leave(
        self,
        reason: str,
        future: CompletableFuture[None],
        now_ms: int,
        operation: GroupMembershipOperation = GroupMembershipOperation.DEFAULT,
    ) -> None:
        """Be no member any more, and complete `future` when what the coordinator is told of that was answered.

        By default a dynamic member leaves, and a static one goes so that it finds its place again (KIP-345, KIP-1092).
        """

    @abc.abstractmethod
    def fail(self, error: KafkaError) -> None:
        """The application has to know; nothing more is tried until it polls again."""

    @abc.abstractmethod
    def fenced(self, error: KafkaError) -> None:
        """Another member has taken this one's place."""
