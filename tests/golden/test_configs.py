"""Settings against the table of the Java client. Every deliberate difference is listed here with its reason."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harness.golden import golden_table
from kclient.admin.config import AdminConfig
from kclient.config import REQUIRED, ConfigKey, definition_of
from kclient.config.declare import Config
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.share_config import ShareConsumerConfig
from kclient.errors import ConfigError
from kclient.producer.config import ProducerConfig

pytestmark = pytest.mark.golden

TABLE: dict[str, Any] = golden_table("configs")
PAIRS: list[tuple[type[Config], str]] = [
    (ProducerConfig, "ProducerConfig"),
    (ConsumerConfig, "ConsumerConfig"),
    (AdminConfig, "AdminClientConfig"),
]
CASES = [(cls, name, row) for cls, java in PAIRS for name, row in TABLE[java]["keys"].items()]
IDS = [f"{cls.__name__}-{name}" for cls, name, _ in CASES]

# Without a serializer, keys and values are bytes: unlike in Java that is a useful default.
OPTIONAL = {"key.serializer", "value.serializer", "key.deserializer", "value.deserializer"}

OTHER_DEFAULTS: dict[str, object] = {
    # The same assignors by the names that groups know them by; java_names.py takes the classes.
    "partition.assignment.strategy": ["range", "cooperative-sticky"],
    "metric.reporters": [],  # Java's JMX does not exist here
    # Java's 32 to 128 KiB cost a quarter of the rate of reading; the system's own buffers grow as needed.
    "receive.buffer.bytes": -1,
    "send.buffer.bytes": -1,
}

# Java has no validator, but refuses these values later or hangs with them.
STRICTER = {
    "connections.max.idle.ms": "[-1,...]",
    "heartbeat.interval.ms": "[1,...]",
    "session.timeout.ms": "[1,...]",
    "socket.connection.setup.timeout.max.ms": "[0,...]",
    "socket.connection.setup.timeout.ms": "[0,...]",
    "transaction.timeout.ms": "[1,...]",
}


def key_of(cls: type[Config], name: str) -> ConfigKey:
    return definition_of(cls)[name]


def allowed(text: str | None) -> object:
    """The meaning of a validator's text, without the order of words and the case of those whose case is ignored."""
    if not text or not text.strip():
        return None
    if "..." in text or "[" not in text:
        return text
    head, _, words = text.strip("]").partition("[")
    if head:
        words = words.lower()
    return head, frozenset(words.split(", "))


@pytest.mark.parametrize(("cls", "name", "row"), CASES, ids=IDS)
def test_a_setting_has_javas_type(cls: type[Config], name: str, row: dict[str, Any]) -> None:
    assert key_of(cls, name).type.name == row["type"]


@pytest.mark.parametrize(("cls", "name", "row"), CASES, ids=IDS)
def test_a_setting_has_javas_importance(cls: type[Config], name: str, row: dict[str, Any]) -> None:
    assert key_of(cls, name).importance.name == row["importance"]


@pytest.mark.parametrize(("cls", "name", "row"), CASES, ids=IDS)
def test_a_setting_has_javas_default(cls: type[Config], name: str, row: dict[str, Any]) -> None:
    key = key_of(cls, name)
    if not row["has_default"]:
        assert key.default is (None if name in OPTIONAL else REQUIRED)
    elif name in OTHER_DEFAULTS:
        assert key.default == OTHER_DEFAULTS[name]
        assert key.default != row["default"]
    elif name == "share.acquire.mode":
        assert str(key.default).upper() == row["default"]  # in Java an enum's name, as a value in lower case
    else:
        assert key.default == row["default"]


@pytest.mark.parametrize(("cls", "name", "row"), CASES, ids=IDS)
def test_a_setting_allows_what_java_allows(cls: type[Config], name: str, row: dict[str, Any]) -> None:
    validator = key_of(cls, name).validator
    ours = allowed(validator.describe() if validator is not None else None)
    if name in STRICTER:
        assert (ours, allowed(row["valid_values"])) == (STRICTER[name], None)
    elif name == "share.acquire.mode":
        assert validator is not None
        assert validator.describe() == f"(case insensitive) {row['valid_values']}"  # as Java's code does it
    else:
        assert ours == allowed(row["valid_values"])


@pytest.mark.parametrize(("cls", "java"), PAIRS)
def test_there_are_no_settings_but_javas_and_our_own(cls: type[Config], java: str) -> None:
    ours = {key.name for key in definition_of(cls)}
    assert {name for name in ours if not name.startswith("kclient.")} == set(TABLE[java]["keys"])


@pytest.mark.parametrize(("cls", "name", "row"), CASES, ids=IDS)
def test_javas_default_is_accepted_as_a_string(cls: type[Config], name: str, row: dict[str, Any]) -> None:
    value = row["default"]
    if value is None or name == "bootstrap.servers":
        return
    text = ",".join(value) if isinstance(value, list) else str(value)
    cls.parse(
        {"bootstrap.servers": "localhost:9092", "group.id": "g", name: text}
        if cls is ConsumerConfig
        else {"bootstrap.servers": "localhost:9092", name: text}
    )


def test_a_share_consumer_has_javas_settings_but_those_that_java_refuses() -> None:
    java = TABLE["ShareConsumerConfig"]
    refused = set(java["key_lists"]["SHARE_GROUP_UNSUPPORTED_CONFIGS"])
    ours = {key.name for key in definition_of(ShareConsumerConfig) if not key.name.startswith("kclient.")}
    assert ours == set(java["keys"]) - refused
    for name in refused:
        with pytest.raises(ConfigError, match=re.escape(name)):
            ShareConsumerConfig.parse(
                {"bootstrap.servers": "localhost:9092", "group.id": "g"},
                {name: java["keys"][name]["default"]},
            )
