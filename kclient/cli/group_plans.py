"""Plans of --reset-offsets: the partitions that are asked for, and the offsets to go on from; how they are printed."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kclient.admin import KafkaAdminClient, OffsetSpec
from kclient.cli.common import complain
from kclient.cli.group_arguments import TopicChoice, place
from kclient.cli.group_csv import Plan, write_plans
from kclient.cli.group_output import note, print_rows
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    KafkaError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
)

Offsets = Mapping[TopicPartition, int]


class Planner:
    """Makes plans from what the cluster says. `options` are those of the command line."""

    def __init__(self, admin: KafkaAdminClient, options: argparse.Namespace) -> None:
        self._admin = admin
        self._options = options
        self._timeout_ms: int | None = options.timeout

    def plan(self, partitions: Collection[TopicPartition], current: Callable[[], Offsets]) -> Plan:
        """Return the offsets to go on from, for the option that was given; `current` are those of the group now.

        Raises UnknownTopicOrPartitionError and LeaderNotAvailableError for `partitions` that cannot be asked for, and
        KafkaError for one without an offset to shift.
        """
        self._check(partitions)
        options, where = self._options, place(self._options)
        if where == "to_earliest":
            return self._listed(partitions, OffsetSpec.EARLIEST)
        if where == "to_latest":
            return self._listed(partitions, OffsetSpec.LATEST)
        if where == "to_datetime":
            return self._at(partitions, options.to_datetime)
        if where == "by_duration":
            return self._at(partitions, time.time_ns() // 1_000_000 - options.by_duration)
        if where == "to_offset":
            return self.within_log(dict.fromkeys(partitions, options.to_offset))
        now = current()
        if where == "shift_by":
            for tp in partitions:
                if tp not in now:
                    raise KafkaError(f"{tp} cannot be shifted, as the group has no offset of it")
            return self.within_log({tp: now[tp] + options.shift_by for tp in partitions})
        known = {tp: now[tp] for tp in partitions if tp in now}
        return {**known, **self._listed([tp for tp in partitions if tp not in now], OffsetSpec.LATEST)}

    def within_log(self, wanted: Offsets) -> Plan:
        """Return `wanted`, with the first or the last offset of a log for what is before or behind it."""
        first = self._listed(wanted, OffsetSpec.EARLIEST)
        last = self._listed(wanted, OffsetSpec.LATEST)
        plan: Plan = {}
        for tp, offset in wanted.items():
            plan[tp] = min(max(offset, first[tp]), last[tp])
            if plan[tp] != offset:
                side = "behind the end" if offset > plan[tp] else "before the first record"
                complain("warning", f"{offset} is {side} of {tp}; {plan[tp]} is taken in its place")
        return plan

    def chosen(self, choices: Iterable[TopicChoice]) -> list[TopicPartition]:
        """Return the partitions of --topic, without repeats. Raises UnknownTopicOrPartitionError, AdminError."""
        given = list(choices)
        whole = [choice.topic for choice in given if choice.partitions is None]
        described = self._admin.describe_topics(whole, timeout_ms=self._timeout_ms) if whole else {}
        found = [
            TopicPartition(choice.topic, number) for choice in given for number in choice.partitions or ()
        ]
        found += [
            TopicPartition(topic, info.partition)
            for topic, one in described.items()
            for info in one.partitions
        ]
        return sorted(set(found))

    def _check(self, partitions: Collection[TopicPartition]) -> None:
        leaders = leaders_of(self._admin, partitions, self._timeout_ms)
        missing = [str(tp) for tp in partitions if tp not in leaders]
        if missing:
            raise UnknownTopicOrPartitionError(f"There is no {', '.join(missing)}")
        headless = [str(tp) for tp in partitions if not leaders[tp]]
        if headless:
            raise LeaderNotAvailableError(f"Nobody leads {', '.join(headless)}")

    def _at(self, partitions: Collection[TopicPartition], time_ms: int) -> Plan:
        found = self._listed(partitions, max(time_ms, 0))
        late = [tp for tp, offset in found.items() if offset < 0]
        if late:
            names = ", ".join(map(str, late))
            complain("warning", f"No record of {names} is that late; the end is taken in its place")
        return {**found, **self._listed(late, OffsetSpec.LATEST)}

    def _listed(self, partitions: Collection[TopicPartition], spec: int) -> Plan:
        if not partitions:
            return {}
        listed = self._admin.list_offsets(dict.fromkeys(partitions, spec), timeout_ms=self._timeout_ms)
        return {tp: one.offset for tp, one in listed.items()}


def leaders_of(
    admin: KafkaAdminClient, partitions: Collection[TopicPartition], timeout_ms: int | None
) -> dict[TopicPartition, bool]:
    """Return which of `partitions` have a leader; those that do not exist are left out."""
    if not partitions:
        return {}
    described: Mapping[str, Any]
    try:
        described = admin.describe_topics(sorted({tp.topic for tp in partitions}), timeout_ms=timeout_ms)
    except AdminError as error:
        described = error.results
    except UnknownTopicOrPartitionError:
        described = {}
    found = {
        TopicPartition(topic, info.partition): info.leader is not None
        for topic, one in described.items()
        for info in one.partitions
    }
    return {tp: found[tp] for tp in partitions if tp in found}


def print_plans(plans: Mapping[str, Plan], options: argparse.Namespace, *, with_groups: bool) -> None:
    """Print what was or would be done, as CSV with --export."""
    if options.export:
        write_plans(plans, sys.stdout, with_groups=with_groups)
    elif plans:
        columns = {"group": "GROUP", "topic": "TOPIC", "partition": "PARTITION", "new_offset": "NEW-OFFSET"}
        rows = (
            {"group": group, "topic": tp.topic, "partition": tp.partition, "new_offset": offset}
            for group, plan in sorted(plans.items())
            for tp, offset in sorted(plan.items())
        )
        print_rows(columns, rows, options)
    if plans and not (options.execute or options.dry_run):
        note("Nothing was changed; --execute does it.")
