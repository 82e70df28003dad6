"""Reading settings: names, sources, support, and what errors say."""

from __future__ import annotations

import ast
import functools
import logging
import pickle
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

import kclient
from kclient.admin.config import AdminConfig
from kclient.config import Config, Support, definition_of
from kclient.config.declare import vary
from kclient.config.foreign_names import FOREIGN_NAMES
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.share_config import ShareConsumerConfig
from kclient.errors import ConfigError
from kclient.producer.config import ProducerConfig

SERVERS = {"bootstrap.servers": "localhost:9092"}
CLASSES: list[type[Config]] = [ProducerConfig, ConsumerConfig, ShareConsumerConfig, AdminConfig]
STRING_SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer"


def producer(**settings: object) -> ProducerConfig:
    return ProducerConfig.parse(SERVERS, settings)


@pytest.mark.parametrize(
    ("cls", "name", "instead"),
    [
        (ConsumerConfig, "consumer_timeout_ms", "poll(timeout_ms)"),
        (ConsumerConfig, "enable.partition.eof", "end_offsets()"),
        (ProducerConfig, "sasl_plain_username", "sasl.jaas.config"),
        (ProducerConfig, "queue.buffering.max.ms", "linger.ms"),
        (ProducerConfig, "message.timeout.ms", "delivery.timeout.ms"),
        (AdminConfig, "api_version", "nothing"),
    ],
)
def test_a_name_of_another_clients_setting_is_answered_with_what_to_write_here(
    cls: type[Config], name: str, instead: str
) -> None:
    with pytest.raises(ConfigError) as failed:
        cls.parse(SERVERS, {name: "1"})
    assert name in str(failed.value)
    assert instead in str(failed.value)


def test_what_stands_for_other_clients_settings_exists_and_hides_none_of_ours() -> None:
    ours = {key.name for cls in CLASSES for key in definition_of(cls)}
    assert not ours & set(FOREIGN_NAMES)
    named = {word for text in FOREIGN_NAMES.values() for word in re.findall(r"^[a-z]+(?:\.[a-z0-9]+)+", text)}
    assert named <= ours


@pytest.mark.parametrize(
    ("cls", "given", "said"),
    [
        (ConsumerConfig, "orders", "subscribe(['orders'])"),
        (ProducerConfig, "host:9092", "bootstrap_servers='host:9092'"),
        (ProducerConfig, "a:1,b:2", "bootstrap_servers='a:1,b:2'"),
        (AdminConfig, "embedded://x", "bootstrap_servers='embedded://x'"),
        (ProducerConfig, "orders", ".properties file, and there is none"),
    ],
)
def test_a_text_in_place_of_the_settings_is_answered_with_where_it_belongs(
    cls: type[Config], given: str, said: str
) -> None:
    with pytest.raises(ConfigError) as failed:
        cls.parse(given)
    assert said in str(failed.value)


def test_names_may_be_dotted_or_underscored_and_values_strings_or_native() -> None:
    for settings in ({"linger.ms": "20"}, {"linger_ms": 20}, {"linger.ms": 20}):
        assert ProducerConfig.parse({**SERVERS, **settings}).linger_ms == 20
        assert ProducerConfig.parse(SERVERS, settings).linger_ms == 20


