"""Clients that reach their brokers through a proxy, whose names nobody else can resolve."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.network.certificates import Authority
from harness.network.forward_proxy import ForwardProxy, TlsFront
from harness.network.listener import SilentListener
from harness.network.ports import closed_port, free_port
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.errors import (
    BootstrapError,
    ConfigError,
    KafkaError,
    KafkaTimeoutError,
    ProxyAuthenticationError,
    SslAuthenticationError,
)

NAME = "broker.invalid"
SCHEMES = pytest.mark.parametrize("scheme", ["socks5", "http"])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def ports() -> tuple[int, int]:
    """The broker's port for plaintext, and that of TLS before it."""
    return free_port(), free_port()


@pytest.fixture(scope="module")
def behind_tls(ports: tuple[int, int]) -> Iterator[int]:
    """The port behind TLS; a broker runs there that says it is NAME, and one with a port for plaintext."""
    plain, tls = ports
    behind = free_port()
    with (
        EmbeddedKafka(
            {
                "listeners": f"PLAINTEXT://127.0.0.1:{plain}",
                "advertised.listeners": f"PLAINTEXT://{NAME}:{plain}",
            }
        ),
        EmbeddedKafka(
            {
                "listeners": f"PLAINTEXT://127.0.0.1:{behind}",
                "advertised.listeners": f"PLAINTEXT://{NAME}:{tls}",
            }
        ),
    ):
        yield behind


@pytest.fixture
def proxy() -> Iterator[ForwardProxy]:
    with ForwardProxy({NAME: "127.0.0.1"}, ("me", "the secret/:@")) as running:
        yield running


def url(proxy: ForwardProxy, scheme: str, password: str = "the%20secret%2F%3A%40") -> str:
    return f"{scheme}://me:{password}@localhost:{proxy.port}"


