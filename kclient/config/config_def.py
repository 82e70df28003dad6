"""Definitions of settings: what exists, of which type, with which default, and what may be said about it."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

import attrs

from kclient.config.foreign_names import FOREIGN_NAMES
from kclient.config.java_names import java_alias
from kclient.config.validators import Validator
from kclient.config.values import Type, parse_value
from kclient.errors import ConfigError
from kclient.utils.log_context import shared_logger

_log = shared_logger(__name__)


class Importance(Enum):
    """The importance of a setting to most applications. Only for documentation."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW


class Support(Enum):
    """The effect of a setting in this version of kclient."""

    YES = "yes"
    """It takes effect."""
    LATER = "not implemented yet"
    """Its default and values that mean "off" are accepted, all others raise."""
    JVM = "only for the JVM"
    """Accepted so that configuration can be shared with Java, with one warning per process."""


LATER, JVM = Support.LATER, Support.JVM


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()
"""The default of a setting that has none."""


@attrs.frozen
class ConfigKey:
    """One setting."""

    name: str
    type: Type
    default: Any
    importance: Importance
    doc: str
    validator: Validator | None = None
    support: Support = Support.YES
    off: tuple[object, ...] = ()
    java_kind: str | None = None
    takes: str = ""
    missing: str = ""

    def parse(self, value: object) -> Any:
        """`value` with the setting's type, checked. Raises ConfigError naming the setting."""
        parsed = parse_value(self.name, self.type, value)
        if parsed is None:
            if self.default is None or (self.default is REQUIRED and self.type is Type.CLASS):
                return None
            raise ConfigError(f"{self.name} must not be None.", name=self.name)
        try:
            if self.java_kind is not None:
                parsed = _with_aliases(self.java_kind, parsed)
            if self.validator is not None:
                parsed = self.validator(parsed)
        except ValueError as error:
            shown = "the value given" if self.type is Type.PASSWORD else repr(value)
            raise ConfigError(f"{self.name}: {shown} is not valid: {error}.", name=self.name) from None
        self._check_support(parsed)
        return parsed

    def default_value(self) -> Any:
        """The default, as a fresh object where it is a list."""
        if self.default is REQUIRED:
            raise ConfigError(self.missing or f"{self.name} is not set.", name=self.name)
        return list(self.default) if isinstance(self.default, list) else self.default

    def _check_support(self, parsed: object) -> None:
        if self.support is Support.JVM:
            if parsed != self.default:
                _warn_jvm_only(self.name)
        elif self.support is Support.LATER and parsed != self.default and parsed not in self.off:
            # Not the default: that of sasl.mechanism is as little implemented as the others.
            hint = "leave it out" + (f" or set it to {' or '.join(map(str, self.off))}" if self.off else "")
            shown = f"={parsed}" if isinstance(parsed, str | bool) else ""
            raise ConfigError(f"{self.name}{shown} is not implemented yet; {hint}.", name=self.name)


def _with_aliases(kind: str, value: object) -> object:
    if isinstance(value, list):
        return [java_alias(kind, item) if isinstance(item, str) else item for item in value]
    return java_alias(kind, value) if isinstance(value, str) else value


_warned: set[str] = set()
_warned_lock = threading.Lock()


def _warn_jvm_only(name: str) -> None:
    with _warned_lock:
        if name in _warned:
            return
        _warned.add(name)
    _log.warning("%s concerns the Java virtual machine only; it is ignored.", name)


class ConfigDef:
    """All settings of one kind of client. Immutable."""

    __slots__ = ("_keys", "client")

    def __init__(self, client: str, keys: Iterable[ConfigKey]) -> None:
        self.client = client
        self._keys = {key.name: key for key in keys}

    def __iter__(self) -> Iterator[ConfigKey]:
        return iter(self._keys.values())

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def dotted(self, given: object) -> str:
        """The setting's name for `given`, which may be dotted or underscored.

        Raises ConfigError for an unknown one, naming the nearest setting that exists.
        """
        if not isinstance(given, str):
            raise ConfigError(f"The name of a setting must be a string, not {given!r}.")
        name = given.strip()
        if "." not in name:
            name = name.replace("_", ".")
        if name in self._keys:
            return name
        raise ConfigError(f"{given!r} is not a setting of the {self.client}.{self._hint(name)}", name=name)

    def _hint(self, name: str) -> str:
        instead = FOREIGN_NAMES.get(name.lower().replace("_", "."))
        if instead is not None:
            return f" Here it is {instead}."
        nearest = difflib.get_close_matches(name.lower().replace("_", "."), self._keys, n=1, cutoff=0.6)
        return f" Did you mean {nearest[0]!r}?" if nearest else ""

    def parse(self, given: Mapping[str, object]) -> dict[str, Any]:
        """Every setting's value by its dotted name: as given (by dotted name), else the default.

        Raises ConfigError for a value that is not valid, and for a required setting that is not given.
        """
        return {
            name: key.parse(given[name]) if name in given else key.default_value()
            for name, key in self._keys.items()
        }
