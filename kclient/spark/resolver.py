"""Lookups of the driver in Kafka: partitions, and the offsets of earliest, latest, a time or a group."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from kclient.admin import OffsetSpec
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import AdminError, ConfigError, KafkaError, UnknownTopicOrPartitionError
from kclient.spark import clients
from kclient.spark.client_settings import admin_settings
from kclient.spark.data_loss import report_data_loss
from kclient.spark.offsets import EARLIEST, LATEST, Bound, Kind, Offsets
from kclient.spark.options import SourceOptions
from kclient.utils.time import SYSTEM_TIME, Time

if TYPE_CHECKING:
    from kclient.admin import KafkaAdminClient, ListedOffset

_log = logging.getLogger(__name__)

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

Missing: TypeAlias = str | TopicPartition
"""A topic, or a partition, that the options name."""


class OffsetResolver:
    """Asks through the process's admin client; passing failures are tried again as fetchOffset.* say.

    Every try ends by default.api.timeout.ms. Used by one thread. Raises ConfigError for what the options ask for and
    Kafka does not have, and KafkaError.
    """

    def __init__(self, options: SourceOptions, time: Time = SYSTEM_TIME) -> None:
        self._options = options
        self._settings = admin_settings(options.settings)
        self._time = time
        self.topic_ids: Mapping[str, Uuid] = {}
        """The ids of the topics that `partitions` and `partitions_that_exist` found last, if brokers have ids."""

    def partitions(self, known: Collection[TopicPartition] | None = None) -> frozenset[TopicPartition]:
        """The partitions that the options name, as they are now.

        `known` are those that the query has read so far; None if it is a new one, which cannot have lost anything.
        Raises UnknownTopicOrPartitionError for what the options name and Kafka does not have, and DataLossError if it
        was known. With failOnDataLoss=false a query that has begun goes on with what is left.
        """
        fails = known is None or self._options.fail_on_data_loss
        tries = self._options.retries if fails else 0
        found, missing = self._look_up()
        while missing and tries > 0:
            # One that was created a moment ago is not known to every broker yet.
            _log.warning("There is no %s yet; it is looked for again.", _listed(missing))
            self._time.sleep_ms(self._options.retry_interval_ms)
            tries -= 1
            found, missing = self._look_up()
        if missing:
            self._report_missing(missing, known)
        return found

    def partitions_that_exist(self) -> frozenset[TopicPartition]:
        """The partitions that the options name, without those that are not there."""
        return self._look_up()[0]

    def earliest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The first offset of each partition."""
        return self._list(dict.fromkeys(partitions, int(OffsetSpec.EARLIEST)))

    def earliest_that_exist(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The first offset of each partition that is still there."""
        specs = dict.fromkeys(partitions, int(OffsetSpec.EARLIEST))
        return _offsets(_of_those_there(lambda: self._found(specs)))

    def latest(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The offset after the last record that can be read: with read_committed, where open transactions begin."""
        return self._list(dict.fromkeys(partitions, int(OffsetSpec.LATEST)))

    def first_at(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset of each partition whose record is that late; None where there is none."""
        found = self._list(timestamps)
        return {tp: offset if offset >= 0 else None for tp, offset in found.items()}

    def start(self, bound: Bound, partitions: Collection[TopicPartition]) -> Offsets:
        """The offset of each partition that `bound` stands for, as the start of reading."""
        if bound.kind is Kind.GROUP:
            return self._committed(bound.group_id, partitions)
        if bound.kind not in {Kind.TIMESTAMP, Kind.TIMESTAMPS}:
            return self._plain(bound, partitions)
        found = self.first_at(self._times(bound, partitions))
        missing = sorted(tp for tp, offset in found.items() if offset is None)
        if missing and not self._options.latest_if_no_match:
            raise ConfigError(
                f"{bound.option}: no record of {', '.join(map(str, missing))} is that late. With "
                "startingOffsetsByTimestampStrategy=latest such partitions are read from their end.",
                name=bound.option,
            )
        return self._with_latest(found)

    def end(self, bound: Bound, partitions: Collection[TopicPartition]) -> Offsets:
        """The offset of each partition that `bound` stands for, as the end of reading."""
        if bound.kind in {Kind.TIMESTAMP, Kind.TIMESTAMPS}:
            return self._with_latest(self.first_at(self._times(bound, partitions)))
        return self._plain(bound, partitions)

    def _plain(self, bound: Bound, partitions: Collection[TopicPartition]) -> Offsets:
        if bound.kind is Kind.EARLIEST:
            return self.earliest(partitions)
        if bound.kind is Kind.LATEST:
            return self.latest(partitions)
        self._check_all_named(bound, partitions)
        named = bound.values
        return {
            **named,
            **self.earliest([tp for tp, offset in named.items() if offset == EARLIEST]),
            **self.latest([tp for tp, offset in named.items() if offset == LATEST]),
        }

    def _times(self, bound: Bound, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        if bound.kind is Kind.TIMESTAMP:
            return dict.fromkeys(partitions, bound.timestamp_ms)
        self._check_all_named(bound, partitions)
        return bound.values

    def _with_latest(self, found: Mapping[TopicPartition, int | None]) -> Offsets:
        latest = self.latest([tp for tp, offset in found.items() if offset is None])
        return {tp: latest[tp] if offset is None else offset for tp, offset in found.items()}

    def check_marker_topic(self) -> None:
        """Raise UnknownTopicOrPartitionError if the options name a topic for markers that is not there."""
        topic = self._options.marker_topic
        if topic is None:
            return
        described = _of_those_there(
            lambda: self._ask("describing topics", lambda admin: admin.describe_topics([topic]))
        )
        if not described:
            raise UnknownTopicOrPartitionError(
                f"kclient.marker.topic: there is no topic {topic} on {self._settings['bootstrap.servers']}. Create it "
                "before the query starts, or correct the name."
            )

    def all_committed(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """All that is committed for the group."""
        committed = self._ask(
            f"looking up the offsets of group {group_id}",
            lambda admin: admin.list_consumer_group_offsets(group_id),
        )
        return {tp: each for tp, each in committed.items() if each is not None}

    def _committed(self, group_id: str, partitions: Collection[TopicPartition]) -> Offsets:
        committed = self._ask(
            f"looking up the offsets of group {group_id}",
            lambda admin: admin.list_consumer_group_offsets(group_id, sorted(partitions)),
        )
        found = {tp: each.offset for tp in partitions if (each := committed.get(tp)) is not None}
        missing = sorted(set(partitions) - set(found))
        if missing:
            _log.warning(
                "Group %s has committed nothing for %s, which is read from its beginning.",
                group_id,
                ", ".join(map(str, missing)),
            )
        return {**found, **self.earliest(missing)}

    @staticmethod
    def _check_all_named(bound: Bound, partitions: Collection[TopicPartition]) -> None:
        wanted, named = set(partitions), set(bound.values)
        what = [
            f"{', '.join(map(str, sorted(found)))} is {how}"
            for found, how in ((wanted - named, "missing"), (named - wanted, "not read"))
            if found
        ]
        if what:
            raise ConfigError(
                f"{bound.option} must name all partitions that are read, and no other (-1 is latest, -2 earliest): "
                f"{'; '.join(what)}.",
                name=bound.option,
            )

    def _look_up(self) -> tuple[frozenset[TopicPartition], Sequence[Missing]]:
        """The partitions that are there, and the topics or partitions that were named and are not."""
        subscription = self._options.subscription
        if subscription.pattern is not None:
            # Anywhere in the name, as in Spark's own connector.
            matches = re.compile(subscription.pattern).search
            listed = self._ask("listing topics", lambda admin: admin.list_topics())
            # One of them may be deleted before it is described: nobody has named it.
            return self._describe([topic for topic in listed if matches(topic)]), []
        if subscription.partitions:
            wanted = subscription.partitions
            found = wanted & self._describe({tp.topic for tp in wanted})
            return found, sorted(wanted - found)
        found = self._describe(subscription.topics)
        return found, sorted(set(subscription.topics) - {tp.topic for tp in found})

    def _describe(self, topics: Collection[str]) -> frozenset[TopicPartition]:
        if not topics:
            self.topic_ids = {}
            return frozenset()
        described = _of_those_there(
            lambda: self._ask("describing topics", lambda admin: admin.describe_topics(sorted(topics)))
        )
        self.topic_ids = {
            name: topic.topic_id for name, topic in described.items() if topic.topic_id != Uuid.ZERO
        }
        return frozenset(
            TopicPartition(info.topic, info.partition)
            for topic in described.values()
            for info in topic.partitions
        )

    def _report_missing(self, missing: Collection[Missing], known: Collection[TopicPartition] | None) -> None:
        fails = self._options.fail_on_data_loss
        was_there = {*(known or ()), *(tp.topic for tp in known or ())}
        never = [each for each in missing if each not in was_there]
        if never:
            servers = self._settings["bootstrap.servers"]
            text = f"There is no {_listed(never)} on {servers} ({self._options.subscription})."
            if known is None or fails:
                raise UnknownTopicOrPartitionError(
                    f"{text} Create it before the query starts, or correct the name; topics that may come later can "
                    "be read with subscribePattern."
                )
            _log.warning("%s The query goes on without it, as failOnDataLoss is false.", text)
        gone = [each for each in missing if each in was_there]
        if gone:
            report_data_loss(fails, f"The {_listed(gone)} was read before and is not there any more.")

    def _list(self, specs: Mapping[TopicPartition, int]) -> Offsets:
        return _offsets(self._found(specs))

    def _found(self, specs: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, ListedOffset]:
        if not specs:
            return {}
        level = self._options.isolation_level
        return self._ask("looking up offsets", lambda admin: admin.list_offsets(specs, isolation_level=level))

    def _ask(self, what: str, question: Callable[[KafkaAdminClient], T]) -> T:
        tries = 1
        while True:
            try:
                return question(clients.shared_admin(self._settings))
            except KafkaError as error:
                if tries > self._options.retries or not _passing(error):
                    raise
                tries += 1
                _log.warning(
                    "%s failed (%s); try %d of %d follows.", what, error, tries, self._options.retries + 1
                )
            clients.drop_admin(self._settings)
            self._time.sleep_ms(self._options.retry_interval_ms)


def asked_for_what_is_gone(error: KafkaError) -> bool:
    """Return True if some of what was asked for was not there any more, or not there yet."""
    # The error of a single partition is not wrapped.
    errors = error.errors.values() if isinstance(error, AdminError) else [error]
    return any(isinstance(each, UnknownTopicOrPartitionError) for each in errors)


def _listed(missing: Collection[Missing]) -> str:
    kind = "topic" if any(isinstance(each, str) for each in missing) else "partition"
    return f"{kind} {', '.join(map(str, missing))}"


def _offsets(found: Mapping[TopicPartition, ListedOffset]) -> Offsets:
    return {tp: each.offset for tp, each in found.items()}


def _of_those_there(question: Callable[[], Mapping[K, V]]) -> Mapping[K, V]:
    """Return the answers for what exists, where `question` may ask for what does not any more."""
    try:
        return question()
    except UnknownTopicOrPartitionError:
        return {}  # it was the only one
    except AdminError as error:
        if not all(isinstance(each, UnknownTopicOrPartitionError) for each in error.errors.values()):
            raise
        return error.results


def _passing(error: KafkaError) -> bool:
    if isinstance(error, AdminError):
        return any(each.retriable for each in error.errors.values()) and not asked_for_what_is_gone(error)
    return error.retriable and not asked_for_what_is_gone(error)
