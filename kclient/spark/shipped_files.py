"""Files that settings name, found on the machine of this process: with a path, or by name where Spark has put them.

The driver plans in processes of its own, executors read and write in theirs, and each has another folder for what was
shipped with the job. So settings travel as they were written, and paths are looked up where a client is made.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from kclient.config.providers import VARIABLE, provider_kind
from kclient.config.values import Password
from kclient.errors import ConfigError

_KAFKA = "kafka."
_JAAS = "sasl.jaas.config"
_PROVIDERS = "config.providers"
_FILES = (
    "ssl.truststore.location",
    "ssl.keystore.location",
    "kclient.ssl.crl.location",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.template.file",
)
_FILES_OF_JAAS = ("keyTab", "ssl.truststore.location", "ssl.keystore.location")
# Folders of a session of Spark Connect, by its id, and of the planner of a streaming source, which Spark never makes.
_OF_A_JOB = re.compile(r"streaming_job|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SHIP = (
    "Ship it with the job (--files, spark.files or SparkContext.addFile) and give its name alone, or give the absolute "
    "path of a file that every machine has."
)


def on_this_machine(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with the absolute paths of the files that they name.

    Raises ConfigError with the option, the path, the places that were looked at and the machine.
    """
    found = dict(settings)
    for name in _FILES:
        path = found.get(name, "").strip()
        if path and "${" not in path:
            found[name] = _located(path, _KAFKA + name)
    jaas = found.get(_JAAS)
    if jaas is not None and "${" not in jaas:
        found[_JAAS] = _located_in_jaas(jaas)
    return _located_in_variables(found)


def files_folder() -> Path | None:
    """Return the folder where Spark has put the job's files for this process; None outside of Spark."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkFiles

    try:
        return Path(SparkFiles.getRootDirectory()).absolute()
    except (AssertionError, TypeError):
        return None  # neither a process of Spark's nor one with a session


def _places() -> list[Path]:
    folder = files_folder()
    found = [] if folder is None else [folder]
    if folder is not None and _OF_A_JOB.fullmatch(folder.name):
        found.append(folder.parent)
    return list(dict.fromkeys([*found, Path.cwd()]))


def _located(path: str, what: str) -> str:
    if os.path.isabs(path):
        looked_at = [Path(path)]
    else:
        looked_at = [place / path for place in _places()]
    there = next((each for each in looked_at if os.path.exists(each)), None)
    machine = f"on this machine ({socket.gethostname()})"
    if there is None:
        places = ", ".join(map(str, looked_at))
        raise ConfigError(f"{what}: {path} is not {machine}; looked for {places}. {_hint(path)}", name=what)
    if not os.access(there, os.R_OK):
        raise ConfigError(f"{what}: {there} cannot be read by the user of this process {machine}.", name=what)
    return str(there)


def _hint(path: str) -> str:
    name = Path(path).name
    if path != name and (shipped := files_folder()) is not None and (shipped / name).exists():
        return f"A file {name} was shipped with the job: give its name alone."
    return _SHIP


def _located_in_jaas(text: str) -> str:
    from kclient.security.jaas import LoginModule, jaas_text, parse_jaas

    try:
        module = parse_jaas(Password(text))
    except ConfigError:
        return text  # which the client refuses in its own words
    found = {
        name: _located(path, f"{_KAFKA}{_JAAS}, option {name}")
        for name in _FILES_OF_JAAS
        if (path := module.options.get(name, "").removeprefix("FILE:"))
    }
    return jaas_text(LoginModule(module.name, {**module.options, **found})) if found else text


def _located_in_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with absolute paths in `${provider:path:key}` of the providers that read files."""
    named = [each.strip() for each in settings.get(_PROVIDERS, "").split(",")]
    of_files = {each for each in named if provider_kind(each, settings) in {"file", "directory"}}

    def located(name: str, text: str) -> str:
        def absolute(variable: re.Match[str]) -> str:
            provider, path, key = variable[1], variable[2] or "", variable[3]
            if provider not in of_files or not path:
                return variable[0]
            return f"${{{provider}:{_located(path, f'{_KAFKA}{name}, {variable[0]}')}:{key}}}"

        return VARIABLE.sub(absolute, text)

    return {name: located(name, text) for name, text in settings.items()} if of_files else dict(settings)
