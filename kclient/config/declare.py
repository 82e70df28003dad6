"""Settings as attrs fields: declared once in a class, read from mappings, keyword arguments and files.

@attrs.frozen(kw_only=True)
class ProducerConfig(ClientConfig):
    client: ClassVar[str] = "producer"
    linger_ms: int = long(5, MEDIUM, "How ...", at_least(0))

config = ProducerConfig.parse({"bootstrap.servers": "localhost:9092"}, {"linger_ms": 20})
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import attrs

from kclient.config import providers
from kclient.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Support
from kclient.config.properties import load_properties
from kclient.config.validators import Validator
from kclient.config.values import Type
from kclient.errors import ConfigError
from kclient.utils.log_context import LogContext, shared_logger

# host:port, several of them or a broker of ours; a drive of Windows has no port.
_SERVERS = re.compile(r"(embedded://.*|[^/\\\s]+:[0-9]+)(,.*)?")

_METADATA = "kclient.config.key"

_PROVIDERS = "config.providers"
ConfigSource: TypeAlias = Mapping[str, object] | str | Path | None
"""Settings by their names, dotted or underscored, or the path of a `.properties` file."""

_config_classes: dict[str, type[Config]] = {}
_definitions: dict[type[Config], ConfigDef] = {}


def _setting(
    type_: Type,
    default: Any,
    importance: Importance,
    doc: str,
    validator: Validator | None = None,
    *,
    support: Support = Support.YES,
    off: tuple[object, ...] = (),
    java_kind: str | None = None,
    takes: str = "",
    missing: str = "",
) -> Any:
    """An attrs field for the setting that is called as the attribute is, with dots for the underscores.

    `off` are values that mean "off", for a setting with `Support.LATER`. `java_kind` says which of Java's class names
    (see `java_names`) the value may be, `takes` which class an object must have, for type checkers, as `module:name`.
    `missing` is the error's text when a `REQUIRED` one is not given.
    """
    return _field(
        ConfigKey("", type_, default, importance, doc, validator, support, off, java_kind, takes, missing)
    )


boolean = partial(_setting, Type.BOOLEAN)
string = partial(_setting, Type.STRING)
short = partial(_setting, Type.SHORT)
integer = partial(_setting, Type.INT)
long = partial(_setting, Type.LONG)
double = partial(_setting, Type.DOUBLE)
list_ = partial(_setting, Type.LIST)
class_ = partial(_setting, Type.CLASS)
password = partial(_setting, Type.PASSWORD)


def vary(base: type[Config], name: str, **changes: Any) -> Any:
    """The setting `name` of `base` again, with `changes` to its definition, such as another `default`."""
    return _field(attrs.evolve(definition_of(base)[name], **changes))


def _field(key: ConfigKey) -> Any:
    default = key.default
    if default is REQUIRED:
        return attrs.field(metadata={_METADATA: key})
    if isinstance(default, list):
        return attrs.field(factory=key.default_value, metadata={_METADATA: key})
    return attrs.field(default=default, metadata={_METADATA: key})


@attrs.frozen(kw_only=True)
class Config:
    """The typed settings of one client.

    Immutable; any thread may read it. Made by `parse`, which checks them.
    """

    client: ClassVar[str] = ""
    """The client that the settings are for, as errors name it. A class without it is a base of others."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.client:
            _config_classes[cls.client] = cls
            shared_logger(cls.__module__)  # what the class's own rules warn of is said for the client as well

    @classmethod
    def parse(
        cls,
        config: ConfigSource = None,
        settings: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> Self:
        """The settings in `config`, a mapping or the path of a `.properties` file, in `settings`, and in those
        `parameters` that are not None.

        Names may be dotted or underscored, values strings or native objects. Raises ConfigError for a name
        that is unknown or given twice, a value that is not valid, values that do not go together, and a
        setting that is missing or not implemented yet.
        """
        definition = definition_of(cls)
        given_first = config_mapping(config, cls.client)
        named = {name: value for name, value in parameters.items() if value is not None}
        given: dict[str, object] = {}
        about_providers: dict[str, object] = {}
        looks_up = _PROVIDERS in definition  # which a broker does not
        for source in (given_first, {**(settings or {}), **named}):
            for key, value in source.items():
                dotted = str(key).replace("_", ".")
                if looks_up and dotted.startswith(providers.PREFIX):
                    name, kept = dotted, about_providers
                else:
                    name, kept = _known_name(definition, key), given
                if name in kept:
                    raise ConfigError(f"{name} is given twice; remove one of the two.", name=name)
                kept[name] = value
        if given.get(_PROVIDERS) or about_providers:
            chosen = definition[_PROVIDERS].parse(given.get(_PROVIDERS, []))
            given = providers.resolve(given, chosen, about_providers)
        names = frozenset(given)
        with cls.introduce(given).speaking():
            values = definition.parse(given)
            cls.adjust(values, names)
        return cls(**{name.replace(".", "_"): value for name, value in values.items()})

    @classmethod
    def introduce(cls, given: dict[str, object]) -> LogContext:  # noqa: ARG003 - for those that have an identity
        """Return the text that names the settings' owner in warnings; may put an identity into `given`."""
        return LogContext()

    @classmethod
    def adjust(cls, values: dict[str, Any], given: frozenset[str]) -> None:
        """Cross-key rules: check all `values`, by dotted name, and change defaults that depend on other
        settings.

        `given` are the names that the user set. Raises ConfigError naming the settings that do not go
        together.
        """


def raise_default(values: dict[str, Any], given: frozenset[str], name: str, least: int, reason: str) -> bool:
    """Return True if the default of `name` was below `least` and is raised to it; ConfigError if a user's value is.

    `reason` says in the error what the value must be.
    """
    if values[name] >= least:
        return False
    if name in given:
        raise ConfigError(f"{name} ({values[name]}) must be at least {reason}.", name=name)
    values[name] = least
    return True


def definition_of(cls: type[Config]) -> ConfigDef:
    """The definitions of all settings of `cls`, by name."""
    definition = _definitions.get(cls)
    if definition is None:
        # Two threads may both get here: they build the same, and either may stay.
        definition = _definitions[cls] = ConfigDef(cls.client, _keys_of(cls))
    return definition


def _keys_of(cls: type[Config]) -> list[ConfigKey]:
    keys = []
    for field in attrs.fields(cls):
        if _METADATA not in field.metadata:
            continue  # no setting, but something that was made of several
        key: ConfigKey = field.metadata[_METADATA]
        name = field.name.replace("_", ".")
        if key.name not in {"", name}:
            raise TypeError(f"{cls.__name__}.{field.name} declares {key.name}")
        keys.append(attrs.evolve(key, name=name))
    return sorted(keys, key=lambda key: key.name)


def _known_name(definition: ConfigDef, key: object) -> str:
    try:
        return definition.dotted(key)
    except ConfigError as error:
        name = str(key).replace("_", ".")
        owners = sorted(client for client, cls in _config_classes.items() if name in definition_of(cls))
        if not owners:
            raise
        raise ConfigError(
            f"{key!r} is a setting of the {' and the '.join(owners)}, not of the {definition.client}.",
            name=error.name,
        ) from None


def config_mapping(config: ConfigSource, client: str) -> Mapping[str, object]:
    """Return the settings of a client's first argument, a mapping or a `.properties` file. Raises ConfigError."""
    if isinstance(config, str | Path):
        return _read_file(config, client)
    if config is not None and not isinstance(config, Mapping):
        raise ConfigError(
            "The configuration must be a mapping or the path of a .properties file, "
            f"not an object of type {type(config).__name__}."
        )
    return config or {}


def _read_file(path: str | Path, client: str) -> Mapping[str, object]:
    """The settings of a file; a text that looks like something else is answered with where that belongs."""
    # Other clients take topics or servers there.
    if isinstance(path, str) and not path.endswith(".properties") and not Path(path).exists():
        if _SERVERS.fullmatch(path):
            raise ConfigError(
                f"Servers are given by name: bootstrap_servers={path!r}.", name="bootstrap.servers"
            )
        if "/" not in path and "\\" not in path:
            topics = f"; topics are given to subscribe([{path!r}])" if client == "consumer" else ""
            raise ConfigError(
                f"{path!r} is taken for the path of a .properties file, and there is none{topics}. Settings are "
                "keywords, such as bootstrap_servers='localhost:9092', or a mapping."
            )
    return load_properties(path)
