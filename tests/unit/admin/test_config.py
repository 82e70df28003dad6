"""The admin client's settings: rules that concern more than one of them."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.admin.config import AdminConfig
from kclient.errors import ConfigError


def parse(**settings: Any) -> AdminConfig:
    return AdminConfig.parse({"bootstrap.servers": "localhost:9092"}, settings)


def test_a_call_may_take_at_least_as_long_as_one_request() -> None:
    assert parse(request_timeout_ms=90_000).default_api_timeout_ms == 90_000
    with pytest.raises(ConfigError, match=r"default\.api\.timeout\.ms \(1000\) must be at least request"):
        parse(default_api_timeout_ms=1000)


def test_controllers_cannot_be_asked_first_yet() -> None:
    assert parse(bootstrap_controllers=[]).bootstrap_controllers == []
    with pytest.raises(ConfigError, match=r"bootstrap\.controllers is not implemented yet"):
        parse(bootstrap_controllers="localhost:9093")
