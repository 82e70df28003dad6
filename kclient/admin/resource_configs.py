"""Settings of topics, brokers, groups and the like, as brokers know them: reading and changing."""

from __future__ import annotations

import attrs

from kclient.admin.internals.fields import of_type
from kclient.utils.code_enum import CodeEnum


class ConfigResourceType(CodeEnum):
    """The kind of thing that has settings. A code that is not known here keeps its number, as `UNKNOWN_64`."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@attrs.frozen
class ConfigResource:
    """One thing that has settings. Of brokers the name is the id, or empty for what holds for all of them."""

    type: ConfigResourceType = attrs.field(validator=of_type(ConfigResourceType))
    name: str = attrs.field(validator=of_type(str))

    @property
    def is_of_one_broker(self) -> bool:
        """True if that broker alone can answer for it."""
        return bool(self.name) and self.type in {ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER}

    def __str__(self) -> str:
        kind = self.type.name.lower().replace("_", " ")
        return f"{kind} {self.name}" if self.name else f"every {kind}"


class ConfigSource(CodeEnum):
    """The place that a value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(CodeEnum):
    """The type of a setting's value."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@attrs.frozen
class ConfigSynonym:
    """Another place that the value of a setting may come from, and the name that it has there."""

    name: str
    value: str | None
    source: ConfigSource


@attrs.frozen
class ConfigEntry:
    """One setting as a broker describes it; `value` is None where it is a secret."""

    name: str
    value: str | None
    source: ConfigSource = ConfigSource.UNKNOWN
    is_sensitive: bool = False
    is_read_only: bool = False
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = None
    synonyms: tuple[ConfigSynonym, ...] = ()
    """Places where the value is looked for, in this order; only if they were asked for."""

    @property
    def is_default(self) -> bool:
        """True if nobody has set it."""
        return self.source is ConfigSource.DEFAULT_CONFIG


class AlterConfigOpType(CodeEnum):
    """The change to make; APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@attrs.frozen
class AlterConfigOp:
    """One setting to change. The value may be a secret, so it is not in the repr."""

    name: str = attrs.field(validator=of_type(str))
    value: str | None = attrs.field(
        default=None, repr=False, validator=of_type(str, optional=True, secret=True)
    )
    op_type: AlterConfigOpType = attrs.field(
        default=AlterConfigOpType.SET, validator=of_type(AlterConfigOpType)
    )

    def __attrs_post_init__(self) -> None:
        if not self.name:
            raise ValueError("AlterConfigOp: name must not be empty")
        if (self.value is None) != (self.op_type is AlterConfigOpType.DELETE):
            needs = "has no" if self.value is not None else "needs a"
            raise ValueError(f"AlterConfigOp: {self.op_type.name} of {self.name} {needs} value")
