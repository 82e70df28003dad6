"""`kclient doctor`: the steps to brokers that are well, and to those with whom something is wrong."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.network.certificates import Authority
from harness.network.forward_proxy import ForwardProxy, TlsFront
from harness.network.listener import SilentListener
from harness.network.ports import closed_port
from harness.network.scripted_broker import Reply, ScriptedBroker
from kclient.cli.main import main
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.sasl_handshake import SaslHandshakeResponse

Captured = pytest.CaptureFixture[str]
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter2";'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker() as running:
        yield running


class Doctor:
    """Runs the command, and reads its JSON."""

    def __init__(self, captured: Captured, folder: Path) -> None:
        self._captured = captured
        self._folder = folder

    def __call__(self, servers: str, **settings: str) -> tuple[int, dict[str, Any]]:
        file = self._folder / "client.properties"
        file.write_text("".join(f"{name.replace('_', '.')}={value}\n" for name, value in settings.items()))
        code = main(
            ["doctor", "--bootstrap-server", servers, "--command-config", str(file), "--output", "json"]
        )
        printed = self._captured.readouterr()
        assert "hunter2" not in printed.out + printed.err
        found: dict[str, Any] = json.loads(printed.out)
        assert found["ok"] is (code == 0)
        assert bool(found["problems"]) is (code == 1)
        return code, found

    def failed(self, servers: str, **settings: str) -> tuple[dict[str, Any], list[str], str]:
        """The step that failed, those before it, and the problem as it is told."""
        code, found = self(servers, **settings)
        assert code == 1
        broker = found["brokers"][0]
        steps = [broker["dns"], *(step for address in broker["addresses"] for step in address["steps"])]
        (wrong,) = (step for step in steps if not step["ok"])
        (problem,) = found["problems"]
        return wrong, [step["step"] for step in steps if step["ok"]], problem


@pytest.fixture
def doctor(capsys: Captured, tmp_path: Path) -> Doctor:
    return Doctor(capsys, tmp_path)


def tls(authority: Authority, **more: str) -> dict[str, str]:
    return {"security_protocol": "SSL", "ssl_truststore_location": str(authority.file), **more}


def test_a_cluster_that_is_well_is_walked_through_step_by_step(servers: str, doctor: Doctor) -> None:
    code, found = doctor(servers)
    assert code == 0
    (broker,) = found["brokers"]  # what is advertised is the bootstrap server
    host, _, port = servers.rpartition(":")
    assert (broker["host"], broker["port"], broker["id"], broker["from"]) == (
        host,
        int(port),
        1,
        "bootstrap.servers",
    )
    assert broker["dns"]["addresses"] == [host]
    ((tcp, versions, metadata),) = (address["steps"] for address in broker["addresses"])
    assert (tcp["step"], versions["step"], metadata["step"]) == ("tcp", "api_versions", "metadata")
    assert versions["speaks_like"].startswith("Kafka ")
    assert metadata["brokers"] == [f"{servers} (id 1)"]
    assert found["cluster_id"] == metadata["cluster_id"]
    assert found["controller_id"] == 1


def test_settings_that_the_protocol_does_not_use_are_not_looked_at(servers: str, doctor: Doctor) -> None:
    assert doctor(servers, ssl_truststore_location="/nowhere", sasl_mechanism="GSSAPI")[0] == 0


def test_people_read_the_same_in_lines(servers: str, capsys: Captured) -> None:
    assert main(["doctor", "--bootstrap-server", servers]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{servers} (bootstrap.servers)\n")
    assert "  metadata request  " in printed
    assert printed.endswith("A client reaches every broker.\n")
    port = closed_port()
    assert main(["doctor", "--bootstrap-server", f"127.0.0.1:{port}"]) == 1
    printed = capsys.readouterr().out
    assert "FAILED: Connection refused; see bootstrap.servers" in printed
    assert printed.endswith(
        f"Something is wrong:\n  127.0.0.1:{port}: tcp: Connection refused; see bootstrap.servers\n"
    )


def test_brokers_that_are_advertised_are_examined_as_well(broker: ScriptedBroker, doctor: Doctor) -> None:
    with ScriptedBroker(node_id=7) as other:
        broker.brokers = [broker, other]
        code, found = doctor(broker.bootstrap)
        assert code == 0
        assert [(each["port"], each["id"], each["from"]) for each in found["brokers"]] == [
            (broker.port, 0, "bootstrap.servers"),
            (other.port, 7, "advertised"),
        ]
    code, found = doctor(broker.bootstrap)
    assert code == 1
    (problem,) = found["problems"]
    assert problem == f"127.0.0.1:{other.port}: tcp: Connection refused; see advertised.listeners"


def test_an_advertised_name_that_does_not_resolve_is_told(broker: ScriptedBroker, doctor: Doctor) -> None:
    answer = broker.metadata

    def metadata() -> Any:
        response = answer()
        response.brokers[0].host = "no-such-broker.invalid"
        return response

    broker.metadata = metadata  # type: ignore[method-assign]
    code, found = doctor(broker.bootstrap)
    assert code == 1
    assert [each["ok"] for each in found["brokers"]] == [True, False]
    assert found["brokers"][1]["dns"]["setting"] == "advertised.listeners"
    (problem,) = found["problems"]
    assert problem.startswith(f"no-such-broker.invalid:{broker.port}: dns: ")


def test_what_a_broker_says_does_not_steer_the_terminal(broker: ScriptedBroker, capsys: Captured) -> None:
    answer = broker.metadata

    def metadata() -> Any:
        response = answer()
        response.cluster_id = "\x1b[2J[red]c\n"
        return response

    broker.metadata = metadata  # type: ignore[method-assign]
    assert main(["doctor", "--bootstrap-server", broker.bootstrap]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "cluster id: \\x1b[2J[red]c\\n" in printed


def test_one_address_of_several_is_enough(
    broker: ScriptedBroker, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, *more: Any, **options: Any) -> Any:
        if host != "broker.example":
            return real(host, *more, **options)
        return real("127.0.0.9", *more, **options) + real("127.0.0.1", *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    code, found = doctor(f"broker.example:{broker.port}")
    assert code == 0
    assert [address["ok"] for address in found["brokers"][0]["addresses"]] == [False, True]


def test_servers_of_different_clusters_are_told(broker: ScriptedBroker, servers: str, doctor: Doctor) -> None:
    code, found = doctor(f"{servers},{broker.bootstrap}")
    assert code == 1
    assert "different clusters" in found["problems"][0]


def test_tls_is_told_with_the_certificate(
    broker: ScriptedBroker, authority: Authority, doctor: Doctor
) -> None:
    pair = authority.issue("127.0.0.1", "other.example")
    with TlsFront(broker.address, authority.server_context(pair)) as front:
        broker.brokers = [front]  # type: ignore[list-item]
        front.node_id = 0  # type: ignore[attr-defined]
        code, found = doctor(front.bootstrap, **tls(authority))
    assert code == 0
    (step,) = (each for each in found["brokers"][0]["addresses"][0]["steps"] if each["step"] == "tls")
    assert step["protocol"] == "TLSv1.3"
    assert step["cipher"].startswith("TLS_")
    certificate = step["certificate"]
    assert sorted(certificate["names"]) == ["DNS:other.example", "IP Address:127.0.0.1"]
    assert "trustme" in certificate["issuer"]
    assert certificate["days_left"] > 0
    assert certificate["has_the_name"] is True


@pytest.mark.parametrize(
    ("names", "expired", "text", "setting", "has_the_name"),
    [
        (["127.0.0.1"], True, "certificate has expired", "ssl.truststore.location", True),
        (["other.example"], True, "IP address mismatch", "ssl.endpoint.identification.algorithm", False),
        (["other.example"], False, "IP address mismatch", "ssl.endpoint.identification.algorithm", False),
    ],
)
def test_a_certificate_that_is_refused_is_shown_all_the_same(
    authority: Authority,
    doctor: Doctor,
    names: list[str],
    expired: bool,
    text: str,
    setting: str,
    has_the_name: bool,
) -> None:
    context = authority.server_context(authority.issue(*names, expired=expired))
    with TlsFront(("127.0.0.1", 1), context) as front:
        step, passed, problem = doctor.failed(front.bootstrap, **tls(authority))
    assert passed == ["dns", "tcp"]
    assert (step["step"], step["setting"]) == ("tls", setting)
    assert text in step["error"]
    assert step["certificate"]["names"] == [
        f"IP Address:{name}" if name[0].isdigit() else f"DNS:{name}" for name in names
    ]
    assert (step["certificate"]["days_left"] < 0) is expired
    assert step["certificate"]["has_the_name"] is has_the_name
    assert problem.startswith(f"{front.bootstrap}: tls: ")


def test_a_certificate_of_an_authority_that_is_not_trusted_is_shown(
    authority: Authority, doctor: Doctor, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with TlsFront(("127.0.0.1", 1), authority.server_context(authority.issue("127.0.0.1"))) as front:
        step, _, _ = doctor.failed(front.bootstrap, **tls(Authority(other)))
    assert step["setting"] == "ssl.truststore.location"
    assert step["certificate"]["has_the_name"] is True


def test_a_client_without_a_certificate_where_one_is_wanted(authority: Authority, doctor: Doctor) -> None:
    context = authority.server_context(authority.issue("127.0.0.1"), client_certificate=True)
    with TlsFront(("127.0.0.1", 1), context) as front:
        step, _, _ = doctor.failed(front.bootstrap, **tls(authority))
    # With TLS 1.3 that is told after the handshake, and is about TLS nevertheless.
    assert (step["step"], step["setting"]) == ("tls", "ssl.keystore.location")
    assert step["certificate"]["has_the_name"] is True


def test_tls_on_a_plaintext_listener_and_the_reverse(
    servers: str, authority: Authority, doctor: Doctor
) -> None:
    step, passed, _ = doctor.failed(servers, **tls(authority))
    assert (step["step"], step["setting"], passed) == ("tls", "security.protocol", ["dns", "tcp"])
    context = authority.server_context(authority.issue("127.0.0.1"))
    with TlsFront(("127.0.0.1", 1), context) as front:
        step, passed, _ = doctor.failed(front.bootstrap)
    assert (step["step"], step["setting"], passed) == ("api_versions", "security.protocol", ["dns", "tcp"])


def refuses_mechanism(header: Any, message: Any) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-512", "OAUTHBEARER"])


def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are(
    broker: ScriptedBroker, doctor: Doctor
) -> None:
    broker.on(ApiKeys.SASL_HANDSHAKE, refuses_mechanism)
    settings = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_jaas_config": JAAS}
    step, passed, problem = doctor.failed(broker.bootstrap, **settings)
    assert (step["step"], step["setting"], passed) == ("sasl", "sasl.mechanism", ["dns", "tcp"])
    assert "offered are: OAUTHBEARER, SCRAM-SHA-512" in problem


def test_what_tls_found_is_told_though_sasl_ends_the_connection(
    broker: ScriptedBroker, authority: Authority, doctor: Doctor
) -> None:
    broker.on(ApiKeys.SASL_HANDSHAKE, refuses_mechanism)
    settings = {"sasl_mechanism": "PLAIN", "sasl_jaas_config": JAAS}
    context = authority.server_context(authority.issue("127.0.0.1"))
    with TlsFront(broker.address, context) as front:
        code, found = doctor(front.bootstrap, **tls(authority, **settings, security_protocol="SASL_SSL"))
    assert code == 1
    tcp, secured, sasl = found["brokers"][0]["addresses"][0]["steps"]
    assert tcp["ok"]
    assert secured["ok"]
    assert secured["certificate"]["names"] == ["IP Address:127.0.0.1"]
    assert (sasl["step"], sasl["setting"]) == ("sasl", "sasl.mechanism")


def test_a_token_that_cannot_be_had_is_told_before_anybody_is_connected_to(
    broker: ScriptedBroker, doctor: Doctor
) -> None:
    code, found = doctor(
        broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_endpoint_url=f"https://127.0.0.1:{closed_port()}/",
        sasl_oauthbearer_client_credentials_client_id="me",
        sasl_oauthbearer_client_credentials_client_secret="hunter2",
        sasl_login_retry_backoff_ms="10",
        sasl_login_retry_backoff_max_ms="20",
    )
    assert code == 1
    assert found["brokers"] == []
    (problem,) = found["problems"]
    assert problem.startswith("sasl: No token from https://127.0.0.1:")
    assert broker.accepted == 0


def test_a_listener_with_sasl_tells_a_client_without_it_what_it_offers(
    broker: ScriptedBroker, doctor: Doctor
) -> None:
    broker.on(ApiKeys.METADATA, lambda header, message: Reply.CLOSE)
    broker.on(ApiKeys.SASL_HANDSHAKE, refuses_mechanism)
    step, passed, problem = doctor.failed(broker.bootstrap)
    assert (step["step"], step["setting"]) == ("metadata", "security.protocol")
    assert step["offered"] == ["OAUTHBEARER", "SCRAM-SHA-512"]
    assert passed == ["dns", "tcp", "api_versions"]
    assert "closed by the peer: the listener wants SASL; see security.protocol" in problem


def test_a_broker_that_ends_the_first_request_without_sasl_is_not_said_to_want_it(
    broker: ScriptedBroker, doctor: Doctor
) -> None:
    broker.on(ApiKeys.METADATA, lambda header, message: Reply.CLOSE)
    broker.on(ApiKeys.SASL_HANDSHAKE, lambda header, message: SaslHandshakeResponse(error_code=34))
    step, _, _ = doctor.failed(broker.bootstrap)
    assert (step["step"], step["error"]) == ("metadata", "closed by the peer")


@pytest.mark.parametrize("scheme", ["socks5", "http"])
def test_a_proxy_is_a_step_of_its_own(servers: str, doctor: Doctor, scheme: str) -> None:
    with ForwardProxy({"broker.invalid": "127.0.0.1"}, ("me", "hunter2")) as proxy:
        port = servers.rpartition(":")[2]
        settings = {"kclient_proxy_url": proxy.url(scheme)}
        code, found = doctor(f"broker.invalid:{port}", **settings)
        assert code == 0
        steps = [step["step"] for step in found["brokers"][0]["addresses"][0]["steps"]]
        assert steps == ["tcp", "proxy", "api_versions", "metadata"]
        assert found["proxy"] == f"{scheme}://{proxy.bootstrap}"
        proxy.credentials = ("me", "another")
        step, passed, _ = doctor.failed(f"broker.invalid:{port}", **settings)
        assert (step["step"], step["setting"], passed) == ("proxy", "kclient.proxy.url", ["dns", "tcp"])


def test_a_listener_that_says_nothing_is_given_up(doctor: Doctor) -> None:
    with SilentListener() as silent:
        step, passed, _ = doctor.failed(silent.bootstrap, request_timeout_ms="100")
        assert (step["step"], step["setting"], passed) == (
            "api_versions",
            "request.timeout.ms",
            ["dns", "tcp"],
        )
        settings = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_jaas_config": JAAS,
        }
        quick = {"socket_connection_setup_timeout_ms": "100"}
        step, passed, _ = doctor.failed(silent.bootstrap, **settings, **quick)
        assert (step["step"], passed) == ("sasl", ["dns", "tcp"])
        assert step["setting"] == "socket.connection.setup.timeout.ms"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--output", "yaml"], "yaml"),
        (
            ["-X", "security.protocol=SSL", "-X", "ssl.truststore.location=/nowhere"],
            "ssl.truststore.location",
        ),
        (["-X", "kclient.proxy.url=ftp://proxy:21"], "kclient.proxy.url"),
    ],
)
def test_a_wrong_command_line_and_wrong_settings_end_with_code_2(
    servers: str, words: list[str], told: str, capsys: Captured
) -> None:
    try:
        code: object = main(["doctor", "--bootstrap-server", servers, *words])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert told in capsys.readouterr().err
