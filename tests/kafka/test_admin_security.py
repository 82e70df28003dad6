"""Access rules, credentials, tokens, quotas, others' transactions on a real broker with the StandardAuthorizer.

Whoever comes without authentication is a super user here. alice comes with SCRAM and may do what rules allow.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.real_kafka.broker import RealKafka, missing
from harness.requirements import skip_if
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import (
    AbortTransactionSpec,
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    DelegationToken,
    KafkaAdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialsDescription,
    UserScramCredentialUpsertion,
)
from kclient.cli.main import main
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    ClusterAuthorizationError,
    GroupAuthorizationError,
    KafkaError,
    ResourceNotFoundError,
    SaslAuthenticationError,
    TopicAuthorizationError,
    TransactionalIdAuthorizationError,
    UnsupportedByAuthenticationError,
)

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PASSWORD = "alice's password"
GUIDE = Path(__file__).parents[2] / "docs" / "security.md"
SHA_512 = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def broker() -> Iterator[RealKafka]:
    skip_if(missing())
    mechanisms = ("SCRAM-SHA-256", "SCRAM-SHA-512")
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "a key of the brokers",
        "delegation.token.expiry.check.interval.ms": "1000",
        "quota.window.num": "3",
        "listener.name.users.sasl.enabled.mechanisms": ",".join(mechanisms),
        **{
            f"listener.name.users.{name.lower()}.sasl.jaas.config": f"{MODULE} required;"
            for name in mechanisms
        },
    }
    with RealKafka(listeners={"USERS": "SASL_PLAINTEXT"}, settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def admin(broker: RealKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as made:
        yield made


def settings_of(broker: RealKafka, username: str, password: str, *, token: bool = False) -> dict[str, object]:
    module = f'{MODULE} required username="{username}" password="{password}"'
    return {
        "bootstrap.servers": f"127.0.0.1:{broker.ports['USERS']}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": module + (' tokenauth="true";' if token else ";"),
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 20,
    }


@pytest.fixture(scope="module")
def alice(broker: RealKafka, admin: KafkaAdminClient) -> dict[str, object]:
    """The settings of alice, who can log in."""
    upsertion = UserScramCredentialUpsertion("alice", SHA_512, PASSWORD)
    assert admin.alter_user_scram_credentials([upsertion]) == {"alice": None}
    settings = settings_of(broker, "alice", PASSWORD)
    wait_until(lambda: gets_in(settings), 30, "alice")
    return settings


def gets_in(settings: dict[str, object]) -> bool:
    with KafkaAdminClient(settings) as client:
        try:
            client.list_topics()
        except SaslAuthenticationError:
            return False
        return True


def kclient(broker: RealKafka, command: str, *words: str) -> None:
    assert main([command, "--bootstrap-server", broker.bootstrap_servers, *words]) == 0


def seen(call: Callable[[], object], *errors: type[KafkaError]) -> bool:
    """True if `call` raises one of `errors`."""
    try:
        call()
    except errors:
        return True
    return False


def test_passwords_are_set_described_and_taken_away_and_a_user_without_one_is_said_to_have_none(
    broker: RealKafka, admin: KafkaAdminClient
) -> None:
    weak = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256)
    both = "SCRAM-SHA-256=[password=p],SCRAM-SHA-512=[iterations=8192,password=p]"
    kclient(broker, "configs", "--alter", "--user", "bob", "--add-config", both)
    expected = UserScramCredentialsDescription("bob", (weak, SHA_512))
    wait_until(lambda: admin.describe_user_scram_credentials().get("bob") == expected, 30, "the passwords")
    settings = settings_of(broker, "bob", "p")
    assert gets_in(settings)
    for each in (weak, SHA_512):
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("bob", each.mechanism)])
    wait_until(
        lambda: seen(lambda: admin.describe_user_scram_credentials(["bob"]), ResourceNotFoundError),
        30,
        "the end",
    )
    assert not gets_in(settings)
    with pytest.raises(ResourceNotFoundError, match="Altering SCRAM credentials failed for bob"):
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("bob", SHA_512.mechanism)])


def test_rules_let_a_user_in_and_out_while_the_clients_run(
    broker: RealKafka, alice: dict[str, object], capsys: Captured
) -> None:
    topic = new_topic(broker.bootstrap_servers, 1)
    group = f"g-{topic}"
    may = ("--allow-principal", "User:alice", "--topic", topic)
    producing = ("--producer", *may)
    consuming = ("--consumer", "--group", group, *may)
    with KafkaConsumer(alice, group_id=group) as consumer:
        consumer.subscribe([topic])
        with pytest.raises((TopicAuthorizationError, GroupAuthorizationError)):
            consumer.poll(timeout_ms=30_000)
    with (
        KafkaProducer(alice) as producer,
        KafkaConsumer(alice, group_id=group, auto_offset_reset="earliest") as consumer,
    ):
        # The topic is refused, or first the producer id, which nobody gets who may write nowhere.
        with pytest.raises((TopicAuthorizationError, ClusterAuthorizationError)):
            producer.send(topic, b"x").result(30)
        kclient(broker, "acls", "--add", *producing)
        kclient(broker, "acls", "--add", *consuming)
        wait_until(lambda: not refused(producer, topic), 30, "the first record to be written")
        consumer.subscribe([topic])
        wait_until(lambda: bool(list(consumer.poll(timeout_ms=100))), 30, "the first record to be read")

        capsys.readouterr()
        kclient(broker, "acls", "--list", "--topic", topic, "--output", "json")
        ours = {tuple(json.loads(line).values()) for line in capsys.readouterr().out.splitlines()}
        assert len(ours) == 4
        assert ours == of_java(broker, "--topic", topic)

        kclient(broker, "acls", "--remove", "--force", *producing)
        kclient(broker, "acls", "--remove", "--force", *consuming)
        wait_until(lambda: refused(producer, topic), 10, "the end for the producer")
        started = time.monotonic()
        assert refused(producer, topic)
        assert time.monotonic() - started < 5
        wait_until(
            lambda: seen(lambda: consumer.poll(timeout_ms=100), TopicAuthorizationError), 10, "the end"
        )
        # However often it is polled, it asks no more often than it backs off.
        asked, until = consumer.metrics()["fetch-total"], time.monotonic() + 1
        while time.monotonic() < until:
            seen(lambda: consumer.poll(timeout_ms=10), KafkaError)
        assert consumer.metrics()["fetch-total"] - asked <= 20


def test_transactions_are_for_those_who_may_see_and_end_them(
    broker: RealKafka, admin: KafkaAdminClient, alice: dict[str, object]
) -> None:
    tp = TopicPartition(new_topic(broker.bootstrap_servers, 1), 0)
    name = f"x-{tp.topic}"
    admin.fence_producers([name])
    spec = AbortTransactionSpec(tp, 1_000_000, 0)
    with KafkaAdminClient(alice) as client:
        errors = (TopicAuthorizationError, ClusterAuthorizationError, TransactionalIdAuthorizationError)

        def raised(call: Callable[[], object]) -> str:
            with pytest.raises(errors) as found:
                call()
            return type(found.value).__name__

        assert client.list_transactions() == {}
        assert raised(lambda: client.describe_transactions([name])) == "TransactionalIdAuthorizationError"
        assert raised(lambda: client.fence_producers([name])) == "TransactionalIdAuthorizationError"
        assert raised(lambda: client.describe_producers([tp])) == "TopicAuthorizationError"
        may = ("--add", "--allow-principal", "User:alice", "--operation", "Describe")
        kclient(broker, "acls", *may, "--topic", tp.topic, "--transactional-id", name)
        wait_until(lambda: name in client.list_transactions(), 30, "the rules")
        assert client.describe_transactions([name])[name].transactional_id == name
        assert raised(lambda: client.fence_producers([name])) == "TransactionalIdAuthorizationError"
        assert raised(lambda: client.describe_producers([tp])) == "TopicAuthorizationError"
        assert raised(lambda: client.describe_producers([tp], broker_id=1)) == "TopicAuthorizationError"
        assert raised(lambda: client.abort_transaction(spec)) == "ClusterAuthorizationError"


@pytest.mark.parametrize(
    ("by", "described"),
    [("assign", False), ("assign", True), ("subscribe", False), ("subscribe", True)],
)
def test_a_consumer_notices_a_rule_that_comes_later_when_javas_does(
    broker: RealKafka, alice: dict[str, object], by: str, described: bool
) -> None:
    topic = new_topic(broker.bootstrap_servers, 1)
    may = ("--add", "--allow-principal", "User:alice", "--topic", topic)
    kclient(broker, "acls", "--add", "--allow-principal", "User:alice", "--group", f"g-{topic}")
    if described:
        kclient(broker, "acls", *may, "--operation", "Describe")
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send(topic, b"x")
    # Members of a group without partitions ask again by age alone; whoever has some, with every fetch.
    by_age_alone = by == "subscribe" and not described
    settings = {**alice, "metadata.max.age.ms": 1000 if by_age_alone else 300_000}
    with KafkaConsumer(settings, group_id=f"g-{topic}", auto_offset_reset="earliest") as consumer:
        if by == "assign":
            consumer.assign([TopicPartition(topic, 0)])
        else:
            consumer.subscribe([topic])
        with pytest.raises(TopicAuthorizationError, match=topic):
            consumer.poll(timeout_ms=30_000)

        kclient(broker, "acls", *may, "--operation", "Read")

        def reads() -> bool:
            try:
                return [record.value for record in consumer.poll(timeout_ms=100)] == [b"x"]
            except TopicAuthorizationError:  # the rule is not everywhere yet
                return False

        wait_until(reads, 30, "the record")


def refused(producer: KafkaProducer[bytes, bytes], topic: str) -> bool:
    errors = (TopicAuthorizationError, ClusterAuthorizationError)
    return seen(lambda: producer.send(topic, b"x").result(30), *errors)


def of_java(broker: RealKafka, *words: str) -> set[tuple[str, ...]]:
    """The rules that Kafka's own tool lists, as rows of ours."""
    printed = RealKafka.tool(
        "org.apache.kafka.tools.AclCommand", "--bootstrap-server", broker.bootstrap_servers, "--list", *words
    )
    rows: set[tuple[str, ...]] = set()
    resource: tuple[str, ...] = ()
    for line in printed.splitlines():
        found = re.search(r"resourceType=(\w+), name=([^,]+), patternType=(\w+)\)", line)
        if found:
            resource = found.groups()
        entry = re.search(r"principal=(\S+), host=(\S+), operation=(\w+), permissionType=(\w+)\)", line)
        if entry:
            rows.add((*resource, *entry.groups()))
    return rows


