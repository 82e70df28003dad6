"""Members of one group on threads, which come and go, and whom its partitions belong to."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

from harness.consumer.member import Member
from harness.consumer.owners import Owners
from harness.waiting import wait_until
from kclient.consumer import SubscriptionPattern


class Group:
    """The present members, by name; whoever is left is stopped with `stack`."""

    def __init__(self, servers: str, topic: str, stack: ExitStack) -> None:
        self.servers = servers
        self.topic = topic
        self.id = f"g-{topic}"
        self.owners = Owners()
        self.members: dict[str, Member] = {}
        self._stack = stack

    def join(self, name: str, topic: str | SubscriptionPattern | None = None, **settings: object) -> Member:
        """Have a member join, with the consumer protocol unless `settings` say otherwise."""
        member = Member(
            self.servers,
            self.topic if topic is None else topic,
            self.id,
            listener=self.owners.listener(name),
            **{"group.protocol": "consumer", "client.id": name, **settings},
        )
        self._stack.callback(member.stop)
        self.members[name] = member
        return member

    def leave(self, name: str) -> Member:
        """Have a member leave."""
        member = self.members.pop(name)
        member.stop()
        return member

    def has_shared(self, *shares: int) -> None:
        """Wait until the present members have so many partitions each, in any order."""

        def shared() -> bool:
            counts = Counter(self.owners.now.values())
            return sorted(counts[name] for name in self.members) == sorted(shares)

        try:
            wait_until(shared, 30, "the share-out")
        except AssertionError:
            raise AssertionError(f"{self.owners.now} after {self.owners.calls}") from None


def values(*members: Member) -> Counter[bytes]:
    """Return how often the members read each value."""
    return Counter(record.value for member in members for record in member.records)
