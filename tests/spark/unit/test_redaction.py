"""Secrets among options: what is shown of them by our objects, and which of them Spark hides."""

from __future__ import annotations

import pickle
import re
from types import SimpleNamespace

import pytest

from kclient.config import definition_of
from kclient.config.client_configs import ClientConfig
from kclient.config.values import Type
from kclient.spark.option_names import Use
from kclient.spark.options import parse_source
from kclient.spark.redaction import REDACTED_OPTIONS, ClientSettings, hide_in_plans
from kclient.spark.sink_options import parse_sink

SETTING = "spark.sql.redaction.options.regex"
OF_SPARK = "(?i)url"
SECRET_OF_SPARK = "(?i)secret|password|token|access[.]?key"  # the default of spark.redaction.regex

PASSWORDS = [key.name for key in definition_of(ClientConfig) if key.type is Type.PASSWORD]
PUBLIC = {"ssl.truststore.certificates", "ssl.keystore.certificate.chain"}


def test_no_option_object_shows_a_secret() -> None:
    secrets = {f"kafka.{name}": f"hunter-{number}" for number, name in enumerate(PASSWORDS)}
    secrets["kafka.kclient.proxy.url"] = "socks5://me:hunter@proxy:1"
    given = {"kafka.bootstrap.servers": "b:1", "kafka.client.id": "me", **secrets}
    for parsed in (
        parse_source({**given, "subscribe": "t"}, Use.STREAM_READ),
        parse_sink(given, Use.BATCH_WRITE),
    ):
        shown = repr(parsed)
        assert "hunter" not in shown
        assert "'bootstrap.servers': 'b:1', 'client.id': 'me'" in shown
        assert f"'{PASSWORDS[0]}': '[hidden]'" in shown


def test_values_of_names_that_are_not_known_are_not_shown() -> None:
    assert repr(ClientSettings({"sasl.jaas.cnfig": "hunter"})) == "{'sasl.jaas.cnfig': '[hidden]'}"


def test_settings_travel_as_what_they_are() -> None:
    found = pickle.loads(pickle.dumps(ClientSettings({"sasl.jaas.config": "hunter"})))
    assert (type(found), found["sasl.jaas.config"]) == (ClientSettings, "hunter")


@pytest.mark.parametrize("name", sorted(set(PASSWORDS) - PUBLIC))
def test_spark_hides_every_secret_by_its_name_or_by_what_it_always_has(name: str) -> None:
    login = 'PlainLoginModule required username="me" password="hunter";'
    value = login if name == "sasl.jaas.config" else "hunter"
    assert any(
        re.search(pattern, text)
        for pattern in (SECRET_OF_SPARK, REDACTED_OPTIONS)
        for text in (f"kafka.{name}", value)
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [(OF_SPARK, REDACTED_OPTIONS), ("(?i)mine", "(?i)mine"), (REDACTED_OPTIONS, REDACTED_OPTIONS)],
)
def test_a_sessions_own_pattern_stays(before: str, after: str) -> None:
    known = {SETTING: before}
    hide_in_plans(SimpleNamespace(conf=SimpleNamespace(get=known.get, set=known.__setitem__)))
    assert known == {SETTING: after}
