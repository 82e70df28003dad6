"""Settings of the clients that the data source makes: what options give them, what is fixed, and what each is for."""

from __future__ import annotations

import pytest

from kclient.admin.config import AdminConfig
from kclient.consumer import ConsumerConfig
from kclient.errors import ConfigError
from kclient.producer import ProducerConfig
from kclient.spark.client_settings import (
    admin_settings,
    checked_settings,
    committer_settings,
    probe_settings,
    reader_settings,
    sample_settings,
    transaction_timeout_ms,
)
from kclient.spark.option_names import Use

SERVERS = {"bootstrap.servers": "b:1"}


def checked(use: Use | None = Use.BATCH_READ, **more: str) -> dict[str, str]:
    given = {"kafka.bootstrap.servers": "b:1", "subscribe": "t"}
    return checked_settings({**given, **{name.replace("__", "."): text for name, text in more.items()}}, use)


def test_only_what_has_the_prefix_is_a_setting_in_whatever_case_it_is_written() -> None:
    found = checked(KAFKA__Client__ID="me", kafkaClientId="x")
    assert found == {**SERVERS, "client.id": "me"}


@pytest.mark.parametrize("servers", ["", "  "])
def test_servers_are_needed_before_anything_else_is_looked_at(servers: str) -> None:
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers is not set") as caught:
        checked_settings({"kafka.bootstrap.servers": servers, "kafka.acks": "nonsense"}, Use.BATCH_WRITE)
    assert caught.value.name == "kafka.bootstrap.servers"


def test_a_broker_inside_one_process_is_refused_also_among_others() -> None:
    with pytest.raises(ConfigError, match="Spark's executors are others"):
        checked_settings({"kafka.bootstrap.servers": "b:1,embedded://x"}, None)


def test_before_the_use_is_known_settings_are_not_judged() -> None:
    assert checked(None, kafka__no__such="1") == {**SERVERS, "no.such": "1"}


@pytest.mark.parametrize("use", Use)
def test_a_setting_that_neither_side_knows_never_reaches_a_client(use: Use) -> None:
    assert checked(use, kafka__no__such="1") == SERVERS


def test_what_only_the_other_side_knows_is_left_out_whatever_its_value() -> None:
    mixed = {"kafka__acks": "nonsense", "kafka__fetch__min__bytes": "3", "kafka__client__id": "me"}
    assert checked(Use.STREAM_READ, **mixed) == {**SERVERS, "fetch.min.bytes": "3", "client.id": "me"}
    with pytest.raises(ConfigError, match="acks"):
        checked(Use.STREAM_WRITE, **mixed)


@pytest.mark.parametrize("use", [Use.BATCH_READ, Use.STREAM_READ])
def test_what_the_source_decides_itself_is_refused_with_the_option_to_use(use: Use) -> None:
    with pytest.raises(
        ConfigError, match=r"^kafka\.auto\.offset\.reset cannot be set: .*startingOffsets"
    ) as e:
        checked(use, kafka__auto__offset__reset="latest")
    assert e.value.name == "kafka.auto.offset.reset"


def test_readers_have_larger_fetches_and_short_waits_unless_the_user_wants_others() -> None:
    found = reader_settings({**SERVERS, "fetch.max.wait.ms": "77"})
    assert (found["max.partition.fetch.bytes"], found["fetch.max.wait.ms"]) == ("4194304", "77")


@pytest.mark.parametrize(
    "make", [reader_settings, probe_settings, sample_settings, lambda s: committer_settings(s, "g")]
)
def test_every_consumer_stays_where_it_is_put_whatever_the_user_wants(make: object) -> None:
    assert callable(make)
    user = {"auto.offset.reset": "latest", "enable.auto.commit": "true", "allow.auto.create.topics": "true"}
    config = ConsumerConfig.parse(make({**SERVERS, **user, "client.id": "me"}))
    found = (
        config.auto_offset_reset,
        config.enable_auto_commit,
        config.allow_auto_create_topics,
        config.client_id,
    )
    assert found == ("none", False, False, "me")