def test_a_properties_file_is_read_with_javas_class_names(tmp_path: Path) -> None:
    path = tmp_path / "producer.properties"
    path.write_text(
        f"bootstrap.servers = b1:9092,\\\n  b2:9092\nvalue.serializer={STRING_SERIALIZER}\nacks: -1\n"
    )
    for source in (path, str(path)):
        config = ProducerConfig.parse(source, {"client_id": "c"})
        assert config.bootstrap_servers == ["b1:9092", "b2:9092"]
        assert (config.value_serializer, config.acks, config.client_id) == ("string", "all", "c")


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        ({"linger.ms": 1, "linger_ms": 1}, {}),
        ({"linger.ms": 1}, {"linger_ms": 2}),
        ({}, {"linger.ms": 1, "linger_ms": 1}),
        ({"linger.ms": 1}, {"linger.ms": 1}),
    ],
)
def test_a_setting_given_twice_is_refused(config: dict[str, object], settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"linger\.ms is given twice") as caught:
        ProducerConfig.parse({**SERVERS, **config}, settings)
    assert caught.value.name == "linger.ms"


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ("lingr.ms", "linger.ms"),
        ("linger_msec", "linger.ms"),
        ("LINGER_MS", "linger.ms"),
        ("batchsize", "batch.size"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest_one_and_the_client(given: str, nearest: str) -> None:
    with pytest.raises(ConfigError) as caught:
        producer(**{given: 1})
    assert f"{given!r} is not a setting of the producer. Did you mean {nearest!r}?" == str(caught.value)


def test_an_unknown_setting_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(ConfigError, match=r"'zzz' is not a setting of the producer\.$"):
        producer(zzz=1)


def test_a_setting_of_another_client_is_said_to_be_that() -> None:
    with pytest.raises(
        ConfigError, match=r"'auto\.offset\.reset' is a setting of the consumer, not of the producer\."
    ):
        ProducerConfig.parse({**SERVERS, "auto.offset.reset": "g"})
    with pytest.raises(ConfigError, match="of the admin client and the producer, not of the consumer"):
        ConsumerConfig.parse(SERVERS, {"retries": 3})


@pytest.mark.parametrize("key", [1, None, b"linger.ms"])
def test_a_name_that_is_no_string_is_refused(key: Any) -> None:
    with pytest.raises(ConfigError, match="must be a string"):
        ProducerConfig.parse({**SERVERS, key: 1})


@pytest.mark.parametrize("source", [5, ["linger.ms"], b"file"])
def test_a_source_that_is_no_mapping_or_path_is_refused(source: Any) -> None:
    with pytest.raises(ConfigError, match="must be a mapping or the path"):
        ProducerConfig.parse(source)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("given", [{}, {"bootstrap.servers": ""}, {"bootstrap.servers": []}])
def test_without_bootstrap_servers_the_error_mentions_the_embedded_broker(
    cls: type[Config], given: dict[str, object]
) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is not set.*embedded://") as caught:
        cls.parse(given)
    assert caught.value.name == "bootstrap.servers"


def test_none_is_taken_where_unset_is_the_default_and_refused_elsewhere() -> None:
    assert producer(partitioner_class=None, key_serializer=None).partitioner_class is None
    with pytest.raises(ConfigError, match=r"linger\.ms must not be None"):
        producer(linger_ms=None)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_settings_default_is_accepted_when_it_is_given(cls: type[Config]) -> None:
    needed = {**SERVERS, "group.id": "g"} if cls is ShareConsumerConfig else SERVERS
    parsed = cls.parse(needed)
    for key in definition_of(cls):
        if key.name in {*needed, "enable.auto.commit"}:
            continue
        value = getattr(parsed, key.name.replace(".", "_"))
        again = cls.parse(needed, {key.name: value})
        assert getattr(again, key.name.replace(".", "_")) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.engine.factory.class", object()),
        ("sasl.mechanism", "AWS_MSK_IAM"),
        ("transaction.two.phase.commit.enable", True),
        ("metric.reporters", [object()]),
        ("sasl.login.class", "com.example.Login"),
        ("partitioner.rack.aware", True),
        ("bootstrap.resolve.timeout.ms", 1),
    ],
)
def test_what_is_not_implemented_yet_says_so(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^{name}.* is not implemented yet") as caught:
        producer(**{name: value})
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        (
            "sasl.mechanism",
            "AWS_MSK_IAM",
            "leave it out or set it to PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512 or OAUTHBEARER.",
        ),
        ("sasl.oauthbearer.jwks.endpoint.url", "http://x", "leave it out."),
    ],
)
def test_nothing_is_advised_that_is_not_implemented_either(name: str, value: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        producer(**{name: value})
    assert str(caught.value).endswith(f"is not implemented yet; {hint}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter"),
        ("metric.reporters", ""),
        ("security.protocol", "plaintext"),
        ("transactional.id", None),
    ],
)
def test_what_is_not_implemented_yet_accepts_its_default_and_off(name: str, value: object) -> None:
    producer(**{name: value})


def test_the_admin_client_pushes_metrics_only_where_it_is_told_to() -> None:
    assert not AdminConfig.parse(SERVERS, {}).enable_metrics_push
    assert AdminConfig.parse(SERVERS, {"enable.metrics.push": "true"}).enable_metrics_push
    assert producer().enable_metrics_push


def test_a_secret_is_in_no_error_and_no_repr() -> None:
    with pytest.raises(ConfigError) as caught:
        producer(ssl_key_password=["hunter2"])
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(producer(sasl_jaas_config="hunter2"))


