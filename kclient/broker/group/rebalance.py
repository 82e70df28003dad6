"""Rebalancer: takes groups from one generation to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from kclient.broker.group.delayed import DelayedJoin, Expiry, InitialDelayedJoin
from kclient.broker.group.group import VALID_PREVIOUS, Group, GroupState
from kclient.broker.group.group_store import GroupStore, group_entry
from kclient.broker.group.member import JoinCallback, JoinRequest, Member
from kclient.broker.group.sessions import Sessions
from kclient.broker.purgatory import DelayedOperationPurgatory
from kclient.broker.timer import SystemTimer
from kclient.errors import Errors, KafkaError
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

_S = GroupState


class Rebalancer:
    """The part of the coordinator that waits. Thread-safe.

    Methods that take a lock say so; all others are called with the group's lock held. Answers go out while it
    is held: they only hand buffers to a processor.
    """

    def __init__(
        self,
        store: GroupStore,
        time: Time,
        log_context: LogContext,
        *,
        initial_delay_ms: int,
        reaper_enabled: bool = True,
    ) -> None:
        self._store = store
        self._time = time
        self._log = log_context.logger(__name__)
        self._initial_delay_ms = initial_delay_ms
        self.timer = SystemTimer("groups", time)
        self.purgatory: DelayedOperationPurgatory[DelayedJoin] = DelayedOperationPurgatory(
            "rebalance", time, timer=self.timer, reaper_enabled=reaper_enabled
        )
        self.sessions = Sessions(self._check_session, self.timer, time)

    # Joining

    def add_member(self, group: Group, member: Member, callback: JoinCallback, reason: str) -> None:
        """Take in a new member and rebalance."""
        member.is_new = True
        member.join_callback = callback
        if group.is_in(_S.PREPARING_REBALANCE) and group.generation_id == 0:
            group.new_member_added = True
        group.add(member)
        self.sessions.begin_join(group, member)
        self.prepare(group, reason)

    def rejoin(
        self, group: Group, member: Member, request: JoinRequest, callback: JoinCallback, reason: str
    ) -> None:
        """A member joins again: take over what it says and rebalance."""
        group.update_member(member, request)
        # A client that gave up on its last request and sends another must not have two answers.
        member.fail_join(Errors.REBALANCE_IN_PROGRESS)
        member.join_callback = callback
        self.prepare(group, reason)

    def expect_member(self, group: Group, member_id: str, session_timeout_ms: int) -> None:
        """An id was given out: wait for somebody to join with it."""
        expiry = Expiry(session_timeout_ms, partial(self._pending_member_expired, group, member_id))
        group.pending_members[member_id] = expiry
        self.timer.add(expiry)

    def prepare(self, group: Group, reason: str) -> None:
        """Begin a rebalance unless one is under way already."""
        if group.state not in VALID_PREVIOUS[_S.PREPARING_REBALANCE]:
            return
        if group.is_in(_S.COMPLETING_REBALANCE):
            self.fail_syncs(group, Errors.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        timeout_ms = group.rebalance_timeout_ms
        if group.is_in(_S.EMPTY):
            delay_ms = min(self._initial_delay_ms, timeout_ms)
            join: DelayedJoin = InitialDelayedJoin(self, group, delay_ms, max(timeout_ms - delay_ms, 0))
        else:
            join = DelayedJoin(self, group, timeout_ms)
        group.transition_to(_S.PREPARING_REBALANCE, self._time.wall_ms())
        self._log.info("Group %s rebalances after generation %d: %s", group.id, group.generation_id, reason)
        self.purgatory.try_complete_else_watch(join, [group.id])

    def joined(self, group: Group) -> None:
        """Somebody joined or left: a waiting rebalance may be complete."""
        if group.is_in(_S.PREPARING_REBALANCE):
            self.purgatory.check_and_complete(group.id)

    # Syncing

    def store_assignment(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """The leader has spoken: make it durable and tell everyone. A failure rebalances."""
        try:
            self._write(group, assignments)
        except KafkaError as error:
            self.fail_syncs(group, Errors(Errors.code_for(error)))
            self.prepare(group, "its assignment could not be stored")
            return
        group.transition_to(_S.STABLE, self._time.wall_ms())
        self._log.info(
            "Group %s is stable in generation %d with %d members",
            group.id,
            group.generation_id,
            len(group.members),
        )
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.awaits_sync:
                group.pending_sync.discard(member.member_id)
                member.answer_sync(group.assignment_for(member))
                self.sessions.heard_of(group, member)

    def fail_syncs(self, group: Group, error: Errors) -> None:
        """Take assignments back and answer those who wait for one."""
        for member in group.members.values():
            member.assignment = b""
            if member.awaits_sync:
                member.fail_sync(error)
                self.sessions.heard_of(group, member)

    # Leaving

    def remove(self, group: Group, members: Iterable[Member], reason: str) -> None:
        """Let members go and rebalance without them."""
        for member in list(members):
            member.fail_join(Errors.UNKNOWN_MEMBER_ID)
            member.fail_sync(Errors.UNKNOWN_MEMBER_ID)
            group.remove(member)
            self._log.info("Member %s left group %s: %s", member.member_id, group.id, reason)
        self.after_removal(group, reason)

    def after_removal(self, group: Group, reason: str) -> None:
        """Somebody, perhaps only expected so far, is gone: rebalance, or complete the rebalance that waited for it."""
        if group.is_in(_S.STABLE, _S.COMPLETING_REBALANCE):
            self.prepare(group, reason)
        else:
            self.joined(group)

    def store_members(self, group: Group) -> None:
        """Make a change of a member's id durable. Raises KafkaError."""
        self._write(group, {member.member_id: member.assignment for member in group.members.values()})

    # Called by delayed operations: these take the group's lock themselves

    def try_complete_join(self, group: Group, join: DelayedJoin) -> bool:
        """Complete `join` if every member has joined. Takes the lock."""
        with group.lock:
            return group.all_joined and join.force_complete()

    def extend_initial_join(self, group: Group, remaining_ms: int) -> None:
        """The first delay of a new group is over: wait on if more members came meanwhile. Takes the lock."""
        with group.lock:
            if not group.new_member_added or remaining_ms <= 0 or not group.is_in(_S.PREPARING_REBALANCE):
                self.complete_join(group)
                return
            group.new_member_added = False
            delay_ms = min(self._initial_delay_ms, remaining_ms)
            again = InitialDelayedJoin(self, group, delay_ms, remaining_ms - delay_ms)
            self.purgatory.try_complete_else_watch(again, [group.id])

    def complete_join(self, group: Group) -> None:
        """Begin the next generation with whoever has joined. Takes the lock."""
        with group.lock:
            if not group.is_in(_S.PREPARING_REBALANCE):
                return
            late = [m for m in group.members.values() if not m.awaits_join and m.instance_id is None]
            for member in late:
                self._log.info("Member %s of group %s did not rejoin in time", member.member_id, group.id)
                group.remove(member)
            if group.members and not group.elect_joined_leader():
                # Only static members, all of them away: one of them must come back before anything can be
                # decided.
                self.purgatory.try_complete_else_watch(
                    DelayedJoin(self, group, group.rebalance_timeout_ms), [group.id]
                )
                return
            group.next_generation(self._time.wall_ms())
            if not group.members:
                self._log.info("Group %s is empty in generation %d", group.id, group.generation_id)
                try:
                    self._write(group, {})
                except KafkaError as error:
                    # Nobody waits for it; the members' expiry will be found out again after a restart.
                    self._log.warning("The empty generation of group %s was not stored: %s", group.id, error)
                return
            self._tell_generation(group)

    def _check_session(self, group: Group, member_id: str) -> None:
        """Remove the member if it was not heard of in time. Takes the lock."""
        with group.lock:
            member = group.members.get(member_id)
            if member is None or group.is_in(_S.DEAD):
                return
            remaining_ms = self.sessions.remaining_ms(member)
            if remaining_ms > 0:
                self.sessions.look_again(group, member, remaining_ms)
            else:
                self.remove(group, [member], "its session timed out")

    def _pending_member_expired(self, group: Group, member_id: str) -> None:
        """An id was given out and nobody joined with it. Takes the lock."""
        with group.lock:
            if group.forget_pending(member_id):
                self.after_removal(group, "an expected member did not come")

    def _pending_sync_expired(self, group: Group, generation_id: int) -> None:
        """Members did not ask for their assignment in time. Takes the lock."""
        with group.lock:
            if generation_id != group.generation_id or not group.is_in(_S.COMPLETING_REBALANCE, _S.STABLE):
                return
            silent = [
                group.members[member_id] for member_id in group.pending_sync if member_id in group.members
            ]
            if silent:
                self.remove(group, silent, "it did not ask for its assignment in time")

    def _write(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        self._store.write(group.id, [group_entry(group, assignments)])

    def _tell_generation(self, group: Group) -> None:
        self._log.info(
            "Group %s has generation %d with %d members, led by %s",
            group.id, group.generation_id, len(group.members), group.leader_id,
        )  # fmt: skip
        for member in group.members.values():
            member.is_new = False
            member.answer_join(group.generation_for(member.member_id))
            self.sessions.heard_of(group, member)
            group.pending_sync.add(member.member_id)
        if group.sync_expiry is not None:
            group.sync_expiry.cancel()  # a rebalance timeout may be weeks, in which there are many generations
        expire = partial(self._pending_sync_expired, group, group.generation_id)
        group.sync_expiry = Expiry(group.rebalance_timeout_ms, expire)
        self.timer.add(group.sync_expiry)
