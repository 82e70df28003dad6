"""The options objects of the pipelines. Checked when they are made; nothing here needs PySpark."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import attrs

from kclient.errors import ConfigError

_UNIT_MS = {"second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}
NEW_FIELDS = ("ignore", "keep", "reject")
EXTRA_COLUMN = "_extra"
"""The column of the fields that the schema does not name."""
TABLE_FORMATS = ("parquet", "json", "csv")
_DURATION = re.compile(r"([1-9][0-9]*) (second|minute|hour|day|week)s?")


def duration_ms(text: str, name: str) -> int:
    """`10 minutes` in milliseconds; raises ConfigError that names the option `name`."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ConfigError(
            f"{name} is {text!r} and should be like '30 seconds', '10 minutes', '1 hour', '2 days'.",
            name=name,
        )
    return int(found[1]) * _UNIT_MS[found[2]]


def _duration(_options: Any, field: attrs.Attribute[Any], value: str | None) -> None:
    if value is not None:
        duration_ms(value, field.name)


def _given(_options: Any, field: attrs.Attribute[Any], value: str) -> None:
    if not value.strip():
        raise ConfigError(f"{field.name} is empty.", name=field.name)


def _positive(_options: Any, field: attrs.Attribute[Any], value: int | None) -> None:
    if value is not None and value <= 0:
        raise ConfigError(f"{field.name} is {value} and has to be more than 0.", name=field.name)


def _one_of(*words: str) -> Callable[[Any, attrs.Attribute[Any], str], None]:
    def check(_options: Any, field: attrs.Attribute[Any], value: str) -> None:
        if value not in words:
            raise ConfigError(
                f"{field.name} is {value!r} and has to be one of {', '.join(words)}.", name=field.name
            )

    return check


def _names(settings: Mapping[str, str]) -> str:
    """Names alone: values may be passwords."""
    return f"<{', '.join(settings)}>"


@attrs.frozen(kw_only=True)
class JsonTopic:
    """A topic (or several, with commas) of JSON, how it becomes columns, and what makes a row a bad one.

    `settings` are those of all clients, by their names in Java without the prefix `kafka.`; what only consumers or only
    producers know goes into `consumer_settings` and `producer_settings`.

    `schema` is Spark's, in DDL; `schema_files.load_schema` makes one of a file. `new_fields` says what becomes of
    fields that it does not name: `ignore` drops them, `keep` has them as JSON in the column `_extra`, and with `reject`
    the row is a bad one.

    Rows without a value for one of `required` are bad, and so are those for which one of
    `conditions` is not true: SQL over `event`, such as `event.amount > 0`.

    `time_column` is the time of the event. It is always required, and compared with the time of the record: an event
    more than `max_lateness` older or `max_ahead` newer is a bad row. Both times stay the same however often a row is
    read, so that a run again finds the same rows bad; a watermark drops rows by what was read before them.
    """

    NEEDS_TIME: ClassVar[str] = ""
    """The part of the output that cannot be without `time_column`."""
    HAS_COLUMNS: ClassVar[bool] = True
    """True if the events themselves are part of the output, as columns."""

    bootstrap_servers: str = attrs.field(validator=_given)
    settings: Mapping[str, str] = attrs.field(factory=dict, repr=_names)
    consumer_settings: Mapping[str, str] = attrs.field(factory=dict, repr=_names)
    producer_settings: Mapping[str, str] = attrs.field(factory=dict, repr=_names)
    topic: str = attrs.field(validator=_given)
    schema: str = attrs.field(validator=_given)
    time_column: str | None = None
    required: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    new_fields: str = attrs.field(default="ignore", validator=_one_of(*NEW_FIELDS))
    max_lateness: str | None = attrs.field(default=None, validator=_duration)
    max_ahead: str | None = attrs.field(default=None, validator=_duration)

    def __attrs_post_init__(self) -> None:
        for name in ("max_lateness", "max_ahead"):
            if getattr(self, name) is not None:
                self.event_time(name)
        if self.NEEDS_TIME:
            self.event_time(self.NEEDS_TIME)
        if self.new_fields == "keep" and not self.HAS_COLUMNS:
            raise ConfigError(
                "new_fields=keep needs an output that has events as columns.", name="new_fields"
            )

    @property
    def source_settings(self) -> dict[str, str]:
        """The cluster, as options of `format("kclient")` where it is read."""
        return self._settings(self.consumer_settings)

    @property
    def sink_settings(self) -> dict[str, str]:
        """The cluster, as options of `format("kclient")` where it is written to."""
        return self._settings(self.producer_settings)

    def _settings(self, more: Mapping[str, str]) -> dict[str, str]:
        return {
            **{f"kafka.{name}": value for name, value in {**self.settings, **more}.items()},
            "kafka.bootstrap.servers": self.bootstrap_servers,
        }

    def event_time(self, wanted_by: str) -> str:
        """The time column; raises ConfigError where there is none."""
        if not self.time_column:
            raise ConfigError(
                f"{wanted_by} needs the option time_column: which column is the event's time.",
                name="time_column",
            )
        return self.time_column


