"""Config providers: values that are kept elsewhere, as `${provider:path:key}` (KIP-297, KIP-421, KIP-887).

Nothing is looked up unless `config.providers` names a provider: whoever can write a value alone must not be able to
read files or the environment (CVE-2024-31141).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from kclient.config.properties import load_properties
from kclient.errors import ConfigError

Provider: TypeAlias = Callable[[str, str], str | None]
"""Function that returns the value of a key at a path, which may be empty; None if there is none."""

PREFIX = "config.providers."
VARIABLE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")  # as in Java
"""A value that is kept elsewhere: the provider, the path, which may be missing, and the key."""
_JAVA = "org.apache.kafka.common.config.provider."
_CLASSES = {
    f"{_JAVA}EnvVarConfigProvider": "env",
    f"{_JAVA}FileConfigProvider": "file",
    f"{_JAVA}DirectoryConfigProvider": "directory",
}


def resolve(given: Mapping[str, object], names: list[str], about: Mapping[str, object]) -> dict[str, object]:
    """Return the settings `given` with values looked up at the providers `names`.

    `about` has their settings, each with its whole name. What is looked up is not looked through again. Raises
    ConfigError that names the setting whose value is not there, and never shows it.
    """
    providers = {name: _provider(name, about) for name in names}
    left = [key for key in about if key.removeprefix(PREFIX).partition(".")[0] not in providers]
    if left:
        raise ConfigError(f"{left[0]} is about a provider that config.providers does not name.", name=left[0])

    def found(name: str, variable: re.Match[str]) -> str:
        provider, path, key = variable[1], variable[2] or "", variable[3]
        if provider not in providers:
            raise ConfigError(f"{name}: config.providers does not name {provider!r}.", name=name)
        try:
            value = providers[provider](path, key)
        except (OSError, ValueError) as error:  # ConfigError is one, too
            raise ConfigError(f"{name}: {variable[0]} cannot be looked up: {error}", name=name) from None
        if not isinstance(value, str):
            raise ConfigError(f"{name}: {variable[0]} is not there.", name=name)
        return value

    def looked_up(name: str, value: object) -> object:
        if not isinstance(value, str):
            return value
        return VARIABLE.sub(lambda variable: found(name, variable), value)

    return {name: looked_up(name, value) for name, value in given.items()}


def provider_kind(name: str, about: Mapping[str, object]) -> object:
    """Return the kind of a provider, env, file or directory where it is one of Java's, by the settings `about` it."""
    chosen = about.get(f"{PREFIX}{name}.class", name)
    return chosen if callable(chosen) else _CLASSES.get(str(chosen), chosen)


def _provider(name: str, about: Mapping[str, object]) -> Provider:
    kind = provider_kind(name, about)
    parameters = {
        key.removeprefix(f"{PREFIX}{name}.param."): str(value)
        for key, value in about.items()
        if key.startswith(f"{PREFIX}{name}.param.")
    }
    if callable(kind):
        made: Provider = kind
        return made
    if kind == "env":
        return _environment(parameters.get("allowlist.pattern"))
    if kind == "file":
        return _files(parameters.get("allowed.paths"))
    if kind == "directory":
        return _directories(parameters.get("allowed.paths"))
    setting = f"{PREFIX}{name}.class"
    raise ConfigError(
        f"{setting} is a function of a path and a key, or one of Java's providers: {', '.join(_CLASSES)}; no class is "
        "imported by its name.",
        name=setting,
    )


def _environment(allowed: str | None) -> Provider:
    pattern = None if allowed is None else re.compile(allowed)

    def get(path: str, key: str) -> str | None:
        if path:
            raise ValueError("the environment has no paths")
        if pattern is not None and not pattern.fullmatch(key):
            raise ValueError("its allowlist.pattern does not match")
        return os.environ.get(key)

    return get


def _files(allowed: str | None) -> Provider:
    def get(path: str, key: str) -> str | None:
        value = load_properties(_checked(path, allowed)).get(key)
        return None if value is None else str(value)

    return get


def _directories(allowed: str | None) -> Provider:
    def get(path: str, key: str) -> str | None:
        if "/" in key or key in {"", ".", ".."}:
            raise ValueError("the key is the name of a file in that directory")
        file = _checked(path, allowed) / key
        return file.read_text(encoding="utf-8") if file.is_file() else None

    return get


def _checked(path: str, allowed: str | None) -> Path:
    if not path:
        raise ValueError("it needs a path, as in ${provider:path:key}")
    if allowed is not None:
        real = Path(path).resolve()
        if not any(real.is_relative_to(Path(each.strip()).resolve()) for each in allowed.split(",")):
            raise ValueError("it is not below its allowed.paths")
    return Path(path)