def test_a_token_is_its_owner_until_it_ends(
    broker: RealKafka, admin: KafkaAdminClient, alice: dict[str, object]
) -> None:
    with KafkaAdminClient(alice) as client:
        token = client.create_delegation_token(renewers=["User:bob"], max_lifetime_ms=3_600_000)
        info = token.token_info
        assert (info.owner, info.token_requester, info.renewers) == (
            "User:alice",
            "User:alice",
            ("User:bob",),
        )
        assert info.max_timestamp_ms - info.issue_timestamp_ms == 3_600_000
        wait_until(lambda: client.describe_delegation_token() == [token], 30, "the token")
        assert client.describe_delegation_token(["User:eve"]) == []
        settings = settings_of(broker, info.token_id, token.hmac_as_base64, token=True)
        wait_until(lambda: gets_in(settings), 30, "its holder")
        with KafkaAdminClient(settings) as holder:
            with pytest.raises(UnsupportedByAuthenticationError):
                holder.create_delegation_token()
            assert len(holder.describe_cluster().nodes) == 1
        ends_ms = client.renew_delegation_token(token.hmac, renew_period_ms=600_000)
        assert abs(ends_ms - time.time() * 1000 - 600_000) < 60_000
        wait_until(lambda: end_of(client, token) == ends_ms, 30, "its new end")
        client.expire_delegation_token(token.hmac)
        wait_until(lambda: client.describe_delegation_token() == [], 30, "its end")
    wait_until(lambda: not gets_in(settings), 30, "its end")
    with pytest.raises(UnsupportedByAuthenticationError):
        admin.create_delegation_token()  # who is not authenticated has nothing to hand on