def test_a_jvm_only_setting_is_taken_with_one_warning_per_process(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kclient.config.config_def._warned", set())
    with caplog.at_level(logging.WARNING, logger="kclient"):
        producer(ssl_provider="SunJSSE", client_id="p")
        producer(ssl_provider="SunJSSE")
        producer(ssl_keymanager_algorithm="SunX509")
    assert [record.getMessage() for record in caplog.records] == [
        "[Producer clientId=p] ssl.provider concerns the Java virtual machine only; it is ignored."
    ]


def test_a_client_without_an_id_gets_one_that_nobody_else_has() -> None:
    ids = [
        client_id.rpartition("-")
        for client_id in (
            producer().client_id,
            producer(client_id="").client_id,
            ConsumerConfig.parse(SERVERS).client_id,
            ConsumerConfig.parse(SERVERS, {"group.id": "g"}).client_id,
            AdminConfig.parse(SERVERS).client_id,
        )
    ]
    stems = [stem for stem, _, _ in ids]
    assert stems == ["producer", "producer", "consumer-none", "consumer-g", "adminclient"]
    numbers = [int(number) for _, _, number in ids]
    assert numbers[1] == numbers[0] + 1
    assert numbers[3] == numbers[2] + 1


def test_warnings_about_settings_name_the_client_as_all_its_lines_do(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kclient.config.config_def._warned", set())
    twice = {"bootstrap.servers": "a:1,a:1"}
    backoff = {"retry.backoff.ms": 9, "retry.backoff.max.ms": 8}
    with caplog.at_level(logging.WARNING, logger="kclient"):
        ProducerConfig.parse(twice, {**backoff, "client.id": "50%", "acks": 1, "linger.ms": 10**6})
        config = ConsumerConfig.parse(twice, {"group.id": "g", "ssl.provider": "X"})
        AdminConfig.parse(twice, {"client.id": "a", "request.timeout.ms": 10**6})
    identities = [line.partition("] ")[0] for line in caplog.messages]
    assert identities == [
        *["[Producer clientId=50%"] * 4,
        *[f"[Consumer clientId={config.client_id}, groupId=g"] * 2,
        *["[AdminClient clientId=a"] * 2,
    ]
    assert "%%" not in caplog.text


def test_an_identity_that_is_no_text_is_refused_by_name() -> None:
    for name in ("client.id", "group.id"):
        with pytest.raises(ConfigError, match=f"^{name}") as caught:
            ConsumerConfig.parse(SERVERS, {name: object()})
        assert caught.value.name == name


@pytest.mark.parametrize(
    "name", ["value.serializer", "partitioner.class", "interceptor.classes", "metric.reporters"]
)
@pytest.mark.parametrize(
    "value", ["os.system", "com.example.Mine", "org.apache.kafka.common.serialization.Nope"]
)
def test_a_string_that_is_no_known_class_is_never_imported(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match="never imported by name; pass the object itself") as caught:
        producer(**{name: value})
    assert caught.value.name == name


def test_values_are_looked_up_where_providers_are_named_in_any_of_the_sources(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KCLIENT_TEST_NAME", "orders")
    config = {**SERVERS, "client.id": "${env:KCLIENT_TEST_NAME}-1"}
    assert ProducerConfig.parse(config).client_id == "${env:KCLIENT_TEST_NAME}-1"
    assert ProducerConfig.parse(config, {"config_providers": "env"}).client_id == "orders-1"
    with pytest.raises(ConfigError, match=r"^config\.providers\.env\.class is given twice"):
        ProducerConfig.parse(
            {**config, "config.providers.env.class": "env"}, {"config_providers_env_class": "env"}
        )
    with pytest.raises(ConfigError, match=r"provider that config\.providers does not name"):
        ProducerConfig.parse({**config, "config.providers.env.class": "env"})


def test_settings_cannot_be_changed_and_lists_are_not_shared() -> None:
    first, second = producer(), producer()
    with pytest.raises(AttributeError):
        first.linger_ms = 1  # type: ignore[misc]
    first.interceptor_classes.append("x")
    assert second.interceptor_classes == []


def test_settings_survive_pickling() -> None:
    config = producer(linger_ms=7)
    assert pickle.loads(pickle.dumps(config)) == config


def test_an_attribute_must_have_the_name_of_its_setting() -> None:
    @attrs.frozen(kw_only=True)
    class Wrong(Config):
        linger: int = vary(ProducerConfig, "linger.ms")

    with pytest.raises(TypeError, match=r"Wrong\.linger declares linger\.ms"):
        definition_of(Wrong)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_setting_is_documented_in_one_line(cls: type[Config]) -> None:
    for key in definition_of(cls):
        assert key.doc.endswith("."), key.name
        assert "\n" not in key.doc
        assert key.doc[0].isupper() or key.doc[0].isdigit()
        assert key.support is Support.YES or not key.name.startswith("kclient.")


@pytest.mark.parametrize("cls", CLASSES)
def test_every_setting_that_is_accepted_is_read_by_something(cls: type[Config]) -> None:
    accepted = {key.name.replace(".", "_") for key in definition_of(cls) if key.support is Support.YES}
    before_all_others = {"config_providers"}
    assert accepted - attributes_of_kclient() == before_all_others


@functools.cache
def attributes_of_kclient() -> set[str]:
    """The names that code outside the broker, which has settings of its own, takes from any object."""
    modules = [path for path in Path(kclient.__file__).parent.rglob("*.py") if "broker" not in path.parts]
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in modules)
    return {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