@attrs.frozen(kw_only=True)
class Stream(JsonTopic):
    """The options that every stream has.

    `checkpoint` is a folder that belongs to this stream alone. `every` is the time from one micro-batch to the next,
    for as long as the query is not stopped; without it the stream ends when it has read what was there.
    `commit_group_id` is the consumer group that shows the progress to Kafka's own tools.
    """

    checkpoint: str = attrs.field(validator=_given)
    starting_offsets: str = attrs.field(default="earliest", validator=_given)
    max_offsets_per_trigger: int | None = attrs.field(default=None, validator=_positive)
    commit_group_id: str | None = None
    every: str | None = attrs.field(default=None, validator=_duration)


@attrs.frozen(kw_only=True)
class EtlOptions(Stream):
    """`output` is the folder of Parquet files, with a folder for each `date` of the time column."""

    NEEDS_TIME = "A folder for each date"

    output: str = attrs.field(validator=_given)


@attrs.frozen(kw_only=True)
class Windows(Stream):
    """Windows of the length `window`, each for every combination of `group_by`: how many, and sums of `sums`.

    Sums of decimals are exact; those of floating-point numbers depend on the order of rows. An event is left out when
    its window has ended more than `watermark` before the newest event that was read. Those are counted, and go to
    `late_topic` as dead letters if there is one, for which micro-batches are read twice. With a watermark longer than
    `max_lateness` and `max_ahead` together, by as much as one partition may be read ahead of another, there are none:
    what is late has become a bad row before.
    """

    NEEDS_TIME = "A window"

    window: str = attrs.field(default="5 minutes", validator=_duration)
    watermark: str = attrs.field(default="10 minutes", validator=_duration)
    group_by: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    late_topic: str | None = None

    @property
    def window_ms(self) -> int:
        """The length of a window."""
        return duration_ms(self.window, "window")


@attrs.frozen(kw_only=True)
class WindowOptions(Windows):
    """`output_topic` gets a record whenever a window has changed; with `final`, one when it can change no more."""

    HAS_COLUMNS = False

    output_topic: str = attrs.field(validator=_given)
    final: bool = False


@attrs.frozen(kw_only=True)
class EventsOptions(Windows):
    """The whole way: `output` gets the folders `events` and `windows`; bad rows and closed windows go to topics.

    `checkpoint` gets a folder for each of the two queries.
    """

    output: str = attrs.field(validator=_given)
    dead_letter_topic: str = attrs.field(validator=_given)
    window_topic: str = attrs.field(validator=_given)


@attrs.frozen(kw_only=True)
class EnrichOptions(Stream):
    """`table` is a folder or file of `table_format`, joined by the columns `join_on` that both sides have.

    It should have one row for each value of these, or an event becomes several records. Events that nothing in it fits
    keep nulls. Spark lists its files when the query starts: start it again when there are others.
    """

    output_topic: str = attrs.field(validator=_given)
    table: str = attrs.field(validator=_given)
    table_format: str = attrs.field(default="parquet", validator=_one_of(*TABLE_FORMATS))
    join_on: tuple[str, ...] = attrs.field()

    @join_on.validator
    def _some(self, _field: attrs.Attribute[Any], value: tuple[str, ...]) -> None:
        if not value:
            raise ConfigError("join_on names no column.", name="join_on")


@attrs.frozen(kw_only=True)
class DeadLetterOptions(Stream):
    """Good rows go to `output_topic` as they are, bad ones to `dead_letter_topic`."""

    HAS_COLUMNS = False

    output_topic: str = attrs.field(validator=_given)
    dead_letter_topic: str = attrs.field(validator=_given)


@attrs.frozen(kw_only=True)
class BackfillOptions(JsonTopic):
    """Records from `start_ms` on and before `end_ms`, in ms since the epoch, become Parquet files in `output` by date.

    `min_partitions` is how many tasks share the range at least. `overwrite` replaces a folder that is there.
    """

    NEEDS_TIME = "A folder for each date"

    start_ms: int
    end_ms: int
    output: str = attrs.field(validator=_given)
    min_partitions: int | None = attrs.field(default=None, validator=_positive)
    overwrite: bool = False

    def __attrs_post_init__(self) -> None:
        JsonTopic.__attrs_post_init__(self)
        if self.end_ms <= self.start_ms:
            raise ConfigError("end_ms has to be after start_ms.", name="end_ms")