def test_a_probe_asks_for_as_little_as_there_is_and_a_sample_for_a_little_more() -> None:
    user = {**SERVERS, "max.partition.fetch.bytes": "9999999", "fetch.max.bytes": "9999999"}
    probe, sample = ConsumerConfig.parse(probe_settings(user)), ConsumerConfig.parse(sample_settings(user))
    assert (probe.max_partition_fetch_bytes, probe.fetch_max_bytes, probe.fetch_max_wait_ms) == (1, 1, 250)
    assert sample.max_partition_fetch_bytes == 65536


def test_a_committer_has_the_group_that_commits_and_not_the_consumers() -> None:
    assert committer_settings({**SERVERS, "group.id": "theirs"}, "ours")["group.id"] == "ours"


def test_an_admin_client_takes_what_it_knows_of_a_consumers_or_a_producers_settings() -> None:
    settings = {
        **SERVERS,
        "client.id": "me",
        "request.timeout.ms": "5000",
        "isolation.level": "read_committed",
    }
    found = admin_settings({**settings, "linger.ms": "5"})
    assert found == {**SERVERS, "client.id": "me", "request.timeout.ms": "5000"}
    assert AdminConfig.parse(found).request_timeout_ms == 5000
    assert ProducerConfig.parse(found).client_id == "me"
    assert admin_settings({**SERVERS, **PROVIDER, "linger.ms": "5"}) == {**SERVERS, **PROVIDER}


PROVIDER = {
    "config.providers": "vault",
    "config.providers.vault.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


@pytest.mark.parametrize("use", Use)
def test_what_is_kept_elsewhere_is_looked_up_where_a_client_is_made_and_not_before(use: Use) -> None:
    looked_up = {
        **PROVIDER,
        "client.id": "${vault:not-there.properties:id}",
        "request.timeout.ms": "${vault:not-there.properties:timeout}",
    }
    found = checked(use, **{f"kafka__{name}".replace(".", "__"): value for name, value in looked_up.items()})
    assert found == {**SERVERS, **looked_up}
    with pytest.raises(ConfigError, match=r"retry\.backoff\.ms"):
        checked(use, kafka__config__providers="vault", kafka__retry__backoff__ms="soon")
    if not use.reads:
        assert transaction_timeout_ms({**found, "transaction.timeout.ms": "7000"}) == 7000


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", None])
@pytest.mark.parametrize("protocol", ["SASL_SSL", "sasl_plaintext"])
def test_sasl_without_credentials_is_refused_with_what_other_ways_do_not_hold_here(
    protocol: str, mechanism: str | None
) -> None:
    more = {"kafka__security__protocol": protocol}
    if mechanism is not None:
        more["kafka__sasl__mechanism"] = mechanism
    with pytest.raises(
        ConfigError, match=r"spark\.kafka\.clusters\.\*.*java\.security\.auth\.login"
    ) as caught:
        checked(Use.STREAM_WRITE, **more)
    assert caught.value.name == "kafka.sasl.jaas.config"
    assert (mechanism or "GSSAPI") in str(caught.value)
    more["kafka__sasl__jaas__config"] = "x.Module required;"
    assert checked(Use.STREAM_WRITE, **more)["sasl.jaas.config"] == "x.Module required;"


@pytest.mark.parametrize(
    "more",
    [
        {"kafka__sasl__mechanism": "GSSAPI", "kafka__sasl__kerberos__service__name": "kafka"},
        {
            "kafka__sasl__mechanism": "OAUTHBEARER",
            "kafka__sasl__oauthbearer__token__endpoint__url": "https://issuer.example/token",
            "kafka__sasl__login__callback__handler__class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
            ),
        },
    ],
)
def test_tickets_and_tokens_need_no_login_module(more: dict[str, str]) -> None:
    checked(Use.BATCH_READ, kafka__security__protocol="SASL_SSL", **more)
