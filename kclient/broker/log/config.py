"""LogConfig: the settings of one topic's logs, by the names that topics have for them in Kafka."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from kclient.errors import InvalidConfigurationError

_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1

CREATE_TIME = "CreateTime"
LOG_APPEND_TIME = "LogAppendTime"
PRODUCER_COMPRESSION = "producer"

_COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", PRODUCER_COMPRESSION)

Parser = Callable[[str, object], Any]


def _number(low: int, high: int) -> Parser:
    def parse(name: str, value: object) -> int:
        try:
            number = int(str(value).strip())
        except ValueError as error:
            raise InvalidConfigurationError(f"{name} must be a whole number, not {value!r}") from error
        if not low <= number <= high:
            raise InvalidConfigurationError(f"{name} must be between {low} and {high}, not {number}")
        return number

    return parse


def _ratio(name: str, value: object) -> float:
    try:
        number = float(str(value))
    except ValueError as error:
        raise InvalidConfigurationError(f"{name} must be a number, not {value!r}") from error
    if not 0 <= number <= 1:
        raise InvalidConfigurationError(f"{name} must be between 0 and 1, not {value}")
    return number


def _gzip_level(name: str, value: object) -> int:
    level: int = _number(-1, 9)(name, value)
    if level == 0:
        raise InvalidConfigurationError(
            f"{name} must be -1 (the library's default) or between 1 and 9, not 0"
        )
    return level


def _flag(name: str, value: object) -> bool:
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise InvalidConfigurationError(f"{name} must be true or false, not {value!r}")
    return text == "true"


def _one_of(*values: str) -> Parser:
    def parse(name: str, value: object) -> str:
        if value not in values:
            raise InvalidConfigurationError(f"{name} must be one of {', '.join(values)}, not {value!r}")
        return str(value)

    return parse


def _cleanup_policy(name: str, value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise InvalidConfigurationError(f"{name} must be a list of delete and compact, not {value!r}")
    policies = tuple(dict.fromkeys(str(part).strip() for part in parts if str(part).strip()))
    if not policies or not set(policies) <= {"delete", "compact"}:
        raise InvalidConfigurationError(f"{name} must be delete, compact or both, not {value!r}")
    return policies


def _setting(default: Any, parse: Parser, doc: str) -> Any:
    """A setting that is called as its attribute is, with dots."""

    def validate(_: object, field: attrs.Attribute[Any], value: object) -> None:
        parse(_name(field), value)

    return attrs.field(default=default, validator=validate, metadata={"parse": parse, "doc": doc})


def _name(field: attrs.Attribute[Any]) -> str:
    return field.name.replace("_", ".")


_DAY_MS = 24 * 60 * 60 * 1000
_period = _number(0, _LONG_MAX)
_limit = _number(-1, _LONG_MAX)


@attrs.frozen(kw_only=True)
class LogConfig:
    """Settings by which a log keeps its records. Immutable; values are checked at construction.

    Raises `InvalidConfigurationError` naming the setting for anything a topic may not be set to.
    """

    segment_bytes: int = _setting(
        1024**3, _number(14, _INT_MAX), "Size at which a segment is closed and a new one begun."
    )
    segment_ms: int = _setting(
        7 * _DAY_MS, _number(1, _LONG_MAX), "Age at which a segment is closed though it is not full."
    )
    segment_jitter_ms: int = _setting(
        0, _period, "Random part taken off segment.ms, so that logs do not all roll at once."
    )
    segment_index_bytes: int = _setting(
        10 * 1024**2, _number(4, _INT_MAX), "Size limit of each index of a segment."
    )
    index_interval_bytes: int = _setting(
        4096, _number(0, _INT_MAX), "Bytes of log between two entries of its index."
    )
    retention_ms: int = _setting(7 * _DAY_MS, _limit, "Age at which a segment is deleted; -1 for never.")
    retention_bytes: int = _setting(
        -1, _limit, "Size of a partition above which its oldest segments go; -1 for any size."
    )
    max_message_bytes: int = _setting(1048588, _number(0, _INT_MAX), "Largest record batch that is accepted.")
    message_timestamp_type: str = _setting(
        CREATE_TIME,
        _one_of(CREATE_TIME, LOG_APPEND_TIME),
        "Whose clock stamps the records: the producer's or the broker's.",
    )
    message_timestamp_before_max_ms: int = _setting(
        _LONG_MAX, _period, "How far a record's timestamp may lie before the broker's clock."
    )
    message_timestamp_after_max_ms: int = _setting(
        60 * 60 * 1000, _period, "How far a record's timestamp may lie after the broker's clock."
    )
    cleanup_policy: tuple[str, ...] = _setting(
        ("delete",), _cleanup_policy, "Whether old records are deleted, compacted, or both."
    )
    compression_type: str = _setting(
        PRODUCER_COMPRESSION,
        _one_of(*_COMPRESSION_TYPES),
        "Codec in which batches are stored; producer keeps each batch's own.",
    )
    compression_gzip_level: int = _setting(
        -1, _gzip_level, "Level used when the broker compresses with gzip."
    )
    compression_lz4_level: int = _setting(
        9, _number(1, 17), "Level used when the broker compresses with lz4."
    )
    compression_zstd_level: int = _setting(
        3, _number(-131072, 22), "Level used when the broker compresses with zstd."
    )
    flush_messages: int = _setting(
        _LONG_MAX, _number(1, _LONG_MAX), "Records after which the log is forced to disk."
    )
    flush_ms: int = _setting(_LONG_MAX, _period, "Time after which new records are forced to disk.")
    file_delete_delay_ms: int = _setting(
        60_000, _period, "Time between a file's removal from the log and its deletion."
    )
    min_insync_replicas: int = _setting(
        1, _number(1, _INT_MAX), "Replicas that must have a record before acks=all is given."
    )
    unclean_leader_election_enable: bool = _setting(
        False, _flag, "Whether a replica that lags may become the leader."
    )
    preallocate: bool = _setting(
        False, _flag, "Whether a new segment's file has its full size at once, as a sparse file."
    )
    delete_retention_ms: int = _setting(
        _DAY_MS, _period, "Time for which compaction keeps a deletion marker."
    )
    min_cleanable_dirty_ratio: float = _setting(
        0.5, _ratio, "Share of a log that must be new before it is compacted."
    )
    min_compaction_lag_ms: int = _setting(0, _period, "Age below which a record is never compacted.")
    max_compaction_lag_ms: int = _setting(
        _LONG_MAX, _number(1, _LONG_MAX), "Age at which a record must be compacted."
    )

    def __attrs_post_init__(self) -> None:
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise InvalidConfigurationError(
                f"min.compaction.lag.ms ({self.min_compaction_lag_ms}) must not be greater than "
                f"max.compaction.lag.ms ({self.max_compaction_lag_ms})"
            )

    @classmethod
    def from_topic_configs(
        cls, configs: Mapping[str, str | None], defaults: LogConfig | None = None
    ) -> LogConfig:
        """`defaults` with a topic's own settings on top; a None value takes the default back.

        Raises `InvalidConfigurationError` naming the setting that is unknown or has a bad value.
        """
        changes: dict[str, Any] = {}
        for name, value in configs.items():
            field = _FIELDS.get(name)
            if field is None:
                near = difflib.get_close_matches(name, _FIELDS, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise InvalidConfigurationError(f"Unknown topic config {name}{hint}")
            if value is not None:
                changes[field.name] = field.metadata["parse"](name, value)
        return attrs.evolve(defaults if defaults is not None else cls(), **changes)

    @staticmethod
    def names() -> list[str]:
        """The names of all topic settings, sorted."""
        return sorted(_FIELDS)

    @staticmethod
    def doc(name: str) -> str:
        """One line about the setting `name`."""
        return str(_FIELDS[name].metadata["doc"])

    def to_topic_configs(self) -> dict[str, str]:
        """All settings as texts by the names of topics, as tools show them."""
        return {name: _text(getattr(self, _FIELDS[name].name)) for name in self.names()}

    @property
    def compact(self) -> bool:
        """True if only the last record of each key has to be kept."""
        return "compact" in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """Age at which a segment is closed: a compacted log has to be done with it in max.compaction.lag.ms."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms

    @property
    def delete(self) -> bool:
        """True if old segments are deleted by age and size."""
        return "delete" in self.cleanup_policy


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_FIELDS: dict[str, attrs.Attribute[Any]] = {_name(field): field for field in attrs.fields(LogConfig)}
