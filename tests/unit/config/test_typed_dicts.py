"""Settings as TypedDicts."""

from __future__ import annotations

import re
import typing
from pathlib import Path
from typing import Any, Literal

import pytest

from kclient.admin.config import AdminConfig
from kclient.admin.settings import AdminSettings
from kclient.config import Config, ConfigKey, Support, definition_of, typed_dicts
from kclient.config.settings import ClientSettings
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.settings import ConsumerSettings
from kclient.consumer.share_config import ShareConsumerConfig
from kclient.consumer.share_settings import ShareConsumerSettings
from kclient.producer.config import ProducerConfig
from kclient.producer.settings import ProducerSettings

ROOT = Path(typed_dicts.__file__).resolve().parents[2]
PAIRS = [
    (ProducerConfig, ProducerSettings),
    (ConsumerConfig, ConsumerSettings),
    (ShareConsumerConfig, ShareConsumerSettings),
    (AdminConfig, AdminSettings),
]


def keys(cls: type[Config]) -> dict[str, ConfigKey]:
    return {key.name.replace(".", "_"): key for key in definition_of(cls)}


def alternatives(hint: Any) -> list[Any]:
    return [hint] if typing.get_origin(hint) is Literal else [hint, *typing.get_args(hint)]


def test_the_files_are_current() -> None:
    files = typed_dicts.render([ProducerConfig, ConsumerConfig, ShareConsumerConfig, AdminConfig])
    assert sorted(str(path.relative_to(ROOT / "kclient")) for path in files) == [
        "admin/settings.py",
        "config/settings.py",
        "consumer/settings.py",
        "consumer/share_settings.py",
        "producer/settings.py",
    ]
    for path, text in files.items():
        assert path.read_text(encoding="utf-8") == text, "`make docs` makes it anew"


def test_make_docs_runs_the_documented_command() -> None:
    command = re.compile(r"python (-m kclient\.config\.typed_dicts .*?:AdminConfig)", re.DOTALL)
    documented = command.search(typed_dicts.__doc__ or "")
    recipe = command.search((ROOT / "Makefile").read_text())
    assert documented is not None
    assert recipe is not None
    assert recipe[1].replace("\\\n", " ").split() == documented[1].replace("\\\n", " ").split()


@pytest.mark.parametrize(("config", "settings"), PAIRS)
def test_every_setting_has_a_type_but_those_that_are_parameters(config: type[Config], settings: Any) -> None:
    parameters = {"key_serializer", "value_serializer", "key_deserializer", "value_deserializer"}
    assert set(typing.get_type_hints(settings)) == keys(config).keys() - parameters
    assert settings.__required_keys__ == frozenset()


@pytest.mark.parametrize(("config", "settings"), PAIRS)
def test_words_that_are_typed_are_those_that_are_taken(config: type[Config], settings: Any) -> None:
    seen = 0
    for name, hint in typing.get_type_hints(settings).items():
        key = keys(config)[name]
        for each in alternatives(hint):
            if typing.get_origin(each) is Literal and key.support is Support.YES:
                seen += len([key.parse(word) for word in typing.get_args(each)])
    assert seen


def test_what_is_common_to_all_clients_is_said_once() -> None:
    common = typing.get_type_hints(ClientSettings).keys()
    assert {"client_id", "request_timeout_ms", "security_protocol"} <= common
    for _, settings in PAIRS:
        assert vars(settings)["__annotations__"].items() >= vars(ClientSettings)["__annotations__"].items()


def test_types_are_as_narrow_as_the_definition() -> None:
    hints = typing.get_type_hints(ProducerSettings)
    assert hints["acks"] == Literal["all", "-1", "0", "1", -1, 0, 1]
    assert hints["linger_ms"] is int
    assert hints["enable_idempotence"] is bool
    assert hints["sasl_login_refresh_window_factor"] is float
    assert hints["transactional_id"] == str | None
    assert type(None) not in typing.get_args(hints["client_rack"])


def test_the_default_comes_before_what_the_setting_does() -> None:
    text = (ROOT / "kclient" / "producer" / "settings.py").read_text()
    assert (
        'linger_ms: int\n    """Default: 5. How long a batch that is not full waits for more records."""'
        in text
    )
    assert 'transactional_id: str | None\n    """Optional. The name' in text
    assert 'bootstrap_servers: str | Sequence[str]\n    """Required. The brokers' in text