def there_and_back(settings: dict[str, Any], topic: str) -> None:
    """Have each client do something."""
    with KafkaAdminClient(settings) as admin:
        admin.create_topics([NewTopic(topic, 2, 1)])
    with KafkaProducer(settings) as producer:
        for i in range(100):
            producer.send(topic, b"%d" % i)
    read: list[bytes | None] = []
    with KafkaConsumer(settings, group_id=f"g-{topic}", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 30
        while len(read) < 100:
            assert time.monotonic() < deadline
            read += [record.value for record in consumer.poll(100)]
    assert sorted(read, key=lambda value: int(value or b"-1")) == [b"%d" % i for i in range(100)]


@SCHEMES
@pytest.mark.usefixtures("behind_tls")
def test_every_client_works_through_a_proxy_that_alone_knows_the_brokers_name(
    proxy: ForwardProxy, ports: tuple[int, int], scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with pytest.raises(OSError, match=r".+"):
        socket.getaddrinfo(NAME, None)
    settings = {"bootstrap.servers": f"{NAME}:{ports[0]}", "kclient.proxy.url": url(proxy, scheme)}
    there_and_back(settings, f"t-{scheme}")
    assert len(proxy.asked) >= 5
    assert set(proxy.asked) == {(NAME, ports[0])}
    assert "the secret" not in caplog.text
    assert "the%20secret" not in caplog.text


@SCHEMES
@pytest.mark.parametrize("name", [NAME, "localhost"])
def test_with_tls_the_broker_proves_its_own_name_and_not_the_proxys(
    proxy: ForwardProxy,
    authority: Authority,
    ports: tuple[int, int],
    behind_tls: int,
    scheme: str,
    name: str,
) -> None:
    context = authority.server_context(authority.issue(name))
    settings = {
        "bootstrap.servers": f"{NAME}:{ports[1]}",
        "kclient.proxy.url": url(proxy, scheme),
        "security.protocol": "SSL",
        "ssl.truststore.location": str(authority.file),
    }
    front = TlsFront(("127.0.0.1", behind_tls), context, port=ports[1])
    with front:
        if name == NAME:
            there_and_back(settings, f"tls-{scheme}")
        else:
            with (
                KafkaAdminClient(settings) as admin,
                pytest.raises(SslAuthenticationError, match=rf"(?s){NAME}.*ssl\.endpoint"),
            ):
                admin.list_topics()


def produce(settings: dict[str, Any]) -> None:
    with KafkaProducer(settings, max_block_ms=700) as producer:
        producer.send("t", b"x")


def consume(settings: dict[str, Any]) -> None:
    with KafkaConsumer(settings) as consumer:
        consumer.partitions_for("t", timeout_ms=700)


def ask(settings: dict[str, Any]) -> None:
    with KafkaAdminClient(settings) as admin:
        admin.list_topics(timeout_ms=700)


CLIENTS = pytest.mark.parametrize("use", [produce, consume, ask])


def failure(use: Callable[[dict[str, Any]], None], proxy_url: str, **settings: Any) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        use({"bootstrap.servers": f"{NAME}:9092", "kclient.proxy.url": proxy_url, **settings})
    assert "secret" not in str(caught.value)
    return caught.value


@CLIENTS
@SCHEMES
def test_a_proxy_that_does_not_accept_the_password_is_told_at_once(
    proxy: ForwardProxy, use: Callable[[dict[str, Any]], None], scheme: str
) -> None:
    error = failure(use, url(proxy, scheme, "secretly-wrong"))
    assert isinstance(error, ProxyAuthenticationError)
    assert f"{scheme}://localhost:{proxy.port}" in str(error)
    assert not proxy.asked


@CLIENTS
@pytest.mark.parametrize(
    ("scheme", "refusal", "text"),
    [
        ("socks5", 2, "its rules do not allow that"),
        ("http", "HTTP/1.1 403 Not you", "'HTTP/1.1 403 Not you'"),
    ],
)
def test_what_a_proxy_says_is_what_a_time_out_says(
    proxy: ForwardProxy,
    use: Callable[[dict[str, Any]], None],
    scheme: str,
    refusal: int | str,
    text: str,
) -> None:
    proxy.refusal = refusal
    error = failure(use, url(proxy, scheme))
    assert isinstance(error, KafkaTimeoutError)
    assert f"{scheme}://localhost:{proxy.port} did not connect to {NAME}:9092: {text}" in str(error)
    assert len(proxy.asked) > 1  # which another try may mend


@CLIENTS
@SCHEMES
def test_a_proxy_that_says_nothing_is_given_up_after_the_time_for_connections(
    use: Callable[[dict[str, Any]], None], scheme: str
) -> None:
    with SilentListener() as silent:
        quick = {"socket.connection.setup.timeout.ms": 100, "socket.connection.setup.timeout.max.ms": 200}
        error = failure(use, f"{scheme}://{silent.bootstrap}", **quick)
        assert isinstance(error, KafkaTimeoutError)
        assert "socket.connection.setup.timeout.ms" in str(error)
        assert silent.accepted > 1


@CLIENTS
def test_a_proxy_that_is_not_there_is_named(use: Callable[[dict[str, Any]], None]) -> None:
    port = closed_port()
    error = failure(use, f"socks5://127.0.0.1:{port}")
    assert isinstance(error, KafkaTimeoutError)
    assert f"127.0.0.1:{port}" in str(error)


@CLIENTS
def test_a_proxy_whose_name_does_not_resolve_is_told_by_the_constructor(
    use: Callable[[dict[str, Any]], None],
) -> None:
    error = failure(use, "http://no-such-proxy.invalid:3128")
    assert isinstance(error, BootstrapError)
    assert "kclient.proxy.url" in str(error)
    assert "no-such-proxy.invalid" in str(error)


def test_names_cannot_be_made_canonical_behind_a_proxy() -> None:
    with pytest.raises(ConfigError, match=r"client\.dns\.lookup: with kclient\.proxy\.url"):
        KafkaProducer(
            bootstrap_servers="broker:9092",
            kclient_proxy_url="socks5://proxy:1080",
            client_dns_lookup="resolve_canonical_bootstrap_servers_only",
        )


@pytest.mark.usefixtures("behind_tls")
def test_a_proxy_that_restarts_costs_no_record(proxy: ForwardProxy, ports: tuple[int, int]) -> None:
    settings = {"bootstrap.servers": f"{NAME}:{ports[0]}", "kclient.proxy.url": url(proxy, "socks5")}
    with KafkaProducer(settings, reconnect_backoff_ms=10) as producer:
        assert producer.send("restarts", b"1").result(30).offset == 0
        proxy.stop()
        sent = producer.send("restarts", b"2")
        proxy.start()
        assert sent.result(30).offset == 1


def test_a_client_without_a_proxy_does_not_import_it() -> None:
    program = """
import sys
from kclient import KafkaProducer
KafkaProducer(bootstrap_servers="127.0.0.1:1").close(0)
print("kclient.network.proxy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