@pytest.fixture
def alice_file(alice: dict[str, object], tmp_path: Path) -> str:
    """The settings of alice, for commands."""
    file = tmp_path / "alice.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in alice.items()))
    return str(file)


def test_the_command_for_tokens_and_kafkas_own_see_the_same_tokens(
    broker: RealKafka,
    alice: dict[str, object],
    alice_file: str,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ours(*words: str) -> list[dict[str, Any]]:
        command = ["delegation-tokens", *words, "--command-config", alice_file, "--output", "json"]
        assert main(command) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    def java(*words: str) -> list[list[str]]:
        printed = RealKafka.tool(
            "org.apache.kafka.tools.DelegationTokenCommand",
            *("--bootstrap-server", str(alice["bootstrap.servers"]), "--command-config", alice_file, *words),
        )
        return [row for row in map(str.split, printed.splitlines()) if row[2:3] == ["User:alice"]]

    period = ("--max-life-time-period", "3600000")
    (made,) = ours("--create", "--renewer-principal", "User:bob", *period)
    assert made["max_timestamp_ms"] - made["issue_timestamp_ms"] == 3_600_000
    ((token_id, hmac),) = [row[:2] for row in java("--create", *period)]
    wait_until(lambda: len(ours("--describe", "--owner-principal", "User:alice")) == 2, 30, "both tokens")
    secrets = {each["token_id"]: each["hmac"] for each in ours("--describe")}
    assert secrets == {made["token_id"]: made["hmac"], token_id: hmac}
    # Without an owner Kafka's tool asks for the tokens of nobody.
    assert {row[0]: row[1] for row in java("--describe", "--owner-principal", "User:alice")} == secrets
    settings = settings_of(broker, made["token_id"], made["hmac"], token=True)
    wait_until(lambda: gets_in(settings), 30, "its holder")

    monkeypatch.setattr("sys.stdin", io.StringIO(f"{made['hmac']}\n"))
    (renewed,) = ours("--renew", "--hmac", "-", "--renew-time-period", "600000")
    assert abs(renewed["expiry_timestamp_ms"] - time.time() * 1000 - 600_000) < 60_000
    for secret in secrets.values():
        ours("--expire", "--hmac", secret, "--expiry-time-period", "-1")
    wait_until(lambda: ours("--describe") == [], 30, "their end")
    wait_until(lambda: not gets_in(settings), 30, "its end")


def tokens_of(settings: dict[str, object]) -> list[DelegationToken]:
    with KafkaAdminClient(settings) as client:
        return client.describe_delegation_token()


def end_of(client: KafkaAdminClient, token: DelegationToken) -> int:
    return client.describe_delegation_token([token.token_info.owner])[0].token_info.expiry_timestamp_ms


def test_quotas_are_set_found_and_enforced(
    broker: RealKafka, admin: KafkaAdminClient, alice: dict[str, object], capsys: Captured
) -> None:
    topic = new_topic(broker.bootstrap_servers, 1)
    kclient(broker, "acls", "--add", "--producer", "--allow-principal", "User:alice", "--topic", topic)
    app = ClientQuotaEntity({ClientQuotaEntity.USER: "alice", ClientQuotaEntity.CLIENT_ID: "app"})
    quotas = {"producer_byte_rate": 10_000.0, "request_percentage": 200.5}
    assert admin.alter_client_quotas([ClientQuotaAlteration(app, quotas)]) == {app: None}
    of_alice = ClientQuotaFilter.contains([ClientQuotaFilterComponent.of_entity("user", "alice")])
    wait_until(lambda: admin.describe_client_quotas(of_alice) == {app: quotas}, 30, "the quota")
    capsys.readouterr()
    entity = (
        "--entity-type",
        "users",
        "--entity-name",
        "alice",
        "--entity-type",
        "clients",
        "--entity-name",
        "app",
    )
    kclient(broker, "configs", "--describe", *entity)
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()[1:]]
    java = RealKafka.tool(
        "kafka.admin.ConfigCommand", "--bootstrap-server", broker.bootstrap_servers, "--describe", *entity
    )
    assert {f"{name}={value}" for _, name, value, _ in rows} == set(
        re.findall(r"\w+=[\d.]+", java.partition(" are ")[2])
    )
    with KafkaProducer(alice, client_id="app") as producer:
        wait_until(
            lambda: not seen(lambda: producer.send(topic, b"x" * 20_000).result(60), TopicAuthorizationError),
            30,
            "the rule",
        )
        producer.send(topic, b"x" * 20_000).result(60)
        throttled_ms = producer.metrics()["produce-throttle-time-max"]
        assert throttled_ms > 0
    kclient(broker, "configs", "--alter", *entity, "--delete-config", "producer_byte_rate,request_percentage")
    wait_until(lambda: admin.describe_client_quotas(of_alice) == {}, 30, "the end of the quota")


