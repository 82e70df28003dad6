"""Secrets among options: kept out of what is shown of our own objects, and of Spark's plans.

Spark itself hides an option in plans, the UI and event logs if its name or its value matches one of two patterns.
Those that it has by default know passwords, secrets and tokens, but no private key in PEM and no passphrase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTING = "spark.sql.redaction.options.regex"
_OF_SPARK = "(?i)url"
REDACTED_OPTIONS = "(?i)url|passphrase|keystore[.]key"
"""The value of spark.sql.redaction.options.regex by which Spark hides every secret of `kafka.*`."""


class ClientSettings(dict[str, str]):
    """Settings of a client, without the prefix `kafka.`. Its `repr` has no secret."""

    def __repr__(self) -> str:
        from kclient.config import definition_of
        from kclient.config.client_configs import ClientConfig
        from kclient.config.values import Type

        known = definition_of(ClientConfig)
        # A name that is not known may be a wrong name of a password.
        hidden = {name for name in self if name not in known or known[name].type is Type.PASSWORD}
        return repr({name: "[hidden]" if name in hidden else value for name, value in self.items()})


def hide_in_plans(spark: SparkSession) -> None:
    """Have a session's plans hide all secrets of `kafka.*`, unless it has a pattern of its own."""
    if spark.conf.get(_SETTING) == _OF_SPARK:
        spark.conf.set(_SETTING, REDACTED_OPTIONS)
