"""Settings of resources as values."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.admin import AlterConfigOp, AlterConfigOpType, ConfigEntry, ConfigResource, ConfigResourceType
from kclient.admin.resource_configs import ConfigSource


def test_resources_read_as_words_and_know_who_can_answer_for_them() -> None:
    logger = ConfigResource(ConfigResourceType.BROKER_LOGGER, "3")
    assert (str(logger), logger.is_of_one_broker) == ("broker logger 3", True)
    every = ConfigResource(ConfigResourceType.BROKER, "")
    assert (str(every), every.is_of_one_broker) == ("every broker", False)
    assert not ConfigResource(ConfigResourceType.TOPIC, "3").is_of_one_broker


def test_a_default_is_what_nobody_has_set() -> None:
    assert ConfigEntry("x", "1", ConfigSource.DEFAULT_CONFIG).is_default
    assert not ConfigEntry("x", "1", ConfigSource.STATIC_BROKER_CONFIG).is_default


def test_the_value_of_a_change_may_be_a_secret_and_is_not_shown() -> None:
    assert "s3cret" not in repr(AlterConfigOp("ssl.key.password", "s3cret"))
    value: Any = b"s3cret"
    with pytest.raises(TypeError, match="value must be a str, not a bytes") as raised:
        AlterConfigOp("ssl.key.password", value)
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: AlterConfigOp("", "1"), ValueError, "name must not be empty"),
        (lambda: AlterConfigOp("x"), ValueError, "SET of x needs a value"),
        (lambda: AlterConfigOp("x", "1", AlterConfigOpType.DELETE), ValueError, "DELETE of x has no value"),
        (lambda: AlterConfigOp("x", "1", 0), TypeError, "op_type must be an AlterConfigOpType"),
        (lambda: ConfigResource(2, "t"), TypeError, "type must be a ConfigResourceType"),
        (lambda: ConfigResource(ConfigResourceType.TOPIC, None), TypeError, "name must be a str"),
    ],
)
def test_what_cannot_be_is_refused_where_it_is_made(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()
