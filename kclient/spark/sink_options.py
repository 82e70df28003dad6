"""The options of a write with `format("kclient")`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError
from kclient.spark.client_settings import checked_settings, transaction_timeout_ms
from kclient.spark.option_names import Use, check_names
from kclient.spark.option_values import one_of, optional_text, parse_whole_number
from kclient.spark.setting_names import setting_remarks

DELIVERY = "kclient.delivery"
"""The option that says how often a row may be written."""
EXACTLY_ONCE = "exactly_once"
WRITE_ID = "kclient.write.id"
"""The option that names a batch write."""
WRITE_EPOCH = "kclient.write.epoch"
"""The option that numbers the batch writes of a name."""
_TIMESTAMP = "kclient.sink.timestamp"
_MARKER_TOPIC = "kclient.marker.topic"
_MISSING_MARKERS = "kclient.missing.markers"
_OF_EXACTLY_ONCE = (WRITE_ID, WRITE_EPOCH, _MARKER_TOPIC, _MISSING_MARKERS)
_LONGEST_ID = 200


@attrs.frozen(kw_only=True)
class ExactlyOnceOptions:
    """The options of a sink with `kclient.delivery=exactly_once`. Immutable; can be pickled."""

    marker_topic: str
    """The topic on whose first partition the markers are committed."""
    transaction_timeout_ms: int
    write_id: str | None
    """The id of a batch write; None for a stream, whose query has one."""
    repeatable: bool
    """True if a write of this id may run again: false where the id is new with every write."""
    epoch: int
    """The number of the batch write among those of its id."""
    accept_missing_markers: bool

    @property
    def marker_partition(self) -> TopicPartition:
        """The partition for which markers are committed. Brokers take offsets of partitions that exist alone."""
        return TopicPartition(self.marker_topic, 0)


@attrs.frozen
class SinkOptions:
    """The checked options of a sink. Immutable; can be pickled."""

    settings: Mapping[str, str]
    topic: str | None
    exactly_once: ExactlyOnceOptions | None = None
    """None: at least once."""
    ignore_timestamp: bool = False
    """True if a column `timestamp` is left out, as Spark's own connector does."""
    remarks: tuple[str, ...] = ()
    """Sentences about options without effect, for the log."""


def parse_sink(options: Mapping[str, str], use: Use) -> SinkOptions:
    """The options of a write, batch or streaming. Raises ConfigError that names the option."""
    remarks = check_names(options, use)
    settings, topic = checked_settings(options, use), optional_text(options, "topic")
    remarks += setting_remarks(options, use)
    ignore_timestamp = one_of(options, _TIMESTAMP, ("use", "ignore")) == "ignore"
    if one_of(options, DELIVERY, ("at_least_once", EXACTLY_ONCE)) != EXACTLY_ONCE:
        remarks += [
            f"Option {name} has no effect without {DELIVERY}={EXACTLY_ONCE} and is ignored."
            for name in _OF_EXACTLY_ONCE
            if name in options
        ]
        return SinkOptions(settings, topic, None, ignore_timestamp, tuple(remarks))
    once = _exactly_once(options, use, topic, transaction_timeout_ms(settings))
    return SinkOptions(settings, topic, once, ignore_timestamp, tuple(remarks))


def _exactly_once(
    options: Mapping[str, str], use: Use, topic: str | None, timeout_ms: int
) -> ExactlyOnceOptions:
    marker_topic = optional_text(options, _MARKER_TOPIC) or topic
    if marker_topic is None:
        raise ConfigError(
            f"{_MARKER_TOPIC} is needed, as rows choose their topics: a topic that exists, on whose partition 0 "
            "the sink commits offsets by which it knows what is written.",
            name=_MARKER_TOPIC,
        )
    write_id = optional_text(options, WRITE_ID) if use is Use.BATCH_WRITE else None
    if write_id is not None and len(write_id) > _LONGEST_ID:
        raise ConfigError(f"{WRITE_ID} is longer than {_LONGEST_ID} characters.", name=WRITE_ID)
    if use is Use.BATCH_WRITE and write_id is None and WRITE_EPOCH in options:
        raise ConfigError(
            f"{WRITE_EPOCH} is the number of a write of an id: give {WRITE_ID}.", name=WRITE_EPOCH
        )
    return ExactlyOnceOptions(
        marker_topic=marker_topic,
        transaction_timeout_ms=timeout_ms,
        write_id=write_id or (str(uuid.uuid4()) if use is Use.BATCH_WRITE else None),
        repeatable=use is Use.STREAM_WRITE or write_id is not None,
        epoch=parse_whole_number(options, WRITE_EPOCH, 0, at_least=0) if use is Use.BATCH_WRITE else 0,
        accept_missing_markers=one_of(options, _MISSING_MARKERS, ("fail", "accept")) == "accept",
    )
