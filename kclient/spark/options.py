"""The options of a read with `format("kclient")`: names, precedence and checks of spark-sql-kafka-0-10, and our own.

Spark hands options over with lower-case names and text as values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError
from kclient.spark.client_settings import checked_settings
from kclient.spark.limits import Trigger, TriggerLimits
from kclient.spark.offsets import (
    EARLIEST,
    LATEST,
    Bound,
    Kind,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
)
from kclient.spark.option_names import Use, check_names
from kclient.spark.option_values import (
    one_of,
    optional_positive,
    optional_text,
    parse_boolean,
    parse_duration,
    parse_whole_number,
)
from kclient.spark.setting_names import setting_remarks

_GROUP = "group:"
_SUBSCRIPTIONS = ("assign", "subscribe", "subscribePattern")


@attrs.frozen
class Subscription:
    """The partitions to read: these, or those of these topics, or of topics in whose name the pattern is.

    Exactly one of the three is set.
    """

    partitions: frozenset[TopicPartition] = frozenset()
    topics: tuple[str, ...] = ()
    pattern: str | None = None

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"subscribePattern {self.pattern}"
        if self.topics:
            return f"subscribe {', '.join(self.topics)}"
        return f"assign {', '.join(map(str, sorted(self.partitions)))}"


@attrs.frozen
class SourceOptions:
    """The checked options of a source. Immutable; can be pickled, as it travels to the executors."""

    settings: Mapping[str, str]
    """The options that begin with `kafka.`, without that."""
    subscription: Subscription
    starting: Bound
    ending: Bound
    latest_if_no_match: bool
    """True if partitions without a record that late start at the end (startingOffsetsByTimestampStrategy)."""
    fail_on_data_loss: bool
    include_headers: bool
    filter_pushdown: bool
    poll_timeout_ms: int
    retries: int
    retry_interval_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    limits: TriggerLimits
    trigger: Trigger | None
    commit_group_id: str | None
    marker_topic: str | None
    """The topic on whose first partition the ids of the topics that are read are noted, for that group."""
    remarks: tuple[str, ...] = ()
    """Sentences about options without effect, for the log."""

    @property
    def isolation_level(self) -> str:
        """read_committed or read_uncommitted."""
        return self.settings.get("isolation.level", "read_uncommitted")


def check_any(options: Mapping[str, str]) -> None:
    """Check what can be checked before it is known whether data is read or written. Raises ConfigError."""
    check_names(options, None)
    checked_settings(options, None)


def parse_source(options: Mapping[str, str], use: Use) -> SourceOptions:
    """The options of a read, batch or streaming. Raises ConfigError that names the option."""
    remarks = check_names(options, use)
    settings = checked_settings(options, use)
    streaming = use is Use.STREAM_READ
    return SourceOptions(
        settings=settings,
        subscription=_subscription(options),
        starting=_starting(options, streaming),
        ending=Bound(Kind.LATEST, "endingOffsets") if streaming else _ending(options),
        latest_if_no_match=one_of(options, "startingOffsetsByTimestampStrategy", ("error", "latest"))
        == "latest",
        fail_on_data_loss=parse_boolean(options, "failOnDataLoss", True),
        include_headers=parse_boolean(options, "includeHeaders", False),
        filter_pushdown=parse_boolean(options, "filterPushdown", False),
        poll_timeout_ms=parse_whole_number(options, "kafkaConsumer.pollTimeoutMs", 120_000, at_least=1),
        retries=parse_whole_number(options, "fetchOffset.numRetries", 3, at_least=0),
        retry_interval_ms=parse_whole_number(options, "fetchOffset.retryIntervalMs", 1000, at_least=0),
        min_partitions=optional_positive(options, "minPartitions"),
        max_records_per_partition=optional_positive(options, "maxRecordsPerPartition"),
        limits=_limits(options) if streaming else TriggerLimits(),
        trigger=_trigger(options) if streaming else None,
        commit_group_id=optional_text(options, "commitGroupId") if streaming else None,
        marker_topic=_marker_topic(options, remarks) if streaming else None,
        remarks=(*remarks, *setting_remarks(options, use)),
    )


def _marker_topic(options: Mapping[str, str], remarks: list[str]) -> str | None:
    name = "kclient.marker.topic"
    topic = optional_text(options, name)
    if topic is not None and optional_text(options, "commitGroupId") is None:
        # It may be the sink's, where both share their options.
        remarks.append(
            f"Option {name} has no effect in a streaming read without commitGroupId and is ignored."
        )
        return None
    return topic


def _subscription(options: Mapping[str, str]) -> Subscription:
    given = [name for name in _SUBSCRIPTIONS if name.lower() in options]
    if len(given) != 1:
        which = f"{' and '.join(given)} are given" if given else "none is given"
        raise ConfigError(
            f"Exactly one of {', '.join(_SUBSCRIPTIONS)} says what to read, but {which}.", name="subscribe"
        )
    name = given[0]
    text = options[name.lower()].strip()
    if name == "assign":
        return Subscription(partitions=parse_partitions(name, text))
    if name == "subscribe":
        topics = tuple(dict.fromkeys(topic for part in text.split(",") if (topic := part.strip())))
        if not topics:
            raise ConfigError(f"{name} names no topic; give them as topicA,topicB.", name=name)
        return Subscription(topics=topics)
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigError(f"{name}: {text!r} is not a regular expression: {error}.", name=name) from None
    if not text:
        raise ConfigError(f"{name} is empty.", name=name)
    return Subscription(pattern=text)


def _starting(options: Mapping[str, str], streaming: bool) -> Bound:
    default = Kind.LATEST if streaming else Kind.EARLIEST
    bound = _bound(options, "starting", default)
    if streaming:
        return bound
    if bound.kind is Kind.LATEST or (bound.kind is Kind.OFFSETS and LATEST in bound.values.values()):
        raise ConfigError(
            "startingOffsets: latest, or -1 for a partition, makes no sense in a batch query.",
            name="startingOffsets",
        )
    return bound


def _ending(options: Mapping[str, str]) -> Bound:
    bound = _bound(options, "ending", Kind.LATEST)
    if bound.kind is Kind.GROUP:
        raise ConfigError("endingOffsets cannot be a group's offsets.", name="endingOffsets")
    if bound.kind is Kind.EARLIEST or (bound.kind is Kind.OFFSETS and EARLIEST in bound.values.values()):
        raise ConfigError(
            "endingOffsets: earliest, or -2 for a partition, makes no sense as an end.", name="endingOffsets"
        )
    return bound


def _bound(options: Mapping[str, str], side: str, default: Kind) -> Bound:
    """The first that is given of xTimestamp, xOffsetsByTimestamp and xOffsets; all of them are checked."""
    names = (f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets")
    found: list[Bound] = []
    for name, kind in zip(names, (Kind.TIMESTAMP, Kind.TIMESTAMPS, Kind.OFFSETS), strict=True):
        text = options.get(name.lower())
        if text is None:
            continue
        text = text.strip()
        if kind is Kind.TIMESTAMP:
            found.append(Bound(kind, name, timestamp_ms=parse_whole_number(options, name, 0, at_least=0)))
        elif kind is Kind.TIMESTAMPS:
            found.append(Bound(kind, name, parse_timestamps(name, text)))
        else:
            found.append(_offsets(name, text))
    return found[0] if found else Bound(default, names[-1])


def _offsets(name: str, text: str) -> Bound:
    if text.lower() in {"earliest", "latest"}:
        return Bound(Kind(text.lower()), name)
    if text.startswith(_GROUP):
        group_id = text.removeprefix(_GROUP).strip()
        if not group_id:
            raise ConfigError(f"{name}: {text!r} names no group; write group:ID.", name=name)
        return Bound(Kind.GROUP, name, group_id=group_id)
    if not text.startswith("{"):
        raise ConfigError(
            f"{name}: {text!r} is none of earliest, latest, group:ID and offsets as JSON.", name=name
        )
    return Bound(Kind.OFFSETS, name, parse_offsets(name, text))


def _limits(options: Mapping[str, str]) -> TriggerLimits:
    limits = TriggerLimits(
        max_offsets=optional_positive(options, "maxOffsetsPerTrigger"),
        min_offsets=optional_positive(options, "minOffsetsPerTrigger"),
        max_delay_ms=parse_duration(options, "maxTriggerDelay", 15 * 60_000),
        max_bytes=optional_positive(options, "maxBytesPerTrigger"),
    )
    if (
        limits.max_offsets is not None
        and limits.min_offsets is not None
        and limits.min_offsets > limits.max_offsets
    ):
        raise ConfigError(
            f"minOffsetsPerTrigger ({limits.min_offsets}) must not be greater than maxOffsetsPerTrigger "
            f"({limits.max_offsets}).",
            name="minOffsetsPerTrigger",
        )
    return limits


def _trigger(options: Mapping[str, str]) -> Trigger | None:
    name = "kclient.trigger"
    if name not in options:
        return None
    return Trigger(one_of(options, name, tuple(each.value for each in Trigger)))
