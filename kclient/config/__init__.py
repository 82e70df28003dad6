"""Settings: declared once with type, default, validator, importance and documentation."""

from __future__ import annotations

from kclient.config.config_def import REQUIRED, ConfigDef, ConfigKey, Importance, Support
from kclient.config.declare import Config, definition_of
from kclient.config.java_names import java_alias
from kclient.config.properties import load_properties, parse_properties
from kclient.config.values import Password, Type

__all__ = [
    "REQUIRED",
    "Config",
    "ConfigDef",
    "ConfigKey",
    "Importance",
    "Password",
    "Support",
    "Type",
    "definition_of",
    "java_alias",
    "load_properties",
    "parse_properties",
]