def test_who_may_not_change_anything_is_told_so(alice: dict[str, object]) -> None:
    quota = ClientQuotaAlteration(ClientQuotaEntity({"user": "alice"}), {"producer_byte_rate": 1e9})
    with KafkaAdminClient(alice) as client:
        with pytest.raises(ClusterAuthorizationError):
            client.alter_client_quotas([quota])
        with pytest.raises(ClusterAuthorizationError):
            client.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", SHA_512, "other")])


def test_the_commands_and_programs_of_the_guide_do_what_it_says(
    broker: RealKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    section = GUIDE.read_text(encoding="utf-8").partition("## Who may do what")[2].partition("\n## ")[0]
    section = section.replace("alice", "guided")  # alice is who the other tests say
    monkeypatch.chdir(tmp_path)
    Path("guided.properties").write_text("SCRAM-SHA-512=[iterations=8192,password=secret]\n")
    Path("admin.properties").write_text(f"bootstrap.servers={broker.bootstrap_servers}\n")
    settings = settings_of(broker, "guided", "secret")
    Path("client.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    blocks = re.findall(r"^```(shell|python)\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == [
        *("shell", "python", "shell", "shell", "python", "python", "shell")
    ]
    for kind, text in blocks:
        if kind == "python":
            if "create_delegation_token" in text:
                wait_until(lambda: gets_in(settings), 30, "the user of the guide")
            if "describe_delegation_token" in text:
                wait_until(lambda: bool(tokens_of(settings)), 30, "the token of the guide")
            exec(compile(text, str(GUIDE), "exec"), {})
            continue
        for line in text.splitlines():
            command, *words = shlex.split(line)[1:]
            if "--command-config" in words:
                assert main([command, *words]) == 0
            else:
                kclient(broker, command, *words, *(["--force"] if "--remove" in words else []))
    assert main(["topics", "--list", "--command-config", "client.properties"]) == 0
    printed = capsys.readouterr().out
    assert "Removed: ALLOW WRITE to User:guided from * on TOPIC orders (LITERAL)" in printed
    assert "secret" not in printed
    # The second one is that of the command; the first one was ended.
    wait_until(lambda: len(tokens_of(settings)) == 1, 30, "the end of the token")
